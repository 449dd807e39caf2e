// SPDX-License-Identifier: Apache-2.0
//
// Memory for the callers (crl_alloc): from this rank's heap on the node, registered with the
// network when that needs it.
#include <algorithm>
#include <string>

#include "engine/engine.h"
#include "engine/team.h"

namespace carillon {
namespace {

Status still_used(const Run& user) {
  return {Code::kInvalidArgument,
          "memory is not freed while a collective uses it: rank " +
              std::to_string(user.team().rank()) + "'s " + std::string(user.collective_name()) +
              " on a team of " + std::to_string(user.team().size()) +
              (user.state() == Run::State::kDeferred
                   ? ", not begun yet"
                   : ", its collective " + std::to_string(user.collective()) + " there") +
              "; complete the request first"};
}

}  // namespace

void* Engine::allocate_heap(std::uint64_t bytes) {
  if (!joined() || bytes > segment_->shape().heap_bytes) return nullptr;
  const auto offset = heap_->allocate(std::max<std::uint64_t>(bytes, 1), shm::kPageBytes);
  if (!offset) return nullptr;
  heap_blocks_[*offset].bytes = bytes;
  return segment_->base() + *offset;
}

Status Engine::free_heap(void* memory) {
  if (memory == nullptr || !joined()) return {};
  const auto offset =
      static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - segment_->base());
  const auto block = heap_blocks_.find(offset);
  if (block != heap_blocks_.end()) {
    const std::span bytes(static_cast<std::byte*>(memory), block->second.bytes);
    if (Status status = refuse_if_used(bytes); !status.ok()) return status;
    if (block->second.registration) ++heap_changes_;
    heap_blocks_.erase(block);
  }
  heap_->release(offset);
  return {};
}

// By a collective under way that has a buffer there.
Status Engine::refuse_if_used(std::span<const std::byte> memory) const {
  const auto user = std::find_if(active_.begin(), active_.end(), [&](const Run* run) {
    return !run->done() && run->has_buffer_in(memory);
  });
  return user == active_.end() ? Status() : still_used(**user);
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
