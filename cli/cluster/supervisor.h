// SPDX-License-Identifier: Apache-2.0
//
// The first process of a virtual cluster: it builds it, runs the job, and when it ends, everything
// of the cluster ends with it.
#pragma once

#include "cluster/cluster.h"
#include "cluster/node.h"

namespace carillon::cli {

/// To be called by the first process of new namespaces of all kinds, with SIGCHLD, SIGINT, SIGTERM
/// and SIGHUP blocked. Returns the job's exit status.
int supervise(const Cluster& cluster, const Job& job);

}  // namespace carillon::cli
