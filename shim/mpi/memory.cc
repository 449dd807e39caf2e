// SPDX-License-Identifier: Apache-2.0
//
// MPI_Alloc_mem gives memory that all processes of the node can read, while there is some: a
// broadcast and its like then need not copy it into a slot first.
#include "memory.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <optional>

#include "errors.h"
#include "heap_pins.h"
#include "host.h"
#include "process.h"
#include "world.h"

namespace carillon::shim {
namespace {

struct Memories {
  std::mutex mutex;
  std::map<void*, crl_context_h> ours;  // null: it has gone since
};

Memories& memories() {
  static Memories& all = *new Memories();
  return all;
}

void* allocate(MPI_Aint bytes) {
  if (process().phase.load(std::memory_order_acquire) != Phase::kRunning || bytes <= 0) {
    return nullptr;
  }
  const WorldsStay stay;
  crl_context_h const context = g_worlds.load(std::memory_order_acquire)->context;
  void* const memory = crl_alloc(context, static_cast<std::size_t>(bytes));
  if (memory != nullptr) {
    const std::lock_guard lock(memories().mutex);
    memories().ours.emplace(memory, context);
  }
  return memory;
}

// Nothing: it is the host's.
std::optional<crl_status_t> release(void* memory) {
  const std::lock_guard lock(memories().mutex);  // the context stays meanwhile
  const auto found = memories().ours.find(memory);
  if (found == memories().ours.end()) return std::nullopt;
  const crl_status_t status = found->second != nullptr ? crl_free(found->second, memory) : CRL_OK;
  if (status == CRL_OK) memories().ours.erase(found);
  return status;
}

}  // namespace

void tell_heap(crl_context_config_t* config) {
  using Region = int (*)(void** base, std::size_t* bytes, int* fd);
  const auto region = reinterpret_cast<Region>(dlsym(RTLD_DEFAULT, "carillon_heap_region"));
  void* base = nullptr;
  if (region != nullptr && region(&base, &config->heap_bytes, &config->heap_fd) == 0) {
    config->heap = base;
    find_heap_pins();
  }
}

void forget_memory(crl_context_h context) {
  const std::lock_guard lock(memories().mutex);
  for (auto& [memory, of] : memories().ours) {
    if (of == context) of = nullptr;
  }
}

}  // namespace carillon::shim

extern "C" {

CARILLON_EXPORT int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
  const auto& host = carillon::shim::host();
  void* const memory =
      baseptr != nullptr && info == MPI_INFO_NULL ? carillon::shim::allocate(size) : nullptr;
  if (memory == nullptr) return host.Alloc_mem(size, info, baseptr);
  *static_cast<void**>(baseptr) = memory;
  return MPI_SUCCESS;
}

CARILLON_EXPORT int MPI_Free_mem(void* base) {
  const auto status = carillon::shim::release(base);
  if (!status) return carillon::shim::host().Free_mem(base);
  if (*status == CRL_OK) return MPI_SUCCESS;
  return carillon::shim::raise_carillon_error(MPI_COMM_SELF, *status, "MPI_Free_mem");
}

// For tests: bytes that this process gave to others of its node, read where they stood and copied
// to shared memory.
CARILLON_EXPORT void carillon_shim_node_bytes(unsigned long long* in_place,
                                              unsigned long long* copied) {
  const carillon::shim::WorldsStay stay;
  const auto* const world = carillon::shim::g_worlds.load(std::memory_order_acquire);
  crl_traffic_t traffic{};
  if (world != nullptr) crl_context_traffic(world->context, &traffic);
  *in_place = traffic.in_place_bytes;
  *copied = traffic.copied_bytes;
}
// And that others have copied from its private memory.
CARILLON_EXPORT unsigned long long carillon_shim_lent_bytes(void) {
  const carillon::shim::WorldsStay stay;
  const auto* const world = carillon::shim::g_worlds.load(std::memory_order_acquire);
  crl_traffic_t traffic{};
  if (world != nullptr) crl_context_traffic(world->context, &traffic);
  return traffic.lent_bytes;
}

}  // extern "C"
