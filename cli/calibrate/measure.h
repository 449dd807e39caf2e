// SPDX-License-Identifier: Apache-2.0
//
// What `carillon calibrate` and `carillon sim --validate` measure.
#pragma once

#include <string>
#include <vector>

#include "algorithms/registry.h"
#include "calibrate/players.h"
#include "machine/calibrated.h"

namespace carillon::cli {

/// The numbers of this machine, from copies, reductions and ping-pongs of two ranks. `cluster`:
/// processes of a virtual cluster's nodes, for the ping-pongs between nodes; or none.
machine::Measured measure_machine(const std::vector<pid_t>& cluster);
/// Its ping-pongs again: within a node, and between nodes.
void measure_node(machine::Measured* measured);
void measure_network(const std::vector<pid_t>& cluster, machine::Measured* measured);

/// A collective that was measured.
struct Timed {
  Collective collective = Collective::kBarrier;
  std::int64_t bytes = 0;  ///< of a block
  AlgorithmChoice choice;  ///< what selection took
  std::int32_t times = 1;  ///< so many calls one after another, rooted ones at each root in turn,
  double us = 0;           ///< take as long, divided by `times`; the median
};
/// bcast, allreduce or alltoall of blocks of these sizes.
std::vector<Timed> measure_collective(Collective collective, int ranks, const Seats& seats,
                                      const std::vector<std::int64_t>& sizes);

}  // namespace carillon::cli
