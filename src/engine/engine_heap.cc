// SPDX-License-Identifier: Apache-2.0
//
// Memory for the callers (crl_alloc): from this rank's heap on the node, registered with the
// network when that needs it.
#include <algorithm>

#include "engine/engine.h"
#include "engine/team.h"

namespace carillon {

void* Engine::allocate_heap(std::uint64_t bytes) {
  if (!joined() || bytes > segment_->header().heap_bytes) return nullptr;
  const auto offset = heap_->allocate(std::max<std::uint64_t>(bytes, 1), shm::kPageBytes);
  if (!offset) return nullptr;
  heap_blocks_[*offset].bytes = bytes;
  return segment_->base() + *offset;
}

void Engine::free_heap(void* memory) {
  if (memory == nullptr || !joined()) return;
  const auto offset =
      static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - segment_->base());
  const auto block = heap_blocks_.find(offset);
  if (block != heap_blocks_.end()) {
    if (block->second.registration) ++heap_changes_;
    heap_blocks_.erase(block);
  }
  heap_->release(offset);
}

// Its memory stays where it is until it is freed: it is registered once.
Result<const wire::Registration*> Engine::heap_registration(std::span<const std::byte> bytes) {
  const auto offset = static_cast<std::uint64_t>(bytes.data() - segment_->base());
  auto after = heap_blocks_.upper_bound(offset);
  if (after == heap_blocks_.begin()) return Status(Code::kInvalidArgument, "no block of the heap");
  auto& [begin, block] = *--after;
  if (offset + bytes.size() > begin + block.bytes) {
    return Status(Code::kInvalidArgument, "no block of the heap");
  }
  if (!block.registration) {
    auto registration = network_->wire().register_memory({segment_->base() + begin, block.bytes});
    if (!registration.ok()) return registration.status();
    block.registration = std::move(registration.value());
  }
  return block.registration.get();
}

}  // namespace carillon
