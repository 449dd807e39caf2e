// SPDX-License-Identifier: Apache-2.0
//
// bcast.scatter_direct: the root puts to each other rank a block of its own, and each rank puts its
// block to all others but the root, straight from the slot it arrived in. Long blocks are put by a
// strand of their own.
//
// Source: van de Geijn's broadcast, a scatter and an allgather, both by direct messages.
//
// 5 ranks, root 0, blocks a b c d:
//            0      1      2      3      4
//   start    abcd   .      .      .      .
//   step 0   abcd   a      .      .      .
//   step 1   abcd   a      ab     a      a
//   step 2   abcd   ab     ab     abc    ab
//   step 3   abcd   abc    abc    abc    abcd
//   step 4   abcd   abcd   abcd   abcd   abcd
//
// Cost: 2 alpha + 2 n beta, and 2 (P-1) messages to post and to take: the root still puts the last
// blocks while the first ones are on their way to all.
// Restrictions: none. For vectors that are long for P-1 messages.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/vrank.h"

namespace carillon {
namespace {

class ScatterDirect {
 public:
  ScatterDirect(const Call& call, Builder& b)
      : call_(call),
        b_(b),
        owners_(call.shared.ranks - 1),
        vranks_{call.shared.ranks, call.shared.root},
        blocks_(call.shared.count, call.shared.element_bytes, owners_) {}

  void emit() {
    const Rank v = vranks_.vrank(call_.rank);
    if (v == 0) {
      for_each_segment([&](auto part) {
        for (Rank owner = 0; owner < owners_; ++owner) put(owner, part(owner));
      });
      return;
    }
    const Rank own = v - 1;
    for_each_segment([&](auto part) { pass_on(own, part(own)); });
    // Short blocks of one segment: nobody waits for room before it takes.
    const std::int64_t short_bytes =
        std::min<std::int64_t>(call_.limits.inline_bytes, call_.segment_bytes());
    if (blocks_.longest() > short_bytes) b_.strand();
    // Blocks come in the order in which the root puts them.
    for_each_segment([&](auto part) {
      for (Rank owner = 0; owner < owners_; ++owner) {
        if (owner != own) take(owner, part(owner));
      }
    });
  }

 private:
  [[nodiscard]] Rank rank_of(Rank owner) const { return vranks_.rank(owner + 1); }
  void put(Rank owner, Range part) {
    if (part.length > 0) b_.put(rank_of(owner), b_.input(part));
  }
  void take(Rank owner, Range part) {
    if (part.length == 0) return;
    const Message m = b_.wait(rank_of(owner), part.length);
    b_.copy(b_.output(part), b_.slot(m, Range{0, part.length}));
  }
  void pass_on(Rank own, Range part) {
    if (part.length == 0) return;
    const Message m = b_.wait(call_.shared.root, part.length);
    const Buffer arrived = b_.slot(m, Range{0, part.length});
    for (Rank step = 1; step < owners_; ++step) {
      b_.put(rank_of(wrap(std::int64_t{own} + step, owners_)), arrived);
    }
    b_.copy(b_.output(part), arrived);
  }

  // Calls body(part), part(owner) being a segment of the owner's block, for all segments that all
  // blocks fill, then for what is left of each.
  template <typename Body>
  void for_each_segment(Body body) {
    const std::int64_t segment = call_.segment_bytes();
    const std::int64_t common = blocks_[owners_ - 1].length / segment * segment;
    b_.segments(common, segment,
                [&](Range s) { body([&](Rank owner) { return blocks_[owner].sub(s); }); });
    body([&](Rank owner) {
      return blocks_[owner].sub(Range{common, blocks_[owner].length - common});
    });
  }

  const Call& call_;
  Builder& b_;
  Rank owners_;
  Vranks vranks_;
  Blocks blocks_;
};

}  // namespace

void emit_bcast_scatter_direct(const Call& call, Builder& b) { ScatterDirect(call, b).emit(); }

}  // namespace carillon
