// SPDX-License-Identifier: Apache-2.0
//
// Memory that goes to the receiver with its message: what two ranks write to each other they write
// where they have just read, what goes one way stays in memory of its writer's, and whatever the
// ranks' settings and however many collectives are under way, all that is read is what was written.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/objects.h"
#include "schedule/text.h"
#include "support/calls.h"

namespace carillon::test {
namespace {

void set(const char* setting, std::int64_t value) {
  setenv(setting, std::to_string(value).c_str(), 1);
}

// As nothing else is open.
void only_through_shared_memory() {
  set("CARILLON_LEND_BYTES", 0);
  set("CARILLON_UNCACHED_BYTES", 0);
}

crl_traffic_t traffic_of(crl_context_h context) {
  crl_traffic_t traffic;
  crl_context_traffic(context, &traffic);
  return traffic;
}

// Every rank's values for every other one, `count` each.
std::vector<std::int64_t> sent(int rank, int ranks, std::int64_t round, std::size_t count) {
  return values_of(rank, round, static_cast<std::size_t>(ranks) * count);
}

void expect_received(const std::vector<std::int64_t>& out, int rank, int ranks, std::int64_t round,
                     std::size_t count) {
  for (int from = 0; from < ranks; ++from) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t there = static_cast<std::size_t>(rank) * count + i;
      ASSERT_EQ(out[static_cast<std::size_t>(from) * count + i],
                value_of(from, round, static_cast<std::int64_t>(there)))
          << "from " << from << " in round " << round << " at " << i;
    }
  }
}

class BothWays : public testing::TestWithParam<std::size_t> {};

TEST_P(BothWays, NearlyAllIsHandedOver) {
  constexpr int kRanks = 2, kRounds = 300;
  const std::size_t count = GetParam() / sizeof(std::int64_t);
  for (const std::int64_t most : {16, 1, 0}) {
    Meeting world(kRanks), meeting(kRanks);
    expect_processes_ok(kRanks, [&](int rank) {
      only_through_shared_memory();
      set("CARILLON_HANDED_CHUNKS", most);
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      std::vector<std::int64_t> out(kRanks * count);
      const crl_traffic_t before = traffic_of(context);
      for (std::int64_t round = 0; round < kRounds; ++round) {
        const auto in = sent(rank, kRanks, round, count);
        expect_ok(crl_alltoall(team, in.data(), out.data(), GetParam()));
        expect_received(out, rank, kRanks, round, count);
        if (testing::Test::HasFailure()) break;
      }
      const crl_traffic_t after = traffic_of(context);
      const std::uint64_t copied = after.copied_bytes - before.copied_bytes;
      const std::uint64_t handed = after.handed_bytes - before.handed_bytes;
      EXPECT_EQ(copied, kRounds * GetParam());
      // What stays in the pool is tried, too.
      if (most == 0) {
        EXPECT_EQ(handed, 0u);
      } else if (most == 16) {
        EXPECT_GT(handed, copied / 4);
      }
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Bytes, BothWays, testing::Values(1024, 8192, 8200, 65536, 67000, 786432));

// A receiver that never writes back keeps two.
TEST(HandedOver, OneWayNextToNothingIs) {
  constexpr int kRanks = 2, kRounds = 200;
  constexpr std::size_t kCount = 8192;
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    only_through_shared_memory();
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    for (std::int64_t round = 0; round < kRounds; ++round) {
      std::vector<std::int64_t> data(kCount);
      if (rank == 0) data = values_of(0, round, kCount);
      expect_ok(crl_bcast(team, data.data(), kCount * sizeof(std::int64_t), 0));
      ASSERT_EQ(data, values_of(0, round, kCount));
    }
    EXPECT_LE(traffic_of(context).handed_bytes, 2 * kCount * sizeof(std::int64_t));
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Chunks of two lengths, and a rank that takes them but gives none.
TEST(HandedOver, SettingsMayDiffer) {
  constexpr int kRanks = 3, kRounds = 400;
  constexpr std::array kSlotBytes = {65536, 20000, 2048}, kMost = {16, 0, 5};
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    only_through_shared_memory();
    set("CARILLON_SLOT_BYTES", kSlotBytes[static_cast<std::size_t>(rank)]);
    set("CARILLON_HANDED_CHUNKS", kMost[static_cast<std::size_t>(rank)]);
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    for (std::int64_t round = 0; round < kRounds; ++round) {
      const auto count = static_cast<std::size_t>(1 + round * 7919 % 4099);
      const auto in = sent(rank, kRanks, round, count);
      std::vector<std::int64_t> out(kRanks * count);
      expect_ok(crl_alltoall(team, in.data(), out.data(), count * sizeof(std::int64_t)));
      expect_received(out, rank, kRanks, round, count);
      if (testing::Test::HasFailure()) break;
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Of several teams that take turns, each with calls of other lengths, as in no other round.
TEST(HandedOver, AmongSeveralCallsUnderWay) {
  constexpr int kRounds = 120, kTeams = 3;
  for (const int ranks : {2, 3, 5}) {
    Meeting world(ranks);
    std::deque<Meeting> meetings;
    for (int i = 0; i < kTeams; ++i) meetings.emplace_back(ranks);
    expect_processes_ok(ranks, [&](int rank) {
      crl_context_h context = make_context(world, rank);
      std::array<crl_team_h, kTeams> teams;
      for (std::size_t i = 0; i < kTeams; ++i) {
        teams[i] = make_team(context, meetings[i].oob(rank));
      }
      for (std::int64_t round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
        std::array<std::vector<std::int64_t>, kTeams> in, out;
        std::array<crl_request_h, kTeams> requests;
        const auto count_of = [&](std::size_t i) {
          const auto turn = static_cast<std::size_t>(round) + i;
          return turn % 4 == 0 ? std::size_t{20000} : 100 + turn * 7919 % 9000;
        };
        for (std::size_t i = 0; i < kTeams; ++i) {
          const std::int64_t mixed = round * kTeams + static_cast<std::int64_t>(i);
          in[i] = sent(rank, ranks, mixed, count_of(i));
          out[i].resize(in[i].size());
          expect_ok(crl_ialltoall(teams[i], in[i].data(), out[i].data(),
                                  count_of(i) * sizeof(std::int64_t), &requests[i]));
        }
        for (std::size_t i = kTeams; i-- > 0;) {
          expect_ok(crl_request_wait(&requests[i]));
          const std::int64_t mixed = round * kTeams + static_cast<std::int64_t>(i);
          expect_received(out[i], rank, ranks, mixed, count_of(i));
        }
      }
      for (crl_team_h team : teams) crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
}

// A schedule that writes to a rank while it still needs what has come from there: twice each way,
// and what came first is copied last.
std::shared_ptr<const Plan> plan_of_held_messages(crl_team_h team, int rank, std::int64_t bytes) {
  const std::string part = "+" + std::to_string(bytes) + "]";
  const std::string second = "[" + std::to_string(bytes) + part;
  const std::string to = std::to_string(1 - rank), slot = "slot(" + to + " #";
  const std::string ops = "put " + to + " #0 input[0" + part + "\nwait " + to + " #0\nput " + to +
                          " #1 input" + second + "\nwait " + to + " #1\ncopy output" + second +
                          " = " + slot + "1)[0" + part + "\ncopy output[0" + part + " = " + slot +
                          "0)[0" + part + "\n";
  const auto schedule =
      parse_schedule("schedule ranks 2 rank " + std::to_string(rank) + " scratch 0\n" + ops);
  EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
  carillon::Call call;
  call.shared = {Collective::kAlltoall, 2, 0, bytes, 1, true};
  call.rank = rank;
  call.limits = team->team->limits();
  auto plan = lower(schedule.value(), call);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return std::make_shared<const Plan>(std::move(plan.value()));
}

TEST(HandedOver, OnlyWithTheRelease) {
  constexpr std::int64_t kBytes = 8192;
  Meeting world(2), meeting(2);
  expect_processes_ok(2, [&](int rank) {
    only_through_shared_memory();
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    const auto plan = plan_of_held_messages(team, rank, kBytes);
    carillon::Run one;
    for (std::int64_t round = 0; round < 200; ++round) {
      const std::vector<std::int64_t> in = values_of(rank, round, 2 * kBytes / 8);
      std::vector<std::int64_t> out(in.size());
      one.prepare(*team->team, {.input = in.data(), .output = out.data()});
      one.set_plan(plan);
      context->engine->run_to_end(one);
      ASSERT_TRUE(one.status().ok()) << one.status().to_string();
      ASSERT_EQ(out, values_of(1 - rank, round, in.size())) << "round " << round;
    }
    EXPECT_GT(traffic_of(context).handed_bytes, 0u);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Who reads a message there is to write there, too.
TEST(HandedOver, NothingIsTakenThatIsInNoPool) {
  constexpr std::size_t kCount = 2048, kBytes = kCount * sizeof(std::int64_t);
  Meeting world(2), meeting(2);
  expect_processes_ok(2, [&](int rank) {
    only_through_shared_memory();
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    // As if it had come from there.
    const auto chunk_bytes = static_cast<std::size_t>(team->team->limits().stream_bytes());
    auto* const block = static_cast<std::byte*>(crl_alloc(context, chunk_bytes));
    const auto place = static_cast<std::uint64_t>(block - context->engine->segment().base());
    if (rank == 0) context->engine->pool().keep(1, {.offset = place, .bytes = chunk_bytes});
    const auto in = sent(rank, 2, 0, kCount);
    std::vector<std::int64_t> out(in.size());
    const crl_status_t status = crl_alltoall(team, in.data(), out.data(), kBytes);
    if (rank == 1) {
      EXPECT_EQ(status, CRL_ERR_INVALID_ARGUMENT);
      const std::string why = crl_last_error();
      EXPECT_NE(why.find("where no chunk of a pool is; its process"), why.npos) << why;
    }
    crl_free(context, block);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

}  // namespace
}  // namespace carillon::test
