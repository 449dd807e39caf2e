// SPDX-License-Identifier: Apache-2.0
//
// Parts of messages whose bytes lie in several places.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/plan.h"

namespace carillon {

inline std::int64_t whole_length(const PlanPiece& piece) { return piece.length; }

/// How long the runs of a message are that is `message_bytes` of a list's `list_bytes`, on average.
inline std::int64_t run_bytes(std::int64_t list_bytes, std::uint32_t runs,
                              std::int64_t message_bytes) {
  return std::min(message_bytes, list_bytes / runs);
}

/// Calls use(memory, offset, bytes) for each piece that has some of the bytes
/// [offset, offset + length) of all pieces in order, with `offset` that within the piece, as long
/// as it returns true. `length_of(piece)` is a piece's length. False: a use was.
template <typename LengthOf, typename Use>
bool for_each_run(std::span<const PlanPiece> pieces, std::int64_t offset, std::int64_t length,
                  LengthOf length_of, Use use) {
  for (const PlanPiece& piece : pieces) {
    if (length <= 0) break;
    const std::int64_t whole = length_of(piece);
    if (offset >= whole) {
      offset -= whole;
      continue;
    }
    const std::int64_t run = std::min(length, whole - offset);
    if (!use(piece.memory, offset, run)) return false;
    length -= run;
    offset = 0;
  }
  return true;
}

}  // namespace carillon
