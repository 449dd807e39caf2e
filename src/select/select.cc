// SPDX-License-Identifier: Apache-2.0
#include "select/select.h"

namespace carillon {
namespace {

// Cheaper than check(), which would write a message, and all that selection must ask.
bool can_do(const AlgorithmChoice& choice, const Shared& shared) {
  return choice.algorithm->collective == shared.collective &&
         (shared.commutative || !choice.algorithm->needs_commutative);
}

}  // namespace

AlgorithmChoice select(const Shared& shared, const Limits& limits, const Rules& rules) {
  for (const AlgorithmChoice& choice : rules.overrides) {
    if (can_do(choice, shared)) return choice;
  }
  const std::int64_t bytes = shared.block_bytes();
  for (const Rule& rule : rules.rules) {
    if (rule.crowded_only && !limits.crowded) continue;
    if (shared.ranks <= rule.max_ranks && bytes <= rule.max_bytes && can_do(rule.choice, shared)) {
      return rule.choice;
    }
  }
  // Rules that somebody wrote without a last resort: take ours.
  return &rules == &default_rules() ? AlgorithmChoice{} : select(shared, limits, default_rules());
}

}  // namespace carillon
