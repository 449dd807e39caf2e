// SPDX-License-Identifier: Apache-2.0
//
// Schedules that are right, written by hand, and unlike those of any algorithm: the engine does
// what they say, or says that it cannot.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "api/objects.h"
#include "schedule/verify.h"
#include "support/calls.h"
#include "support/hand_team.h"

namespace carillon::test {
namespace {

constexpr std::int64_t kSegment = 65536;  // a slot
constexpr int kSegments = 4;

std::string range(std::string_view space, std::int64_t from, std::int64_t count, bool moves) {
  return std::string(space) + "[" + std::to_string(from * kSegment) + "+" +
         std::to_string(count * kSegment) + (moves ? " by " + std::to_string(kSegment) : "") + "]";
}

std::string copy(const std::string& to, const std::string& from) {
  return "copy " + to + " = " + from + "\n";
}

std::string loop(int rounds, const std::string& body) {
  return "repeat " + std::to_string(rounds) + " {\n" + body + "}\n";
}

std::string head(int rank, std::int64_t scratch) {
  return "schedule ranks 2 rank " + std::to_string(rank) + " scratch " +
         std::to_string(scratch * kSegment) + "\n";
}

std::string put_all_to(int rank) {
  return loop(kSegments,
              "put " + std::to_string(rank) + " #0 by 1 " + range("input", 0, 1, true) + "\n");
}

// An allgather. In the loop in which it takes messages rank 1 also does this to its output.
std::string allgather(const std::string& before, const std::string& meanwhile,
                      const std::string& after) {
  const std::string slot = "slot(0 #0 by 1)" + range("", 0, 1, false);
  const std::string last = std::to_string(kSegments - 1);
  return head(0, 0) +
         copy(range("output", 0, kSegments, false), range("input", 0, kSegments, false)) +
         put_all_to(1) +
         loop(kSegments, "wait 1 #0 by 1\n" + copy(range("output", kSegments, 1, true),
                                                   "slot(1 #0 by 1)" + range("", 0, 1, false))) +
         head(1, kSegments) + before +
         loop(kSegments - 1,
              "wait 0 #0 by 1\n" + copy(range("output", 0, 1, true), slot) + meanwhile) +
         "wait 0 #" + last + "\n" +
         copy(range("output", kSegments - 1, 1, false),
              "slot(0 #" + last + ")" + range("", 0, 1, false)) +
         after + put_all_to(0);
}

std::vector<std::uint8_t> input_of(int rank, int round) {
  std::vector<std::uint8_t> bytes(kSegments * kSegment);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(value_of(rank, round, static_cast<std::int64_t>(i)) % 251);
  }
  return bytes;
}

void expect_right(const std::string& text) {
  const Shared shared{Collective::kAllgather, 2, 0, kSegments * kSegment, 1, true};
  const Report report = verify({.shared = shared, .limits = {}, .locals = {}}, emit_text(text));
  ASSERT_TRUE(report.ok()) << report.status.to_string();
  Meeting world(2), members(2);
  expect_processes_ok(
      2,
      [&](int rank) {
        crl_context_h context = make_context(world, rank);
        crl_team_h team = make_team(context, members.oob(rank));
        expect_ok(settle(team));
        carillon::Call call{.shared = shared, .rank = rank, .limits = team->team->limits()};
        auto plan = lower(emit_text(text)(rank, 0, {}).value(), call);
        ASSERT_TRUE(plan.ok()) << plan.status().to_string();
        const auto kept = std::make_shared<const Plan>(std::move(plan.value()));
        carillon::Run one;
        for (int round = 0; round < 3; ++round) {
          const std::vector<std::uint8_t> in = input_of(rank, round);
          std::vector<std::uint8_t> all = input_of(0, round), out(2 * in.size());
          const std::vector<std::uint8_t> second = input_of(1, round);
          all.insert(all.end(), second.begin(), second.end());
          one.prepare(*team->team, {.input = in.data(), .output = out.data()});
          one.set_plan(kept);
          context->engine->run_to_end(one);
          ASSERT_TRUE(one.status().ok()) << one.status().to_string();
          EXPECT_TRUE(out == all) << "rank " << rank << ", round " << round;
        }
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      20);
}

class HandSchedules : public testing::Test {
 protected:
  void SetUp() override { setenv("CARILLON_LEND_BYTES", "1024", 1); }
  void TearDown() override { unsetenv("CARILLON_LEND_BYTES"); }
};

// What is lent is read by one call with what comes after it, but not to where the loop still reads.
TEST_F(HandSchedules, ReadsWhereTheNextMessageLands) {
  const std::string own = range("input", 0, kSegments, false);
  expect_right(allgather(copy(range("output", 0, kSegments, false), own),
                         copy(range("scratch", 0, 1, true), range("output", 1, 1, true)),
                         copy(range("output", kSegments, 1, false), range("input", 0, 1, false)) +
                             copy(range("output", kSegments + 1, kSegments - 1, false),
                                  range("scratch", 0, kSegments - 1, false))));
}

// Nor to where it still writes.
TEST_F(HandSchedules, WritesWhereTheNextMessageLands) {
  const std::string own = range("input", 0, kSegments, false);
  expect_right(allgather(copy(range("output", kSegments, kSegments, false), own),
                         copy(range("output", 1, 1, true), range("input", 0, 1, true)), ""));
}

// Streams are numbered as they stand, strand after strand.
TEST(HandSchedulesOfStreams, AreRefusedOutOfOrder) {
  const std::string text =
      "schedule ranks 2 rank 0 scratch 0\nsend 1 #1 input[8+8]\nstrand\nsend 1 #0 input[0+8]\n"
      "schedule ranks 2 rank 1 scratch 0\nrecv 0 #0 output[0+8]\nrecv 0 #1 output[8+8]\n";
  const Shared shared{Collective::kBcast, 2, 0, 16, 1, true};
  for (const int rank : {0, 1}) {
    const auto schedule = emit_text(text)(rank, 0, {});
    ASSERT_TRUE(schedule.ok());
    EXPECT_EQ(lower(schedule.value(), {.shared = shared, .rank = rank}).ok(), rank == 1);
  }
}

}  // namespace
}  // namespace carillon::test
