// SPDX-License-Identifier: Apache-2.0
//
// The order of execution: whoever comes first, a run ends, or ends in a deadlock, all the same,
// also where strands of a rank put large messages.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "schedule/interpret.h"
#include "schedule/verify.h"
#include "support/hand_team.h"

namespace carillon {
namespace {

// Rank 0 puts large messages from two strands. The second one's is taken only after the first
// one's.
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

TeamCall bcast(std::int32_t large_slots) {
  return {.shared = {.collective = Collective::kBcast, .ranks = 3, .count = 8},
          .limits = {.inline_bytes = 0, .large_slots = large_slots},
          .locals = {}};
}

// Of random orders, as many as end.
int ends(const TeamCall& call, const Emit& emit) {
  const std::vector<Bytes> inputs{Bytes(8), {}, {}};
  int ended = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    ended += interpret(call, emit, inputs, {}, {.run = {.seed = seed}}).ok() ? 1 : 0;
  }
  return ended;
}

TEST(Orders, EachStrandHasSlotsOfItsOwn) {
  const Emit emit = test::emit_text(kText);
  const Report report = verify(bcast(1), emit);
  EXPECT_TRUE(report.ok()) << report.status.message();
  EXPECT_EQ(ends(bcast(1), emit), 16);
}

// One strand that puts the second one's message first has to wait with the other, for ever.
TEST(Orders, OneStrandWaitsForItsOwn) {
  const std::string text =
      test::replaced(std::string(kText), "put 1 #0 input[0+8]\nstrand\nput 2 #0 input[0+8]\n",
                     "put 2 #0 input[0+8]\nput 1 #0 input[0+8]\n");
  const Emit emit = test::emit_text(text);
  EXPECT_TRUE(verify(bcast(2), emit).ok());
  EXPECT_EQ(ends(bcast(2), emit), 16);
  const Report report = verify(bcast(1), emit);
  EXPECT_NE(report.status.message().find("waits for one of its 1 large slots"), std::string::npos)
      << report.status.message();
  EXPECT_EQ(ends(bcast(1), emit), 0);
}

}  // namespace
}  // namespace carillon
