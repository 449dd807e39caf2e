// SPDX-License-Identifier: Apache-2.0
//
// The cores that a process may run on.
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <vector>

#include "base/cores.h"

namespace carillon {
namespace {

TEST(Cores, AreThoseOfTheKernel) {
  const std::vector<int> cores = allowed_cores();
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  ASSERT_EQ(cores.size(), static_cast<std::size_t>(CPU_COUNT(&set)));
  for (const int core : cores) EXPECT_TRUE(CPU_ISSET(core, &set)) << core;
}

TEST(Cores, OfAThreadThatHasBeenGivenOne) {
  std::thread([] {
    for (const int core : allowed_cores()) {
      if (!pin_to_core(core)) ADD_FAILURE() << core;
      EXPECT_EQ(allowed_cores(), std::vector{core});
      EXPECT_EQ(sched_getcpu(), core);
    }
  }).join();
}

TEST(Cores, WhatIsNoneIsRefused) {
  const std::vector<int> before = allowed_cores();
  for (const int core : {-1, 65535, 65536, 1 << 30}) EXPECT_FALSE(pin_to_core(core)) << core;
  EXPECT_EQ(allowed_cores(), before);
}

}  // namespace
}  // namespace carillon
