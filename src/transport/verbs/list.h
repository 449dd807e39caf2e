// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/copy.h"
#include "transport/verbs/device.h"

namespace carillon::verbs {

/// A list as verbs take it; the first place may be kept for a message's head.
struct List {
  List(std::span<const wire::Piece> pieces, bool head) : count(head ? 1 : 0) {
    for (const wire::Piece& piece : pieces) {
      if (piece.bytes == 0) continue;
      const auto* const memory = static_cast<const Memory*>(piece.registration);
      entries[count++] = {.addr = reinterpret_cast<std::uint64_t>(piece.data),
                          .length = static_cast<std::uint32_t>(piece.bytes),
                          .lkey = memory == nullptr ? 0 : memory->local_key()};
    }
  }
  [[nodiscard]] std::span<ibv_sge> all() { return std::span(entries).first(count); }
  std::array<ibv_sge, kMostPieces> entries;
  std::size_t count;
};

/// Into the places, one after another; there is room.
inline void scatter(std::span<const std::byte> bytes, std::span<const wire::Piece> to) {
  for (const wire::Piece& piece : to) {
    const std::size_t part = std::min(piece.bytes, bytes.size());
    copy_memory(piece.data, bytes.data(), part);
    bytes = bytes.subspan(part);
  }
}

}  // namespace carillon::verbs
