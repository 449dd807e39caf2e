// SPDX-License-Identifier: Apache-2.0
#include "select/select.h"

#include "select/alltoall_model.h"

namespace carillon {

AlgorithmChoice select(const Shared& shared, const Limits& limits, const Rules& rules) {
  for (const AlgorithmChoice& choice : rules.overrides) {
    if (suits(choice, shared, limits)) return choice;
  }
  const std::int64_t bytes = shared.block_bytes();
  for (const Rule& rule : rules.rules) {
    if (rule.crowded_only && !limits.crowded) continue;
    if (rule.nodes_only && limits.one_node()) continue;
    if (rule.singles_only && (!limits.nodes || limits.nodes->count() != shared.ranks)) continue;
    if (rule.collective != shared.collective) continue;
    if (shared.ranks > rule.max_ranks || bytes > rule.max_bytes) continue;
    if (rule.by_model) return alltoall_by_model(shared, limits);
    if (suits(rule.choice, shared, limits)) return rule.choice;
  }
  // Rules that somebody wrote without a last resort: take ours.
  return &rules == &default_rules() ? AlgorithmChoice{} : select(shared, limits, default_rules());
}

}  // namespace carillon
