// SPDX-License-Identifier: Apache-2.0
//
// Whether a send or recv is a message, and how many: the one place that says so, for the machine,
// the engine and the simulator.
#pragma once

#include <algorithm>
#include <span>

#include "schedule/schedule.h"

namespace carillon {

/// Whether a table gives the length of the list, or of a part of it.
inline bool has_table(std::span<const Buffer> list) {
  return std::any_of(list.begin(), list.end(),
                     [](const Buffer& buffer) { return buffer.table != Table::kNone; });
}

/// Whether a send or recv of `bytes` is a message. One of nothing is, but not if a table says that
/// it is of nothing: then both ranks know, and neither sends or awaits anything.
constexpr bool is_message(std::int64_t bytes, bool by_table) { return bytes > 0 || !by_table; }

/// Of how many messages it is, each of so many bytes at most (Limits::stream_bytes).
constexpr std::int64_t stream_messages(std::int64_t bytes, bool by_table, std::int64_t most_bytes) {
  if (bytes == 0) return is_message(bytes, by_table) ? 1 : 0;
  return (bytes + most_bytes - 1) / most_bytes;
}

}  // namespace carillon
