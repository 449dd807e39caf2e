// SPDX-License-Identifier: Apache-2.0
//
// Datagrams by UDP and IPv4 multicast.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "transport/multicast/carrier.h"

namespace carillon::multicast {

struct UdpOptions {
  /// Its name or IPv4 address. Empty: the first that is up and can multicast, but for loopback.
  std::string interface;
  int hops = 1;                         ///< routers that pass it on, and one
  int receive_bytes = 4 * 1024 * 1024;  ///< of each socket; the system may give less
  std::size_t datagram_bytes = 8972;    ///< at most, whatever the interface takes
};

Result<std::unique_ptr<Carrier>> open_udp(const UdpOptions& options);

}  // namespace carillon::multicast
