// SPDX-License-Identifier: Apache-2.0
#include "select/rules.h"

#include "select/rows.h"

namespace carillon {
namespace {

Rules built_in() {
  Rules rules;
  for (const Row& row : built_in_rows()) {
    // The table above is right: rules_test.cc parses every row.
    const AlgorithmChoice choice = parse_choice(row.choice).value();
    rules.rules.push_back({.collective = choice.algorithm->collective,
                           .crowded_only = row.where == kCrowded || row.where == kCrowdedNodes ||
                                           row.where == kCrowdedSingles,
                           .nodes_only = row.where >= kNodes,
                           .singles_only = row.where >= kSingles,
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
                           .by_model = row.by_model});
  }
  return rules;
}

}  // namespace

SurveyPolicy survey_policy(std::string_view text) {
  if (text == "on") return SurveyPolicy::kOn;
  return text == "off" ? SurveyPolicy::kOff : SurveyPolicy::kAuto;
}

const Rules& default_rules() {
  static const Rules kRules = built_in();
  return kRules;
}

Result<Rules> parse_rules(std::string_view overrides) {
  Rules rules = default_rules();
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
