// SPDX-License-Identifier: Apache-2.0
//
// alltoall.pairwise: in step i every rank puts a block to the rank i after it and takes one from
// the rank i before it: as much leaves a node in a step as comes to it. Short blocks are all put
// before the first wait; long ones are put by strands of their own (common/pairwise_exchange.h:
// between nodes in several steps at once). In place every rank exchanges in step i with the ranks i
// after and i before it: both blocks are put before what comes takes their places.
//
// Source: the textbook pairwise exchange.
//
// 5 ranks; each column lists "to/from", and in place whom with:
//            0         1         2         3         4
//   step 1   1/4 1,4   2/0 2,0   3/1 3,1   4/2 4,2   0/3 0,3
//   step 2   2/3 2,3   3/4 3,4   4/0 4,0   0/1 0,1   1/2 1,2
//   step 3   3/2       4/3       0/4       1/0       2/1
//   step 4   4/1       0/2       1/3       2/4       3/0
//
// Cost: (P-1) (alpha + n beta), n: one block.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/pairwise_exchange.h"
#include "algorithms/common/vrank.h"

namespace carillon {
namespace {

constexpr std::int64_t kStagedBytes = 256;

}  // namespace

void emit_alltoall_pairwise(const Call& call, Builder& b) {
  const Rank rank = call.rank, ranks = call.shared.ranks;
  const std::int64_t segment = call.segment_bytes();
  const Blocks blocks = Blocks::per_rank(call);
  const std::int64_t longest = blocks.longest();
  const auto put = [&](Rank peer, Range s) { b.put(peer, b.input(blocks[peer].sub(s))); };
  const auto take = [&](Rank peer, Range s) {
    const Message m = b.wait(peer, s.length);
    b.copy(b.output(blocks[peer].sub(s)), b.slot(m, Range{0, s.length}));
  };
  const Rank at_once = longest <= kStagedBytes ? 1 : steps_at_once(call);
  const auto whole = [&](auto body) {
    return [&, body](Rank peer) {
      b.segments(blocks[peer].length, segment, [&](Range s) { body(peer, s); });
    };
  };
  const auto keep = [&] { b.copy(b.output(blocks[rank]), b.input(blocks[rank])); };
  // Of the ranks equally far after and before this one; body(after, before, segment). Of blocks
  // of one length: those of groups with weights are never in place.
  const auto for_each_distance = [&](auto body) {
    in_lanes(b, ranks / 2, at_once, [&](Rank step) {
      const Rank after = wrap(rank + step, ranks), before = wrap(rank - step, ranks);
      b.segments(longest, segment, [&](Range s) { body(after, before, s); });
    });
  };
  const bool is_short = longest <= call.limits.inline_bytes && longest <= segment;
  // In place what comes overwrites what is to be put. Blocks that take longer to wait for than to
  // copy are all copied first, and so are all where one long put is guaranteed, and not two.
  const bool staged =
      call.local.in_place && !is_short &&
      ((longest <= kStagedBytes && longest * ranks <= segment) || call.limits.large_slots < 2);
  if (call.local.in_place && !is_short && !staged) {
    for_each_distance([&](Rank after, Rank before, Range s) {
      put(after, s);
      if (before != after) put(before, s);
      b.signal(rank);
    });
    b.strand();
    for_each_distance([&](Rank after, Rank before, Range s) {
      b.wait(rank, 0);
      take(before, s);
      if (before != after) take(after, s);
    });
    return;
  }
  if (staged) b.enter_staged();
  if (is_short) {
    for (const Rank step : b.steps(ranks - 1)) whole(put)(wrap(rank + step + 1, ranks));
    keep();
    for (const Rank step : b.steps(ranks - 1)) whole(take)(wrap(rank - step - 1, ranks));
  } else {
    pairwise_steps(call, b, at_once, whole(put), keep, whole(take));
  }
  if (staged) b.leave();
}

}  // namespace carillon
