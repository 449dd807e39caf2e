// SPDX-License-Identifier: Apache-2.0
//
// Tests that every Wire is held to: a body run by several processes, each with its end of a
// network, over each network that the machine has.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "support/wire_end.h"

namespace carillon::test {

// The parameter is the network, as open_wire takes it.
class WireConformance : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int kNoNetwork = 77;

  // Asks in a process of its own: looking for networks opens RDMA devices, and what a process
  // opened there its children cannot use (the kernel compares credentials, which fork copies).
  void SetUp() override {
    look_for_networks();
    const auto exits = run_processes(1, [&](int) {
      const auto opened = open_wire(GetParam());
      if (opened.ok()) return;
      std::printf("%s\n", opened.status().to_string().c_str());
      std::fflush(stdout);
      _exit(kNoNetwork);
    });
    if (exits[0] == kNoNetwork) GTEST_SKIP() << "there is no such network here";
    ASSERT_EQ(exits[0], 0);
  }
  // body(end) on every rank.
  void on_ranks(int ranks, const std::function<void(End&)>& body) {
    Meeting meeting(ranks);
    expect_processes_ok(
        ranks,
        [&](int rank) {
          End end(meeting, rank, GetParam());
          if (testing::Test::HasFailure()) return;
          end.barrier();
          body(end);
          end.barrier();
        },
        3 * patience_s());
  }
};

}  // namespace carillon::test
