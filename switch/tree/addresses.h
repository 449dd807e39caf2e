// SPDX-License-Identifier: Apache-2.0
//
// What hosts and switches of a tree are called, by their numbers.
#pragma once

#include "switch/frames/frames.h"

namespace carillon::tree {

/// `port`: of the switch that is told of it, which leads there.
inline rtl::Address host_address(std::size_t rank, std::size_t port) {
  return {.port = static_cast<std::uint8_t>(port),
          .mac = 0x020000000000 | rank,
          .endpoint = {0x0a000000 | static_cast<std::uint32_t>(rank), aggregate::kUdpPort}};
}
inline std::size_t rank_of(std::uint64_t mac) { return mac & 0xffffffff; }

inline rtl::Address switch_address(std::size_t number, std::size_t port) {
  return {.port = static_cast<std::uint8_t>(port),
          .mac = 0x02ff00000000 | number,
          .endpoint = {0x0a800000 | static_cast<std::uint32_t>(number), aggregate::kUdpPort}};
}

}  // namespace carillon::tree
