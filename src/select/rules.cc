// SPDX-License-Identifier: Apache-2.0
#include "select/rules.h"

#include "select/rows.h"

namespace carillon {
namespace {

Rule rule_of(const Row& row) {
  // The tables are right: select_rules_test parses every row.
  const AlgorithmChoice choice = parse_choice(row.choice).value();
  return {.collective = choice.algorithm->collective,
          .crowded_only =
              row.where == kCrowded || row.where == kCrowdedNodes || row.where == kCrowdedSingles,
          .nodes_only = row.where >= kNodes,
          .singles_only = row.where >= kSingles,
          .sockets_only = row.sockets_only,
          .max_ranks = row.max_ranks,
          .max_bytes = row.max_bytes,
          .min_nodes = row.min_nodes,
          .min_bytes = row.min_bytes,
          .max_ppn = row.max_ppn,
          .even_only = row.even_only,
          .alike_only = row.alike_only,
          .min_skew = row.min_skew,
          .max_nodes = row.max_nodes,
          .choice = choice,
          .by_model = row.by_model};
}

std::vector<Rule> make_table() {
  std::vector<Rule> table;
  for (const auto rows : {rows_of_vectors(), rows_of_prefixes(), rows_of_blocks()}) {
    for (const Row& row : rows) table.push_back(rule_of(row));
  }
  return table;
}

}  // namespace

SurveyPolicy survey_policy(std::string_view text) {
  if (text == "on") return SurveyPolicy::kOn;
  return text == "off" ? SurveyPolicy::kOff : SurveyPolicy::kAuto;
}

const std::vector<Rule>& rule_table() {
  static const std::vector<Rule> kTable = make_table();
  return kTable;
}

const Rules& default_rules() {
  static const Rules kRules;
  return kRules;
}

Result<Rules> parse_rules(std::string_view overrides) {
  Rules rules;
  while (!overrides.empty()) {
    const std::size_t end = overrides.find(';');
    const std::string_view text = overrides.substr(0, end);
    overrides = end == std::string_view::npos ? "" : overrides.substr(end + 1);
    if (text.empty()) continue;
    Result<AlgorithmChoice> choice = parse_choice(text);
    if (!choice.ok()) return choice.status();
    // The newest first, so that of one collective the last one given wins.
    rules.overrides.insert(rules.overrides.begin(), choice.value());
  }
  return rules;
}

}  // namespace carillon
