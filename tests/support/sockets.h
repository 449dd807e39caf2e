// SPDX-License-Identifier: Apache-2.0
//
// Which sockets a process has open.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <filesystem>
#include <string>

namespace carillon::test {

/// Of UDP over IPv4.
inline std::size_t udp_sockets() {
  std::size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    int type = 0, domain = 0;
    socklen_t bytes = sizeof type;
    const int fd = std::stoi(each.path().filename().string());
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_DGRAM) continue;
    bytes = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_INET) ++count;
  }
  return count;
}

}  // namespace carillon::test
