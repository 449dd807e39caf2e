// SPDX-License-Identifier: Apache-2.0
//
// What the processes of a node see of the machine: everything of it, but a name, a /dev/shm, a
// /proc and a /sys of their own.
#pragma once

#include <string>

namespace carillon::cli {

/// A folder of the node alone, on its /dev/shm; its TMPDIR. What lies there is gone with the node.
inline constexpr const char* kNodeTemporary = "/dev/shm/tmp";

/// No mount made from here on is seen by anybody else, nor the other way round. Of the calling
/// process's mount namespace, which must be its own.
void detach_mounts();

/// Writes a script for /bin/sh.
void write_script(const std::string& file, const std::string& text);

/// Gives the calling process's own UTS, mount, PID and network namespaces a host name, this
/// /etc/hosts, and fresh file systems. The process must be the first of its PID namespace.
void take_own_view(const std::string& host_name, const std::string& hosts);

}  // namespace carillon::cli
