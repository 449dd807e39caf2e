// SPDX-License-Identifier: Apache-2.0
//
// The ranks of one node, as a group.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "schedule/problem.h"

namespace carillon {

/// The ranks on the rank's node, ascending.
inline std::vector<Rank> node_of(const Call& call, Rank rank) {
  if (call.limits.nodes) {
    const auto members = call.limits.nodes->members(call.limits.nodes->node_of(rank));
    return {members.begin(), members.end()};
  }
  std::vector<Rank> all(static_cast<std::size_t>(call.shared.ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

inline Rank place_in(const std::vector<Rank>& members, Rank rank) {
  return static_cast<Rank>(std::find(members.begin(), members.end(), rank) - members.begin());
}

}  // namespace carillon
