// SPDX-License-Identifier: Apache-2.0
//
// Lanes: a vector is cut into a piece for each rank, its *owner*, and on each other node one rank
// *stands in* for the owner: the one as far through its node as the owner is through its own. So
// nothing goes between nodes more than once for each node, and all ranks of a node send alike,
// whatever the numbers of ranks on the nodes.
//
//   5 ranks on nodes 3, 2; the pieces in whose lanes a rank is, its own in brackets:
//     0        1      2     |  3          4
//     [a] d    [b]    [c] e    [d] a b    [e] c
//
// Four parts, of which a collective takes those it needs: reduce_in_node, where each rank reduces
// the pieces of its lanes over its node; to_owners, where these partial results go to who owns
// them; from_owners, where whole pieces go to who stands in; and share_in_node, where these go to
// all of the node, or give_in_node, to one.
//
// Source: J. L. Traff, S. Hunold, "Decomposing MPI collectives for exploiting multi-lane
// communication", IEEE CLUSTER 2020, has lanes of nodes of as many ranks.
#pragma once

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "algorithms/common/blocks.h"
#include "algorithms/common/levels.h"
#include "algorithms/common/order.h"
#include "algorithms/common/others.h"
#include "algorithms/common/segments.h"

namespace carillon {

class Lanes {
  template <typename T>
  static T& at(std::vector<T>& list, std::int32_t index) {
    return list[static_cast<std::size_t>(index)];
  }
  template <typename T>
  static const T& at(const std::vector<T>& list, std::int32_t index) {
    return list[static_cast<std::size_t>(index)];
  }

 public:
  /// Whose piece lies where in the vector: in the order of the ranks, or so that the pieces of a
  /// rank's lanes follow one another.
  enum class Order : std::uint8_t { kOfRanks, kOfLanes };

  Lanes(std::string_view id, const Call& call, Builder& b, const Blocks& blocks, Order order)
      : call_(call),
        b_(b),
        levels_(id, call, b),
        blocks_(blocks),
        places_(of_ranks<Rank>()),
        nodes_(of_ranks<std::int32_t>()),
        positions_(of_ranks<Rank>()),
        starts_(of_ranks<std::int64_t>()) {
    for (std::int32_t node = 0; node < levels_.nodes(); ++node) {
      Rank place = 0;
      for (const Rank rank : levels_.members(node)) {
        at(nodes_, rank) = node;
        at(places_, rank) = place++;
      }
    }
    lanes_.resize(static_cast<std::size_t>(levels_.size(levels_.own())));
    Rank position = 0;
    for (const Rank owner : owners(order)) {
      at(positions_, owner) = position++;
      at(lanes_, place_on(levels_.own(), owner)).push_back(owner);
    }
    for (const Rank owner : own_lanes()) {
      at(starts_, owner) = lanes_bytes_;
      lanes_bytes_ += piece(owner).length;
    }
    for (Rank place = 0; place < size(); ++place) longest_ = std::max(longest_, length_of(place));
  }

  [[nodiscard]] Range piece(Rank owner) const { return blocks_[at(positions_, owner)]; }
  [[nodiscard]] const Levels& levels() const { return levels_; }
  [[nodiscard]] std::int32_t node_of(Rank rank) const { return at(nodes_, rank); }
  /// In whose lanes the rank is that has this place on this node, as their pieces lie.
  [[nodiscard]] const std::vector<Rank>& owners_at(Rank place) const { return at(lanes_, place); }
  [[nodiscard]] Rank stand_in(std::int32_t node, Rank owner) const {
    return levels_.members(node)[static_cast<std::size_t>(place_on(node, owner))];
  }
  /// Who of the owner's node has the same stand-in on that one, if that has at most half as many
  /// ranks; else the owner alone.
  [[nodiscard]] std::vector<Rank> sharing(std::int32_t node, Rank owner) const {
    const std::span<const Rank> members = levels_.members(node_of(owner));
    if (static_cast<Rank>(members.size()) < 2 * levels_.size(node)) return {owner};
    std::vector<Rank> group;
    for (const Rank member : members) {
      if (stand_in(node, member) == stand_in(node, owner)) group.push_back(member);
    }
    return group;
  }
  /// Of all pieces in whose lanes this rank is, and where one of them begins if they lie end to
  /// end.
  [[nodiscard]] std::int64_t lanes_bytes() const { return lanes_bytes_; }
  [[nodiscard]] std::int64_t start(Rank owner) const { return at(starts_, owner); }

  /// From the input; the partial results are then this object's.
  void reduce_in_node() {
    const bool alone = levels_.is_alone();
    // Who has a node to itself has its partial results: the input, but for what the result
    // overwrites.
    const Range overwritten{0, alone && overwrites_block() ? piece(0).length : 0};
    partial_ = b_.allocate_scratch(alone ? overwritten.length : lanes_bytes_);
    if (alone) {
      if (overwritten.length > 0) b_.copy(b_.scratch(partial_), b_.input(overwritten));
      return;
    }
    enter_node("node");
    const std::int32_t element = call_.shared.element_bytes;
    const std::int64_t share = call_.segment_bytes() / size() / element * element;
    const bool for_all = size() > 2 && b_.reaches_all() && share > 0;
    const NodeParts parts = parts_of([this](Rank owner) { return b_.input(piece(owner)); });
    const std::int64_t segment = for_all ? share : call_.segment_bytes();
    const bool ahead = !for_all && size() > 2 && longest_ > call_.limits.inline_bytes;
    rounds(
        parts, segment, ahead, [&](Range s) { put_parts(parts, for_all, s); },
        [&](Range s) { reduce_parts(parts, for_all, s); });
    b_.leave();
  }

  /// Partial results to who owns them, who reduces those of its piece in the order of the nodes
  /// into result(part), a part of the piece.
  template <typename Result>
  void to_owners(Result result) {
    const Rank rank = call_.rank;
    // The prefix must not be in the memory of the own operand.
    const bool apart = levels_.is_alone() && call_.local.in_place && !overwrites_block();
    const Range prefix = b_.allocate_scratch(apart ? piece(rank).length : 0);
    across(
        [&](auto part) {
          for_lanes_elsewhere(true, [&](Rank owner) {
            const Range range = part(owner);
            if (range.length > 0) b_.put(owner, partial(owner, range));
          });
        },
        [&](auto part) {
          const Range own = part(rank);
          if (own.length == 0) return;
          const Buffer dst = result(own);
          if (levels_.nodes() == 1) return b_.copy(dst, partial(rank, own));
          const Buffer before = apart ? b_.scratch(prefix.sub(own)) : dst;
          reduce_in_rank_order(b_, levels_.nodes(), levels_.own(), dst, before,
                               [&](std::int32_t node) {
                                 if (node == levels_.own()) return partial(rank, own);
                                 const Message m = b_.wait(stand_in(node, rank), own.length);
                                 const Buffer theirs = b_.slot(m, Range{0, own.length});
                                 if (node > 0 || levels_.own() == 1 || are_even()) return theirs;
                                 b_.copy(before, theirs);
                                 return before;
                               });
        });
  }

  /// From own(part) of who owns a piece to place(owner, part) of who stands in, on all other nodes
  /// or on `only`.
  template <typename Own, typename Place>
  void from_owners(Own own, Place place, std::int32_t only = -1) {
    if (levels_.nodes() == 1) return;
    const bool takes = only < 0 || only == levels_.own();
    across(
        [&](auto part) {
          const Range range = part(call_.rank);
          for (std::int32_t step = 1; step < levels_.nodes(); ++step) {
            const std::int32_t node = (levels_.own() + step) % levels_.nodes();
            if (range.length == 0 || (only >= 0 && node != only)) continue;
            b_.put(stand_in(node, call_.rank), own(range));
          }
        },
        [&](auto part) {
          // Of long ones a rank has two on the way: the first owner of all must find that all take
          // its message first, then the second, and so on.
          for_lanes_elsewhere(!is_long(), [&](Rank owner) {
            const Range range = part(owner);
            if (!takes || range.length == 0) return;
            const Message m = b_.wait(owner, range.length);
            b_.copy(place(owner, range), b_.slot(m, Range{0, range.length}));
          });
        });
  }

  /// All pieces of the rank's lanes, where they belong in the output, to all others of its node.
  void share_in_node() {
    if (levels_.is_alone()) return;
    const Call own = enter_node("node");
    const NodeParts parts = parts_of([this](Rank owner) { return b_.output(piece(owner)); });
    const std::int64_t segment = call_.segment_bytes();
    rounds(
        parts, segment, b_.put_all_is_large(std::min(longest_, segment)),
        [&](Range s) {
          const BufferList list = at(parts, own.rank).slice(s);
          if (list.length() > 0) put_others(own, b_, list);
        },
        [&](Range s) {
          for (Rank step = 0; step < size() - 1; ++step) {
            const Rank peer = other_in_turn(own, b_, step);
            take_list(at(parts, peer).slice(s),
                      [&](std::int64_t bytes) { return wait_other(own, b_, peer, bytes); });
          }
        });
    b_.leave();
  }

  /// The same to `root` alone, who has its own where they belong; the others have theirs end to end
  /// in `from`. Nothing on other nodes.
  void give_in_node(Rank root, Range from) {
    if (node_of(root) != levels_.own() || levels_.is_alone()) return;
    enter_node("node");
    const NodeParts parts = parts_of([this](Rank owner) { return b_.output(piece(owner)); });
    const Rank to = at(places_, root);
    for_each_round(parts, call_.segment_bytes(), [&](Range s) {
      if (call_.rank != root) {
        const std::int64_t bytes = at(parts, levels_.place()).slice(s).length();
        if (bytes > 0) b_.put(to, b_.scratch(from.sub({s.offset, bytes, s.stride})));
        return;
      }
      for (Rank peer = 0; peer < size(); ++peer) {
        if (peer == to) continue;
        take_list(at(parts, peer).slice(s),
                  [&](std::int64_t bytes) { return b_.wait(peer, bytes); });
      }
    });
    b_.leave();
  }

 private:
  using NodeParts = std::vector<Pieces>;  // by the place on the node

  template <typename T>
  [[nodiscard]] std::vector<T> of_ranks() const {
    return std::vector<T>(static_cast<std::size_t>(call_.shared.ranks));
  }

  // In the order in which their pieces lie.
  [[nodiscard]] std::vector<Rank> owners(Order order) const {
    std::vector<Rank> ranks = of_ranks<Rank>();
    std::iota(ranks.begin(), ranks.end(), 0);
    if (order == Order::kOfRanks) return ranks;
    std::stable_sort(ranks.begin(), ranks.end(), [&](Rank a, Rank c) {
      return way(a) * levels_.size(node_of(c)) < way(c) * levels_.size(node_of(a));
    });
    return ranks;
  }

  [[nodiscard]] Rank size() const { return levels_.size(levels_.own()); }
  // Then the second message comes to whoever holds the first one, for all ranks of a lane put in
  // the same order. Else a rank's first two messages could be held by who waits for those of
  // another rank, and the other way around: nobody holds one while waiting for the next.
  [[nodiscard]] bool are_even() const { return levels_.are_even(); }
  // How far through its node a rank is, in parts of 1 / nodes of a rank. Those of later nodes are a
  // little further: where nodes are not alike, all ranks of one have about as many lanes.
  [[nodiscard]] std::int64_t way(Rank rank) const {
    return std::int64_t{at(places_, rank)} * levels_.nodes() + node_of(rank);
  }
  // Of who owns the piece, or stands in.
  [[nodiscard]] Rank place_on(std::int32_t node, Rank owner) const {
    const std::int64_t whole = std::int64_t{levels_.size(node_of(owner))} * levels_.nodes();
    return static_cast<Rank>(way(owner) * levels_.size(node) / whole);
  }
  [[nodiscard]] const std::vector<Rank>& own_lanes() const { return owners_at(levels_.place()); }
  [[nodiscard]] std::int64_t length_of(Rank place) const {
    std::int64_t bytes = 0;
    for (const Rank owner : at(lanes_, place)) bytes += piece(owner).length;
    return bytes;
  }
  // The one of rank 0, by any rank's result.
  [[nodiscard]] bool overwrites_block() const {
    return call_.local.in_place && call_.shared.collective == Collective::kReduceScatterBlock;
  }
  [[nodiscard]] Buffer partial(Rank owner, Range part) const {
    if (levels_.is_alone()) {
      if (owner == 0 && overwrites_block()) return b_.scratch(partial_.sub(part));
      return b_.input(piece(owner).sub(part));
    }
    return b_.scratch(partial_.sub({start(owner) + part.offset, part.length, part.stride}));
  }

  Call enter_node(std::string_view phase) {
    b_.phase(phase);
    Call own = call_;
    own.rank = levels_.place();
    return b_.enter(own, levels_.members(levels_.own()), b_.input({}), b_.output({}));
  }
  template <typename Buffers>
  [[nodiscard]] NodeParts parts_of(Buffers buffers) const {
    NodeParts parts(lanes_.size(), Pieces(Pieces::Touching::kOne));
    for (std::size_t place = 0; place < lanes_.size(); ++place) {
      for (const Rank owner : lanes_[place]) parts[place].add(buffers(owner));
    }
    return parts;
  }
  template <typename Body>
  void for_each_round(const NodeParts& parts, std::int64_t segment, Body body) {
    std::vector<std::int64_t> breaks;
    for (const Pieces& part : parts) {
      breaks.insert(breaks.end(), part.breaks().begin(), part.breaks().end());
      if (part.length() < longest_) breaks.push_back(part.length());
    }
    segments_around(b_, longest_, segment, breaks, body);
  }
  // All of them put, in a strand of their own if they may wait for one another, and taken.
  template <typename Put, typename Take>
  void rounds(const NodeParts& parts, std::int64_t segment, bool ahead, Put put, Take take) {
    for_each_round(parts, segment, put);
    if (ahead || longest_ > segment) b_.strand();
    for_each_round(parts, segment, take);
  }
  template <typename Wait>
  void take_list(const BufferList& list, Wait wait) {
    if (list.length() == 0) return;
    const Message m = wait(list.length());
    b_.copy(list, b_.slot(m, Range{0, list.length()}));
  }

  // A segment of each other's part: in one message, or each in its own.
  void put_parts(const NodeParts& parts, bool for_all, Range s) {
    BufferList list;
    for (Rank step = 1; step < size(); ++step) {
      const Rank place = (levels_.place() + step) % size();
      const BufferList theirs = at(parts, place).slice(s);
      if (!for_all && theirs.length() > 0) b_.put(place, theirs);
    }
    for (Rank place = 0; for_all && place < size(); ++place) {
      if (place == levels_.place()) continue;
      const BufferList theirs = at(parts, place).slice(s);
      for (const Buffer& buffer : theirs.items()) list.add(buffer);
    }
    if (for_all && list.length() > 0) b_.put_all(list);
    if (for_all && list.length() == 0) b_.signal_all();
  }
  void reduce_parts(const NodeParts& parts, bool for_all, Range s) {
    const Rank own = levels_.place();
    const BufferList mine = at(parts, own).slice(s);
    std::vector<std::int64_t> lengths;
    for (const Pieces& part : parts) lengths.push_back(part.slice(s).length());
    const auto before = [&](Rank peer) {
      std::int64_t bytes = 0;
      for (Rank place = 0; for_all && place < own; ++place) {
        if (place != peer) bytes += at(lengths, place);
      }
      return bytes;
    };
    // One peer after another, so that no more than two messages are held. What messages bring and
    // what comes of them lies end to end; only the own pieces may be apart.
    const std::int64_t bytes = mine.length();
    const Buffer result = b_.scratch(partial_.sub({s.offset, bytes, s.stride}));
    Buffer sum;
    for (Rank peer = 0; peer < size(); ++peer) {
      Buffer operand;
      if (peer != own && (for_all || bytes > 0)) {
        const Message m = for_all ? b_.wait_all(peer) : b_.wait(peer, bytes);
        operand = b_.slot(m, Range{before(peer), bytes});
      }
      if (peer > 0 && bytes > 0) {
        if (peer == own || (peer == 1 && own == 0)) {
          reduce_own(result, mine, peer == own ? sum : operand, peer == own);
        } else {
          b_.reduce(result, sum, operand);
        }
      }
      sum = peer == 0 ? operand : result;
    }
  }
  // The own pieces, in their runs, and what others have of them.
  void reduce_own(const Buffer& dst, const BufferList& mine, const Buffer& theirs,
                  bool theirs_is_lower) {
    std::int64_t done = 0;
    for (const Buffer& run : mine.items()) {
      reduce_pair(b_, part_of(dst, done, run), run, part_of(theirs, done, run), theirs_is_lower);
      done += run.range.length;
    }
  }
  // As much of it as the run has, from there on.
  [[nodiscard]] static Buffer part_of(Buffer buffer, std::int64_t start, const Buffer& run) {
    buffer.range = {buffer.range.offset + start, run.range.length, buffer.range.stride};
    return buffer;
  }

  // Calls body(owner) for the pieces of other nodes in whose lanes this rank is, as they lie or
  // from those on that lie after its own.
  template <typename Body>
  void for_lanes_elsewhere(bool from_own, Body body) const {
    const std::vector<Rank>& lanes = own_lanes();
    const auto own = std::find(lanes.begin(), lanes.end(), call_.rank) - lanes.begin();
    const std::size_t first = from_own ? static_cast<std::size_t>(own) : 0;
    for (std::size_t step = 0; step < lanes.size(); ++step) {
      const Rank owner = lanes[(first + step) % lanes.size()];
      if (node_of(owner) != levels_.own()) body(owner);
    }
  }
  [[nodiscard]] bool is_long() const {
    return blocks_.longest() >
           std::min<std::int64_t>(call_.segment_bytes(), call_.limits.inline_bytes);
  }
  // Segments of all pieces at once, put and taken; put(part) and take(part) get the part of a
  // piece, part(owner), that a segment is. Long ones are put by a strand of their own.
  template <typename Put, typename Take>
  void across(Put put, Take take) {
    b_.phase("lanes");
    b_.enter(call_, Members::all(call_.shared.ranks), b_.input({}), b_.output({}));
    const std::int64_t segment = call_.segment_bytes();
    const std::int64_t common = blocks_[call_.shared.ranks - 1].length / segment * segment;
    const auto pieces = [&](auto body) {
      b_.segments(common, segment, [&](Range s) { body([s](Rank) { return s; }); });
      body([&](Rank owner) { return Range{common, piece(owner).length - common}; });
    };
    pieces(put);
    if (is_long()) b_.strand();
    pieces(take);
    b_.leave();
  }

  const Call& call_;
  Builder& b_;
  Levels levels_;
  Blocks blocks_;                         // pieces, as they lie
  std::vector<Rank> places_;              // of ranks among those of their nodes,
  std::vector<std::int32_t> nodes_;       // which these are,
  std::vector<Rank> positions_;           // which block is a rank's piece,
  std::vector<std::int64_t> starts_;      // and, of this rank's lanes, what lies before it
  std::vector<std::vector<Rank>> lanes_;  // by place on this node: the owners, as their pieces lie
  std::int64_t lanes_bytes_ = 0, longest_ = 0;  // of this rank's lanes; of who has most on the node
  Range partial_;
};

}  // namespace carillon
