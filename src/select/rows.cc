// SPDX-License-Identifier: Apache-2.0
//
// The built-in table: which algorithm does which problem.
//
// On one node of 2 ranks, and where ranks share cores, rows stand as they were measured; the others
// as `carillon sim` compares the algorithms on the machine edr, for 2 to 64 ranks between nodes,
// some for up to 1024, and for 3 to 64 on one, to 256 where nothing else was near. Multicast stands
// as it was measured (docs/multicast.md).
#include "select/rows.h"

#include <array>

namespace carillon {
namespace {

constexpr Rank kFewRanks = 16;  // as many as may all read what one wrote
constexpr Rank kAnyRanks = Rule::kAnyRanks;
constexpr std::int64_t kAnyBytes = Rule::kAnyBytes;
constexpr std::int64_t kKiB = 1024;
constexpr Rank kMulticastRanks = 256;    // more have not been tried
constexpr std::int32_t kLaneNodes = 64;  // each rank of which has a message for each other node

constexpr bool kByModel = true;

// The row for teams of at most or at least so many nodes, of nodes none of which has one rank where
// another has more than eight, of as many ranks on each, or of at most so many.
constexpr Row on_few_nodes(std::int32_t most, Row row) {
  row.max_nodes = most;
  return row;
}
constexpr Row on_many_nodes(std::int32_t least, Row row) {
  row.min_nodes = least;
  return row;
}
constexpr Row on_like_nodes(Row row) {
  row.alike_only = true;
  return row;
}
constexpr Row on_even_nodes(Row row) {
  row.even_only = true;
  return row;
}
constexpr Row on_small_nodes(Rank most, Row row) {
  row.max_ppn = most;
  return row;
}

// The first row that holds and can do the problem (operator) wins.
constexpr std::array kRows = {
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "barrier.hierarchical:leaders=degree_k,k=1"},
    Row{kSingles, 8, kAnyBytes, "barrier.multiway_dissemination:k=8"},
    Row{kSingles, 16, kAnyBytes, "barrier.multiway_dissemination:k=4"},
    Row{kSingles, 25, kAnyBytes, "barrier.multiway_dissemination:k=5"},
    Row{kSingles, kAnyRanks, kAnyBytes, "barrier.multiway_dissemination:k=8"},
    on_few_nodes(
        8, on_small_nodes(16, Row{kNodes, kAnyRanks, kAnyBytes,
                                  "barrier.hierarchical:leaders=multiway_dissemination,k=8"})),
    on_small_nodes(16, Row{kNodes, kAnyRanks, kAnyBytes,
                           "barrier.hierarchical:leaders=multiway_dissemination,k=6"}),
    Row{kNodes, kAnyRanks, kAnyBytes,
        "barrier.hierarchical:node=degree_k,leaders=multiway_dissemination,k=6"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "barrier.flat"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "barrier.dissemination"},
    Row{kAnywhere, 36, kAnyBytes, "barrier.multiway_dissemination:k=6"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "barrier.multiway_dissemination:k=4"},

    // To two nodes, any algorithm sends one copy; so do chains, which longer ones go by.
    Row{.where = kNodes,
        .max_ranks = kMulticastRanks,
        .max_bytes = 64 * kKiB,
        .choice = "bcast.multicast_leader",
        .min_nodes = 3,
        .min_bytes = 8 * kKiB + 1},
    Row{kCrowdedNodes, kAnyRanks, 64 * kKiB, "bcast.hierarchical:leaders=binomial"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "bcast.hierarchical:leaders=chain"},
    Row{kSingles, 8, 1 * kKiB, "bcast.knomial:k=8"},
    Row{kSingles, kAnyRanks, 1 * kKiB, "bcast.knomial:k=6"},
    Row{kSingles, kAnyRanks, 4 * kKiB, "bcast.knomial:k=4"},
    // P - 1 messages from everybody to everybody pay for blocks of some 512 bytes and more, two
    // steps of Bruck's exchange for shorter ones. Of more than 1024 ranks none has been simulated.
    Row{kSingles, 2, 64 * kKiB, "bcast.chain:segment=8192"},
    Row{kSingles, 2, kAnyBytes, "bcast.chain:segment=16384"},
    Row{kSingles, kFewRanks, 512 * kKiB, "bcast.scatter_direct:segment=8192"},
    Row{kSingles, kFewRanks, kAnyBytes, "bcast.chain:segment=16384"},
    Row{kSingles, kAnyRanks, 8 * kKiB, "bcast.knomial:k=3"},
    Row{kSingles, 32, kAnyBytes, "bcast.scatter_direct:segment=8192"},
    Row{kSingles, 1024, 16 * kKiB, "bcast.scatter_bruck:k=3"},
    Row{kSingles, 40, kAnyBytes, "bcast.scatter_direct:segment=8192"},
    Row{kSingles, 1024, 32 * kKiB, "bcast.scatter_bruck:k=3"},
    Row{kSingles, 64, kAnyBytes, "bcast.scatter_direct:segment=8192"},
    Row{kSingles, 1024, 64 * kKiB, "bcast.scatter_bruck:k=4"},
    Row{kSingles, 128, kAnyBytes, "bcast.scatter_direct:segment=8192"},
    Row{kSingles, 512, 128 * kKiB, "bcast.scatter_bruck:k=4"},
    Row{kSingles, 512, kAnyBytes, "bcast.scatter_direct:segment=8192"},
    Row{kSingles, kAnyRanks, 64 * kKiB, "bcast.binomial"},
    Row{kSingles, kAnyRanks, kAnyBytes, "bcast.scatter_allgather"},
    Row{kNodes, kAnyRanks, 1 * kKiB, "bcast.hierarchical:leaders=knomial,k=8"},
    Row{kNodes, kAnyRanks, 4 * kKiB, "bcast.hierarchical:leaders=knomial,k=4"},
    on_many_nodes(20, Row{kNodes, kAnyRanks, 8 * kKiB, "bcast.hierarchical:leaders=knomial,k=4"}),
    on_few_nodes(2, Row{.where = kNodes,
                        .max_ranks = kAnyRanks,
                        .max_bytes = kAnyBytes,
                        .choice = "bcast.hierarchical:leaders=flat",
                        .min_bytes = 256 * kKiB + 1}),
    Row{kNodes, 64, 512 * kKiB, "bcast.hierarchical:leaders=scatter_direct,segment=8192"},
    Row{kNodes, 64, kAnyBytes, "bcast.hierarchical:leaders=chain,segment=16384"},
    on_few_nodes(
        32, Row{kNodes, 1024, kAnyBytes, "bcast.hierarchical:leaders=scatter_direct,segment=8192"}),
    Row{kNodes, 1024, 32 * kKiB, "bcast.hierarchical:leaders=scatter_bruck,k=3"},
    Row{kNodes, 1024, kAnyBytes, "bcast.hierarchical:leaders=scatter_direct,segment=8192"},
    Row{kNodes, kAnyRanks, 64 * kKiB, "bcast.hierarchical:leaders=binomial"},
    Row{kNodes, kAnyRanks, kAnyBytes, "bcast.hierarchical:leaders=scatter_allgather"},
    Row{kAnywhere, 2, kAnyBytes, "bcast.flat:segment=16384"},
    // A tree's inner ranks write a copy for each child; to all is written once.
    Row{kCrowded, kFewRanks, kAnyBytes, "bcast.flat"},
    Row{kCrowded, kAnyRanks, 64 * kKiB, "bcast.flat"},
    Row{kCrowded, kAnyRanks, 1024 * kKiB, "bcast.chain:segment=8192"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "bcast.chain"},
    Row{kAnywhere, 256, kAnyBytes, "bcast.flat:segment=16384"},
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
    Row{kSingles, 17, 128, "reduce.flat"},
    // As many children as make it two levels, and as few.
    Row{kSingles, 25, 2 * kKiB, "reduce.degree_k:k=4"},
    Row{kSingles, 49, 2 * kKiB, "reduce.degree_k:k=6"},
    Row{kSingles, kAnyRanks, 2 * kKiB, "reduce.degree_k:k=4"},
    Row{kSingles, 12, kAnyBytes, "reduce.flat_blocks"},
    Row{kSingles, kAnyRanks, 4 * kKiB, "reduce.degree_k:k=3"},
    Row{kSingles, 24, kAnyBytes, "reduce.flat_blocks"},
    Row{kSingles, 64, 8 * kKiB, "reduce.circulant"},
    Row{kSingles, 32, kAnyBytes, "reduce.flat_blocks"},
    Row{kSingles, 64, 32 * kKiB, "reduce.circulant"},
    Row{kSingles, 64, kAnyBytes, "reduce.flat_blocks"},
    Row{kSingles, 256, 128 * kKiB, "reduce.circulant"},
    Row{kSingles, 256, kAnyBytes, "reduce.flat_blocks"},
    // The leader of a node does not take from all its ranks by itself.
    on_few_nodes(16,
                 Row{kNodes, kAnyRanks, 512, "reduce.hierarchical:node=degree_k,leaders=flat,k=4"}),
    Row{kNodes, kAnyRanks, 512, "reduce.hierarchical:node=degree_k,k=4"},
    on_few_nodes(12, on_small_nodes(16, Row{kNodes, kAnyRanks, 2 * kKiB,
                                            "reduce.hierarchical:node=flat_blocks,leaders=flat"})),
    on_small_nodes(16, Row{kNodes, kAnyRanks, 2 * kKiB, "reduce.hierarchical:node=flat_blocks"}),
    Row{kNodes, kAnyRanks, 2 * kKiB, "reduce.hierarchical:node=circulant"},
    Row{.where = kNodes,
        .max_ranks = 8,
        .max_bytes = kAnyBytes,
        .choice = "reduce.flat_blocks",
        .min_bytes = 2 * kKiB + 1},
    on_few_nodes(kLaneNodes, on_like_nodes(Row{kNodes, kAnyRanks, kAnyBytes, "reduce.lanes"})),
    // One of few ranks on a node would have a message for each rank of others.
    on_few_nodes(4, Row{kNodes, kAnyRanks, 4 * kKiB, "reduce.hierarchical:node=circulant"}),
    on_few_nodes(kLaneNodes, Row{kNodes, kAnyRanks, kAnyBytes, "reduce.lanes"}),
    // More nodes than may all exchange with one another, nodes whose ranks do not follow one
    // another, and operators that do not commute.
    Row{kNodes, kAnyRanks, 4 * kKiB, "reduce.hierarchical:node=flat_blocks"},
    Row{kNodes, kAnyRanks, 4 * kKiB, "reduce.degree_k:k=3"},
    Row{kNodes, 15, kAnyBytes, "reduce.flat_blocks"},
    Row{.where = kNodes,
        .max_ranks = 31,
        .max_bytes = 256 * kKiB,
        .choice = "reduce.flat_blocks",
        .min_bytes = 16 * kKiB},
    Row{kNodes, kAnyRanks, kAnyBytes, "reduce.reduce_scatter_gather"},
    Row{kAnywhere, 2, kAnyBytes, "reduce.flat:segment=16384"},
    Row{kCrowded, kFewRanks, 2 * kKiB, "reduce.flat"},
    Row{kCrowded, kFewRanks, 64 * kKiB, "reduce.degree_k:k=15"},
    Row{kCrowded, kFewRanks, kAnyBytes, "reduce.flat_blocks"},
    Row{kCrowded, kAnyRanks, 16 * kKiB, "reduce.degree_k:k=3"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "reduce.reduce_scatter_gather"},
    Row{kAnywhere, 5, 1 * kKiB, "reduce.flat"},
    Row{kAnywhere, 8, 128, "reduce.flat"},
    Row{kAnywhere, 8, 512, "reduce.degree_k:k=4"},
    Row{kAnywhere, kFewRanks, 512, "reduce.degree_k:k=3"},
    Row{kAnywhere, kFewRanks, 512, "reduce.flat"},  // reproducible sums
    Row{.where = kAnywhere,
        .max_ranks = 64,
        .max_bytes = kAnyBytes,
        .choice = "reduce.circulant",
        .min_bytes = 256 * kKiB},
    Row{kAnywhere, kFewRanks, kAnyBytes, "reduce.flat_blocks"},
    Row{kAnywhere, 40, 1 * kKiB, "reduce.degree_k:k=4"},
    Row{kAnywhere, kAnyRanks, 1 * kKiB, "reduce.degree_k:k=3"},
    Row{kAnywhere, 18, kAnyBytes, "reduce.flat_blocks"},
    Row{kAnywhere, 24, 4 * kKiB, "reduce.circulant:k=4"},
    Row{kAnywhere, 24, kAnyBytes, "reduce.flat_blocks"},
    Row{kAnywhere, 256, 16 * kKiB, "reduce.circulant"},
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
    Row{kSingles, 8, 64, "allreduce.flat"},
    Row{kSingles, 6, 512, "allreduce.flat"},
    Row{kSingles, 5, 2 * kKiB, "allreduce.flat"},
    Row{kSingles, kAnyRanks, 56, "allreduce.recursive_multiplying:k=4"},
    Row{kSingles, kAnyRanks, 2 * kKiB, "allreduce.recursive_multiplying:k=3"},
    Row{kSingles, kFewRanks, kAnyBytes, "allreduce.flat_blocks"},
    Row{kSingles, kAnyRanks, 4 * kKiB, "allreduce.recursive_multiplying:k=3"},
    Row{kSingles, 24, kAnyBytes, "allreduce.flat_blocks"},
    Row{kSingles, 256, 16 * kKiB, "allreduce.circulant"},
    Row{kSingles, 32, kAnyBytes, "allreduce.flat_blocks"},
    Row{kSingles, 256, 64 * kKiB, "allreduce.circulant"},
    Row{kSingles, 64, kAnyBytes, "allreduce.flat_blocks"},
    Row{kSingles, 256, 128 * kKiB, "allreduce.circulant"},
    Row{kSingles, 256, kAnyBytes, "allreduce.flat_blocks"},
    on_few_nodes(
        8, Row{kNodes, kAnyRanks, 512, "allreduce.hierarchical:node=degree_k,leaders=flat,k=4"}),
    Row{kNodes, kAnyRanks, 512,
        "allreduce.hierarchical:node=degree_k,leaders=recursive_multiplying,k=4"},
    Row{.where = kNodes,
        .max_ranks = 7,
        .max_bytes = kAnyBytes,
        .choice = "allreduce.flat_blocks",
        .min_bytes = 2 * kKiB + 1},
    on_many_nodes(
        17, on_small_nodes(
                2, Row{kNodes, kAnyRanks, 4 * kKiB,
                       "allreduce.hierarchical:node=degree_k,leaders=recursive_multiplying,k=3"})),
    on_few_nodes(12, on_small_nodes(16, on_like_nodes(Row{.where = kNodes,
                                                          .max_ranks = kAnyRanks,
                                                          .max_bytes = kAnyBytes,
                                                          .choice = "allreduce.lanes",
                                                          .min_bytes = 1 * kKiB + 1}))),
    on_few_nodes(4,
                 on_small_nodes(16, Row{kNodes, kAnyRanks, 2 * kKiB,
                                        "allreduce.hierarchical:node=flat_blocks,leaders=flat"})),
    on_small_nodes(16, Row{kNodes, kAnyRanks, 2 * kKiB,
                           "allreduce.hierarchical:node=flat_blocks,leaders=recursive_multiplying,"
                           "k=3"}),
    on_few_nodes(
        4, Row{kNodes, kAnyRanks, 2 * kKiB, "allreduce.hierarchical:node=circulant,leaders=flat"}),
    Row{kNodes, kAnyRanks, 2 * kKiB,
        "allreduce.hierarchical:node=circulant,leaders=recursive_multiplying,k=3"},
    on_few_nodes(kLaneNodes, on_like_nodes(Row{kNodes, kAnyRanks, kAnyBytes, "allreduce.lanes"})),
    on_few_nodes(4, Row{kNodes, kAnyRanks, 4 * kKiB, "allreduce.hierarchical:node=circulant"}),
    on_few_nodes(kLaneNodes, Row{kNodes, kAnyRanks, kAnyBytes, "allreduce.lanes"}),
    // More nodes, nodes whose ranks do not follow one another, and operators that do not commute.
    Row{kNodes, kAnyRanks, 4 * kKiB, "allreduce.hierarchical:node=flat_blocks"},
    Row{kNodes, kAnyRanks, 2 * kKiB, "allreduce.recursive_doubling"},
    Row{kNodes, kAnyRanks, kAnyBytes, "allreduce.reduce_scatter_allgather"},
    Row{kAnywhere, 2, 256 * kKiB, "allreduce.flat:segment=32768"},
    Row{kAnywhere, 2, kAnyBytes, "allreduce.flat_blocks:segment=16384"},
    Row{kCrowded, kFewRanks, 2 * kKiB, "allreduce.flat"},
    Row{kCrowded, kFewRanks, 4 * kKiB, "allreduce.degree_k:k=15"},
    Row{kCrowded, kFewRanks, kAnyBytes, "allreduce.flat_blocks"},
    Row{kCrowded, kAnyRanks, 2 * kKiB, "allreduce.recursive_doubling"},
    Row{kCrowded, kAnyRanks, 512 * kKiB, "allreduce.reduce_scatter_allgather"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "allreduce.ring"},
    Row{kAnywhere, 5, 1 * kKiB, "allreduce.flat"},
    Row{kAnywhere, 8, 512, "allreduce.flat"},
    Row{kAnywhere, 13, 256, "allreduce.flat"},
    Row{kAnywhere, 64, 56, "allreduce.recursive_multiplying:k=4"},
    Row{kAnywhere, 20, 128, "allreduce.flat"},
    Row{kAnywhere, 13, kAnyBytes, "allreduce.flat_blocks"},
    Row{kAnywhere, 256, 512, "allreduce.hierarchical:node=degree_k,k=4"},
    Row{kAnywhere, 24, kAnyBytes, "allreduce.flat_blocks"},
    Row{kAnywhere, 40, 1 * kKiB, "allreduce.hierarchical:node=degree_k,k=4"},
    Row{kAnywhere, 256, 4 * kKiB, "allreduce.circulant"},
    Row{kAnywhere, kAnyRanks, 2 * kKiB, "allreduce.recursive_doubling"},
    Row{kAnywhere, 40, kAnyBytes, "allreduce.flat_blocks"},
    Row{kAnywhere, 64, 8 * kKiB, "allreduce.circulant"},
    Row{kAnywhere, 64, kAnyBytes, "allreduce.flat_blocks"},
    Row{kAnywhere, kAnyRanks, 512 * kKiB, "allreduce.reduce_scatter_allgather"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "allreduce.ring"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "allreduce.reduce_scatter_allgather"},
    // Reproducible sums, which the ones above cannot do.
    Row{kAnywhere, kAnyRanks, 64, "allreduce.flat"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "allreduce.flat_blocks"},

    Row{kCrowdedNodes, kAnyRanks, 64 * kKiB, "allgather.hierarchical"},
    Row{kSingles, 13, kAnyBytes, "allgather.flat"},
    // Six such blocks, and then one of up to 56 bytes, go as a request's payload.
    Row{kSingles, kAnyRanks, 9, "allgather.bruck:k=6"},
    Row{kSingles, 36, 56, "allgather.bruck:k=8"},
    Row{kSingles, 18, kAnyBytes, "allgather.flat"},
    Row{kSingles, kAnyRanks, 1 * kKiB, "allgather.bruck:k=3"},
    Row{kSingles, 32, 2 * kKiB, "allgather.bruck:k=3"},
    Row{kSingles, 64, 2 * kKiB, "allgather.bruck:k=8"},
    Row{kSingles, 256, kAnyBytes, "allgather.flat"},
    Row{kSingles, kAnyRanks, 16 * kKiB, "allgather.bruck:k=3"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "allgather.ring"},
    on_few_nodes(8, Row{kNodes, kAnyRanks, 16, "allgather.hierarchical:leaders=flat"}),
    Row{kNodes, 7, 64 * kKiB, "allgather.flat"},
    on_few_nodes(12, on_like_nodes(Row{.where = kNodes,
                                       .max_ranks = kAnyRanks,
                                       .max_bytes = kAnyBytes,
                                       .choice = "allgather.lanes",
                                       .min_bytes = 17})),
    on_few_nodes(4, Row{kNodes, kAnyRanks, 128, "allgather.hierarchical:leaders=flat"}),
    Row{kNodes, kAnyRanks, 32, "allgather.hierarchical:leaders=bruck,k=4"},
    on_few_nodes(kLaneNodes, Row{kNodes, kAnyRanks, kAnyBytes, "allgather.lanes"}),
    Row{kNodes, kAnyRanks, 1 * kKiB, "allgather.hierarchical"},
    Row{kNodes, kAnyRanks, kAnyBytes, "allgather.ring"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "allgather.flat"},
    Row{kCrowded, kAnyRanks, 2 * kKiB, "allgather.bruck"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "allgather.ring"},
    Row{kAnywhere, 24, 64, "allgather.bruck:k=3"},
    Row{kAnywhere, 24, kAnyBytes, "allgather.flat"},
    Row{kAnywhere, 40, 128, "allgather.bruck:k=3"},
    Row{kAnywhere, 40, kAnyBytes, "allgather.flat"},
    Row{kAnywhere, 64, 64, "allgather.bruck:k=3"},
    Row{kAnywhere, 64, kAnyBytes, "allgather.flat"},
    Row{kAnywhere, kAnyRanks, 2 * kKiB, "allgather.bruck"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "allgather.ring"},

    Row{kCrowdedNodes, kFewRanks, kAnyBytes, "gather.flat"},
    Row{kCrowdedNodes, kAnyRanks, 256, "gather.binomial"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "gather.flat"},
    Row{kSingles, kFewRanks, kAnyBytes, "gather.flat"},
    Row{kSingles, 40, 1 * kKiB, "gather.knomial:k=6"},
    Row{kSingles, 40, kAnyBytes, "gather.flat"},
    Row{kSingles, 64, 2 * kKiB, "gather.knomial:k=8"},
    Row{kSingles, kAnyRanks, 2 * kKiB, "gather.knomial:k=12"},
    on_small_nodes(8, Row{kNodes, kAnyRanks, 256, "gather.node_tree:k=16"}),
    Row{kNodes, kAnyRanks, 32, "gather.node_tree:k=6"},
    Row{kNodes, 12, kAnyBytes, "gather.flat"},
    on_small_nodes(4, Row{kNodes, kAnyRanks, 8 * kKiB, "gather.node_tree:k=16"}),
    Row{kNodes, kFewRanks, kAnyBytes, "gather.flat"},
    Row{kNodes, 64, 2 * kKiB, "gather.knomial:k=8"},
    Row{kNodes, kAnyRanks, 1 * kKiB, "gather.knomial:k=16"},
    Row{kNodes, kAnyRanks, 2 * kKiB, "gather.knomial:k=8"},
    Row{kNodes, kAnyRanks, kAnyBytes, "gather.flat"},
    Row{kCrowded, kFewRanks, kAnyBytes, "gather.flat"},
    Row{kCrowded, kAnyRanks, 2 * kKiB, "gather.binomial"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "gather.flat"},
    Row{kAnywhere, 7, kAnyBytes, "gather.flat"},
    Row{kAnywhere, 24, 512, "gather.knomial:k=6"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "gather.flat"},
    Row{kAnywhere, 24, 1 * kKiB, "gather.knomial:k=4"},
    Row{kAnywhere, 24, kAnyBytes, "gather.flat"},
    Row{kAnywhere, kAnyRanks, 2 * kKiB, "gather.knomial:k=8"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "gather.flat"},

    Row{kCrowdedNodes, kFewRanks, kAnyBytes, "scatter.flat"},
    Row{kCrowdedNodes, kAnyRanks, 1 * kKiB, "scatter.binomial"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "scatter.flat"},
    Row{kSingles, 12, kAnyBytes, "scatter.flat"},
    Row{kSingles, kFewRanks, 1 * kKiB, "scatter.knomial:k=4"},
    Row{kSingles, kFewRanks, kAnyBytes, "scatter.flat"},
    Row{kSingles, 40, 4 * kKiB, "scatter.knomial:k=6"},
    Row{kSingles, 64, 4 * kKiB, "scatter.knomial:k=8"},
    Row{kSingles, kAnyRanks, 4 * kKiB, "scatter.knomial:k=12"},
    Row{kNodes, kAnyRanks, 64, "scatter.node_tree:k=8"},
    on_small_nodes(4, Row{kNodes, kAnyRanks, 512, "scatter.node_tree:k=8"}),
    on_small_nodes(4, Row{kNodes, kAnyRanks, 4 * kKiB, "scatter.node_tree:k=16"}),
    Row{kNodes, 24, 4 * kKiB, "scatter.knomial:k=4"},
    Row{kNodes, 64, 4 * kKiB, "scatter.knomial:k=8"},
    Row{kNodes, kAnyRanks, 4 * kKiB, "scatter.knomial:k=16"},
    Row{kNodes, kAnyRanks, kAnyBytes, "scatter.flat"},
    Row{kCrowded, kFewRanks, kAnyBytes, "scatter.flat"},
    Row{kCrowded, kAnyRanks, 64, "scatter.broadcast"},
    Row{kCrowded, kAnyRanks, 2 * kKiB, "scatter.binomial"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "scatter.flat"},
    Row{kAnywhere, 3, kAnyBytes, "scatter.flat"},
    Row{kAnywhere, 5, 256, "scatter.broadcast"},
    Row{kAnywhere, 5, kAnyBytes, "scatter.flat"},
    Row{kAnywhere, kFewRanks, 512, "scatter.broadcast"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "scatter.flat"},
    Row{kAnywhere, 256, 512, "scatter.broadcast"},
    Row{kAnywhere, kAnyRanks, 64, "scatter.broadcast"},
    Row{kAnywhere, kAnyRanks, 2 * kKiB, "scatter.knomial:k=8"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "scatter.flat"},

    Row{kCrowdedNodes, kAnyRanks, 2 * kKiB, "reduce_scatter_block.recursive_halving"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "reduce_scatter_block.pairwise"},
    Row{kCrowdedNodes, 40, 16 * kKiB, "reduce_scatter_block.flat"},  // does not commute
    Row{kSingles, 20, 56, "reduce_scatter_block.pairwise"},
    Row{kSingles, 20, kAnyBytes, "reduce_scatter_block.flat"},
    Row{kSingles, 256, 512, "reduce_scatter_block.circulant"},
    Row{kSingles, 32, kAnyBytes, "reduce_scatter_block.flat"},
    Row{kSingles, 256, 1 * kKiB, "reduce_scatter_block.circulant"},
    Row{kSingles, 256, kAnyBytes, "reduce_scatter_block.flat"},
    Row{kNodes, 7, kAnyBytes, "reduce_scatter_block.flat"},
    on_many_nodes(16,
                  on_small_nodes(4, on_even_nodes(Row{kNodes, kAnyRanks, 16,
                                                      "reduce_scatter_block.recursive_halving"}))),
    on_many_nodes(23, on_small_nodes(
                          4, Row{kNodes, kAnyRanks, 16, "reduce_scatter_block.recursive_halving"})),
    on_few_nodes(32,
                 on_small_nodes(16, on_even_nodes(Row{kNodes, kAnyRanks, 1 * kKiB,
                                                      "reduce_scatter_block.lanes:leaders=flat"}))),
    on_few_nodes(
        32, on_even_nodes(Row{kNodes, kAnyRanks, 64, "reduce_scatter_block.lanes:leaders=flat"})),
    on_small_nodes(16,
                   on_even_nodes(Row{kNodes, kAnyRanks, kAnyBytes, "reduce_scatter_block.lanes"})),
    on_even_nodes(Row{kNodes, kAnyRanks, 1024 * kKiB, "reduce_scatter_block.lanes:node=circulant"}),
    on_even_nodes(Row{kNodes, kAnyRanks, kAnyBytes, "reduce_scatter_block.lanes"}),
    // Nodes of different numbers of ranks.
    on_few_nodes(kLaneNodes,
                 on_like_nodes(Row{kNodes, kAnyRanks, kAnyBytes, "reduce_scatter_block.lanes"})),
    Row{kNodes, kAnyRanks, 64, "reduce_scatter_block.through_root"},
    on_few_nodes(kLaneNodes, Row{kNodes, kAnyRanks, kAnyBytes, "reduce_scatter_block.lanes"}),
    // More of them, and operators that do not commute. What needs memory for the blocks of all
    // ranks ends at blocks of 1 MiB.
    Row{kNodes, kAnyRanks, 16, "reduce_scatter_block.recursive_halving"},
    Row{kNodes, kFewRanks, kAnyBytes, "reduce_scatter_block.flat"},
    Row{.where = kNodes,
        .max_ranks = kAnyRanks,
        .max_bytes = 1024 * kKiB,
        .choice = "reduce_scatter_block.circulant",
        .max_ppn = 8},
    Row{kNodes, 24, 1 * kKiB, "reduce_scatter_block.flat"},
    Row{kNodes, 40, 1 * kKiB, "reduce_scatter_block.recursive_halving"},
    Row{kNodes, 40, 16 * kKiB, "reduce_scatter_block.flat"},
    Row{kNodes, kAnyRanks, 64, "reduce_scatter_block.recursive_halving"},
    Row{kNodes, kAnyRanks, 1024 * kKiB, "reduce_scatter_block.through_root"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "reduce_scatter_block.flat"},
    Row{kCrowded, kAnyRanks, 2 * kKiB, "reduce_scatter_block.recursive_halving"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "reduce_scatter_block.pairwise"},
    Row{kAnywhere, 24, 8 * kKiB, "reduce_scatter_block.flat"},
    Row{kAnywhere, 256, 8 * kKiB, "reduce_scatter_block.circulant"},
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
    // While all blocks of a rank fit in a slot, it writes them at once.
    Row{kAnywhere, 64, 1 * kKiB, "alltoall.flat"},
    Row{kAnywhere, 128, 512, "alltoall.flat"},
    Row{kAnywhere, 256, 128, "alltoall.flat"},
    Row{kAnywhere, kAnyRanks, 16, "alltoall.bruck_resident"},
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

}  // namespace

std::span<const Row> built_in_rows() { return kRows; }

}  // namespace carillon
