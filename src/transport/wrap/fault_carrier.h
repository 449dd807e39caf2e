// SPDX-License-Identifier: Apache-2.0
//
// A carrier of multicasts on which packets get lost, come twice, in another order or damaged, drawn
// from a seed: for tests and trials of the protocol above.
#pragma once

#include <memory>

#include "base/faults.h"
#include "transport/multicast/carrier.h"

namespace carillon::wrap {

/// `carrier` with these faults, among what it receives. Sends are refused, not broken.
std::unique_ptr<multicast::Carrier> with_faults(std::unique_ptr<multicast::Carrier> carrier,
                                                const Faults& faults);

}  // namespace carillon::wrap
