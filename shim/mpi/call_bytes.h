// SPDX-License-Identifier: Apache-2.0
//
// What a call moves, as its arguments say.
#pragma once

#include <cstdint>

#include "call.h"
#include "communicator.h"

namespace carillon::shim {

/// Of this rank's data, without gaps: what the collective takes from it, and what it leaves there.
/// A block that is this rank's own counts on both sides, and so does one in place.
struct CallBytes {
  std::int64_t in = 0, out = 0;
};

/// Of a call that the host or carillon has found right, on a communicator that is still there.
/// `communicator`: as far as carillon knows it. `taken`: by carillon, which knows the types.
CallBytes bytes_of(Collective collective, const Call& call, const Communicator& communicator,
                   bool taken);

}  // namespace carillon::shim
