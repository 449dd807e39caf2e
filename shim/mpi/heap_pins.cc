// SPDX-License-Identifier: Apache-2.0
#include "heap_pins.h"

#include <dlfcn.h>

#include "process.h"

namespace carillon::shim {
namespace {

void say_freed(unsigned tag) {
  say("rank %d: a block of the shared heap is freed while MPI_%s uses it; complete the request "
      "first; nobody else gets the block before that",
      process().world_rank, call_name(tag).c_str());
}

template <typename Function>
Function of_heap(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

void find_heap_pins() {
  const auto say_to = of_heap<void (*)(void (*)(unsigned))>("carillon_heap_say_freed");
  const auto pin = of_heap<int (*)(const void*, unsigned)>("carillon_heap_pin");
  const auto unpin = of_heap<void (*)(int)>("carillon_heap_unpin");
  if (say_to == nullptr || pin == nullptr || unpin == nullptr) return;
  say_to(say_freed);
  g_heap_pins.unpin.store(unpin, std::memory_order_relaxed);
  g_heap_pins.pin.store(pin, std::memory_order_relaxed);
}

}  // namespace carillon::shim
