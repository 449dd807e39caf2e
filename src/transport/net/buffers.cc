// SPDX-License-Identifier: Apache-2.0
#include "transport/net/buffers.h"

#include <algorithm>

#include "transport/net/pair.h"

namespace carillon::net {
namespace {

constexpr std::uint64_t kTinyBytes = 128;
constexpr std::uint64_t kSmallBytes = 4096 + 64;
constexpr std::uint64_t kGrowBytes = 256 << 10;  // a ring grows by so much, or by one buffer

void tell_owner(Buffer& buffer) {
  if (buffer.owner == nullptr || !buffer.operation.done() || buffer.operation.status().ok()) return;
  buffer.owner->fail(buffer.operation.status());
  if (!buffer.held) buffer.owner = nullptr;
}

}  // namespace

Buffers::Buffers(Memory& memory, std::uint64_t largest_bytes) : memory_(memory) {
  rings_[0].bytes = kTinyBytes;
  rings_[1].bytes = kSmallBytes;
  rings_[2].bytes = (largest_bytes + 63) / 64 * 64;
}

Status Buffers::grow(Ring& ring) {
  const std::uint64_t count = std::clamp<std::uint64_t>(kGrowBytes / ring.bytes, 1, 32);
  auto block = memory_.allocate(count * ring.bytes);
  if (!block.ok()) return block.status();
  ring.next = ring.buffers.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    Buffer& buffer = ring.buffers.emplace_back();
    buffer.data = block.value().data + i * ring.bytes;
    buffer.bytes = ring.bytes;
    buffer.registration = block.value().registration;
  }
  return {};
}

Result<Buffer*> Buffers::take(std::uint64_t bytes) {
  Ring& ring = bytes <= kTinyBytes ? rings_[0] : bytes <= kSmallBytes ? rings_[1] : rings_[2];
  for (;;) {
    const std::size_t count = ring.buffers.size();
    for (std::size_t i = 0; i < count; ++i) {
      Buffer& buffer = ring.buffers[ring.next];
      ring.next = ring.next + 1 == count ? 0 : ring.next + 1;
      if (buffer.held || !buffer.operation.done()) continue;
      tell_owner(buffer);
      buffer.owner = nullptr;
      buffer.process = -1;
      buffer.lends = false;
      buffer.operation.finish({});  // how it went before is no concern of who takes it
      return &buffer;
    }
    if (Status status = grow(ring); !status.ok()) return status;
  }
}

void Buffers::check() {
  for (Ring& ring : rings_) {
    for (Buffer& buffer : ring.buffers) tell_owner(buffer);
  }
}

void Buffers::forget(const Pair* pair) {
  for (Ring& ring : rings_) {
    for (Buffer& buffer : ring.buffers) {
      if (buffer.owner != pair) continue;
      buffer.owner = nullptr;
      buffer.process = pair->place().process;
      buffer.held = false;
    }
  }
}

template <typename Is>
bool Buffers::none(Is is) const {
  return std::all_of(rings_.begin(), rings_.end(), [&](const Ring& ring) {
    return std::none_of(ring.buffers.begin(), ring.buffers.end(), is);
  });
}

bool Buffers::idle(const std::function<bool(int)>& gone) const {
  return none([&](const Buffer& buffer) {
    if (buffer.operation.done()) return false;
    const int process = buffer.owner != nullptr ? buffer.owner->place().process : buffer.process;
    return process < 0 || !gone(process);
  });
}

std::vector<int> Buffers::lent_to(const std::function<bool(const Pair*)>& pairs) const {
  std::vector<int> processes;
  for (const Ring& ring : rings_) {
    for (const Buffer& buffer : ring.buffers) {
      const bool lent = buffer.lends && !buffer.operation.done() && buffer.owner != nullptr;
      if (lent && pairs(buffer.owner)) processes.push_back(buffer.owner->place().process);
    }
  }
  return processes;
}

}  // namespace carillon::net
