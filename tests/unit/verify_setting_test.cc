// SPDX-License-Identifier: Apache-2.0
//
// CARILLON_VERIFY=1: plans of all collectives are proved before they are given out, those with
// tables too, and an algorithm that is wrong is told apart. The linker leads calls of emit here
// (--wrap, in CMakeLists.txt).
#include <gtest/gtest.h>

#include <string>

#include "api/plans.h"
#include "schedule/uneven_tables.h"

namespace carillon {

Result<Schedule> real_emit(const Algorithm& algorithm, const Call& call) asm(
    "__real__ZN8carillon4emitERKNS_9AlgorithmERKNS_4CallE");
Result<Schedule> wrong_emit(const Algorithm& algorithm, const Call& call) asm(
    "__wrap__ZN8carillon4emitERKNS_9AlgorithmERKNS_4CallE");

namespace {
bool g_wrong = false;
}

// Without the last op of rank 1.
Result<Schedule> wrong_emit(const Algorithm& algorithm, const Call& call) {
  auto emitted = real_emit(algorithm, call);
  if (g_wrong && call.rank == 1 && emitted.ok() && !emitted.value().ops.empty()) {
    emitted.value().ops.pop_back();
    --emitted.value().strands.back().op_count;
  }
  return emitted;
}

namespace test {
namespace {

Status plan(const Shared& shared, Rank rank, const std::string& algorithm, std::int64_t verify) {
  Config settings;
  settings.verify = verify;
  settings.algorithm = algorithm;
  auto plans = PlanCache::create(settings);
  if (!plans.ok()) return plans.status();
  const UnevenTables tables(shared, shared.element_bytes * 3, rank);
  const Local local{.in_place = false, .tables = tables.view()};
  const Limits limits;
  return plans.value()->find(shared, local, rank, {.limits = limits, .agreed = {}}).status();
}

class VerifySetting : public testing::TestWithParam<int> {
 protected:
  ~VerifySetting() override { g_wrong = false; }
  const Collective collective = static_cast<Collective>(GetParam());
  const std::string rule = collective == Collective::kAlltoallv ? "alltoallv=bruck_two_phase" : "";
};

TEST_P(VerifySetting, RightSchedulesAreGivenOut) {
  for (const Rank ranks : {1, 2, 3, 5, 8}) {
    const Shared shared{.collective = collective,
                        .ranks = ranks,
                        .root = has_root(collective) ? ranks - 1 : 0,
                        .count = 5,
                        .element_bytes = 8};
    for (Rank rank = 0; rank < ranks; ++rank) {
      for (const std::string& algorithms : {std::string(), rule}) {
        const Status status = plan(shared, rank, algorithms, 1);
        EXPECT_TRUE(status.ok()) << ranks << " ranks: " << status.to_string();
      }
    }
  }
}

TEST_P(VerifySetting, WrongOnesAreNot) {
  const Shared shared{.collective = collective, .ranks = 5, .count = 5, .element_bytes = 8};
  g_wrong = true;
  for (const std::string& algorithms : {std::string(), rule}) {
    EXPECT_FALSE(plan(shared, 0, algorithms, 1).ok());
    EXPECT_TRUE(plan(shared, 0, algorithms, 0).ok());  // nobody has looked
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, VerifySetting, testing::Range(0, kCollectives),
                         [](const testing::TestParamInfo<int>& one) {
                           return std::string(collective_name(static_cast<Collective>(one.param)));
                         });

}  // namespace
}  // namespace test
}  // namespace carillon
