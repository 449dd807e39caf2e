// SPDX-License-Identifier: Apache-2.0
//
// Each strand is sure of slots for long messages, also where those of another strand, which nobody
// takes yet, fill the pool: what the verifier counts on (schedule/machine.h). The schedules are
// written by hand. And how much of the pool sends have that lines would suffice for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "api/objects.h"
#include "schedule/text.h"
#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr int kRanks = 3;
constexpr int kMessages = 12;  // to each: more than lines, so that each is acknowledged
constexpr std::int64_t kBytes = 256 << 10;  // a slot; three of them are a crowded rank's pool

std::string range(std::string_view space, int message) {
  return std::string(space) + "[" + std::to_string(message * kBytes) + "+" +
         std::to_string(kBytes) + "]";
}

std::string number(int message) { return " #" + std::to_string(message); }

// Rank 0 puts all messages to rank 1, and from another strand all to rank 2. Rank 1 takes none
// before rank 2 has had its own.
std::string ops_of(int rank) {
  std::string puts[2], takes;
  for (int i = 0; i < kMessages; ++i) {
    for (const int to : {1, 2}) {
      puts[to - 1] += "put " + std::to_string(to) + number(i) + " " + range("input", i) + "\n";
    }
    takes += "wait 0" + number(i) + "\ncopy " + range("output", i) + " = slot(0" + number(i) +
             ")[0+" + std::to_string(kBytes) + "]\n";
  }
  if (rank == 0) return puts[0] + "strand\n" + puts[1];
  return rank == 1 ? "wait 2 #0\n" + takes : takes + "signal 1 #0\n";
}

std::shared_ptr<const Plan> plan_of(crl_team_h team, int rank) {
  const auto schedule = parse_schedule("schedule ranks " + std::to_string(kRanks) + " rank " +
                                       std::to_string(rank) + " scratch 0\n" + ops_of(rank));
  EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
  carillon::Call call;
  call.shared = {Collective::kBcast, kRanks, 0, kMessages * kBytes, 1, true};
  call.rank = rank;
  call.limits = team->team->limits();
  auto plan = lower(schedule.value(), call);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return std::make_shared<const Plan>(std::move(plan.value()));
}

std::vector<std::uint8_t> bytes_of(int round) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(kMessages * kBytes));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(value_of(0, round, static_cast<std::int64_t>(i)) % 251);
  }
  return bytes;
}

TEST(StrandSlots, NoStrandTakesAnothersSlots) {
  setenv("CARILLON_SLOT_BYTES", std::to_string(kBytes).c_str(), 1);
  setenv("CARILLON_CROWDED", "1", 1);
  setenv("CARILLON_LEND_BYTES", "0", 1);
  Meeting world(kRanks), members(kRanks);
  expect_processes_ok(
      kRanks,
      [&](int rank) {
        crl_context_h context = make_context(world, rank);
        crl_team_h team = make_team(context, members.oob(rank));
        expect_ok(settle(team));
        EXPECT_EQ(team->team->limits().slot_bytes, kBytes);
        const auto plan = plan_of(team, rank);
        carillon::Run one;
        for (int round = 0; round < 3; ++round) {
          const std::vector<std::uint8_t> sent = bytes_of(round);
          std::vector<std::uint8_t> out(sent.size());
          one.prepare(*team->team, {.input = sent.data(), .output = out.data()});
          one.set_plan(plan);
          context->engine->run_to_end(one);
          ASSERT_TRUE(one.status().ok()) << one.status().to_string();
          if (rank > 0) {
            EXPECT_EQ(out, sent) << "round " << round;
          }
        }
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      20);
  for (const char* name : {"CARILLON_SLOT_BYTES", "CARILLON_CROWDED", "CARILLON_LEND_BYTES"}) {
    unsetenv(name);
  }
}

// Where every rank sends as many messages to each other one as there are lines, nobody completes
// the collective before all are sent: if none of these were released until then, pools would grow
// with the number of ranks.
TEST(StrandSlots, SendsDoNotMakeThePoolGrow) {
  constexpr int kSenders = 4;
  setenv("CARILLON_ALGORITHM", "alltoall.linear", 1);
  for (const char* name : {"LEND_BYTES", "UNCACHED_BYTES", "HANDED_CHUNKS"}) {
    setenv((std::string("CARILLON_") + name).c_str(), "0", 1);
  }
  Meeting world(kSenders), members(kSenders);
  expect_processes_ok(kSenders, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    const auto block = static_cast<std::size_t>(shm::kWindow * team->team->limits().stream_bytes());
    const std::size_t count = block / sizeof(std::int64_t);
    const auto in = values_of(rank, 0, kSenders * count);
    std::vector<std::int64_t> out(in.size());
    expect_ok(crl_alltoall(team, in.data(), out.data(), block));
    for (int from = 0; from < kSenders; ++from) {
      const auto first = static_cast<std::int64_t>(count) * rank;
      ASSERT_EQ(out[static_cast<std::size_t>(from) * count], value_of(from, 0, first));
    }
    const Engine& engine = *context->engine;
    std::int64_t grown = 0;  // no value is 0
    std::memcpy(&grown, engine.segment().base() + engine.segment().reserve(rank), sizeof grown);
    EXPECT_EQ(grown, 0);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
  unsetenv("CARILLON_ALGORITHM");
  for (const char* name : {"LEND_BYTES", "UNCACHED_BYTES", "HANDED_CHUNKS"}) {
    unsetenv((std::string("CARILLON_") + name).c_str());
  }
}

}  // namespace
}  // namespace carillon::test
