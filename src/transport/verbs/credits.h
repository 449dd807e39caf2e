// SPDX-License-Identifier: Apache-2.0
//
// Credits: an entry of the shared receive queue, its buffer, and an entry of the completion queue.
// So many immediates and sends may be under way from one peer before it hears that they were taken
// up; no retry ever waits for a receive entry.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/wire.h"

namespace carillon::verbs {

/// The peer hears of every kTellEvery-th only: so many more are needed.
inline constexpr int kTellEvery = 4;
inline constexpr int kCredits = wire::kEarlySends + kTellEvery - 1;
inline constexpr std::uint32_t kEagerBytes = 4096 + 48;  ///< of one tagged message: 4 KiB, headed

/// What stands before the bytes of a tagged message.
struct MessageHead {
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
};

/// An entry of the shared receive queue. The device writes head and bytes.
struct ReceiveEntry {
  MessageHead head;
  std::byte bytes[kEagerBytes];
  std::uint32_t local_key = 0;
};
inline constexpr std::uint32_t kReceivedBytes = sizeof(MessageHead) + kEagerBytes;

}  // namespace carillon::verbs
