// SPDX-License-Identifier: Apache-2.0
//
// carillon bench --overlap: how much of a non-blocking collective's time a computation hides, with
// the MPI alone and with carillon, on this machine or between the nodes of a virtual cluster.
#pragma once

#include <functional>
#include <string>

#include "bench_job.h"

namespace carillon::cli {

struct OverlapBench {
  BenchJob job;
  int nodes = 0;           ///< of a virtual cluster; 0: the ranks of the job on this machine
  int ranks_per_node = 1;  ///< with nodes
  std::string rate;        ///< of each node's wire, e.g. "500mbit"; empty: no limit
  int tests = 0;           ///< MPI_Test is called that often within the computation
  bool json = false;
};

/// Measures and prints; the exit status. MPICH and its kin are measured as they come and with a
/// progress thread of their own (MPIR_CVAR_ASYNC_PROGRESS).
int run_overlap(const OverlapBench& bench, const OwnProgram& program,
                const std::function<void(const BenchRow&)>& progress);

}  // namespace carillon::cli
