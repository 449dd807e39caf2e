// SPDX-License-Identifier: Apache-2.0
//
// A collective of all ranks as a part of another one's call.
#pragma once

#include <string_view>

#include "algorithms/registry.h"
#include "schedule/builder.h"

namespace carillon {

/// Of `count` elements, by this algorithm, with rank 0 as the root if there is one; segment and
/// transfer are the call's.
inline void emit_on_whole(const Call& call, Builder& b, AlgorithmChoice choice, std::int64_t count,
                          const Buffer& input, const Buffer& output) {
  const Shared& shared = call.shared;
  if (choice.algorithm->has_segment) choice.params.segment_bytes = call.params.segment_bytes;
  choice.params.two_sided = call.params.two_sided;
  emit_on({.shared = {.collective = choice.algorithm->collective,
                      .root = 0,
                      .count = count,
                      .element_bytes = shared.element_bytes,
                      .commutative = shared.commutative},
           .rank = call.rank,
           .members = Members::all(shared.ranks),
           .input = input,
           .output = output,
           .whole = true},
          choice, call, b);
}

/// Whether algorithms made of levels, by puts, can reduce a vector of the call: on several nodes,
/// in the order of the ranks if need be. (A rank has one kind of messages to itself.)
inline bool can_reduce_by_nodes(const Call& call) {
  const bool in_order =
      call.shared.commutative || !call.limits.nodes || call.limits.nodes->contiguous();
  return !call.limits.one_node() && in_order && !call.params.two_sided;
}

/// How they reduce so many bytes, the fewest by trees with k children, within a node.
inline std::string_view reduction_within_nodes(const Call& call, std::int64_t bytes) {
  constexpr std::int64_t kFewestBytes = 512;
  constexpr Rank kManyRanks = 17;
  if (bytes <= kFewestBytes) return "degree_k";
  const bool many = call.limits.nodes->largest() >= kManyRanks;
  return many && call.shared.commutative ? "circulant" : "flat_blocks";
}

}  // namespace carillon
