// SPDX-License-Identifier: Apache-2.0
//
// The network's address of a group, from its name. Groups that happen to share one drop each
// other's packets: their keys differ.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>

namespace carillon::multicast {

/// In the organization-local scope of RFC 2365, 239.192.0.0/14, with a port that no system gives
/// out by itself.
inline sockaddr_in group_address(std::uint64_t name) {
  constexpr std::uint32_t kFirstGroup = 0xefc00000;
  constexpr std::uint32_t kGroups = 1U << 18;
  constexpr std::uint16_t kFirstPort = 20000;
  constexpr std::uint16_t kPorts = 12000;
  return {.sin_family = AF_INET,
          .sin_port = htons(static_cast<std::uint16_t>(kFirstPort + name / kGroups % kPorts)),
          .sin_addr = {.s_addr = htonl(kFirstGroup + static_cast<std::uint32_t>(name % kGroups))}};
}

}  // namespace carillon::multicast
