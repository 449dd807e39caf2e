// SPDX-License-Identifier: Apache-2.0
//
// The Wire over InfiniBand and RoCE verbs: reliable connections made on first use, RDMA write (with
// immediate) from gather lists, RDMA read, and tagged messages of up to kEagerBytes.
#pragma once

#include <memory>

#include "transport/verbs/device.h"

namespace carillon::verbs {

/// Opens this process's end. Loads the verbs libraries.
Result<std::unique_ptr<wire::Wire>> open_wire(const Options& options);

}  // namespace carillon::verbs
