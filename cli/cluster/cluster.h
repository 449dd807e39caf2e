// SPDX-License-Identifier: Apache-2.0
//
// A virtual cluster on this machine, for the time of one job (docs/cluster.md).
#pragma once

#include "cluster/network.h"
#include "cluster/shape.h"
#include "support/process.h"

namespace carillon::cli {

struct Cluster {
  Shape shape;
  Wires wires;
  bool json = false;  ///< the summary, the last line of stderr, as JSON
};

/// Where a launcher finds the program that runs a command on a node, as `rsh NODE COMMAND`, and a
/// file with a line "NODE:RANKS" for each node.
inline constexpr const char* kRemoteShell = "/dev/shm/tmp/rsh";
inline constexpr const char* kMachineFile = "/dev/shm/tmp/machines";

/// The environment of a job on the front has in it the processes that hold the nodes' namespaces.
inline constexpr const char* kNodeProcesses = "CARILLON_NODE_PROCESSES";

/// Runs for the time of the job, and says nothing.
struct Beside {
  Arguments command;
  int leaf = -1;  ///< at that switch; else on the front
};

struct Job {
  Arguments command;
  Environment environment = {};
  std::vector<Beside> beside = {};
  bool on_every_node = false;  ///< else once, on the front
};

/// Fails if this process may not make a virtual cluster here, or a tool for it is missing.
void require_cluster(const Cluster& cluster);

/// Makes the cluster, runs the job, and leaves nothing behind, however this process ends. Returns
/// the job's exit status.
int run_on_cluster(const Cluster& cluster, const Job& job);

/// What kRemoteShell does: runs a shell command on a node. `nodes` are the processes of the nodes;
/// with leaves each node is told of its own one, which reduces, and of the switch above.
int run_remote_shell(const std::vector<pid_t>& nodes, int leaves,
                     const Arguments& node_and_command);

}  // namespace carillon::cli
