// SPDX-License-Identifier: Apache-2.0
//
// The emit functions of all algorithms: <collective>/<name>.cc defines emit_<collective>_<name>.
// They may assume at least two ranks, parameters checked and filled in (registry.h, emit).
#pragma once

#include "schedule/builder.h"

namespace carillon {

void emit_barrier_dissemination(const Call& call, Builder& b);
void emit_barrier_multiway_dissemination(const Call& call, Builder& b);
void emit_barrier_flat(const Call& call, Builder& b);
void emit_barrier_degree_k(const Call& call, Builder& b);
void emit_barrier_hierarchical(const Call& call, Builder& b);
void emit_barrier_multicast(const Call& call, Builder& b);

void emit_bcast_flat(const Call& call, Builder& b);
void emit_bcast_binomial(const Call& call, Builder& b);
void emit_bcast_knomial(const Call& call, Builder& b);
void emit_bcast_chain(const Call& call, Builder& b);
void emit_bcast_scatter_allgather(const Call& call, Builder& b);
void emit_bcast_scatter_bruck(const Call& call, Builder& b);
void emit_bcast_scatter_direct(const Call& call, Builder& b);
void emit_bcast_domains(const Call& call, Builder& b);
void emit_bcast_hierarchical(const Call& call, Builder& b);
void emit_bcast_multicast(const Call& call, Builder& b);
void emit_bcast_multicast_coroots(const Call& call, Builder& b);
void emit_bcast_multicast_leader(const Call& call, Builder& b);
void emit_bcast_multicast_dynamic(const Call& call, Builder& b);

void emit_reduce_flat(const Call& call, Builder& b);
void emit_reduce_flat_blocks(const Call& call, Builder& b);
void emit_reduce_degree_k(const Call& call, Builder& b);
void emit_reduce_reduce_scatter_gather(const Call& call, Builder& b);
void emit_reduce_circulant(const Call& call, Builder& b);
void emit_reduce_hierarchical(const Call& call, Builder& b);
void emit_reduce_lanes(const Call& call, Builder& b);

void emit_allreduce_flat(const Call& call, Builder& b);
void emit_allreduce_flat_blocks(const Call& call, Builder& b);
void emit_allreduce_degree_k(const Call& call, Builder& b);
void emit_allreduce_recursive_doubling(const Call& call, Builder& b);
void emit_allreduce_recursive_multiplying(const Call& call, Builder& b);
void emit_allreduce_reduce_scatter_allgather(const Call& call, Builder& b);
void emit_allreduce_circulant(const Call& call, Builder& b);
void emit_allreduce_ring(const Call& call, Builder& b);
void emit_allreduce_hierarchical(const Call& call, Builder& b);
void emit_allreduce_lanes(const Call& call, Builder& b);
void emit_allreduce_multicast(const Call& call, Builder& b);
void emit_allreduce_switch(const Call& call, Builder& b);
void emit_barrier_switch(const Call& call, Builder& b);
void emit_bcast_switch(const Call& call, Builder& b);
void emit_reduce_switch(const Call& call, Builder& b);

void emit_allgather_flat(const Call& call, Builder& b);
void emit_allgather_linear(const Call& call, Builder& b);
void emit_allgather_recursive_doubling(const Call& call, Builder& b);
void emit_allgather_bruck(const Call& call, Builder& b);
void emit_allgather_ring(const Call& call, Builder& b);
void emit_allgather_hierarchical(const Call& call, Builder& b);
void emit_allgather_lanes(const Call& call, Builder& b);
void emit_allgather_multicast(const Call& call, Builder& b);

void emit_gather_flat(const Call& call, Builder& b);
void emit_gather_linear(const Call& call, Builder& b);
void emit_gather_binomial(const Call& call, Builder& b);
void emit_gather_knomial(const Call& call, Builder& b);
void emit_gather_node_tree(const Call& call, Builder& b);

void emit_scatter_flat(const Call& call, Builder& b);
void emit_scatter_linear(const Call& call, Builder& b);
void emit_scatter_broadcast(const Call& call, Builder& b);
void emit_scatter_binomial(const Call& call, Builder& b);
void emit_scatter_knomial(const Call& call, Builder& b);
void emit_scatter_node_tree(const Call& call, Builder& b);

void emit_reduce_scatter_block_flat(const Call& call, Builder& b);
void emit_reduce_scatter_block_pairwise(const Call& call, Builder& b);
void emit_reduce_scatter_block_recursive_halving(const Call& call, Builder& b);
void emit_reduce_scatter_block_circulant(const Call& call, Builder& b);
void emit_reduce_scatter_block_lanes(const Call& call, Builder& b);
void emit_reduce_scatter_block_through_root(const Call& call, Builder& b);
void emit_reduce_scatter_block_through_all(const Call& call, Builder& b);

void emit_alltoall_flat(const Call& call, Builder& b);
void emit_alltoall_lanes(const Call& call, Builder& b);
void emit_alltoall_linear(const Call& call, Builder& b);
void emit_alltoall_pairwise(const Call& call, Builder& b);
void emit_alltoall_bruck_inplace(const Call& call, Builder& b);
void emit_alltoall_bruck_resident(const Call& call, Builder& b);
void emit_alltoall_bruck_reversed(const Call& call, Builder& b);
void emit_alltoall_bruck_zerocopy(const Call& call, Builder& b);
void emit_alltoall_hierarchical(const Call& call, Builder& b);

void emit_alltoallv_pairwise(const Call& call, Builder& b);
void emit_alltoallv_bruck_two_phase(const Call& call, Builder& b);
void emit_alltoallv_merged(const Call& call, Builder& b);
void emit_alltoallv_survey(const Call& call, Builder& b);

void emit_scan_chain(const Call& call, Builder& b);
void emit_scan_recursive_doubling(const Call& call, Builder& b);

void emit_exscan_chain(const Call& call, Builder& b);
void emit_exscan_recursive_doubling(const Call& call, Builder& b);

void emit_allgatherv_pairwise(const Call& call, Builder& b);

void emit_gatherv_flat(const Call& call, Builder& b);

void emit_scatterv_flat(const Call& call, Builder& b);

void emit_reduce_scatter_flat(const Call& call, Builder& b);
void emit_reduce_scatter_pairwise(const Call& call, Builder& b);

}  // namespace carillon
