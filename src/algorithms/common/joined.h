// SPDX-License-Identifier: Apache-2.0
//
// A rank alone on its node, as one of another node: in lanes it then has a message for each rank of
// that one and for one rank of each other node, instead of one for every rank.
//
//   9 ranks on nodes 2, 2, 2, 2, 1:   0 1 | 2 3 | 4 5 | 6 7 | 8   ->   0 1 | 2 3 | 4 5 | 6 7 8
#pragma once

#include <memory>
#include <vector>

#include "schedule/problem.h"

namespace carillon {

/// The call with the one rank that is alone on the node before, or after, if there are so many
/// nodes that this is worth a message more in a row. `bytes` are the whole vector's: between nodes
/// a rank has two large messages under way, and one each to all others is safe where all go through
/// one round.
inline Call with_alone_joined(const Call& call, std::int64_t bytes) {
  constexpr std::int32_t kFewNodes = 4;
  if (call.limits.one_node() || call.limits.nodes->count() <= kFewNodes) return call;
  if (bytes > call.segment_bytes()) return call;
  const Nodes& nodes = *call.limits.nodes;
  std::int32_t alone = 0, node_alone = 0;
  for (std::int32_t node = 0; node < nodes.count(); ++node) {
    if (nodes.members(node).size() > 1) continue;
    ++alone;
    node_alone = node;
  }
  if (alone != 1) return call;
  std::vector<std::int32_t> names;
  for (Rank rank = 0; rank < nodes.ranks(); ++rank) {
    const std::int32_t node = nodes.node_of(rank);
    names.push_back(node != node_alone ? node : node == 0 ? 1 : node - 1);
  }
  Call joined = call;
  joined.limits.nodes = std::make_shared<const Nodes>(names);
  return joined;
}

}  // namespace carillon
