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

/// Of the flight's call, until release().
inline void pin_blocks(Flight& flight, const Call& call) {
  const auto pin = g_heap_pins.pin.load(std::memory_order_relaxed);
  if (pin == nullptr) [[likely]]
    return;
  const auto tag = static_cast<unsigned>(flight.counted);
  flight.pins = {pin(call.in.address, tag), pin(call.out.address, tag)};
}

inline void unpin_blocks(Flight& flight) {
  for (int& number : flight.pins) {
    if (number < 0) continue;
    g_heap_pins.unpin.load(std::memory_order_relaxed)(number);
    number = -1;
  }
}

}  // namespace carillon::shim
