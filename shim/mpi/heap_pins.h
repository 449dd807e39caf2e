// SPDX-License-Identifier: Apache-2.0
//
// Blocks of the shared heap that a collective in flight uses: who frees one, which is an error, is
// told of the call, and the heap gives it to nobody else before that has ended.
#pragma once

#include <atomic>
#include <cstddef>

#include "call.h"
#include "flight.h"

namespace carillon::shim {

/// Looks whether there is a shared heap. Before the first collective.
void find_heap_pins();

struct HeapPins {
  // The heap's functions; null: there is no heap. Relaxed: they are there before any flight.
  std::atomic<int (*)(const void* address, unsigned tag)> pin = nullptr;
  std::atomic<void (*)(int number)> unpin = nullptr;
};
inline constinit HeapPins g_heap_pins;

/// Of the flight's call, until release(): those of its buffers that mean anything on this rank.
template <Collective kCollective>
inline void pin_blocks(Flight& flight, const Call& call) {
  const auto pin = g_heap_pins.pin.load(std::memory_order_relaxed);
  if (pin == nullptr) [[likely]]
    return;
  using enum Collective;
  constexpr bool kInOfRoot = kCollective == kScatter || kCollective == kScatterv;
  constexpr bool kOutOfRoot =
      kCollective == kReduce || kCollective == kGather || kCollective == kGatherv;
  const bool is_root = call.root == flight.communicator->rank;
  const auto has_data = [&](const Buffer& buffer, const Blocks& blocks) {
    // (Counts beside MPI_IN_PLACE may be none.)
    if (blocks.counts == nullptr || buffer.address == MPI_IN_PLACE) return buffer.count != 0;
    if (rule_of(kCollective).kind == Kind::kNeighbours) return true;
    for (int block = 0; block < flight.communicator->size; ++block) {
      if (blocks.count(block) != 0) return true;
    }
    return false;
  };
  const bool in = (is_root || !kInOfRoot) && has_data(call.in, call.in_blocks);
  const bool out = (is_root || !kOutOfRoot) && has_data(call.out, call.out_blocks);
  const auto tag = static_cast<unsigned>(flight.counted);
  flight.pins = {in ? pin(call.in.address, tag) : -1, out ? pin(call.out.address, tag) : -1};
}

inline void unpin_blocks(Flight& flight) {
  for (int& number : flight.pins) {
    if (number < 0) continue;
    g_heap_pins.unpin.load(std::memory_order_relaxed)(number);
    number = -1;
  }
}

}  // namespace carillon::shim
