// SPDX-License-Identifier: Apache-2.0
//
// Emitter: whatever it has emitted before, schedules and errors are those of emit.
#include "algorithms/emitter.h"

#include <gtest/gtest.h>

#include "support/shapes.h"
#include "support/trial.h"

namespace carillon {
namespace {

TEST(Emitter, SaysWhatEmitSays) {
  Emitter emitter;
  for (const Algorithm& algorithm : algorithms()) {
    for (const test::Shape& shape :
         {test::blocked({7}), test::blocked({1}), test::blocked({3, 2})}) {
      const Rank ranks = shape.ranks();
      for (const Params& params : test::params_for(algorithm)) {
        Limits limits{.slot_bytes = 64, .inline_bytes = 16, .multicast_bytes = 44};
        limits.nodes = shape.nodes;
        const Shared shared{algorithm.collective, ranks, 0, 43, test::kElement};
        test::Trial trial{algorithm, {shared, false}, limits, params};
        const TeamCall team = trial.team_call();
        for (Rank rank = 0; rank <= ranks; ++rank) {  // the last one is not there
          const Call call{.shared = shared,
                          .local = rank < ranks ? team.local(rank) : Local{},
                          .rank = rank,
                          .limits = limits,
                          .params = params};
          const Result<Schedule> expected = emit(algorithm, call);
          const Result<Schedule> schedule = emitter.emit(algorithm, call);
          ASSERT_EQ(schedule.status().to_string(), expected.status().to_string()) << trial.text();
          if (!expected.ok()) continue;
          EXPECT_EQ(schedule.value(), expected.value()) << trial.text() << ", rank " << rank;
        }
      }
    }
  }
}

}  // namespace
}  // namespace carillon
