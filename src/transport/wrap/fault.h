// SPDX-License-Identifier: Apache-2.0
//
// A Wire on which things go wrong as they do on networks, drawn from a seed: for tests and trials
// of what is above. It keeps to the contract of wire.h, but that it tells arrivals twice and breaks
// connections, if it is asked to.
#pragma once

#include <memory>

#include "base/faults.h"
#include "transport/wire.h"

namespace carillon::wrap {

/// `wire` with these faults. With `reorder`, it is no longer ordered.
std::unique_ptr<wire::Wire> with_faults(std::unique_ptr<wire::Wire> wire, const Faults& faults);

}  // namespace carillon::wrap
