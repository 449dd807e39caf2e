// SPDX-License-Identifier: Apache-2.0
//
// alltoallv.survey: the pairwise exchange, after all ranks have told each other what their tables
// are like (TableFact). Selection has it do so now and then, and so knows, alike on all ranks, what
// suits the calls that follow (select/survey.h).
//
// Source: Bruck's allgather (allgather.bruck), then the textbook pairwise exchange.
//
// 5 ranks; "facts": whose facts rank 0 has; then each column lists "to/from":
//            facts               0       1       2       3       4
//   start    0          step 1   1/4     2/0     3/1     4/2     0/3
//   1 on     01         step 2   2/3     3/4     4/0     0/1     1/2
//   2 on     0123       step 3   3/2     4/3     0/4     1/0     2/1
//   4 on     01234      step 4   4/1     0/2     1/3     2/4     3/0
//
// Cost: ceil(log2 P) alpha + 32 P beta, and the cost of alltoallv.pairwise.
// Restrictions: none.
#include <numeric>

#include "algorithms/catalogue.h"
#include "algorithms/registry.h"

namespace carillon {
namespace {

void emit_facts(const Call& call, Builder& b) {
  constexpr std::int64_t kNumberBytes = sizeof(std::int64_t);
  constexpr std::int64_t kFactBytes = kTableFacts * kNumberBytes;
  const Rank ranks = call.shared.ranks;
  const Range all = b.allocate_scratch(ranks * kFactBytes);
  const Range own = b.allocate_scratch(kFactBytes);
  b.phase("facts");
  b.copy(b.scratch(own), b.counts({ranks * kNumberBytes, kFactBytes}));
  std::vector<Rank> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  emit_on({.shared = {.collective = Collective::kAllgather,
                      .ranks = ranks,
                      .count = kTableFacts,
                      .element_bytes = kNumberBytes},
           .rank = call.rank,
           .members = members,
           .input = b.scratch(own),
           .output = b.scratch(all),
           .whole = true},
          {.algorithm = find_algorithm("allgather.bruck"), .params = {}}, call, b);
  b.next_stage(all);
}

}  // namespace

void emit_alltoallv_survey(const Call& call, Builder& b) {
  if (call.stage == 0) return emit_facts(call, b);
  b.phase("blocks");
  emit_alltoallv_pairwise(call, b);
}

}  // namespace carillon
