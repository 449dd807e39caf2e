// SPDX-License-Identifier: Apache-2.0
//
// How long who starts waits for the others.
#include "team/bootstrap.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

namespace carillon::test {
namespace {

constexpr int kTimeoutS = 1;

// An exchange of one rank with one that comes, or does not, while the first look is on.
struct SlowLook {
  bool comes = true;
  int looks = 0;
};

int post(void* /*arg*/, const void* in, void* out, std::size_t bytes, void** request_p) {
  *request_p = nullptr;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    std::memcpy(static_cast<std::byte*>(out) + rank * bytes, in, bytes);
  }
  return 0;
}

int test(void* arg, void* /*request*/) {
  auto& look = *static_cast<SlowLook*>(arg);
  if (++look.looks > 1) return look.comes ? 0 : 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kTimeoutS + 1);
  while (std::chrono::steady_clock::now() < end) {
  }
  return 1;
}

Code exchange_of(SlowLook& look) {
  const crl_oob_t oob = {
      .arg = &look, .rank = 0, .size = 2, .allgather_post = post, .allgather_test = test};
  const auto there = exchange(oob, 5, kTimeoutS);
  return there.ok() ? Code::kOk : there.status().code();
}

// As a process that is stopped, or whose host's progress takes so long.
TEST(BootstrapExchange, WhoWasHeldUpInALookLooksOnceMore) {
  SlowLook look;
  EXPECT_EQ(exchange_of(look), Code::kOk);
}

TEST(BootstrapExchange, WhoDoesNotComeIsNotWaitedFor) {
  SlowLook look{.comes = false};
  EXPECT_EQ(exchange_of(look), Code::kTimeout);
}

}  // namespace
}  // namespace carillon::test
