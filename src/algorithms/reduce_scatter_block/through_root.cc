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
#include "algorithms/catalogue.h"
#include "algorithms/common/on_whole.h"

namespace carillon {
namespace {

constexpr std::int64_t kFewBytes = 8192;

AlgorithmChoice reduction(const Call& call) {
  const std::int64_t bytes = call.shared.block_bytes() * call.shared.ranks;
  if (bytes > kFewBytes || !can_reduce_by_nodes(call)) {
    return {.algorithm = find_algorithm("reduce.reduce_scatter_gather"), .params = {}};
  }
  const std::string_view node = reduction_within_nodes(call, bytes);
  return {.algorithm = find_algorithm("reduce.hierarchical"),
          .params = {.k = node == "degree_k" ? 4 : 0, .node = node}};
}

}  // namespace

void emit_reduce_scatter_block_through_root(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const bool is_root = call.rank == 0;
  const Range sums = b.allocate_scratch(is_root ? shared.block_bytes() * shared.ranks : 0);
  b.phase("reduce");
  emit_on_whole(call, b, reduction(call), shared.count * shared.ranks, b.input({}),
                b.scratch(sums));
  b.phase("scatter");
  emit_on_whole(call, b, {.algorithm = find_algorithm("scatter.node_tree"), .params = {}},
                shared.count, b.scratch(sums), b.output({}));
}

}  // namespace carillon
