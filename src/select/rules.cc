// SPDX-License-Identifier: Apache-2.0
#include "select/rules.h"

#include <array>

namespace carillon {
namespace {

constexpr Rank kFewRanks = 16;  // as many as may all read what one wrote
constexpr Rank kAnyRanks = Rule::kAnyRanks;
constexpr std::int64_t kAnyBytes = Rule::kAnyBytes;
constexpr std::int64_t kKiB = 1024;
constexpr Rank kMulticastRanks = 256;  // more have not been tried

// kCrowded: more ranks than cores. kNodes: several nodes; they never get what one rank writes to
// all others, which is one message each across nodes.
// kCrowdedNodes: both; there the fewest messages win, not the fewest steps. kSingles: several nodes
// of one rank each. kCrowdedSingles: these and crowded.
//
// On one node of up to 16 ranks, and where ranks share cores, rows stand as they were measured; the
// others as `carillon sim` compares the algorithms on the machine edr, for 3 to 64 ranks between
// nodes and for 17 to 64 on one. Multicast stands as it was measured (docs/multicast.md).
enum Where { kAnywhere, kCrowded, kNodes, kCrowdedNodes, kSingles, kCrowdedSingles };

struct Row {
  Where where;
  Rank max_ranks;
  std::int64_t max_bytes;
  std::string_view choice;
  bool by_model = false;
  std::int32_t min_nodes = 1;
  std::int64_t min_bytes = 0;
};

constexpr bool kByModel = true;

// The first row that holds and can do the problem (operator) wins.
constexpr std::array kRows = {
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "barrier.hierarchical:leaders=degree_k,k=1"},
    Row{kSingles, 12, kAnyBytes, "barrier.flat"},
    Row{kSingles, kAnyRanks, kAnyBytes, "barrier.dissemination"},
    Row{kNodes, kAnyRanks, kAnyBytes, "barrier.hierarchical"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "barrier.flat"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "barrier.dissemination"},

    // To two nodes, any algorithm sends one copy; so do chains, which longer ones go by.
    Row{.where = kNodes,
        .max_ranks = kMulticastRanks,
        .max_bytes = 64 * kKiB,
        .choice = "bcast.multicast_leader",
        .min_nodes = 3,
        .min_bytes = 8 * kKiB + 1},
    Row{kCrowdedNodes, kAnyRanks, 64 * kKiB, "bcast.hierarchical:leaders=binomial"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "bcast.hierarchical:leaders=chain"},
    Row{kSingles, kAnyRanks, 4 * kKiB, "bcast.knomial:k=4"},
    Row{kSingles, kAnyRanks, 64 * kKiB, "bcast.binomial"},
    Row{kSingles, 64, kAnyBytes, "bcast.chain:segment=16384"},
    Row{kSingles, kAnyRanks, kAnyBytes, "bcast.scatter_allgather"},
    Row{kNodes, kAnyRanks, 4 * kKiB, "bcast.hierarchical:leaders=knomial,k=4"},
    Row{kNodes, kAnyRanks, 64 * kKiB, "bcast.hierarchical:leaders=binomial"},
    Row{kNodes, 64, kAnyBytes, "bcast.hierarchical:leaders=chain,segment=16384"},
    Row{kNodes, kAnyRanks, kAnyBytes, "bcast.hierarchical:leaders=scatter_allgather"},
    Row{kAnywhere, 2, kAnyBytes, "bcast.flat:segment=16384"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "bcast.flat"},
    // A tree's inner ranks write a copy for each child; to all is written once.
    Row{kAnywhere, kAnyRanks, 64 * kKiB, "bcast.flat"},
    Row{kAnywhere, kAnyRanks, 1024 * kKiB, "bcast.chain:segment=8192"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "bcast.chain"},

    // Each node sends one copy, where hosts alone send 2 (n - 1) / n; below, the way by a switch in
    // software takes longer than it saves.
    Row{.where = kNodes,
        .max_ranks = kAnyRanks,
        .max_bytes = kAnyBytes,
        .choice = "allreduce.switch",
        .min_nodes = 3,
        .min_bytes = 256 * kKiB},

    Row{kCrowdedNodes, kAnyRanks, 2 * kKiB, "reduce.hierarchical"},
    Row{kCrowdedNodes, kAnyRanks, 16 * kKiB, "reduce.hierarchical:node=flat_blocks"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes,
        "reduce.hierarchical:node=flat_blocks,leaders=reduce_scatter_gather"},
    Row{kSingles, 8, 1 * kKiB, "reduce.flat"},
    Row{kSingles, kAnyRanks, 2 * kKiB, "reduce.degree_k:k=3"},
    Row{kSingles, 24, kAnyBytes, "reduce.flat_blocks"},
    Row{kSingles, kAnyRanks, 8 * kKiB, "reduce.degree_k:k=3"},
    Row{kNodes, kAnyRanks, 2 * kKiB, "reduce.hierarchical"},
    Row{kNodes, kAnyRanks, 8 * kKiB, "reduce.hierarchical:node=flat_blocks"},
    // Operators that do not commute, on nodes whose ranks do not follow one another.
    Row{kNodes, kAnyRanks, 8 * kKiB, "reduce.degree_k:k=3"},
    Row{kNodes, 12, kAnyBytes, "reduce.flat_blocks"},
    Row{kNodes, kAnyRanks, kAnyBytes, "reduce.reduce_scatter_gather"},
    Row{kAnywhere, 2, kAnyBytes, "reduce.flat:segment=16384"},
    Row{kAnywhere, kFewRanks, 2 * kKiB, "reduce.flat"},
    Row{kCrowded, kFewRanks, 64 * kKiB, "reduce.degree_k:k=15"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "reduce.flat_blocks"},
    Row{kCrowded, kAnyRanks, 16 * kKiB, "reduce.degree_k:k=3"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "reduce.reduce_scatter_gather"},
    Row{kAnywhere, kAnyRanks, 1 * kKiB, "reduce.degree_k:k=3"},
    Row{kAnywhere, 40, kAnyBytes, "reduce.flat_blocks"},
    Row{kAnywhere, kAnyRanks, 8 * kKiB, "reduce.reduce_scatter_gather"},
    Row{kAnywhere, 64, kAnyBytes, "reduce.flat_blocks"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "reduce.reduce_scatter_gather"},
    // Reproducible sums, which the ones above cannot do.
    Row{kAnywhere, kAnyRanks, 2 * kKiB, "reduce.flat"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "reduce.flat_blocks"},

    Row{kCrowdedNodes, kAnyRanks, 64 * kKiB, "allreduce.hierarchical:leaders=degree_k,k=1"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes,
        "allreduce.hierarchical:node=flat_blocks,leaders=reduce_scatter_allgather"},
    Row{kSingles, 12, 64, "allreduce.flat"},
    Row{kSingles, 7, 512, "allreduce.flat"},
    Row{kSingles, 7, kAnyBytes, "allreduce.flat_blocks"},
    Row{kSingles, kAnyRanks, 4 * kKiB, "allreduce.recursive_doubling"},
    Row{kNodes, kAnyRanks, 2 * kKiB, "allreduce.hierarchical"},
    Row{kNodes, kAnyRanks, 4 * kKiB, "allreduce.hierarchical:node=flat_blocks"},
    // Operators that do not commute, on nodes whose ranks do not follow one another.
    Row{kNodes, kAnyRanks, 2 * kKiB, "allreduce.recursive_doubling"},
    Row{kSingles, 24, kAnyBytes, "allreduce.flat_blocks"},
    Row{kNodes, 8, kAnyBytes, "allreduce.flat_blocks"},
    Row{kNodes, kAnyRanks, kAnyBytes, "allreduce.reduce_scatter_allgather"},
    Row{kAnywhere, 2, 256 * kKiB, "allreduce.flat:segment=32768"},
    Row{kAnywhere, 2, kAnyBytes, "allreduce.flat_blocks:segment=16384"},
    Row{kAnywhere, kFewRanks, 2 * kKiB, "allreduce.flat"},
    Row{kCrowded, kFewRanks, 4 * kKiB, "allreduce.degree_k:k=15"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "allreduce.flat_blocks"},
    Row{kAnywhere, kAnyRanks, 2 * kKiB, "allreduce.recursive_doubling"},
    Row{kCrowded, kAnyRanks, 512 * kKiB, "allreduce.reduce_scatter_allgather"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "allreduce.ring"},
    Row{kAnywhere, 40, kAnyBytes, "allreduce.flat_blocks"},
    Row{kAnywhere, kAnyRanks, 8 * kKiB, "allreduce.reduce_scatter_allgather"},
    Row{kAnywhere, 64, kAnyBytes, "allreduce.flat_blocks"},
    Row{kAnywhere, kAnyRanks, 512 * kKiB, "allreduce.reduce_scatter_allgather"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "allreduce.ring"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "allreduce.reduce_scatter_allgather"},
    // Reproducible sums, which the ones above cannot do.
    Row{kAnywhere, kAnyRanks, 64, "allreduce.flat"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "allreduce.flat_blocks"},

    Row{kCrowdedNodes, kAnyRanks, 64 * kKiB, "allgather.hierarchical"},
    Row{kSingles, 12, kAnyBytes, "allgather.flat"},
    Row{kSingles, kFewRanks, 4 * kKiB, "allgather.bruck:k=3"},
    Row{kSingles, kFewRanks, kAnyBytes, "allgather.flat"},
    Row{kSingles, kAnyRanks, 16 * kKiB, "allgather.bruck:k=3"},
    Row{kNodes, kAnyRanks, 1 * kKiB, "allgather.hierarchical"},
    Row{kNodes, kAnyRanks, kAnyBytes, "allgather.ring"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "allgather.flat"},
    Row{kAnywhere, kAnyRanks, 2 * kKiB, "allgather.bruck"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "allgather.ring"},

    Row{kAnywhere, kFewRanks, kAnyBytes, "gather.flat"},
    Row{kNodes, kAnyRanks, 256, "gather.binomial"},
    Row{kNodes, kAnyRanks, kAnyBytes, "gather.flat"},
    Row{kAnywhere, kAnyRanks, 2 * kKiB, "gather.binomial"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "gather.flat"},

    Row{kAnywhere, kFewRanks, kAnyBytes, "scatter.flat"},
    Row{kNodes, kAnyRanks, 1 * kKiB, "scatter.binomial"},
    Row{kNodes, kAnyRanks, kAnyBytes, "scatter.flat"},
    Row{kAnywhere, kAnyRanks, 64, "scatter.broadcast"},
    Row{kAnywhere, kAnyRanks, 2 * kKiB, "scatter.binomial"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "scatter.flat"},

    Row{kCrowdedNodes, kAnyRanks, 2 * kKiB, "reduce_scatter_block.recursive_halving"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "reduce_scatter_block.pairwise"},
    Row{kSingles, 12, 56, "reduce_scatter_block.pairwise"},
    Row{kSingles, 12, kAnyBytes, "reduce_scatter_block.flat"},
    Row{kNodes, 8, 4 * kKiB, "reduce_scatter_block.flat"},
    Row{kNodes, kAnyRanks, 2 * kKiB, "reduce_scatter_block.recursive_halving"},
    Row{kSingles, 24, kAnyBytes, "reduce_scatter_block.flat"},
    Row{kNodes, kAnyRanks, kAnyBytes, "reduce_scatter_block.pairwise"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "reduce_scatter_block.flat"},
    Row{kCrowded, kAnyRanks, 2 * kKiB, "reduce_scatter_block.recursive_halving"},
    Row{kAnywhere, 64, 2 * kKiB, "reduce_scatter_block.flat"},
    Row{kAnywhere, kAnyRanks, 2 * kKiB, "reduce_scatter_block.recursive_halving"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "reduce_scatter_block.pairwise"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "reduce_scatter_block.flat"},

    Row{kCrowdedSingles, 3, kAnyBytes, "alltoall.pairwise"},
    Row{kCrowdedSingles, kAnyRanks, 1 * kKiB, "alltoall.bruck_resident"},
    Row{kCrowdedNodes, kAnyRanks, 1 * kKiB, "alltoall.hierarchical"},
    Row{kCrowdedNodes, kFewRanks, kAnyBytes, "alltoall.pairwise"},
    Row{kCrowdedNodes, kAnyRanks, 64, "alltoall.bruck_resident"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "alltoall.pairwise"},
    Row{kNodes, kAnyRanks, kAnyBytes, "alltoall.pairwise", kByModel},
    Row{kCrowded, kFewRanks, 8 * kKiB, "alltoall.flat"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "alltoall.pairwise"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "alltoall.flat"},
    Row{kAnywhere, kAnyRanks, 256, "alltoall.bruck_resident"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "alltoall.pairwise"},

    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "alltoallv.pairwise"},
    Row{kNodes, kAnyRanks, kAnyBytes, "alltoallv.pairwise", kByModel},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "alltoallv.pairwise"},

    Row{kAnywhere, 3, kAnyBytes, "scan.chain"},
    Row{kAnywhere, kAnyRanks, 4 * kKiB, "scan.recursive_doubling"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "scan.chain:segment=16384"},

    Row{kAnywhere, 3, kAnyBytes, "exscan.chain"},
    Row{kAnywhere, kAnyRanks, 4 * kKiB, "exscan.recursive_doubling"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "exscan.chain:segment=16384"},

    Row{kAnywhere, kAnyRanks, kAnyBytes, "allgatherv.pairwise"},

    Row{kAnywhere, kAnyRanks, kAnyBytes, "gatherv.flat"},

    Row{kAnywhere, kAnyRanks, kAnyBytes, "scatterv.flat"},

    Row{kAnywhere, kAnyRanks, kAnyBytes, "reduce_scatter.pairwise"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "reduce_scatter.flat"},
};

Rules built_in() {
  Rules rules;
  for (const Row& row : kRows) {
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
