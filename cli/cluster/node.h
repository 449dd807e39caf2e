// SPDX-License-Identifier: Apache-2.0
//
// A node of a virtual cluster: a set of namespaces, held by one process, and the way into it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <string>

#include "support/process.h"

namespace carillon::cli {

inline constexpr int kNodeNamespaces =
    CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWNET;
inline constexpr int kNetworkOnly = CLONE_NEWNET;

/// As fork(), with the child the first process of new namespaces of these kinds.
pid_t fork_into(int new_namespaces);

/// Starts a node of this name and waits until it is ready; its network is still without wires. The
/// process that is returned does nothing but reap what the node's programs leave behind; the node
/// ends with it.
pid_t start_node(const std::string& name, const std::string& hosts);

struct Spawn {
  Arguments command;
  Environment environment = {};
  pid_t node = 0;                    ///< the process of start_node(); 0: here
  int namespaces = kNodeNamespaces;  ///< of the node, to enter
  int input = 0;                     ///< its stdin
  /// Out of reach of the terminal's Ctrl-C, as by ssh. No session of its own: the kernel would
  /// share out the cores by sessions (autogroup), and a rank that yields would yield to no other's.
  bool own_group = false;
};
/// Starts a program as a child of this process, with all signals as by default.
pid_t spawn(const Spawn& what);

}  // namespace carillon::cli
