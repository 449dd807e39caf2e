// SPDX-License-Identifier: Apache-2.0
//
// The measuring half of `carillon calibrate`.
#pragma once

#include <string>
#include <vector>

#include "algorithms/registry.h"
#include "machine/calibrated.h"

namespace carillon::cli {

/// Two processes that are bcast.binomial's ranks 0 and 1 in turn as root. `parameters` as in
/// CARILLON_ALGORITHM; `between_nodes`: the ranks count as nodes. Fails if they cannot.
machine::PingPong measure_ping_pong(const std::string& parameters, bool between_nodes);

/// A collective that was measured.
struct Timed {
  Collective collective = Collective::kBarrier;
  std::int64_t bytes = 0;  ///< of a block
  AlgorithmChoice choice;  ///< what selection took
  double us = 0;           ///< from when all have begun to when all have ended; the median
};
/// bcast, allreduce and alltoall of blocks of these sizes, on ranks of one node or of as many
/// nodes.
std::vector<Timed> measure_collectives(int ranks, bool between_nodes,
                                       const std::vector<std::int64_t>& sizes);
inline constexpr int kMaxTimedRanks = 16;

machine::MemoryCost measure_copy(std::int64_t cache_bytes);
machine::MemoryCost measure_reduce(std::int64_t cache_bytes);

}  // namespace carillon::cli
