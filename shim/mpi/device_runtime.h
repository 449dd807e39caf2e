// SPDX-License-Identifier: Apache-2.0
//
// The runtimes of devices that a program may have loaded: CUDA's driver and HIP. Their functions
// are looked up in the program; nothing of them is needed to build, nor loaded here.
#pragma once

#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace carillon::shim {

/// Memory of a device, that the processor cannot read or write itself.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  /// Any address may be asked for.
  [[nodiscard]] virtual bool is_device_memory(std::uintptr_t address) const = 0;
  /// Wait until the bytes are there. False: the runtime refuses. By any thread.
  [[nodiscard]] virtual bool to_host(void* to, std::uintptr_t from, std::size_t bytes) const = 0;
  [[nodiscard]] virtual bool to_device(std::uintptr_t to, const void* from,
                                       std::size_t bytes) const = 0;
};

/// The end of the list of the process's libraries as it was when it was last looked through.
/// `last` stays loaded. Null: it never was.
struct SeenLibraries {
  std::atomic<const link_map*> last = nullptr, next = nullptr;
  std::atomic<bool> any_runtime = false;
};
extern constinit SeenLibraries g_libraries;

/// Begins to look for runtimes.
void start_devices();

/// False: no runtime is loaded. Programs load them when they like: that is seen by the end of the
/// list of libraries.
inline bool may_have_devices() {
  if (g_libraries.any_runtime.load(std::memory_order_relaxed)) [[unlikely]]
    return true;
  const link_map* const last = g_libraries.last.load(std::memory_order_acquire);
  return last != nullptr && __atomic_load_n(&last->l_next, __ATOMIC_RELAXED) !=
                                g_libraries.next.load(std::memory_order_relaxed);
}

/// The runtime whose memory lies there; null: none's, or the processor can use it as well.
const DeviceRuntime* find_device(std::uintptr_t address);

}  // namespace carillon::shim
