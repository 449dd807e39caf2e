// SPDX-License-Identifier: Apache-2.0
//
// reduce_scatter_block.through_root: a reduce of all blocks to rank 0, then a scatter from it. Few
// bytes are reduced by nodes.
//
// Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
// operations in MPICH", IJHPCA 2005, has it as what others are compared with.
//
// 5 ranks, blocks a b c d e; [01]a: block a of x0 (op) x1:
//            0              1          2          3          4
//   start    [0]abcde       [1]abcde   [2]abcde   [3]abcde   [4]abcde
//   reduce   [01234]abcde   .          .          .          .
//   scatter  [01234]a       b          c          d          e
//
// Cost: that of reduce.reduce_scatter_gather or, to 8 KiB on several nodes, reduce.hierarchical of
// P blocks, and of scatter.node_tree. Restrictions: none. For nodes of many ranks that are not as
// many on each: nothing goes between nodes for each pair of their ranks.
#include <numeric>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/registry.h"

namespace carillon {
namespace {

constexpr std::int64_t kFewBytes = 8192, kFewestBytes = 512;

AlgorithmChoice reduction(const Call& call) {
  const std::int64_t bytes = call.shared.block_bytes() * call.shared.ranks;
  AlgorithmChoice by_nodes{.algorithm = find_algorithm("reduce.hierarchical"),
                           .params = {.node = "flat_blocks"}};
  if (bytes <= kFewestBytes) by_nodes.params = {.k = 4, .node = "degree_k"};
  const bool in_order =
      call.shared.commutative || !call.limits.nodes || call.limits.nodes->contiguous();
  const bool by_puts = !call.params.two_sided;  // a rank has one kind of messages to itself
  if (!call.limits.one_node() && bytes <= kFewBytes && in_order && by_puts) return by_nodes;
  return {.algorithm = find_algorithm("reduce.reduce_scatter_gather"), .params = {}};
}

}  // namespace

void emit_reduce_scatter_block_through_root(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  std::vector<Rank> all(static_cast<std::size_t>(shared.ranks));
  std::iota(all.begin(), all.end(), 0);
  const bool is_root = call.rank == 0;
  const Range sums = b.allocate_scratch(is_root ? shared.block_bytes() * shared.ranks : 0);
  const auto on_all = [&](AlgorithmChoice choice, std::int64_t count, const Buffer& input,
                          const Buffer& output) {
    if (choice.algorithm->has_segment) choice.params.segment_bytes = call.params.segment_bytes;
    choice.params.two_sided = call.params.two_sided;
    emit_on({.shared = {.collective = choice.algorithm->collective,
                        .root = 0,
                        .count = count,
                        .element_bytes = shared.element_bytes,
                        .commutative = shared.commutative},
             .rank = call.rank,
             .members = all,
             .input = input,
             .output = output,
             .whole = true},
            choice, call, b);
  };
  b.phase("reduce");
  on_all(reduction(call), shared.count * shared.ranks, b.input({}), b.scratch(sums));
  b.phase("scatter");
  on_all({.algorithm = find_algorithm("scatter.node_tree"), .params = {}}, shared.count,
         b.scratch(sums), b.output({}));
}

}  // namespace carillon
