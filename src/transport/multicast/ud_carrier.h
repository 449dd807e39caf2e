// SPDX-License-Identifier: Apache-2.0
//
// Datagrams over InfiniBand and RoCE: one UD queue pair, attached to the group by the connection
// manager, and detached while it does not want to hear. RoCE devices need the group's membership on
// their network interface, too, or receive nothing; the connection manager sees to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "transport/multicast/carrier.h"

namespace carillon::multicast {

struct UdOptions {
  std::string device;                    ///< "mlx5_0", "rxe0"; empty: the first with an address
  std::uint32_t receive_packets = 1024;  ///< posted at a time
};

Result<std::unique_ptr<Carrier>> open_ud(const UdOptions& options);

}  // namespace carillon::multicast
