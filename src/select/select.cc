// SPDX-License-Identifier: Apache-2.0
#include "select/select.h"

#include <algorithm>

#include "select/alltoall_model.h"
#include "select/surveys.h"

namespace carillon {

namespace {

const AlgorithmChoice* find_override(const Shared& shared, const Limits& limits,
                                     const Rules& rules) {
  for (const AlgorithmChoice& choice : rules.overrides) {
    if (suits(choice, shared, limits)) return &choice;
  }
  return nullptr;
}

bool are_alike(const Nodes& nodes) { return nodes.largest() <= 8 || nodes.smallest() > 1; }

bool are_even(const Nodes& nodes) {
  return std::int64_t{nodes.largest()} * nodes.count() == nodes.ranks();
}

// A rule that is for one node, too, says nothing of nodes.
bool fits_nodes(const Rule& rule, const Limits& limits) {
  if (!limits.nodes) return rule.min_nodes <= 1 && rule.min_skew <= 1;
  const Nodes& nodes = *limits.nodes;
  if (nodes.count() < rule.min_nodes || nodes.count() > rule.max_nodes) return false;
  if (rule.even_only && !are_even(nodes)) return false;
  if (rule.alike_only && !are_alike(nodes)) return false;
  if (rule.min_skew > 1 && nodes.largest() < rule.min_skew * nodes.smallest()) return false;
  return rule.max_ppn == Rule::kAnyRanks || nodes.largest() <= rule.max_ppn;
}

// The first that holds and can do the problem.
const Rule* find_rule(const Shared& shared, const Limits& limits) {
  const std::int64_t bytes = shared.block_bytes();
  for (const Rule& rule : rule_table()) {
    if (rule.crowded_only && !limits.crowded) continue;
    if (rule.nodes_only && limits.one_node()) continue;
    if (rule.singles_only && (!limits.nodes || limits.nodes->count() != shared.ranks)) continue;
    if (rule.sockets_only && !limits.sockets) continue;
    if (rule.collective != shared.collective) continue;
    if (rule.choice.algorithm->traits.multicast && !limits.multicast_pays) continue;
    if (rule.choice.algorithm->traits.in_switch && !limits.aggregation_pays) continue;
    if (shared.ranks > rule.max_ranks || bytes > rule.max_bytes || bytes < rule.min_bytes) continue;
    if (!fits_nodes(rule, limits)) continue;
    if (suits(rule.choice, shared, limits)) return &rule;
  }
  return nullptr;
}

}  // namespace

AlgorithmChoice select(const Shared& shared, const Limits& limits, const Rules& rules) {
  if (const AlgorithmChoice* const choice = find_override(shared, limits, rules)) return *choice;
  const Rule* const rule = find_rule(shared, limits);
  if (rule == nullptr) return {};  // there is one for all that collectives can ask
  const bool models = rule->by_model && shared.collective == Collective::kAlltoall;
  return models ? alltoall_by_model(shared, limits) : rule->choice;
}

std::optional<Why> why_no_surveys(const Shared& shared, const Limits& limits, const Rules& rules) {
  if (find_override(shared, limits, rules) != nullptr) return Why::kOverride;
  if (rules.surveys == SurveyPolicy::kOff) return Why::kSurveysOff;
  if (limits.one_node()) return Why::kOneNode;
  if (rules.surveys == SurveyPolicy::kOn) return std::nullopt;
  // Bruck's exchange does not pay there, but messages fewer by far do.
  if (limits.crowded && limits.nodes->largest() == 1) return Why::kSharedCores;
  const Rule* const rule = find_rule(shared, limits);
  const bool by_model = rule != nullptr && rule->by_model;
  if (!by_model || !surveys_pay(shared.ranks, limits, rules.table_costs)) return Why::kFewRanks;
  return std::nullopt;
}

}  // namespace carillon
