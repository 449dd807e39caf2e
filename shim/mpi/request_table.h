// SPDX-License-Identifier: Apache-2.0
//
// From the host's request handles to what they stand for: open addressing, so that a look-up on
// the fast path costs a few nanoseconds and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "thread_cache.h"

namespace carillon::shim {

template <typename Value>
class RequestTable {
 public:
  void insert(MPI_Request handle, Value* value) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    ++used_;
    place(handle, value);
  }
  /// Null: none.
  [[nodiscard]] Value* find(MPI_Request handle) const {
    if (used_ == 0) return nullptr;
    for (std::size_t i = home(handle);; i = next(i)) {
      if (slots_[i].value == nullptr) return nullptr;
      if (slots_[i].handle == handle) return slots_[i].value;
    }
  }
  void erase(MPI_Request handle) {
    if (used_ == 0) return;
    std::size_t hole = home(handle);
    for (; slots_[hole].handle != handle || slots_[hole].value == nullptr; hole = next(hole)) {
      if (slots_[hole].value == nullptr) return;
    }
    --used_;
    // What was displaced past the hole moves back into it.
    for (std::size_t i = next(hole); slots_[i].value != nullptr; i = next(i)) {
      const std::size_t mask = slots_.size() - 1;
      if (((i - home(slots_[i].handle)) & mask) < ((i - hole) & mask)) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = {};
  }

 private:
  struct Slot {
    MPI_Request handle{};
    Value* value = nullptr;
  };
  [[nodiscard]] std::size_t home(MPI_Request handle) const {
    return (hash_of(handle) >> 32) & (slots_.size() - 1);
  }
  [[nodiscard]] std::size_t next(std::size_t i) const { return (i + 1) & (slots_.size() - 1); }
  void place(MPI_Request handle, Value* value) {
    std::size_t i = home(handle);
    while (slots_[i].value != nullptr) i = next(i);
    slots_[i] = {handle, value};
  }
  void grow() {
    constexpr std::size_t kFirst = 64;
    std::vector<Slot> old(slots_.empty() ? kFirst : 2 * slots_.size());
    std::swap(old, slots_);
    for (const Slot& slot : old) {
      if (slot.value != nullptr) place(slot.handle, slot.value);
    }
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half in use
  std::size_t used_ = 0;
};

}  // namespace carillon::shim
