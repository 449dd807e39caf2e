// SPDX-License-Identifier: Apache-2.0
//
// alltoall.lanes: on each node one rank stands in for each rank elsewhere (common/lanes.h): within
// a node the ranks give it their blocks for that one, and it gives them on as one message. Each
// rank gets one message from each other node, in place of one from each rank.
//
// Source: J. L. Traff, S. Hunold, "Decomposing MPI collectives for exploiting multi-lane
// communication", IEEE CLUSTER 2020, for nodes of as many ranks.
//
// 5 ranks on nodes 3, 2 (02: the block from rank 0 to rank 2; x: from the ranks of the node):
//            0                1                2              |  3                4
//   start    00 01 02 03 04   10 11 12 13 14   20 21 22 23 24    30 31 32 33 34   40 41 42 43 44
//   node     x0 x3            x1               x2 x4             x0 x1 x3         x2 x4
//   lanes    x0 30 40         x1 31 41         x2 32 42          x3 03 13 23      x4 04 14 24
//
// Cost (N nodes of R ranks, n: one block): (R-1) (alpha + N n beta) within a node and
// (N-1) (alpha + R n beta) between nodes, P n bytes copied on the way.
// Restrictions: none. Of short vectors a rank alone joins another node (common/joined.h). In place
// the input is copied before.
#include "algorithms/common/lanes.h"

#include "algorithms/catalogue.h"
#include "algorithms/common/joined.h"
#include "algorithms/common/landing.h"

namespace carillon {
namespace {

class Exchange {
 public:
  Exchange(const Call& call, Builder& b)
      : call_(call),
        b_(b),
        blocks_(Blocks::per_rank(call)),
        lanes_("alltoall.lanes", call, b, blocks_, Lanes::Order::kOfRanks),
        here_(lanes_.levels().members(lanes_.levels().own())),
        place_(lanes_.levels().place()) {
    for (const Rank owner : lanes_.owners_at(place_)) {
      if (!is_here(owner)) away_.push_back(owner);
    }
    store_ = b.allocate_scratch(call.shared.block_bytes() * size() *
                                static_cast<std::int64_t>(away_.size()));
  }

  // Of long messages a strand gives and another one takes.
  void within_node() {
    const Rank others = size() - 1;
    part("node", std::max<std::size_t>(lanes_.owners_at(0).size(), away_.size() + 1));
    for (Rank step = 1; step <= others; ++step) {
      const Rank place = (place_ + step) % size();
      BufferList list;
      for (const Rank owner : lanes_.owners_at(place)) list.add(b_.input(blocks_[owner]));
      give(call_, b_, at(here_, place), list);
    }
    if (is_long_) b_.strand();
    keep_own();
    for (Rank step = 1; step <= others; ++step) {
      const Rank place = (place_ - step + size()) % size();
      BufferList list;
      for (const Rank owner : lanes_.owners_at(place_)) {
        list.add(is_here(owner) ? b_.output(blocks_[at(here_, place)]) : stored(owner, place));
      }
      take(call_, b_, at(here_, place), list);
    }
    b_.leave();
  }

  void between_nodes() {
    const Levels& levels = lanes_.levels();
    part("lanes", static_cast<std::size_t>(size()));
    // Those of the node after this one first.
    const auto first = std::upper_bound(away_.begin(), away_.end(), call_.rank) - away_.begin();
    for (std::size_t step = 0; step < away_.size(); ++step) {
      const Rank owner = away_[(static_cast<std::size_t>(first) + step) % away_.size()];
      BufferList list;
      for (Rank place = 0; place < size(); ++place) list.add(stored(owner, place));
      give(call_, b_, owner, list);
    }
    if (is_long_) b_.strand();
    for (std::int32_t step = 1; step < levels.nodes(); ++step) {
      const std::int32_t node = (levels.own() - step + levels.nodes()) % levels.nodes();
      BufferList list;
      for (const Rank member : levels.members(node)) list.add(b_.output(blocks_[member]));
      take(call_, b_, lanes_.stand_in(node, call_.rank), list);
    }
    b_.leave();
  }

 private:
  [[nodiscard]] Rank size() const { return static_cast<Rank>(here_.size()); }
  [[nodiscard]] bool is_here(Rank rank) const {
    return lanes_.node_of(rank) == lanes_.levels().own();
  }
  static Rank at(std::span<const Rank> list, Rank index) {
    return list[static_cast<std::size_t>(index)];
  }
  // The block from who is there on this node to that rank elsewhere.
  [[nodiscard]] Buffer stored(Rank owner, Rank place) const {
    const auto row = std::lower_bound(away_.begin(), away_.end(), owner) - away_.begin();
    const std::int64_t block = call_.shared.block_bytes();
    return b_.scratch(store_.sub({(row * size() + place) * block, block}));
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
  // Messages of so many blocks.
  void part(std::string_view phase, std::size_t blocks) {
    is_long_ =
        call_.shared.block_bytes() * static_cast<std::int64_t>(blocks) > call_.limits.inline_bytes;
    b_.phase(phase);
    b_.enter(call_, Members::all(call_.shared.ranks), b_.input({}), b_.output({}));
  }

  const Call& call_;
  Builder& b_;
  Blocks blocks_;
  Lanes lanes_;
  std::span<const Rank> here_;
  Rank place_;
  std::vector<Rank> away_;  // whom this rank stands in for
  Range store_;
  bool is_long_ = false;
};

}  // namespace

void emit_alltoall_lanes(const Call& team, Builder& b) {
  constexpr std::int32_t kFewNodes = 2;
  const Call call =
      with_alone_joined(team, team.shared.block_bytes() * team.shared.ranks, kFewNodes);
  if (call.local.in_place) b.enter_staged();
  Exchange exchange(call, b);
  exchange.within_node();
  exchange.between_nodes();
  if (call.local.in_place) b.leave();
}

}  // namespace carillon
