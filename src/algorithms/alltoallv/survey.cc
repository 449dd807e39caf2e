// SPDX-License-Identifier: Apache-2.0
//
// alltoallv.survey: the pairwise exchange, after all ranks have told each other what their tables
// are like (TableFact). Selection has it do so now and then, and so knows, alike on all ranks, what
// suits the calls that follow (select/surveys.h).
//
// Source: Bruck's allgather, then the textbook pairwise exchange.
//
// 5 ranks; "facts": whose facts rank 0 has; then each column lists "to/from":
//            facts               0       1       2       3       4
//   start    0          step 1   1/4     2/0     3/1     4/2     0/3
//   1 on     04         step 2   2/3     3/4     4/0     0/1     1/2
//   2 on     0432       step 3   3/2     4/3     0/4     1/0     2/1
//   4 on     04321      step 4   4/1     0/2     1/3     2/4     3/0
//
// Cost: ceil(log2 P) alpha + 32 P beta, and the cost of alltoallv.pairwise.
// Restrictions: none.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/told_lengths.h"
#include "algorithms/common/vrank.h"

namespace carillon {
namespace {

constexpr std::int64_t kFactBytes = kTableFacts * kNumberBytes;

// Those of the rank i before this one come to place i. By send and recv, as the blocks; a slot at a
// time, so that no rank sends more than one message before it receives.
void emit_facts(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  const Range all = b.allocate_scratch(ranks * kFactBytes);
  b.phase("facts");
  b.copy(b.scratch(all.sub({0, kFactBytes})), b.counts({ranks * kNumberBytes, kFactBytes}));
  for (std::int64_t have = 1; have < ranks; have *= 2) {
    const std::int64_t bytes = std::min(have, ranks - have) * kFactBytes;
    for (std::int64_t done = 0; done < bytes; done += call.limits.slot_bytes) {
      const std::int64_t length = std::min(bytes - done, call.limits.slot_bytes);
      b.send(wrap(call.rank + have, ranks), b.scratch(all.sub({done, length})));
      b.recv(wrap(call.rank - have, ranks), b.scratch(all.sub({have * kFactBytes + done, length})));
    }
  }
  b.next_stage(all);
}

}  // namespace

void emit_alltoallv_survey(const Call& call, Builder& b) {
  if (call.stage == 0) return emit_facts(call, b);
  b.phase("blocks");
  emit_alltoallv_pairwise(call, b);
}

}  // namespace carillon
