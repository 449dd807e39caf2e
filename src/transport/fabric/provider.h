// SPDX-License-Identifier: Apache-2.0
//
// Which of libfabric's providers is used: chosen by what it can do, never by a list of names of
// networks, so that a network unknown here works too.
#pragma once

#include <memory>
#include <string>

#include "transport/fabric/library.h"

namespace carillon::fabric {

/// What the user asks for; empty: whatever is best.
struct Options {
  std::string provider;  ///< "tcp;ofi_rxm", as fi_info prints it
  std::string domain;    ///< the device, "eth0"
};

struct FreeInfo {
  const Library* library = nullptr;
  void operator()(fi_info* info) const { library->freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// The first of libfabric's order (its fastest) that has reliable datagrams, one-sided operations
/// with immediates and tagged messages, and reaches other nodes; of two on one device, the one
/// without a layer between. One that reaches this node only (loopback) if there is no other. If
/// nothing fits, the error names what was found.
Result<Info> choose_provider(const Library& library, const Options& options);

/// Does this provider say that writes to one peer land in the order of posting, however long they
/// are?
bool writes_in_order(const fi_info& info);
/// Whether it goes by sockets: the kernel has a part in each message.
bool is_of_sockets(const fi_info& info);

}  // namespace carillon::fabric
