// SPDX-License-Identifier: Apache-2.0
#include "select/rules.h"

#include <array>

namespace carillon {
namespace {

constexpr Rank kFewRanks = 16;  // as many as may all read what one wrote
constexpr Rank kAnyRanks = Rule::kAnyRanks;
constexpr std::int64_t kAnyBytes = Rule::kAnyBytes;
constexpr std::int64_t kKiB = 1024;

struct Row {
  Rank max_ranks;
  std::int64_t max_bytes;
  std::string_view choice;
};

// The first row that holds and can do the problem (operator) wins.
constexpr std::array kRows = {
    Row{kFewRanks, kAnyBytes, "barrier.flat"},
    Row{kAnyRanks, kAnyBytes, "barrier.dissemination"},

    Row{kFewRanks, kAnyBytes, "bcast.flat"},
    Row{kAnyRanks, 2 * kKiB, "bcast.flat"},
    Row{kAnyRanks, 64 * kKiB, "bcast.knomial:k=4"},
    Row{kAnyRanks, kAnyBytes, "bcast.chain"},

    Row{2, kAnyBytes, "reduce.flat"},
    Row{kFewRanks, 2 * kKiB, "reduce.flat"},
    Row{kFewRanks, kAnyBytes, "reduce.flat_blocks"},
    Row{kAnyRanks, 16 * kKiB, "reduce.degree_k:k=3"},
    Row{kAnyRanks, kAnyBytes, "reduce.reduce_scatter_gather"},

    Row{kFewRanks, 2 * kKiB, "allreduce.flat"},
    Row{kFewRanks, kAnyBytes, "allreduce.flat_blocks"},
    Row{kAnyRanks, 2 * kKiB, "allreduce.recursive_doubling"},
    Row{kAnyRanks, 512 * kKiB, "allreduce.reduce_scatter_allgather"},
    Row{kAnyRanks, kAnyBytes, "allreduce.ring"},
    Row{kAnyRanks, kAnyBytes, "allreduce.reduce_scatter_allgather"},

    Row{kFewRanks, kAnyBytes, "allgather.flat"},
    Row{kAnyRanks, 2 * kKiB, "allgather.bruck"},
    Row{kAnyRanks, kAnyBytes, "allgather.ring"},

    Row{kFewRanks, kAnyBytes, "gather.flat"},
    Row{kAnyRanks, 2 * kKiB, "gather.binomial"},
    Row{kAnyRanks, kAnyBytes, "gather.flat"},

    Row{kFewRanks, kAnyBytes, "scatter.flat"},
    Row{kAnyRanks, 2 * kKiB, "scatter.binomial"},
    Row{kAnyRanks, kAnyBytes, "scatter.flat"},

    Row{kFewRanks, kAnyBytes, "reduce_scatter_block.flat"},
    Row{kAnyRanks, 2 * kKiB, "reduce_scatter_block.recursive_halving"},
    Row{kAnyRanks, kAnyBytes, "reduce_scatter_block.pairwise"},
    Row{kAnyRanks, kAnyBytes, "reduce_scatter_block.flat"},

    Row{kFewRanks, kAnyBytes, "alltoall.flat"},
    Row{kAnyRanks, 256, "alltoall.bruck"},
    Row{kAnyRanks, kAnyBytes, "alltoall.pairwise"},

    Row{kAnyRanks, kAnyBytes, "alltoallv.pairwise"},
};

Rules built_in() {
  Rules rules;
  for (const Row& row : kRows) {
    // The table above is right: rules_test.cc parses every row.
    const AlgorithmChoice choice = parse_choice(row.choice).value();
    rules.rules.push_back({choice.algorithm->collective, row.max_ranks, row.max_bytes, choice});
  }
  return rules;
}

}  // namespace

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
