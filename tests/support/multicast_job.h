// SPDX-License-Identifier: Apache-2.0
//
// Groups over real networks, for tests and trials: setting up and leaving, waiting where the
// library does not.
#pragma once

#include <sched.h>

#include <chrono>
#include <memory>
#include <utility>

#include "transport/multicast/setup.h"

namespace carillon::test {

inline multicast::Nanoseconds steady_now() {
  return static_cast<multicast::Nanoseconds>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

inline Result<std::unique_ptr<multicast::Group>> set_up(
    Result<std::unique_ptr<multicast::Carrier>> carrier, const crl_oob_t& oob,
    const multicast::SetupOptions& options = {}) {
  multicast::Setup setup(std::move(carrier), oob, options);
  for (;;) {
    const auto over = setup.progress(steady_now());
    if (!over.ok()) return over.status();
    if (over.value()) return setup.result();
    sched_yield();
  }
}

inline Status leave(multicast::Group& group, const crl_oob_t& oob) {
  for (;;) {
    const auto left = group.leave(oob, steady_now());
    if (!left.ok()) return left.status();
    if (left.value()) return {};
    sched_yield();
  }
}

}  // namespace carillon::test
