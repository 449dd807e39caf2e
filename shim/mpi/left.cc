// SPDX-License-Identifier: Apache-2.0
#include "left.h"

#include <atomic>
#include <mutex>

namespace carillon::shim {
namespace {

std::mutex g_mutex;  // of whether there is a key
std::atomic<int> g_keyval = MPI_KEYVAL_INVALID;

int copy_mark(MPI_Comm /*comm*/, int /*keyval*/, void* /*extra*/, void* value, void* copied,
              int* flag) {
  *static_cast<void**>(copied) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

int delete_mark(MPI_Comm /*comm*/, int /*keyval*/, void* /*value*/, void* /*extra*/) {
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

void leave_for_good(MPI_Comm comm) { host().Comm_set_attr(comm, make_key(), nullptr); }

bool is_left_for_good(MPI_Comm comm) {
  const int keyval = g_keyval.load(std::memory_order_acquire);
  if (keyval == MPI_KEYVAL_INVALID) return false;
  void* value = nullptr;
  int found = 0;
  host().Comm_get_attr(comm, keyval, &value, &found);
  return found != 0;
}

void forget_who_is_left() {
  const std::lock_guard lock(g_mutex);
  int keyval = g_keyval.exchange(MPI_KEYVAL_INVALID, std::memory_order_relaxed);
  if (keyval != MPI_KEYVAL_INVALID) host().Comm_free_keyval(&keyval);
}

}  // namespace carillon::shim
