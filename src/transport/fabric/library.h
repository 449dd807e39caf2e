// SPDX-License-Identifier: Apache-2.0
//
// libfabric, loaded when a network is needed and not before: programs on one node neither need it
// nor pay for its discovery (some 100 ms).
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <string>

#include "base/status.h"

namespace carillon::fabric {

/// The functions of libfabric.so.1 that are not inline in its headers.
struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;

  /// Loads it, once in the process; stays loaded.
  static Result<const Library*> load();

  /// "what: Connection refused (-111)"; `error` as libfabric returns it, negative.
  [[nodiscard]] Status failure(const std::string& what, long error) const;
};

}  // namespace carillon::fabric
