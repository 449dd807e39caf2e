// SPDX-License-Identifier: Apache-2.0
//
// Messages that are written together with a copy of their bytes to their writer's own memory: what
// the copy would have brought is there, of puts and of sends whose messages go now one way and now
// another.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/objects.h"
#include "schedule/text.h"
#include "support/calls.h"

namespace carillon::test {
namespace {

// More calls than it takes to learn, and to see the copy alone again.
constexpr std::int64_t kRounds = 150;

struct Case {
  const char* algorithm;
  int ranks;
  std::size_t count;
};

class Allgather : public testing::TestWithParam<Case> {};

TEST_P(Allgather, TheOwnBlockIsThereToo) {
  const auto [algorithm, ranks, count] = GetParam();
  setenv("CARILLON_ALGORITHM", algorithm, 1);
  Meeting world(ranks), meeting(ranks);
  expect_processes_ok(ranks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    for (std::int64_t round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
      const auto in = values_of(rank, round, count);
      std::vector<std::int64_t> out(static_cast<std::size_t>(ranks) * count, -1);
      expect_ok(crl_allgather(team, in.data(), out.data(), count * sizeof(std::int64_t)));
      for (int from = 0; from < ranks; ++from) {
        const auto begin = out.begin() + from * static_cast<std::ptrdiff_t>(count);
        ASSERT_EQ(std::vector(begin, begin + static_cast<std::ptrdiff_t>(count)),
                  values_of(from, round, count))
            << "from " << from << " in round " << round;
      }
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
  unsetenv("CARILLON_ALGORITHM");
}

INSTANTIATE_TEST_SUITE_P(
    Blocks, Allgather,
    testing::Values(Case{"allgather=flat", 2, 2048}, Case{"allgather=flat", 2, 8193},
                    Case{"allgather=flat", 3, 20000}, Case{"allgather=linear", 1, 9000},
                    Case{"allgather=linear", 2, 8192}, Case{"allgather=linear", 2, 70001},
                    Case{"allgather=linear", 3, 10001}, Case{"allgather=linear", 5, 5000}));

// The operand of a schedule's ops: so many bytes from there.
std::string bytes_at(const char* buffer, std::int64_t offset, std::int64_t bytes) {
  return std::string(buffer) + "[" + std::to_string(offset) + "+" + std::to_string(bytes) + "]";
}

// Both ranks put four blocks. The first one and the last one they copy next; behind the second one
// they copy another one, and the third one before it is put.
std::shared_ptr<const Plan> plan_of_pairs(crl_team_h team, int rank, std::int64_t bytes) {
  const std::string to = std::to_string(1 - rank);
  std::string ops;
  const auto put = [&](int index) {
    ops += "put " + to + " #" + std::to_string(index) + " " +
           bytes_at("input", index * bytes, bytes) + "\n";
  };
  const auto copy = [&](int target, int source) {
    ops += "copy " + bytes_at("output", target * bytes, bytes) + " = " +
           bytes_at("input", source * bytes, bytes) + "\n";
  };
  put(0), copy(4, 0), put(1), copy(5, 2), copy(6, 2), put(2), put(3), copy(7, 3);
  for (int i = 0; i < 4; ++i) {
    const std::string message = to + " #" + std::to_string(i);
    ops += "wait " + message + "\ncopy " + bytes_at("output", i * bytes, bytes) + " = slot(" +
           message + ")" + bytes_at("", 0, bytes) + "\n";
  }
  const auto schedule =
      parse_schedule("schedule ranks 2 rank " + std::to_string(rank) + " scratch 0\n" + ops);
  EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
  carillon::Call call;
  call.shared = {Collective::kAlltoall, 2, 0, 4 * bytes, 1, true};
  call.rank = rank;
  call.limits = team->team->limits();
  auto plan = lower(schedule.value(), call);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return std::make_shared<const Plan>(std::move(plan.value()));
}

TEST(WrittenTogether, OnlyWhatIsCopiedNextFromTheSamePlace) {
  constexpr std::int64_t kCount = 2048, kBytes = kCount * 8;
  Meeting world(2), meeting(2);
  expect_processes_ok(2, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    const auto plan = plan_of_pairs(team, rank, kBytes);
    int pairs = 0;
    for (const Instruction& in : plan->code) pairs += in.paired ? 1 : 0;
    EXPECT_EQ(pairs, 4) << "two puts and two copies";
    carillon::Run one;
    for (std::int64_t round = 0; round < kRounds; ++round) {
      const auto in = values_of(rank, round, 4 * kCount);
      const auto theirs = values_of(1 - rank, round, 4 * kCount);
      std::vector<std::int64_t> out(8 * kCount), expected = theirs;
      for (const int block : {0, 2, 2, 3}) {
        expected.insert(expected.end(), in.begin() + block * kCount,
                        in.begin() + (block + 1) * kCount);
      }
      one.prepare(*team->team, {.input = in.data(), .output = out.data()});
      one.set_plan(plan);
      context->engine->run_to_end(one);
      ASSERT_TRUE(one.status().ok()) << one.status().to_string();
      ASSERT_EQ(out, expected) << "round " << round;
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

}  // namespace
}  // namespace carillon::test
