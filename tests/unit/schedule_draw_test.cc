// SPDX-License-Identifier: Apache-2.0
//
// draw, on a binomial tree of 5 ranks whose last message is in two parts.
#include <gtest/gtest.h>

#include "schedule/draw.h"
#include "support/hand_team.h"

namespace carillon {
namespace {

TEST(Draw, ShowsMessagesByStep) {
  const TeamCall call{.shared = {.collective = Collective::kBcast, .ranks = 5, .count = 8},
                      .limits = {},
                      .locals = {}};
  const auto picture =
      draw(call, test::emit_text("schedule ranks 5 rank 0 scratch 0\n"
                                 "put 4 #0 input[0+8]\nput 2 #0 input[0+8]\nput 1 #0 input[0+8]\n"
                                 "schedule ranks 5 rank 1 scratch 0\nwait 0 #0\n"
                                 "schedule ranks 5 rank 2 scratch 0\nwait 0 #0\n"
                                 "put 3 #0 slot(0 #0)[0+4]\nput 3 #1 slot(0 #0)[4+4]\n"
                                 "schedule ranks 5 rank 3 scratch 0\nwait 2 #0\nwait 2 #1\n"
                                 "schedule ranks 5 rank 4 scratch 0\nwait 0 #0\n"));
  ASSERT_TRUE(picture.ok()) << picture.status().to_string();
  EXPECT_EQ(picture.value(),
            "step 1   0->1 8   0->2 8   0->4 8\n"
            "step 2   2->3 4 x2\n");
}

}  // namespace
}  // namespace carillon
