// SPDX-License-Identifier: Apache-2.0
//
// How many requests a NIC gets for a message whose bytes are a list of runs.
#pragma once

#include <cstdint>

namespace carillon {

/// Of a list of so many runs, where a request takes `most` entries and the message's head goes with
/// the last one: the others have room for a run more.
constexpr std::int64_t list_requests(std::int64_t runs, std::int64_t most) {
  return runs / (most + 1) + 1;
}

}  // namespace carillon
