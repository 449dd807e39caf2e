// SPDX-License-Identifier: Apache-2.0
//
// reduce_scatter_block.pairwise: in step i every rank puts the block of the rank i after it and
// reduces what the rank i before it put. Short blocks are all put before the first wait.
//
// Source: Thakur, Rabenseifner, Gropp 2005 (pairwise exchange).
//
// 5 ranks, blocks a b c d e ([40]a: block a of x4 (op) x0):
//            0          1          2          3          4
//   step 1   [40]a      [01]b      [12]c      [23]d      [34]e
//   step 2   [340]a     [401]b     [012]c     [123]d     [234]e
//   step 4   [12340]a   [23401]b   [34012]c   [40123]d   [01234]e
//
// Cost: (P-1) (alpha + n beta + n gamma), n: one block.
// Restrictions: the operator must commute.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_reduce_scatter_block_pairwise(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Rank ranks = shared.ranks;
  const Rank rank = call.rank;
  const Blocks blocks = Blocks::per_rank(call);
  const std::int64_t bytes = shared.block_bytes();
  // In place the output is block 0 of the input. By the last step it has been put; until then
  // sums gather elsewhere.
  const Range scratch = b.allocate_scratch(call.local.in_place ? bytes : 0);
  const auto sum = [&](int step, Range s) {
    const bool last = step == ranks - 1;
    return call.local.in_place && !last ? b.scratch(scratch.sub(s)) : b.output(s);
  };
  const auto put = [&](int step, Range s) {
    const Rank to = wrap(std::int64_t{rank} + step, ranks);
    b.put(to, b.input(blocks[to].sub(s)));
  };
  const auto take = [&](int step, Range s) {
    const Message m = b.wait(wrap(rank - step, ranks), s.length);
    const Buffer before = step == 1 ? b.input(blocks[rank].sub(s)) : sum(step - 1, s);
    b.reduce(sum(step, s), b.slot(m, Range{0, s.length}), before);
  };
  if (bytes <= call.limits.inline_bytes && bytes <= call.segment_bytes()) {
    const Range whole{0, bytes};
    if (bytes == 0) return;
    for (const int step : b.steps(ranks - 1)) put(step + 1, whole);
    for (const int step : b.steps(ranks - 1)) take(step + 1, whole);
    return;
  }
  for (const int step : b.steps(ranks - 1)) {
    b.segments(bytes, call.segment_bytes(), [&](Range s) {
      put(step + 1, s);
      take(step + 1, s);
    });
  }
}

}  // namespace carillon
