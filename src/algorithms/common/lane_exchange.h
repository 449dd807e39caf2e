// SPDX-License-Identifier: Apache-2.0
//
// The parts of an exchange of blocks by lanes (alltoall.lanes says what they are for).
#pragma once

#include "algorithms/common/landing.h"
#include "algorithms/common/lanes.h"

namespace carillon {

class LaneExchange {
 public:
  LaneExchange(const Call& call, Builder& b)
      : call_(call),
        b_(b),
        blocks_(Blocks::per_rank(call)),
        lanes_("alltoall.lanes", call, b, blocks_, Lanes::Order::kOfRanks),
        own_(lanes_.levels().own()),
        here_(lanes_.levels().members(own_)),
        place_(lanes_.levels().place()) {
    for (const Rank owner : lanes_.owners_at(place_)) {
      if (lanes_.node_of(owner) != own_) away_.push_back(owner);
    }
    // Those that are passed on come from nodes of half the ranks.
    std::size_t most = lanes_.levels().are_even() ? 0 : here_.size() / 2;
    for (Rank place = 0; place < size(); ++place) {
      most = std::max(most, lanes_.owners_at(place).size());
    }
    most_bytes_ = static_cast<std::int64_t>(most) * call.shared.block_bytes();
    store_ = b.allocate_scratch(call.shared.block_bytes() * size() *
                                static_cast<std::int64_t>(away_.size()));
  }

  // Of the longest message within the node.
  [[nodiscard]] std::int64_t most_bytes() const { return most_bytes_; }

  // Of long messages a strand gives and another one takes.
  void within_node(bool may_overwrite) {
    enter("node");
    // In place what comes overwrites what is to be given: nothing is taken before.
    const bool in_turn = may_overwrite && call_.local.in_place && is_long(most_bytes());
    for_distances([&](Rank after, Rank before) {
      give_in_node(after);
      if (before != after) give_in_node(before);
      if (in_turn) b_.signal(call_.rank);
    });
    if (is_long(most_bytes())) b_.strand();
    keep_own();
    for_distances([&](Rank after, Rank before) {
      if (in_turn) b_.wait(call_.rank, 0);
      take_in_node(before);
      if (before != after) take_in_node(after);
    });
    b_.leave();
  }

  void between_nodes() {
    enter("lanes");
    bool any_long = false;
    // Those of the node after this one first.
    const auto first = std::upper_bound(away_.begin(), away_.end(), call_.rank) - away_.begin();
    for (std::size_t step = 0; step < away_.size(); ++step) {
      const Rank owner = away_[(static_cast<std::size_t>(first) + step) % away_.size()];
      const std::vector<Rank> group = lanes_.sharing(own_, owner);
      if (taker(group, own_) != owner) continue;
      BufferList list;
      for (const Rank each : group) {
        for (Rank place = 0; place < size(); ++place) list.add(stored(each, place));
      }
      any_long = any_long || is_long(list.length());
      give(call_, b_, owner, list);
    }
    if (any_long) b_.strand();
    for_nodes([&](std::int32_t node, std::span<const Rank> group) {
      if (taker(group, node) != call_.rank) return;
      take(call_, b_, lanes_.stand_in(node, call_.rank), taken(node, group));
    });
    b_.leave();
  }

  // To those for whom another rank of the node has taken them.
  void pass_on() {
    if (lanes_.levels().are_even()) return;
    enter("pass");
    for (const Passed& each : passed_) give(b_, each.owner, b_.scratch(each.blocks), is_put_here());
    if (is_long(most_bytes())) b_.strand();
    for_nodes([&](std::int32_t node, std::span<const Rank> group) {
      const Rank from = taker(group, node);
      if (from == call_.rank) return;
      BufferList list;
      add_blocks_from(node, list);
      take(b_, from, list, is_put_here());
    });
    b_.leave();
  }

 private:
  [[nodiscard]] Rank size() const { return static_cast<Rank>(here_.size()); }
  static Rank at(std::span<const Rank> list, Rank index) {
    return list[static_cast<std::size_t>(index)];
  }
  // The other nodes, and who shares what comes from there with this rank.
  template <typename Body>
  void for_nodes(Body body) {
    const std::int32_t nodes = lanes_.levels().nodes();
    for (std::int32_t step = 1; step < nodes; ++step) {
      const std::int32_t node = (own_ - step + nodes) % nodes;
      body(node, lanes_.sharing(node, call_.rank));
    }
  }
  // From each node another one of those who share.
  static Rank taker(std::span<const Rank> group, std::int32_t node) {
    return at(group, node % static_cast<Rank>(group.size()));
  }
  // Of the ranks of the node that are equally far after and before this one.
  template <typename Body>
  void for_distances(Body body) const {
    for (Rank distance = 1; distance <= size() / 2; ++distance) {
      body((place_ + distance) % size(), (place_ - distance + size()) % size());
    }
  }
  void give_in_node(Rank place) {
    BufferList list;
    for (const Rank owner : lanes_.owners_at(place)) list.add(b_.input(blocks_[owner]));
    give(b_, at(here_, place), list, is_put_here());
  }
  void take_in_node(Rank place) {
    BufferList list;
    for (const Rank owner : lanes_.owners_at(place_)) {
      const bool is_here = lanes_.node_of(owner) == own_;
      list.add(is_here ? b_.output(blocks_[at(here_, place)]) : stored(owner, place));
    }
    take(b_, at(here_, place), list, is_put_here());
  }
  // The block from who is there on this node to that rank elsewhere.
  [[nodiscard]] Buffer stored(Rank owner, Rank place) const {
    const auto row = std::lower_bound(away_.begin(), away_.end(), owner) - away_.begin();
    const std::int64_t block = call_.shared.block_bytes();
    return b_.scratch(store_.sub({(row * size() + place) * block, block}));
  }
  void add_blocks_from(std::int32_t node, BufferList& list) const {
    for (const Rank member : lanes_.levels().members(node)) list.add(b_.output(blocks_[member]));
  }
  // What comes from that node for the group, as it lies here.
  BufferList taken(std::int32_t node, std::span<const Rank> group) {
    const std::int64_t bytes = lanes_.levels().size(node) * call_.shared.block_bytes();
    Range blocks = b_.allocate_scratch(bytes * static_cast<std::int64_t>(group.size() - 1));
    blocks.length = bytes;
    BufferList list;
    for (const Rank owner : group) {
      if (owner == call_.rank) {
        add_blocks_from(node, list);
        continue;
      }
      list.add(b_.scratch(blocks));
      passed_.push_back({owner, blocks});
      blocks.offset += bytes;
    }
    return list;
  }
  void keep_own() {
    b_.copy(b_.output(blocks_[call_.rank]), b_.input(blocks_[call_.rank]));
    BufferList dst, src;
    for (const Rank owner : away_) {
      dst.add(stored(owner, place_));
      src.add(b_.input(blocks_[owner]));
    }
    if (!away_.empty()) b_.copy(dst, src);
  }
  void enter(std::string_view phase) {
    b_.phase(phase);
    b_.enter(call_, Members::all(call_.shared.ranks), b_.input({}), b_.output({}));
  }
  [[nodiscard]] bool is_put_here() const { return is_put(call_, most_bytes()); }
  [[nodiscard]] bool is_long(std::int64_t bytes) const { return bytes > call_.limits.inline_bytes; }

  struct Passed {
    Rank owner;
    Range blocks;
  };

  const Call& call_;
  Builder& b_;
  Blocks blocks_;
  Lanes lanes_;
  std::int32_t own_;
  std::span<const Rank> here_;
  Rank place_;
  std::vector<Rank> away_;  // whom this rank stands in for
  Range store_;
  std::vector<Passed> passed_;
  std::int64_t most_bytes_ = 0;
};

}  // namespace carillon
