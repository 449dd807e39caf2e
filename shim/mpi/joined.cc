// SPDX-License-Identifier: Apache-2.0
#include "joined.h"

#include <atomic>
#include <mutex>

#include "world.h"

namespace carillon::shim {
namespace {

std::mutex g_mutex;  // of whether there is a key
std::atomic<int> g_keyval = MPI_KEYVAL_INVALID;

int copy_mark(MPI_Comm /*comm*/, int /*keyval*/, void* /*extra*/, void* value, void* copied,
              int* flag) {
  *static_cast<void**>(copied) = value;
  *flag = use_again(static_cast<World*>(value)) ? 1 : 0;
  return MPI_SUCCESS;
}

int delete_mark(MPI_Comm /*comm*/, int /*keyval*/, void* value, void* /*extra*/) {
  drop_again(static_cast<World*>(value));
  return MPI_SUCCESS;
}

int make_key() {
  const std::lock_guard lock(g_mutex);
  int keyval = g_keyval.load(std::memory_order_relaxed);
  if (keyval == MPI_KEYVAL_INVALID) {
    host().Comm_create_keyval(copy_mark, delete_mark, &keyval, nullptr);
    g_keyval.store(keyval, std::memory_order_release);
  }
  return keyval;
}

}  // namespace

void mark_joined(MPI_Comm comm, World& world) { host().Comm_set_attr(comm, make_key(), &world); }

World* joined_world(MPI_Comm comm) {
  const int keyval = g_keyval.load(std::memory_order_acquire);
  if (keyval == MPI_KEYVAL_INVALID) return nullptr;
  void* value = nullptr;
  int found = 0;
  host().Comm_get_attr(comm, keyval, &value, &found);
  return found != 0 ? static_cast<World*>(value) : nullptr;
}

void mark_part(MPI_Comm whole, MPI_Comm part) {
  World* const world = joined_world(whole);
  if (world == nullptr || joined_world(part) != nullptr || !has_strangers(part)) return;
  if (use_again(world)) mark_joined(part, *world);
}

void forget_joined() {
  const std::lock_guard lock(g_mutex);
  int keyval = g_keyval.exchange(MPI_KEYVAL_INVALID, std::memory_order_relaxed);
  if (keyval != MPI_KEYVAL_INVALID) host().Comm_free_keyval(&keyval);
}

}  // namespace carillon::shim
