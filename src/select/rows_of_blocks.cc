// SPDX-License-Identifier: Apache-2.0
//
// The built-in table, continued (rows.cc says what it goes by): what is done to blocks of ranks.
#include <array>

#include "select/row_makers.h"

namespace carillon {
namespace {

using namespace rows;

// The shortest blocks, on so many nodes of few ranks.
constexpr Row among_leaders(std::int32_t nodes, std::string_view choice) {
  return on_nodes(nodes, on_small_nodes(4, Row{kNodes, kAnyRanks, 12, choice}));
}

// The first row that holds and can do the problem (operator) wins.
constexpr std::array kBlockRows = {
    Row{kCrowdedNodes, kAnyRanks, 64 * kKiB, "allgather.hierarchical"},
    // Received where they belong, several at once.
    from_bytes(32 * kKiB, Row{kSingles, 256, kAnyBytes, "allgather.linear"}),
    Row{kSingles, 13, kAnyBytes, "allgather.flat"},
    // Six or seven such blocks, and then one of up to 56 bytes, go as a request's payload.
    Row{kSingles, 15, 56, "allgather.bruck:k=5"},
    Row{kSingles, 36, 9, "allgather.bruck:k=6"},
    Row{kSingles, 49, 8, "allgather.bruck:k=7"},
    Row{kSingles, kAnyRanks, 9, "allgather.bruck:k=6"},
    Row{kSingles, 40, 56, "allgather.bruck:k=8"},
    Row{kSingles, 18, kAnyBytes, "allgather.flat"},
    Row{kSingles, kAnyRanks, 1 * kKiB, "allgather.bruck:k=3"},
    Row{kSingles, 32, 2 * kKiB, "allgather.bruck:k=3"},
    Row{kSingles, 64, 2 * kKiB, "allgather.bruck:k=8"},
    Row{kSingles, 256, kAnyBytes, "allgather.flat"},
    Row{kSingles, kAnyRanks, 16 * kKiB, "allgather.bruck:k=3"},
    Row{kCrowdedNodes, kAnyRanks, kAnyBytes, "allgather.ring"},
    // Leaders' blocks that go as a request's payload, each to all others, or six at a time.
    among_leaders(3, "allgather.hierarchical:leaders=bruck,k=3"),
    among_leaders(4, "allgather.hierarchical:leaders=bruck,k=4"),
    among_leaders(5, "allgather.hierarchical:leaders=bruck,k=5"),
    among_leaders(6, "allgather.hierarchical:leaders=bruck,k=6"),
    among_leaders(7, "allgather.hierarchical:leaders=bruck,k=7"),
    among_leaders(8, "allgather.hierarchical:leaders=bruck,k=8"),
    among_leaders(9, "allgather.hierarchical:leaders=bruck,k=3"),
    on_few_nodes(
        24, on_many_nodes(13, on_small_nodes(4, Row{kNodes, kAnyRanks, 9,
                                                    "allgather.hierarchical:leaders=bruck,k=6"}))),
    on_few_nodes(8, Row{kNodes, kAnyRanks, 16, "allgather.hierarchical:leaders=flat"}),
    Row{kNodes, 7, 64 * kKiB, "allgather.flat"},
    // A rank alone would have a message for, and from, each rank of others.
    on_nodes(9, on_small_nodes(
                    8, on_skewed_nodes(
                           4, from_bytes(9, Row{kNodes, kAnyRanks, 128,
                                                "allgather.hierarchical:leaders=bruck,k=3"})))),
    on_few_nodes(
        16, on_small_nodes(
                8, on_skewed_nodes(4, from_bytes(9, Row{kNodes, kAnyRanks, 128,
                                                        "allgather.hierarchical:leaders=flat"})))),
    on_small_nodes(
        8, on_skewed_nodes(4, from_bytes(9, Row{kNodes, kAnyRanks, 128,
                                                "allgather.hierarchical:leaders=bruck,k=3"}))),
    on_few_nodes(16, on_like_nodes(Row{.where = kNodes,
                                       .max_ranks = kAnyRanks,
                                       .max_bytes = kAnyBytes,
                                       .choice = "allgather.lanes",
                                       .min_bytes = 9})),
    on_few_nodes(4, Row{kNodes, kAnyRanks, 128, "allgather.hierarchical:leaders=flat"}),
    Row{kNodes, kAnyRanks, 32, "allgather.hierarchical:leaders=bruck,k=4"},
    on_few_nodes(kLaneNodes, Row{kNodes, kAnyRanks, kAnyBytes, "allgather.lanes"}),
    Row{kNodes, kAnyRanks, 1 * kKiB, "allgather.hierarchical"},
    Row{kNodes, kAnyRanks, kAnyBytes, "allgather.ring"},
    // Of sends there are fewer messages, and read in the other's memory, a block comes at once.
    from_bytes(128 * kKiB, Row{kAnywhere, 2, kAnyBytes, "allgather.linear"}),
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
    from_bytes(16 * kKiB + 1, Row{kSingles, 2, 256 * kKiB, "gather.linear"}),
    Row{kSingles, kFewRanks, kAnyBytes, "gather.flat"},
    Row{kSingles, 40, 1 * kKiB, "gather.knomial:k=6"},
    Row{kSingles, 40, kAnyBytes, "gather.flat"},
    Row{kSingles, 64, 2 * kKiB, "gather.knomial:k=8"},
    Row{kSingles, kAnyRanks, 2 * kKiB, "gather.knomial:k=12"},
    Row{kSingles, kAnyRanks, kAnyBytes, "gather.flat"},
    on_small_nodes(8, Row{kNodes, kAnyRanks, 256, "gather.node_tree:k=16"}),
    Row{kNodes, kAnyRanks, 32, "gather.node_tree:k=6"},
    Row{kNodes, 12, kAnyBytes, "gather.flat"},
    from_bytes(2 * kKiB + 1, Row{kNodes, kFewRanks, kAnyBytes, "gather.flat"}),
    on_small_nodes(4, Row{kNodes, kAnyRanks, 4 * kKiB, "gather.node_tree:k=16"}),
    on_small_nodes(4, Row{kNodes, 48, 8 * kKiB, "gather.node_tree:k=16"}),
    on_small_nodes(4, Row{kNodes, kAnyRanks, 8 * kKiB, "gather.node_tree:k=6"}),
    on_small_nodes(4, Row{kNodes, 40, 16 * kKiB, "gather.knomial:k=16"}),
    on_small_nodes(4, Row{kNodes, 64, 16 * kKiB, "gather.node_tree:k=3"}),
    Row{kNodes, kFewRanks, kAnyBytes, "gather.flat"},
    Row{kNodes, 64, 2 * kKiB, "gather.knomial:k=8"},
    // Of 16 such subtrees the longest ones no longer fit in a slot.
    Row{kNodes, 200, 1 * kKiB, "gather.knomial:k=16"},
    from_bytes(385, Row{kNodes, 256, 512, "gather.knomial:k=12"}),
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
    Row{kSingles, 3, 16 * kKiB, "scatter.flat"},
    Row{kSingles, 14, 8 * kKiB, "scatter.flat"},
    Row{kSingles, kFewRanks, 64, "scatter.knomial:k=12"},
    Row{kSingles, kFewRanks, 1 * kKiB, "scatter.knomial:k=4"},
    Row{kSingles, kFewRanks, 8 * kKiB, "scatter.flat"},
    Row{kSingles, 40, 4 * kKiB, "scatter.knomial:k=6"},
    Row{kSingles, 64, 4 * kKiB, "scatter.knomial:k=8"},
    Row{kSingles, kAnyRanks, 4 * kKiB, "scatter.knomial:k=12"},
    // Of longer blocks a root copies its own in segments, which caches hold.
    Row{kSingles, kAnyRanks, 256 * kKiB, "scatter.linear"},
    Row{kNodes, kAnyRanks, 64, "scatter.node_tree:k=8"},
    on_small_nodes(4, Row{kNodes, kAnyRanks, 512, "scatter.node_tree:k=8"}),
    Row{kNodes, 8, 64 * kKiB, "scatter.knomial:k=8"},
    on_small_nodes(4, Row{kNodes, kAnyRanks, 4 * kKiB, "scatter.node_tree:k=16"}),
    Row{kNodes, 24, 8 * kKiB, "scatter.knomial:k=4"},
    Row{kNodes, 64, 4 * kKiB, "scatter.knomial:k=8"},
    Row{kNodes, 64, 8 * kKiB, "scatter.knomial:k=6"},
    Row{kNodes, kAnyRanks, 4 * kKiB, "scatter.knomial:k=16"},
    Row{kNodes, kAnyRanks, 8 * kKiB, "scatter.flat"},
    Row{kNodes, kAnyRanks, 256 * kKiB, "scatter.linear"},
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
    Row{kSingles, 256, 16, "reduce_scatter_block.through_all"},
    Row{kSingles, 28, 56, "reduce_scatter_block.pairwise"},
    Row{kSingles, 256, 512, "reduce_scatter_block.circulant"},
    Row{kSingles, 32, kAnyBytes, "reduce_scatter_block.flat"},
    Row{kSingles, 256, 1 * kKiB, "reduce_scatter_block.circulant"},
    Row{kSingles, 256, kAnyBytes, "reduce_scatter_block.flat"},
    Row{kNodes, 6, kAnyBytes, "reduce_scatter_block.flat"},
    on_skewed_nodes(3, Row{kNodes, 7, kAnyBytes, "reduce_scatter_block.flat"}),
    on_few_nodes(2, on_even_nodes(Row{kNodes, 8, 256, "reduce_scatter_block.recursive_halving"})),
    on_few_nodes(2, on_even_nodes(Row{kNodes, 8, 2 * kKiB, "reduce_scatter_block.flat"})),
    on_few_nodes(
        2, on_even_nodes(Row{kNodes, kFewRanks, 64, "reduce_scatter_block.recursive_halving"})),
    on_few_nodes(6, on_small_nodes(8, on_even_nodes(Row{kNodes, kAnyRanks, 16,
                                                        "reduce_scatter_block.through_all"}))),
    on_few_nodes(8, on_small_nodes(4, on_even_nodes(Row{kNodes, kAnyRanks, 8,
                                                        "reduce_scatter_block.through_all"}))),
    on_few_nodes(6, on_even_nodes(Row{kNodes, kAnyRanks, 8, "reduce_scatter_block.through_all"})),
    // To ranks of small nodes lanes send a message from each of full ones.
    on_few_nodes(6, on_small_nodes(8, on_skewed_nodes(4, Row{kNodes, kAnyRanks, 16,
                                                             "reduce_scatter_block.through_all"}))),
    on_few_nodes(
        5, on_skewed_nodes(5, Row{kNodes, kAnyRanks, 16, "reduce_scatter_block.through_all"})),
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
    from_bytes(16 * kKiB, Row{kSingles, kAnyRanks, kAnyBytes, "alltoall.linear"}),
    Row{kNodes, kAnyRanks, kAnyBytes, "alltoall.pairwise", kByModel},
    Row{kCrowded, kFewRanks, 8 * kKiB, "alltoall.flat"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "alltoall.pairwise"},
    from_bytes(1024 * kKiB, Row{kAnywhere, 2, kAnyBytes, "alltoall.linear"}),
    Row{kAnywhere, 2, kAnyBytes, "alltoall.flat"},
    Row{kAnywhere, 5, 8 * kKiB, "alltoall.flat"},
    Row{kAnywhere, kFewRanks, 1 * kKiB, "alltoall.flat"},
    Row{kAnywhere, kFewRanks, kAnyBytes, "alltoall.pairwise"},
    // While all blocks of a rank fit in a slot, it writes them at once.
    Row{kAnywhere, 64, 1 * kKiB, "alltoall.flat"},
    Row{kAnywhere, 128, 512, "alltoall.flat"},
    Row{kAnywhere, 256, 128, "alltoall.flat"},
    Row{kAnywhere, kAnyRanks, 16, "alltoall.bruck_resident"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "alltoall.pairwise"},

    Row{kNodes, kAnyRanks, kAnyBytes, "alltoallv.pairwise", kByModel},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "alltoallv.pairwise"},

    Row{kAnywhere, kAnyRanks, kAnyBytes, "allgatherv.pairwise"},

    Row{kAnywhere, kAnyRanks, kAnyBytes, "gatherv.flat"},

    Row{kAnywhere, kAnyRanks, kAnyBytes, "scatterv.flat"},

    Row{kAnywhere, kAnyRanks, kAnyBytes, "reduce_scatter.pairwise"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "reduce_scatter.flat"},
};

}  // namespace

std::span<const Row> rows_of_blocks() { return kBlockRows; }

}  // namespace carillon
