// SPDX-License-Identifier: Apache-2.0
//
// Lengths of blocks that ranks tell each other before the blocks themselves, as numbers.
#pragma once

#include <string>

#include "schedule/builder.h"

namespace carillon {

inline constexpr std::int64_t kNumberBytes = sizeof(std::int64_t);

/// An error if rank `from` has said to have a block of so many bytes for this one and the tables
/// say otherwise.
inline void check_told(const Call& call, Builder& b, Rank from, std::int64_t bytes) {
  const std::int64_t known = call.local.tables.recv_bytes[static_cast<std::size_t>(from)];
  if (known == bytes) return;
  b.fail(Status(Code::kMismatch, "alltoallv: rank " + std::to_string(from) + " sends " +
                                     std::to_string(bytes) + " bytes to rank " +
                                     std::to_string(call.rank) + ", which receives " +
                                     std::to_string(known)));
}

}  // namespace carillon
