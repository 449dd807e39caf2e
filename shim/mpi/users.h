// SPDX-License-Identifier: Apache-2.0
//
// The calls that are using an object of the program's. MPI lets another thread free it meanwhile:
// the calls end normally, and the host's object is freed after the last of them.
#pragma once

#include <atomic>
#include <cstdint>

namespace carillon::shim {

class Users {
 public:
  /// The program may not begin a call with what it frees: a call that enters finds it not freed.
  void enter() { state_.fetch_add(1, std::memory_order_relaxed); }
  /// True: the last one of an object that was freed meanwhile: the caller frees the host's.
  [[nodiscard]] bool leave() {
    return state_.fetch_sub(1, std::memory_order_acq_rel) == kFreed + 1;
  }
  /// The program frees the object. True: nobody uses it, the caller frees the host's.
  [[nodiscard]] bool free() { return state_.fetch_or(kFreed, std::memory_order_acq_rel) == 0; }
  /// The host refused to free it, or has it still under the same handle.
  void keep() { state_.fetch_and(~kFreed, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kFreed = UINT32_C(1) << 31;
  std::atomic<std::uint32_t> state_ = 0;  // how many calls, and kFreed
};

}  // namespace carillon::shim
