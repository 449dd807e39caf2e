// SPDX-License-Identifier: Apache-2.0
//
// The catalogue as a table: a row for each algorithm.
#include <array>

#include "algorithms/catalogue.h"
#include "algorithms/registry.h"

namespace carillon {
namespace {

using enum Collective;

constexpr Algorithm::KRange kRadix{2, INT32_MAX, 2};  // at most the number of ranks, as check says
constexpr Algorithm::KRange kRadixOfFour{2, INT32_MAX, 4};
constexpr Algorithm::Traits kLeftToRight{.left_to_right = true};
constexpr Algorithm::Traits kBruck{.radix = true, .lists = true};

// Columns: id, description, collective, emit, needs_commutative, k (min, max, default), segments,
// traits (registry.h), levels.
// clang-format off
constexpr std::array kAlgorithms = {
    Algorithm{"barrier.dissemination", "signals over distances 1, 2, 4, ...", kBarrier,
              emit_barrier_dissemination},
    Algorithm{"barrier.multiway_dissemination", "signals over k - 1 distances a step; k: radix", kBarrier,
              emit_barrier_multiway_dissemination, false, {2, 1024, 4}},
    Algorithm{"barrier.flat", "everybody signals all, everybody waits for all", kBarrier,
              emit_barrier_flat},
    Algorithm{"barrier.degree_k", "up and down a tree with k children at once; k: children",
              kBarrier, emit_barrier_degree_k, false, {1, 1024, 3}},
    Algorithm{"barrier.hierarchical", "nodes, then their leaders, then nodes", kBarrier,
              emit_barrier_hierarchical, false, {}, false, {},
              {"barrier.flat", "barrier.dissemination", ""}},
    Algorithm{"barrier.multicast", "signals to the first leader, up a tree, then one multicast; k: children",
              kBarrier, emit_barrier_multicast, false, {1, 1024, 3}, false, {.multicast = true}},
    Algorithm{"barrier.switch", "signals in nodes, nothing reduced by the switch, signals in nodes",
              kBarrier, emit_barrier_switch, false, {}, false, {.in_switch = true}},

    Algorithm{"bcast.flat", "the root writes once, everybody reads", kBcast, emit_bcast_flat,
              false, {}, true},
    Algorithm{"bcast.binomial", "down a binomial tree", kBcast, emit_bcast_binomial, false, {},
              true},
    Algorithm{"bcast.knomial", "down a k-nomial tree; k: radix", kBcast, emit_bcast_knomial, false,
              {2, 1024, 4}, true},
    Algorithm{"bcast.chain", "from rank to rank, pipelined by segments", kBcast, emit_bcast_chain,
              false, {}, true},
    Algorithm{"bcast.scatter_allgather", "binomial scatter, then ring allgather", kBcast,
              emit_bcast_scatter_allgather, false, {}, true},
    Algorithm{"bcast.domains", "to one rank per NUMA domain, each of which tells its domain", kBcast,
              emit_bcast_domains, false, {}, true},
    Algorithm{"bcast.scatter_bruck", "a scatter down a tree, then Bruck's allgather; k: its radix",
              kBcast, emit_bcast_scatter_bruck, false, {2, 1024, 4}, true},
    Algorithm{"bcast.scatter_direct", "a block to each rank, which puts it to all", kBcast,
              emit_bcast_scatter_direct, false, {}, true},
    Algorithm{"bcast.hierarchical", "to one rank per node, then within the nodes", kBcast,
              emit_bcast_hierarchical, false, {}, true, {}, {"", "bcast.knomial", "bcast.domains"}},
    Algorithm{"bcast.multicast", "one multicast to every process", kBcast, emit_bcast_multicast,
              false, {}, true, {.multicast = true}},
    Algorithm{"bcast.multicast_coroots", "one multicast, and copies to one in k; k: in a co-root's care",
              kBcast, emit_bcast_multicast_coroots, false, {2, 1024, 8}, true,
              {.multicast = true}},
    Algorithm{"bcast.multicast_leader", "one multicast to a process per node, which tells its node",
              kBcast, emit_bcast_multicast_leader, false, {}, true, {.multicast = true}},
    Algorithm{"bcast.multicast_dynamic", "one multicast to the process of each node that comes first",
              kBcast, emit_bcast_multicast_dynamic, false, {}, true, {.multicast = true}},
    Algorithm{"bcast.switch", "in the root's node, by the switch to the leaders, in the other nodes",
              kBcast, emit_bcast_switch, false, {}, true, {.in_switch = true}, {"", "", "bcast.flat"}},

    Algorithm{"reduce.flat", "the root reads and reduces everything", kReduce, emit_reduce_flat,
              false, {}, true, kLeftToRight},
    Algorithm{"reduce.flat_blocks", "rank r reduces piece r of every segment for the root",
              kReduce, emit_reduce_flat_blocks, false, {}, true, kLeftToRight},
    Algorithm{"reduce.degree_k", "up a tree with k children at once per level; k: children",
              kReduce, emit_reduce_degree_k, false, {1, 1024, 3}, true},
    Algorithm{"reduce.reduce_scatter_gather", "recursive halving, then binomial gather", kReduce,
              emit_reduce_reduce_scatter_gather, false, {}, true},
    Algorithm{"reduce.circulant", "halves around the ring, then up a k-nomial tree; k: its radix",
              kReduce, emit_reduce_circulant, true, {2, 1024, 8}, true},
    Algorithm{"reduce.hierarchical", "within the nodes, then from one rank per node", kReduce,
              emit_reduce_hierarchical, false, {}, true, {},
              {"reduce.flat", "reduce.degree_k", ""}},
    Algorithm{"reduce.lanes", "a piece per rank: in nodes, between those in its lane, to the root's node",
              kReduce, emit_reduce_lanes, true, {}, true},
    Algorithm{"reduce.switch", "reduce in nodes, the switch reduces for the leaders, then to the root",
              kReduce, emit_reduce_switch, true, {}, true, {.in_switch = true}, {"reduce.flat", "", ""}},

    Algorithm{"allreduce.flat", "everybody reads and reduces everything", kAllreduce,
              emit_allreduce_flat, false, {}, true, kLeftToRight},
    Algorithm{"allreduce.flat_blocks", "rank r reduces piece r of every segment for all",
              kAllreduce, emit_allreduce_flat_blocks, false, {}, true, kLeftToRight},
    Algorithm{"allreduce.degree_k", "reduce up, bcast down a degree-k tree; k: children",
              kAllreduce, emit_allreduce_degree_k, false, {1, 1024, 3}, true},
    Algorithm{"allreduce.recursive_doubling", "partners at distances 1, 2, 4, ... exchange sums",
              kAllreduce, emit_allreduce_recursive_doubling, false, {}, true},
    Algorithm{"allreduce.recursive_multiplying", "k parts of the ranks, uneven ones too, exchange sums; k: parts",
              kAllreduce, emit_allreduce_recursive_multiplying, false, {2, 1024, 2}, true},
    Algorithm{"allreduce.reduce_scatter_allgather", "recursive halving, then recursive doubling",
              kAllreduce, emit_allreduce_reduce_scatter_allgather, false, {}, true},
    Algorithm{"allreduce.circulant", "halves around the ring, and back", kAllreduce,
              emit_allreduce_circulant, true, {}, true},
    Algorithm{"allreduce.ring", "ring reduce-scatter, then ring allgather", kAllreduce,
              emit_allreduce_ring, true, {}, true},
    Algorithm{"allreduce.hierarchical", "reduce in nodes, allreduce of leaders, bcast in nodes",
              kAllreduce, emit_allreduce_hierarchical, false, {}, true, {},
              {"reduce.flat", "allreduce.recursive_doubling", "bcast.flat"}},
    Algorithm{"allreduce.lanes", "a piece per rank: in nodes, between those in its lane, in nodes",
              kAllreduce, emit_allreduce_lanes, true, {}, true},
    Algorithm{"allreduce.multicast", "reduce in nodes, reduce of leaders, multicast of the result",
              kAllreduce, emit_allreduce_multicast, false, {}, true, {.multicast = true},
              {"reduce.flat", "reduce.degree_k", "bcast.multicast_dynamic"}},
    Algorithm{"allreduce.switch", "reduce in nodes, the switch reduces for the leaders, bcast in nodes",
              kAllreduce, emit_allreduce_switch, true, {}, true, {.in_switch = true},
              {"reduce.flat", "", "bcast.flat"}},

    Algorithm{"allgather.flat", "everybody reads everybody's block", kAllgather,
              emit_allgather_flat, false, {}, true, {.weights = true}},
    Algorithm{"allgather.recursive_doubling", "partners at distances 1, 2, 4, ... exchange blocks",
              kAllgather, emit_allgather_recursive_doubling, false, {}, true, {.weights = true}},
    Algorithm{"allgather.bruck", "logk P steps for any P; k: radix", kAllgather, emit_allgather_bruck,
              false, kRadix, true, {.weights = true, .radix = true}},
    Algorithm{"allgather.ring", "blocks travel around the ring", kAllgather, emit_allgather_ring,
              false, {}, true, {.weights = true}},
    Algorithm{"allgather.hierarchical", "gather in nodes, allgather of leaders, bcast in nodes",
              kAllgather, emit_allgather_hierarchical, false, {}, true, {},
              {"gather.flat", "allgather.bruck", "bcast.flat"}},
    Algorithm{"allgather.lanes", "a block to one rank of each node, which gives it to its node",
              kAllgather, emit_allgather_lanes, false, {}, true},
    Algorithm{"allgather.multicast", "gather in nodes, a multicast of each leader, bcast in nodes",
              kAllgather, emit_allgather_multicast, false, {}, true, {.multicast = true},
              {"gather.flat", "", "bcast.flat"}},

    Algorithm{"gather.flat", "everybody puts to the root", kGather, emit_gather_flat, false, {}, true},
    Algorithm{"gather.binomial", "up a binomial tree", kGather, emit_gather_binomial, false, {},
              true},
    Algorithm{"gather.knomial", "up a k-nomial tree; k: radix", kGather, emit_gather_knomial, false,
              {2, 1024, 4}, true},
    Algorithm{"gather.node_tree", "up a k-nomial tree in each node, then between leaders; k: radix",
              kGather, emit_gather_node_tree, false, {2, 1024, 4}, true},

    Algorithm{"scatter.flat", "the root puts to everybody", kScatter, emit_scatter_flat, false, {},
              true},
    Algorithm{"scatter.broadcast", "the root writes all blocks once, everybody reads its own",
              kScatter, emit_scatter_broadcast, false, {}, true},
    Algorithm{"scatter.binomial", "down a binomial tree", kScatter, emit_scatter_binomial, false,
              {}, true},
    Algorithm{"scatter.knomial", "down a k-nomial tree; k: radix", kScatter, emit_scatter_knomial,
              false, {2, 1024, 4}, true},
    Algorithm{"scatter.node_tree", "down a k-nomial tree between leaders, then in each node; k: radix",
              kScatter, emit_scatter_node_tree, false, {2, 1024, 4}, true},

    Algorithm{"reduce_scatter_block.flat", "everybody reads and reduces its own block",
              kReduceScatterBlock, emit_reduce_scatter_block_flat, false, {}, true, kLeftToRight},
    Algorithm{"reduce_scatter_block.pairwise", "one partner per step", kReduceScatterBlock,
              emit_reduce_scatter_block_pairwise, true, {}, true},
    Algorithm{"reduce_scatter_block.recursive_halving", "halves go to partners P/2, P/4, ... away",
              kReduceScatterBlock, emit_reduce_scatter_block_recursive_halving, true, {}, true},
    Algorithm{"reduce_scatter_block.circulant", "halves go half as far around the ring",
              kReduceScatterBlock, emit_reduce_scatter_block_circulant, true, {}, true},
    Algorithm{"reduce_scatter_block.lanes", "in nodes, then between ranks in the same place of theirs",
              kReduceScatterBlock, emit_reduce_scatter_block_lanes, true, {}, true, {},
              {"reduce_scatter_block.flat", "reduce_scatter_block.circulant", ""}},
    Algorithm{"reduce_scatter_block.through_root", "reduce to rank 0, then scatter",
              kReduceScatterBlock, emit_reduce_scatter_block_through_root, false, {}, true},
    Algorithm{"reduce_scatter_block.through_all", "allreduce of all blocks, of which each keeps its own",
              kReduceScatterBlock, emit_reduce_scatter_block_through_all, false, {}, true},

    Algorithm{"alltoall.flat", "one message per rank, everybody picks out its blocks", kAlltoall,
              emit_alltoall_flat, false, {}, true},
    Algorithm{"alltoall.pairwise", "one partner per step", kAlltoall, emit_alltoall_pairwise,
              false, {}, true, {.weights = true}},
    Algorithm{"alltoall.bruck_inplace", "log P steps; rotated, exchanged in place, turned; k: radix",
              kAlltoall, emit_alltoall_bruck_inplace, false, kRadix, true, kBruck},
    Algorithm{"alltoall.bruck_resident", "log P steps, blocks stay where they land; k: radix",
              kAlltoall, emit_alltoall_bruck_resident, false, kRadix, true, kBruck},
    Algorithm{"alltoall.bruck_reversed", "log P steps, turned first, no rotation after; k: radix",
              kAlltoall, emit_alltoall_bruck_reversed, false, kRadix, true, kBruck},
    Algorithm{"alltoall.bruck_zerocopy", "log P steps between two buffers, no rotation; k: radix",
              kAlltoall, emit_alltoall_bruck_zerocopy, false, kRadix, true, kBruck},
    Algorithm{"alltoall.hierarchical", "gather in nodes, alltoall of leaders, scatter in nodes",
              kAlltoall, emit_alltoall_hierarchical, false, {}, true, {},
              {"gather.flat", "alltoall.pairwise", "scatter.flat"}},

    Algorithm{"alltoallv.pairwise", "one partner per step, send and receive", kAlltoallv,
              emit_alltoallv_pairwise},
    Algorithm{"alltoallv.bruck_two_phase", "log P steps for lengths, then for short blocks; k: radix",
              kAlltoallv, emit_alltoallv_bruck_two_phase, false, kRadixOfFour, false,
              {.radix = true, .stages = true}},
    Algorithm{"alltoallv.survey", "all learn what the tables are like, then pairwise", kAlltoallv,
              emit_alltoallv_survey, false, {}, false, {.stages = true}},

    Algorithm{"scan.chain", "from rank to rank, pipelined by segments", kScan, emit_scan_chain,
              false, {}, true, kLeftToRight},
    Algorithm{"scan.recursive_doubling", "partners at distances 1, 2, 4, ... exchange sums", kScan,
              emit_scan_recursive_doubling, false, {}, true},

    Algorithm{"exscan.chain", "from rank to rank, pipelined by segments", kExscan,
              emit_exscan_chain, false, {}, true, kLeftToRight},
    Algorithm{"exscan.recursive_doubling", "partners at distances 1, 2, 4, ... exchange sums",
              kExscan, emit_exscan_recursive_doubling, false, {}, true},

    Algorithm{"allgatherv.pairwise", "one partner per step, send and receive", kAllgatherv,
              emit_allgatherv_pairwise},

    Algorithm{"gatherv.flat", "everybody sends to the root", kGatherv, emit_gatherv_flat},

    Algorithm{"scatterv.flat", "the root sends to everybody", kScatterv, emit_scatterv_flat},

    Algorithm{"reduce_scatter.flat", "one block after another, reduced by its rank",
              kReduceScatter, emit_reduce_scatter_flat, false, {}, true, kLeftToRight},
    Algorithm{"reduce_scatter.pairwise", "one partner per step", kReduceScatter,
              emit_reduce_scatter_pairwise, true, {}, true},
};
// clang-format on

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

}  // namespace carillon
