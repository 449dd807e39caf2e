// SPDX-License-Identifier: Apache-2.0
//
// Messages of any length: short ones are put, and copied from their slots; longer ones are sent and
// received, for networks receive those where they belong.
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace carillon {

/// What common libraries still copy.
inline constexpr std::int64_t kCopiedBytes = 8192;

inline bool is_put(const Call& call, std::int64_t bytes) {
  return bytes <= std::min(kCopiedBytes, call.segment_bytes());
}
inline void give(const Call& call, Builder& b, Rank peer, const BufferList& list) {
  if (list.length() == 0) return;
  is_put(call, list.length()) ? b.put(peer, list) : b.send(peer, list);
}
/// What that peer gives, which is as long as the list.
inline void take(const Call& call, Builder& b, Rank peer, const BufferList& list) {
  const std::int64_t bytes = list.length();
  if (bytes == 0) return;
  if (!is_put(call, bytes)) return b.recv(peer, list);
  const Message m = b.wait(peer, bytes);
  b.copy(list, b.slot(m, Range{0, bytes}));
}

}  // namespace carillon
