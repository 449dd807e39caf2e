// SPDX-License-Identifier: Apache-2.0
//
// Memory that the network may reach, in slabs registered once and handed out in blocks: nothing is
// registered per call. Blocks are given back to their slab; slabs stay until the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "base/offset_allocator.h"
#include "base/status.h"
#include "transport/wire.h"

namespace carillon::net {

struct Block {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  const wire::Registration* registration = nullptr;
  wire::RemoteMemory remote;

  [[nodiscard]] wire::Piece piece(std::uint64_t offset, std::uint64_t length) const {
    return {data + offset, length, registration};
  }
};

class Memory {
 public:
  explicit Memory(wire::Wire& wire) : wire_(wire) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// 64-byte aligned; holds what its last user left.
  Result<Block> allocate(std::uint64_t bytes);
  void release(const Block& block);
  /// The network may no longer reach any of it; it stays readable.
  void unregister();
  /// Of all slabs.
  [[nodiscard]] std::uint64_t registered_bytes() const { return registered_bytes_; }

 private:
  struct Slab {
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    std::unique_ptr<wire::Registration> registration;
    OffsetAllocator free;
  };
  Status grow(std::uint64_t bytes);

  wire::Wire& wire_;
  std::deque<Slab> slabs_;
  std::uint64_t registered_bytes_ = 0;
};

}  // namespace carillon::net
