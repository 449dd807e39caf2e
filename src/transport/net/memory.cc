// SPDX-License-Identifier: Apache-2.0
#include "transport/net/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace carillon::net {
namespace {

constexpr std::uint64_t kSlabBytes = 1 << 20;
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kAlignment = 64;

}  // namespace

Memory::~Memory() {
  unregister();
  for (Slab& slab : slabs_) munmap(slab.data, slab.bytes);
}

void Memory::unregister() {
  for (Slab& slab : slabs_) slab.registration.reset();
}

Status Memory::grow(std::uint64_t bytes) {
  bytes = (std::max(bytes, kSlabBytes) + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return {Code::kNoMemory, "network: no memory for " + std::to_string(bytes) +
                                 " bytes of buffers: " + std::strerror(errno)};
  }
  auto* const data = static_cast<std::byte*>(memory);
  auto registration = wire_.register_memory({data, bytes});
  if (!registration.ok()) {
    munmap(memory, bytes);
    return registration.status();
  }
  slabs_.push_back({.data = data,
                    .bytes = bytes,
                    .registration = std::move(registration.value()),
                    .free = OffsetAllocator(0, bytes)});
  registered_bytes_ += bytes;
  return {};
}

Result<Block> Memory::allocate(std::uint64_t bytes) {
  for (;;) {
    for (Slab& slab : slabs_) {
      const auto offset = slab.free.allocate(bytes, kAlignment);
      if (!offset) continue;
      return Block{.data = slab.data + *offset,
                   .bytes = bytes,
                   .registration = slab.registration.get(),
                   .remote = slab.registration->remote().at(*offset)};
    }
    if (Status status = grow(bytes); !status.ok()) return status;
  }
}

void Memory::release(const Block& block) {
  for (Slab& slab : slabs_) {
    if (slab.registration.get() != block.registration) continue;
    slab.free.release(static_cast<std::uint64_t>(block.data - slab.data));
    return;
  }
}

}  // namespace carillon::net
