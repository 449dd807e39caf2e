// SPDX-License-Identifier: Apache-2.0
//
// Ranks whose part of the node's shared memory is full of messages that are not read yet, and can
// grow no more: what goes on all the same, what waits, and what ends with an error.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "api/objects.h"
#include "support/calls.h"
#include "support/words.h"

namespace carillon::test {
namespace {

constexpr std::size_t kSlot = 256 << 10;
constexpr std::size_t kMessage = 2 * kSlot;  // of a send; each has a chunk of its own
constexpr int kFailed = 7;                   // as an exit status: as it should

class Room : public testing::Test {
 protected:
  void SetUp() override {
    set("SLOT_BYTES", std::to_string(kSlot));
    set("CROWDED", "1");
    set("POOL_MIB", "0");
    set("LEND_BYTES", "0");
    set("HANDED_CHUNKS", "0");
  }
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    set_.push_back("CARILLON_" + name);
    setenv(set_.back().c_str(), value.c_str(), 1);
  }

 private:
  std::vector<std::string> set_;
};

// So many messages have room in a rank's pool: fewer than what readers may tell of at the end of a
// collective only.
std::size_t most_messages(crl_context_h context) {
  const shm::Segment& segment = context->engine->segment();
  const std::size_t most = segment.pool_sizes().large_bytes / kMessage +
                           (segment.heap(0) - segment.reserve(0)) / kMessage;
  EXPECT_GE(most, 2u);
  EXPECT_LE(most, 4u);
  return most;
}

// Of the rank that has none, or of one that hears of it.
void expect_no_room(crl_status_t status) {
  EXPECT_EQ(status, CRL_ERR_NO_MEMORY);
  const std::string error = crl_last_error();
  const bool own = error.find(" has no room for a message of ") != std::string::npos;
  const bool heard = error.find("gave up a team") != std::string::npos;
  EXPECT_TRUE(own || heard) << error;
  if (own) {
    EXPECT_NE(error.find("CARILLON_POOL_MIB"), std::string::npos) << error;
  }
}

// An alltoall's output of round `round`, in blocks of `count`.
void expect_exchanged(const std::vector<std::int64_t>& out, int rank, std::size_t count,
                      int round) {
  for (std::size_t from = 0; from < out.size() / count; ++from) {
    for (std::size_t i = 0; i < count; i += 97) {
      const auto place = static_cast<std::int64_t>(static_cast<std::size_t>(rank) * count + i);
      ASSERT_EQ(out[from * count + i], value_of(static_cast<int>(from), round, place));
    }
  }
}

// Each rank writes to all others before it reads. On how many nodes; who is alone on one has its
// own.
class Exchanges : public Room, public testing::WithParamInterface<const char*> {};

TEST_P(Exchanges, EndWhereTheyNeedMore) {
  constexpr int kRanks = 4;
  const std::string nodes = GetParam();
  set("ALGORITHM", "alltoall=linear");
  set("NODE_RANKS", nodes);
  set("JOIN_TIMEOUT_S", "1");
  Meeting world(kRanks), members(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, 40);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    const std::size_t block = 2 * kMessage;
    const std::size_t count = block / sizeof(std::int64_t);
    const auto in = values_of(rank, 1, kRanks * count);
    std::vector<std::int64_t> out(in.size());
    if (nodes.empty()) {
      EXPECT_LT(most_messages(context), 2 * (kRanks - 1));
    }
    const crl_status_t status = crl_alltoall(team, in.data(), out.data(), block);
    // Where another has given up, and reads no more, this one may have room again, and complete.
    if (status == CRL_OK) {
      expect_exchanged(out, rank, count, 1);
    } else {
      expect_no_room(status);
    }
    expect_no_room(crl_barrier(team));
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

INSTANTIATE_TEST_SUITE_P(Nodes, Exchanges, testing::Values("", "3,1"));

// Two teams, whose members write to each other on one of them first, and read on the other.
TEST_F(Room, TeamsThatHoldEachOthersRoomEnd) {
  constexpr int kRanks = 2;
  set("ALGORITHM", "alltoall=linear");
  Meeting world(kRanks), members(kRanks), others(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, 40);
    crl_team_h teams[] = {make_team(context, members.oob(rank)),
                          make_team(context, others.oob(rank))};
    for (crl_team_h team : teams) expect_ok(settle(team));
    const std::size_t block = (most_messages(context) / 2 + 1) * kMessage;
    std::vector<std::uint8_t> in(kRanks * block), out[2] = {in, in};
    crl_request_h requests[2] = {};
    for (const int which : {rank, 1 - rank}) {
      expect_ok(crl_ialltoall(teams[which], in.data(), out[which].data(), block, &requests[which]));
      // The first team's messages are written before the second one's.
      if (which == rank) expect_ok(crl_context_progress(context));
    }
    const crl_status_t first = crl_request_wait(&requests[0]);
    const crl_status_t second = crl_request_wait(&requests[1]);
    EXPECT_TRUE(first == CRL_ERR_NO_MEMORY || second == CRL_ERR_NO_MEMORY);
    for (crl_team_h team : teams) crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Rank 1, whose messages have all the room, comes when the root has said that there is none for the
// others', who wait: until then it is in no call, or waits in one of another team.
class LateReader : public Room, public testing::WithParamInterface<bool> {};

TEST_P(LateReader, IsWaitedFor) {
  constexpr int kRanks = 4;
  const bool in_a_call = GetParam();
  set("ALGORITHM", "scatter=linear");
  set("WATCHDOG", "50ms");
  Meeting world(kRanks + 1), members(kRanks), others(2);
  Words words;
  const auto listen = [&] {
    for (int i = 0; i < 10; ++i) words.listen_for_next("it has no room for a message");
  };
  expect_processes_ok(kRanks + 1, [&](int rank) {
    if (rank == 0) words.speak();
    crl_context_h context = make_context(world, rank, false, 40);
    crl_team_h team = rank < kRanks ? make_team(context, members.oob(rank)) : nullptr;
    crl_team_h other =
        rank == 1 || rank == kRanks ? make_team(context, others.oob(rank / kRanks)) : nullptr;
    if (team != nullptr) expect_ok(settle(team));
    if (rank == (in_a_call ? kRanks : 1)) listen();
    if (other != nullptr) expect_ok(crl_barrier(other));
    if (team != nullptr) {
      const std::size_t block = most_messages(context) * kMessage;
      const std::size_t count = block / sizeof(std::int64_t);
      const auto in = values_of(0, 1, kRanks * count);
      std::vector<std::int64_t> out(count);
      expect_ok(crl_scatter(team, in.data(), out.data(), block, 0));
      const auto first = static_cast<std::size_t>(rank) * count;
      EXPECT_TRUE(
          std::equal(out.begin(), out.end(), in.begin() + static_cast<std::ptrdiff_t>(first)));
      expect_ok(crl_barrier(team));
    }
    for (crl_team_h one : {team, other}) crl_team_destroy(one);
    crl_context_destroy(context);
  });
}

INSTANTIATE_TEST_SUITE_P(InACall, LateReader, testing::Bool());

// Each of these ranks has all its room full of messages to the next one, which has no room for what
// it is to write to this one before it reads them: rank 0, and so on to rank 2. What rank 2 has is
// for `late`, and is read there when the others have looked often enough to give up. Who comes
// late is waited for by all of them.
TEST_F(Room, WhoIsLateIsWaitedForByAllBehindOneAnother) {
  constexpr int kFirst = 0, kMiddle = 1, kLast = 2, kLate = 3, kRanks = 5;
  set("ALGORITHM", "alltoall=linear;scatter=linear");
  set("WATCHDOG", "50ms");
  Meeting world(kRanks), to_reader(2), first(2), second(2), to_late(2);
  std::array<Words, kLast + 1> words;
  expect_processes_ok(kRanks, [&](int rank) {
    if (rank <= kLast) words[static_cast<std::size_t>(rank)].speak();
    crl_context_h context = make_context(world, rank, false, 40);
    const std::size_t block = most_messages(context) * kMessage;
    std::vector<std::uint8_t> in(2 * block), out[2] = {in, in};
    crl_request_h requests[2] = {};
    std::vector<crl_team_h> teams;
    const auto join = [&](Meeting& members, int as) {
      teams.push_back(make_team(context, members.oob(as)));
      expect_ok(settle(teams.back()));
      return teams.back();
    };
    // What comes first is written before the rest.
    const auto fill = [&](crl_status_t started) {
      expect_ok(started);
      expect_ok(crl_context_progress(context));
    };
    if (rank == kFirst) {
      crl_team_h readers = join(to_reader, 0), next = join(first, 0);
      fill(crl_ialltoall(next, in.data(), out[0].data(), block, &requests[0]));
      expect_ok(crl_iscatter(readers, in.data(), out[1].data(), kMessage, 0, &requests[1]));
    } else if (rank == kMiddle) {
      crl_team_h before = join(first, 1), next = join(second, 0);
      fill(crl_ialltoall(next, in.data(), out[0].data(), block, &requests[0]));
      expect_ok(crl_ialltoall(before, in.data(), out[1].data(), block, &requests[1]));
    } else if (rank == kLast) {
      crl_team_h before = join(second, 1), next = join(to_late, 0);
      fill(crl_iscatter(next, in.data(), out[0].data(), block, 0, &requests[0]));
      expect_ok(crl_ialltoall(before, in.data(), out[1].data(), block, &requests[1]));
    } else if (rank == kLate) {
      crl_team_h before = join(to_late, 1);
      for (Words& one : words) {
        for (int i = 0; i < 10; ++i) one.listen_for_next("it has no room for a message");
      }
      expect_ok(crl_scatter(before, nullptr, out[0].data(), block, 0));
    } else {
      expect_ok(crl_scatter(join(to_reader, 1), nullptr, out[0].data(), kMessage, 0));
    }
    for (crl_request_h& request : requests) {
      if (rank <= kLast) expect_ok(crl_request_wait(&request));
    }
    for (crl_team_h team : teams) crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Each rank writes to the next one first, and reads that only when it has written to the one
// before.
TEST_F(Room, RanksThatWaitForEachOtherInARingEnd) {
  constexpr int kRanks = 3;
  set("ALGORITHM", "alltoall=linear");
  Meeting world(kRanks);
  std::array<Meeting, kRanks> pairs = {Meeting(2), Meeting(2), Meeting(2)};
  const std::vector<int> exits = run_processes(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, 40);
    const std::size_t block = most_messages(context) * kMessage;
    std::vector<std::uint8_t> in(2 * block), out[2] = {in, in};
    crl_request_h requests[2] = {};
    crl_team_h teams[2] = {};
    // Where it is the first member, and where it is the second one.
    const int before = (rank + kRanks - 1) % kRanks;
    for (const int made : {0, 1, 2}) {  // in one order at all
      if (made == rank) teams[0] = make_team(context, pairs[static_cast<std::size_t>(made)].oob(0));
      if (made == before)
        teams[1] = make_team(context, pairs[static_cast<std::size_t>(made)].oob(1));
    }
    for (crl_team_h team : teams) expect_ok(settle(team));
    for (const std::size_t which : {0, 1}) {
      expect_ok(crl_ialltoall(teams[which], in.data(), out[which].data(), block, &requests[which]));
      if (which == 0) expect_ok(crl_context_progress(context));
    }
    bool failed = false;
    for (crl_request_h& request : requests) {
      const crl_status_t status = crl_request_wait(&request);
      if (status == CRL_OK) continue;
      failed = true;
      expect_no_room(status);
    }
    for (crl_team_h team : teams) crl_team_destroy(team);
    crl_context_destroy(context);
    if (failed && !testing::Test::HasFailure()) _exit(kFailed);
  });
  // Both members of a team.
  EXPECT_GE(std::ranges::count(exits, kFailed), 2);
  for (const int status : exits) EXPECT_TRUE(status == 0 || status == kFailed) << status;
}

// What may be read where it is needs no room.
TEST_F(Room, MessagesAreLentInstead) {
  constexpr int kRanks = 4;
  set("ALGORITHM", "alltoall=linear");
  set("LEND_BYTES", "-1");
  Meeting world(kRanks), members(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, 40);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    if (!context->engine->segment().reads(rank)) GTEST_SKIP() << "the kernel forbids it here";
    const std::size_t count = 2 * kMessage / sizeof(std::int64_t);
    std::vector<std::int64_t> out(kRanks * count);
    for (int round = 0; round < 20; ++round) {
      const auto in = values_of(rank, round, kRanks * count);
      expect_ok(crl_alltoall(team, in.data(), out.data(), count * sizeof(std::int64_t)));
      expect_exchanged(out, rank, count, round);
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

}  // namespace
}  // namespace carillon::test
