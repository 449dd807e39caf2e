// SPDX-License-Identifier: Apache-2.0
//
// Other orders of execution: strands of a rank that put large messages may come to its slots one
// way or the other.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "schedule/interpret.h"
#include "schedule/verify.h"
#include "support/hand_team.h"

namespace carillon {
namespace {

// Two strands that put large messages: the second one's is taken only after the first one's, which
// finds no slot if it comes second.
TEST(Orders, SomeEndInADeadlock) {
  constexpr std::string_view kText =
      "schedule ranks 3 rank 0 scratch 0\n"
      "put 1 #0 input[0+8]\n"
      "strand\n"
      "put 2 #0 input[0+8]\n"
      "schedule ranks 3 rank 1 scratch 0\n"
      "wait 0 #0\n"
      "copy output[0+8] = slot(0 #0)[0+8]\n"
      "signal 2 #0\n"
      "schedule ranks 3 rank 2 scratch 0\n"
      "wait 1 #0\n"
      "wait 0 #0\n"
      "copy output[0+8] = slot(0 #0)[0+8]\n";
  const Emit emit = test::emit_text(kText);
  TeamCall call{.shared = {.collective = Collective::kBcast, .ranks = 3, .count = 8},
                .limits = {.inline_bytes = 0, .large_slots = 2},
                .locals = {}};
  const Report enough = verify(call, emit);
  EXPECT_TRUE(enough.ok()) << enough.status.message();
  EXPECT_TRUE(enough.stats.slots_contended);
  call.limits.large_slots = 1;
  const Report report = verify(call, emit);
  EXPECT_NE(report.status.message().find("waits for one of the rank's 1 large slots"),
            std::string::npos)
      << report.status.message();
  EXPECT_TRUE(
      verify(call, test::emit_text(test::replaced(std::string(kText), "strand\n", ""))).ok());
  // What is tried without memory ends as with it.
  const std::vector<Bytes> inputs{Bytes(8), {}, {}};
  std::string first;
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    const auto run = interpret(call, emit, inputs, {}, {.run = {.seed = seed}});
    if (first.empty() && !run.ok()) first = run.status().to_string();
    if (!run.ok()) ++failed;
    Workspace workspace;
    EXPECT_TRUE(interpret(call, emit, inputs, {}, {.run = {.workspace = &workspace}}).ok());
    const Status orders = try_orders(call, workspace, seed);
    EXPECT_EQ(orders.ok() ? std::string() : orders.to_string(), first) << seed;
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 16);
}

}  // namespace
}  // namespace carillon
