// SPDX-License-Identifier: Apache-2.0
//
// To measure between the nodes of a virtual cluster: the command is started once more, on the
// cluster's front, and its ranks enter the nodes' networks.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace carillon::cli {

/// Calls `body` with the processes of the nodes, where this command has been started on a cluster;
/// else starts it there, and returns its exit status.
int on_cluster(int nodes, const std::function<int(const std::vector<pid_t>& processes)>& body);

}  // namespace carillon::cli
