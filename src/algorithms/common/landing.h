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
/// `put`, or sent: alike for all messages from one rank to another.
inline void give(Builder& b, Rank peer, const BufferList& list, bool put) {
  if (list.length() == 0) return;
  put ? b.put(peer, list) : b.send(peer, list);
}
inline void give(const Call& call, Builder& b, Rank peer, const BufferList& list) {
  give(b, peer, list, is_put(call, list.length()));
}
/// What that peer gives, which is as long as the list.
inline void take(Builder& b, Rank peer, const BufferList& list, bool put) {
  const std::int64_t bytes = list.length();
  if (bytes == 0) return;
  if (!put) return b.recv(peer, list);
  const Message m = b.wait(peer, bytes);
  b.copy(list, b.slot(m, Range{0, bytes}));
}
inline void take(const Call& call, Builder& b, Rank peer, const BufferList& list) {
  take(b, peer, list, is_put(call, list.length()));
}

}  // namespace carillon
