// SPDX-License-Identifier: Apache-2.0
//
// alltoall.pairwise: in step i ranks r and (i - r) mod P exchange their blocks for one another.
// As both directions meet in one step, it works in place. Short blocks are all put before the
// first wait; long ones are put by a strand of their own, in place one after which what comes in
// its step may be taken.
//
// Source: Thakur, Rabenseifner, Gropp 2005 (pairwise exchange).
//
// 5 ranks; each column lists the partner:
//            0       1       2       3       4
//   step 0   self    4       3       2       1
//   step 1   1       0       4       self    2
//   step 2   2       self    0       4       3
//   step 3   3       2       1       0       self
//   step 4   4       3       self    1       0
//
// Cost: (P-1) (alpha + n beta), n: one block.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/vrank.h"

namespace carillon {
namespace {

constexpr std::int64_t kStagedBytes = 512;

}  // namespace

void emit_alltoall_pairwise(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Rank rank = call.rank;
  const std::int64_t segment = call.segment_bytes();
  const Blocks blocks = Blocks::per_rank(call);
  const std::int64_t longest = blocks.longest();
  const auto put = [&](Rank peer, Range s) { b.put(peer, b.input(blocks[peer].sub(s))); };
  const auto take = [&](Rank peer, Range s) {
    const Message m = b.wait(peer, s.length);
    b.copy(b.output(blocks[peer].sub(s)), b.slot(m, Range{0, s.length}));
  };
  const auto for_each_step = [&](auto body) {
    for (const int step : b.steps(shared.ranks)) {
      const Rank peer = wrap(step - rank, shared.ranks);
      if (peer == rank) continue;
      b.segments(blocks[peer].length, segment, [&](Range s) { body(peer, s); });
    }
  };
  const bool is_short = longest <= call.limits.inline_bytes && longest <= segment;
  // In place what comes overwrites what is to be put. Blocks that take longer to wait for than to
  // copy are all copied first.
  const bool staged = call.local.in_place && !is_short && call.weights.empty() &&
                      longest <= kStagedBytes && longest * shared.ranks <= segment;
  if (staged) b.enter_staged();
  if (call.local.in_place && !is_short && !staged) {
    for_each_step([&](Rank peer, Range s) {
      put(peer, s);
      b.signal(rank);
    });
    b.strand();
    for_each_step([&](Rank peer, Range s) {
      b.wait(rank, 0);
      take(peer, s);
    });
    return;
  }
  for_each_step(put);
  if (!is_short) b.strand();
  b.copy(b.output(blocks[rank]), b.input(blocks[rank]));
  for_each_step(take);
  if (staged) b.leave();
}

}  // namespace carillon
