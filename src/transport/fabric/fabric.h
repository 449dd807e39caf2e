// SPDX-License-Identifier: Apache-2.0
//
// The Wire over libfabric: reliable datagram endpoints of whatever provider the machine has (tcp,
// cxi, efa, psm, opx, verbs).
#pragma once

#include <memory>

#include "transport/fabric/provider.h"
#include "transport/wire.h"

namespace carillon::fabric {

/// Opens this process's end. Loads libfabric.
Result<std::unique_ptr<wire::Wire>> open_wire(const Options& options);

}  // namespace carillon::fabric
