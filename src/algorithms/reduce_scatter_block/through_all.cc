// SPDX-License-Identifier: Apache-2.0
//
// reduce_scatter_block.through_all: an allreduce of all blocks, of which each rank keeps its own.
//
// Source: none; the obvious shape.
//
// 5 ranks, blocks a b c d e; [01]a: block a of x0 (op) x1:
//               0              1              2              3              4
//   start       [0]abcde       [1]abcde       [2]abcde       [3]abcde       [4]abcde
//   allreduce   [01234]abcde   [01234]abcde   [01234]abcde   [01234]abcde   [01234]abcde
//   own         [01234]a       [01234]b       [01234]c       [01234]d       [01234]e
//
// Cost: that of allreduce.hierarchical of P blocks, on nodes of one rank each or within one of
// allreduce.recursive_multiplying. Restrictions: none. For so few bytes that what is sent beside
// the own block costs less than a message to each rank.
#include "algorithms/catalogue.h"
#include "algorithms/common/on_whole.h"

namespace carillon {
namespace {

constexpr std::int32_t kFewNodes = 8;

AlgorithmChoice allreduction(const Call& call) {
  const std::int64_t bytes = call.shared.block_bytes() * call.shared.ranks;
  const bool singles = call.limits.nodes && call.limits.nodes->count() == call.shared.ranks;
  if (singles || !can_reduce_by_nodes(call)) {
    return {.algorithm = find_algorithm("allreduce.recursive_multiplying"), .params = {.k = 3}};
  }
  const bool few_nodes = call.limits.nodes->count() <= kFewNodes;
  const std::string_view node = reduction_within_nodes(call, bytes);
  return {.algorithm = find_algorithm("allreduce.hierarchical"),
          .params = {.k = node == "degree_k" ? 4
                          : few_nodes        ? 0
                                             : 3,
                     .node = node,
                     .leaders = few_nodes ? "flat" : "recursive_multiplying"}};
}

}  // namespace

void emit_reduce_scatter_block_through_all(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const std::int64_t block = shared.block_bytes();
  const Range sums = b.allocate_scratch(block * shared.ranks);
  b.phase("allreduce");
  emit_on_whole(call, b, allreduction(call), shared.count * shared.ranks, b.input({}),
                b.scratch(sums));
  b.phase("own");
  b.copy(b.output({0, block}), b.scratch(sums.sub({block * call.rank, block})));
}

}  // namespace carillon
