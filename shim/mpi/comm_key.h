// SPDX-License-Identifier: Apache-2.0
//
// A key for attributes of communicators: made when it is first used, and gone with the last
// communicator that may have one.
#pragma once

#include <atomic>
#include <mutex>

#include "host.h"

namespace carillon::shim {

class CommKey {
 public:
  constexpr CommKey(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* drop) noexcept
      : copy_(copy), drop_(drop) {}

  void set(MPI_Comm comm, void* value) { host().Comm_set_attr(comm, made(), value); }
  /// False: the communicator has none.
  bool find(MPI_Comm comm, void** value) const {
    const int keyval = keyval_.load(std::memory_order_acquire);  // partner: made()
    if (keyval == MPI_KEYVAL_INVALID) return false;
    int found = 0;
    host().Comm_get_attr(comm, keyval, static_cast<void*>(value), &found);
    return found != 0;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    int keyval = keyval_.exchange(MPI_KEYVAL_INVALID, std::memory_order_relaxed);
    if (keyval != MPI_KEYVAL_INVALID) host().Comm_free_keyval(&keyval);
  }

 private:
  int made() {
    const std::lock_guard lock(mutex_);
    int keyval = keyval_.load(std::memory_order_relaxed);
    if (keyval == MPI_KEYVAL_INVALID) {
      host().Comm_create_keyval(copy_, drop_, &keyval, nullptr);
      keyval_.store(keyval, std::memory_order_release);  // partner: find()
    }
    return keyval;
  }

  MPI_Comm_copy_attr_function* copy_;
  MPI_Comm_delete_attr_function* drop_;
  std::mutex mutex_;  // of whether there is a key
  std::atomic<int> keyval_ = MPI_KEYVAL_INVALID;
};

}  // namespace carillon::shim
