// SPDX-License-Identifier: Apache-2.0
//
// Teams with multicast, over the machine's loopback: what all agree on, what becomes of broadcasts
// when packets get lost or members are late or die, and what is left when they go. With
// CARILLON_TEST_BROADCASTS, so many are tried where much goes wrong: what CARILLON_FAULT says, if
// it is set.
#include "support/multicast_team.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "api/objects.h"
#include "support/calls.h"

namespace carillon::test {
namespace {

class MulticastTeam : public testing::TestWithParam<const char*> {};

// UDP sockets that this process has.
std::size_t udp_sockets() {
  std::size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(each.path().filename().string());
    const auto is = [fd](int option, int wanted) {
      int value = 0;
      socklen_t bytes = sizeof value;
      return getsockopt(fd, SOL_SOCKET, option, &value, &bytes) == 0 && value == wanted;
    };
    if (is(SO_TYPE, SOCK_DGRAM) && is(SO_DOMAIN, AF_INET)) ++count;
  }
  return count;
}

std::size_t threads() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

// Meets the others when the blocking call that this rank is in has slept. After some milliseconds a
// call sleeps more often than it calls idle.
class FirstSleep {
 public:
  FirstSleep(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  void begin(bool meets) {
    watch_ = Stopwatch();
    calls_left_ = meets ? 4 : 0;
  }
  static void idle(void* arg) {
    auto& self = *static_cast<FirstSleep*>(arg);
    if (self.calls_left_ == 0 || self.watch_.seconds() < 0.05) return;
    if (--self.calls_left_ == 0) self.meeting_.barrier(self.rank_);
  }

 private:
  Meeting& meeting_;
  int rank_;
  Stopwatch watch_;
  int calls_left_ = 0;
};

TEST_P(MulticastTeam, BroadcastsArriveThoughMuchGoesWrong) {
  set_environment(GetParam(), "udp:lo");
  const char* const faults = std::getenv("CARILLON_FAULT");
  if (faults == nullptr) {
    setenv("CARILLON_FAULT", "lose=0.05,reorder=0.05,duplicate=0.05,seed=3", 1);
  }
  const char* const given = std::getenv("CARILLON_TEST_BROADCASTS");
  const int rounds = given != nullptr ? std::atoi(given) : 40;
  const int limit_s = 60 + rounds / 10;
  Meeting world(kRanks), members(kRanks);
  const auto body = [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    const Stopwatch watch;
    const double mbytes = 1e-6 * static_cast<double>(broadcast_rounds(team, rounds));
    if (rank == 0 && given != nullptr) {
      std::printf("%d broadcasts, %.0f MB, %.0f s, %.1f MB/s\n", rounds, mbytes, watch.seconds(),
                  mbytes / watch.seconds());
    }
    EXPECT_EQ(crl_team_last_algorithm(team), id_of(GetParam()));
    crl_team_destroy(team);
    crl_context_destroy(context);
  };
  expect_processes_ok(kRanks, body, limit_s);
  if (faults == nullptr) unsetenv("CARILLON_FAULT");
}

// A team is in use, and its ranks sleep, while another one's groups are being set up: a member of
// the latter is late. Who waits for it in a call of the former looks after the multicasts of both.
TEST(MulticastTeams, OneIsUsedWhileAnotherIsMade) {
  constexpr int kRoot = 1;
  set_environment("multicast_leader", "udp:lo");
  Meeting world(kRanks), members(kRanks), more(kRanks), late(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    FirstSleep first_sleep(late, rank);
    crl_context_config_t config = {};
    config.struct_bytes = sizeof config;
    config.oob = world.oob(rank);
    config.idle = FirstSleep::idle;
    config.idle_arg = &first_sleep;
    crl_context_h context = nullptr;
    expect_ok(crl_context_create(&config, &context));
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    crl_team_h second = make_team(context, more.oob(rank));
    constexpr std::size_t kCount = 64;
    const auto expected = values_of(kRoot, 0, kCount);
    std::vector<std::int64_t> data = rank == kRoot ? expected : std::vector<std::int64_t>(kCount);
    // The second team's groups are not there before the root goes on.
    if (rank == kRoot) late.barrier(rank);
    first_sleep.begin(rank != kRoot);
    expect_ok(crl_bcast(team, data.data(), kCount * sizeof data[0], kRoot), "bcast");
    EXPECT_EQ(data, expected) << "rank " << rank;
    expect_ok(settle(second));
    broadcast_rounds(second, 7);
    broadcast_rounds(team, 7);
    crl_team_destroy(second);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Rank 0 multicasts for root 1, which comes late, and for itself: in the order of the calls.
TEST(MulticastOrder, IsThatOfTheCalls) {
  set_environment("multicast_leader", "udp:lo");
  Meeting world(kRanks), members(kRanks), late(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    if (rank == 1) late.barrier(rank);
    constexpr std::size_t kCount = 64;
    std::vector<std::vector<std::int64_t>> data;
    std::vector<crl_request_h> requests(2);
    for (const int root : {1, 0}) {
      data.push_back(rank == root ? values_of(root, 0, kCount) : std::vector<std::int64_t>(kCount));
    }
    expect_ok(crl_ibcast(team, data[0].data(), kCount * 8, 1, &requests[0]));
    expect_ok(crl_ibcast(team, data[1].data(), kCount * 8, 0, &requests[1]));
    for (int i = 0; i < 1000; ++i) expect_ok(crl_context_progress(context));
    if (rank != 1) late.barrier(rank);
    for (crl_request_h& request : requests) expect_ok(crl_request_wait(&request));
    EXPECT_EQ(data[0], values_of(1, 0, kCount));
    EXPECT_EQ(data[1], values_of(0, 0, kCount));
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Rank 1 receives from rank 0 in both calls, and comes to it in the second one first: rank 2, of
// its node, keeps it in the first one. What has come is the first one's all the same.
TEST(MulticastOrder, IsThatOfTheReceives) {
  set_environment("multicast_leader", "udp:lo");
  setenv("CARILLON_ALGORITHM", "bcast=multicast_leader;allgather=multicast", 1);
  setenv("CARILLON_NODE_RANKS", "1,2,1,1", 1);
  Meeting world(kRanks), members(kRanks), early(kRanks), late(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    constexpr std::size_t kCount = 16;
    const std::vector<std::int64_t> mine = values_of(rank, 0, kCount);
    std::vector<std::int64_t> gathered(kRanks * kCount);
    std::vector<std::int64_t> data =
        rank == 0 ? values_of(0, 1, kCount) : std::vector<std::int64_t>(kCount);
    std::vector<crl_request_h> requests(2);
    if (rank == 2) {
      meet(context, early, rank);
      late.barrier(rank);
    }
    expect_ok(crl_iallgather(team, mine.data(), gathered.data(), kCount * 8, &requests[0]));
    expect_ok(crl_ibcast(team, data.data(), kCount * 8, 0, &requests[1]));
    if (rank != 2) {
      // Who has the broadcast: by then both messages of rank 0 are at rank 1.
      if (rank != 1) expect_ok(crl_request_wait(&requests[1]));
      meet(context, early, rank);
      for (int i = 0; i < 1000; ++i) expect_ok(crl_context_progress(context));
      late.barrier(rank);
    }
    expect_ok(crl_request_wait(&requests[0]));
    if (rank == 1 || rank == 2) expect_ok(crl_request_wait(&requests[1]));
    EXPECT_EQ(data, values_of(0, 1, kCount)) << "rank " << rank;
    for (int from = 0; from < kRanks; ++from) {
      const auto first = gathered.begin() + static_cast<std::ptrdiff_t>(from * kCount);
      EXPECT_EQ(std::vector<std::int64_t>(first, first + kCount), values_of(from, 0, kCount))
          << "of rank " << from << " at rank " << rank;
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Without being asked, a team joins its groups when its broadcasts have moved 4 MiB, and tries
// them; non-blocking ones, which the ranks come to as they come, do not count, and use what there
// is. What the trial says depends on the machine; all ranks go by it.
TEST(MulticastChosen, OnceEnoughWasBroadcast) {
  set_environment("multicast_leader", "auto");
  setenv("CARILLON_ALGORITHM", "", 1);
  setenv("CARILLON_NETWORK", "fabric", 1);
  Meeting world(kRanks), members(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    constexpr std::size_t kCount = 8192;  // 64 KiB
    const auto broadcast = [&](int call, std::size_t count, bool blocking) {
      const int root = call % kRanks;
      const auto expected = values_of(root, call, count);
      std::vector<std::int64_t> data = rank == root ? expected : std::vector<std::int64_t>(count);
      crl_request_h request = nullptr;
      if (blocking) {
        expect_ok(crl_bcast(team, data.data(), count * 8, root), "bcast");
      } else {
        expect_ok(crl_ibcast(team, data.data(), count * 8, root, &request), "ibcast");
        expect_ok(crl_request_wait(&request));
      }
      EXPECT_EQ(data, expected) << "call " << call << ", rank " << rank;
      return std::string(crl_team_last_algorithm(team));
    };
    EXPECT_EQ(broadcast(0, 1, true), "bcast.hierarchical");  // the team is ready
    std::string last = "bcast.hierarchical";
    for (int call = 1; call <= 80 && !testing::Test::HasFailure(); ++call) {
      if (call % 8 == 0) {
        EXPECT_EQ(broadcast(call, kCount, false), last) << "call " << call;
      }
      const std::string now = broadcast(call, kCount, true);
      if (call != 64) {
        EXPECT_EQ(now, last) << "call " << call;
      }
      last = now;
      EXPECT_EQ(broadcast(call, 100, true), "bcast.hierarchical") << "call " << call;
    }
    const char chosen = last == "bcast.multicast_leader" ? 1 : 0;
    EXPECT_TRUE(chosen != 0 || last == "bcast.hierarchical") << last;
    std::vector<char> all(kRanks);
    expect_ok(crl_allgather(team, &chosen, all.data(), 1), "allgather");
    EXPECT_EQ(all, std::vector<char>(kRanks, chosen));
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
  unsetenv("CARILLON_NETWORK");
}

// Asked for, it is chosen from the first call on, where rows say so.
TEST(MulticastChosen, AtOnceWhereItIsAskedFor) {
  set_environment("multicast_leader", "udp:lo");
  setenv("CARILLON_ALGORITHM", "", 1);
  Meeting world(kRanks), members(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    for (const std::size_t count : {1024, 1025, 8192, 8193}) {
      const auto expected = values_of(3, 0, count);
      std::vector<std::int64_t> data = rank == 3 ? expected : std::vector<std::int64_t>(count);
      expect_ok(crl_bcast(team, data.data(), count * 8, 3), "bcast");
      EXPECT_EQ(data, expected) << count << " numbers, rank " << rank;
      const bool multicasts = count == 1025 || count == 8192;
      EXPECT_STREQ(crl_team_last_algorithm(team),
                   multicasts ? "bcast.multicast_leader" : "bcast.hierarchical")
          << count << " numbers, rank " << rank;
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// One member does not want it: nobody does.
TEST(MulticastChosen, NotWhereAMemberIsAgainstIt) {
  set_environment("multicast_leader", "auto");
  setenv("CARILLON_ALGORITHM", "", 1);
  setenv("CARILLON_NETWORK", "fabric", 1);
  Meeting world(kRanks), members(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    if (rank == 3) setenv("CARILLON_MULTICAST", "off", 1);
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    constexpr std::size_t kCount = 8192;  // 64 KiB
    for (int round = 0; round < 70 && !testing::Test::HasFailure(); ++round) {
      const int root = round % kRanks;
      const auto expected = values_of(root, round, kCount);
      std::vector<std::int64_t> data = rank == root ? expected : std::vector<std::int64_t>(kCount);
      expect_ok(crl_bcast(team, data.data(), kCount * 8, root), "bcast");
      EXPECT_EQ(data, expected) << "round " << round << ", rank " << rank;
      EXPECT_STREQ(crl_team_last_algorithm(team), "bcast.hierarchical");
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
  unsetenv("CARILLON_NETWORK");
}

// One rank calls only when all others have their bytes, each of them in turn: the leaders, who then
// do not receive for their nodes, and the others. Each time somebody else must have taken over.
TEST(MulticastDynamic, NobodyWaitsForWhoIsLate) {
  set_environment("multicast_dynamic", "udp:lo");
  Meeting world(kRanks), members(kRanks), late(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    for (int round = 0; round < 12; ++round) {
      const int root = round % 3 == 2 ? 4 : round % 2;
      const int absent = std::vector<int>{2, 3, 0, 2, 1, 3}[static_cast<std::size_t>(round) % 6];
      if (absent == root) continue;
      // Of one message each, and of several: fewer than the ring holds.
      const std::size_t count = round % 2 == 0 ? 10 : 30000;
      const auto expected = values_of(root, round, count);
      std::vector<std::int64_t> data = rank == root ? expected : std::vector<std::int64_t>(count);
      if (rank == absent) meet(context, late, rank);
      expect_ok(crl_bcast(team, data.data(), count * sizeof data[0], root), "bcast");
      EXPECT_EQ(data, expected) << "round " << round << ", rank " << rank;
      if (rank != absent) meet(context, late, rank);
      if (testing::Test::HasFailure()) break;
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Of node 1 one rank calls when the other one has its bytes. Which of them is the owner changes
// when it is away, and not from call to call.
TEST(MulticastDynamic, AnOwnerStaysUntilItFails) {
  set_environment("multicast_dynamic", "udp:lo");
  Meeting world(kRanks), members(kRanks), late(kRanks);
  const std::vector<int> absents{3, 3, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 2, 2};
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    std::uint64_t takeovers = 0;
    for (std::size_t i = 0; i < absents.size(); ++i) {
      const int absent = absents[i];
      std::size_t value = rank == 4 ? i + 1 : 0;
      if (rank == absent) meet(context, late, rank);
      expect_ok(crl_bcast(team, &value, sizeof value, 4), "bcast");
      EXPECT_EQ(value, i + 1) << "rank " << rank;
      if (rank != absent) meet(context, late, rank);
      if (rank == 5 - absent && i > 0 && absents[i - 1] != absent) ++takeovers;
      if (rank == 2 || rank == 3) {
        const Reception& reception = team->team->multicast()->reception();
        EXPECT_EQ(reception.takeovers(), takeovers) << "rank " << rank << ", call " << i;
        // Right each time: there is no reason to wait longer the next time.
        EXPECT_EQ(reception.patience_away(), Reception::kPatience) << "rank " << rank;
      }
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Rank 2 takes over from rank 3, which has not come; that does come before the message, as the root
// is late: the next time rank 2 waits longer.
TEST(MulticastDynamic, WhoTakesOverTooSoonWaitsLonger) {
  set_environment("multicast_dynamic", "udp:lo");
  Meeting world(kRanks), members(kRanks), late(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    const Reception& reception = team->team->multicast()->reception();
    std::uint64_t value = 0;
    // Where cores are few, rank 2 may be kept from one so long that rank 3 takes over in its turn.
    bool undisturbed = false;
    constexpr int kTries = 200;
    for (int round = 0; round < kTries && !undisturbed && !testing::Test::HasFailure(); ++round) {
      if (rank == 2) meet(context, late, rank);
      expect_ok(crl_bcast(team, &value, sizeof value, 4), "bcast");
      if (rank != 2) meet(context, late, rank);

      const std::uint64_t before = reception.takeovers();
      crl_request_h request = nullptr;
      const auto call = [&] {
        expect_ok(crl_ibcast(team, &value, sizeof value, 4, &request), "ibcast");
      };
      if (rank == 2) call();
      while (rank == 2 && reception.takeovers() == before) {
        expect_ok(crl_context_progress(context));
      }
      meet(context, late, rank);
      if (rank == 3) call();
      for (int i = 0; i < 100; ++i) expect_ok(crl_context_progress(context));
      meet(context, late, rank);
      if (request == nullptr) call();
      expect_ok(crl_request_wait(&request));
      const std::uint64_t mine = reception.takeovers() - before;
      std::vector<std::uint64_t> all(kRanks);
      expect_ok(crl_allgather(team, &mine, all.data(), sizeof mine), "allgather");
      undisturbed = all[2] == 1 && all[3] == 0;
      if (undisturbed && rank == 2) {
        EXPECT_GT(reception.patience_away(), Reception::kPatience);
      }
    }
    EXPECT_TRUE(undisturbed);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Others go ahead of a rank by as many messages as the node's memory holds, and no further; it
// finds all of them.
TEST(MulticastDynamic, NobodyOverwritesWhatALateRankHasNotRead) {
  set_environment("multicast_dynamic", "udp:lo");
  Meeting world(kRanks), members(kRanks), late(kRanks);
  constexpr int kMessages = 40, kHeld = 32;
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    constexpr std::size_t kCount = 64;
    std::vector<std::vector<std::int64_t>> data;
    std::vector<crl_request_h> requests(kMessages);
    if (rank == 2) meet(context, late, rank);
    for (int i = 0; i < kMessages; ++i) {
      data.push_back(rank == 0 ? values_of(0, i, kCount) : std::vector<std::int64_t>(kCount));
      auto& request = requests[static_cast<std::size_t>(i)];
      expect_ok(crl_ibcast(team, data.back().data(), kCount * 8, 0, &request));
    }
    if (rank == 3) {
      for (int i = 0; i < kHeld; ++i) {
        expect_ok(crl_request_wait(&requests[static_cast<std::size_t>(i)]));
      }
      for (int i = 0; i < 1000; ++i) expect_ok(crl_context_progress(context));
      EXPECT_EQ(crl_request_test(&requests[kHeld]), CRL_IN_PROGRESS);
    }
    if (rank != 2) meet(context, late, rank);
    for (crl_request_h& request : requests) {
      if (request != nullptr) expect_ok(crl_request_wait(&request));
    }
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_EQ(data[static_cast<std::size_t>(i)], values_of(0, i, kCount)) << i << ", " << rank;
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Nobody waits for a member that has gone, and neither socket nor thread stays.
TEST_P(MulticastTeam, LeavesNothing) {
  set_environment(GetParam(), "udp:lo");
  Meeting world(kRanks), members(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    const std::size_t sockets_before = udp_sockets();
    const std::size_t threads_before = threads();
    crl_team_h team = make_team(context, members.oob(rank));
    broadcast_rounds(team, 1);  // rank 0, of 8 bytes
    EXPECT_EQ(threads(), threads_before);
    EXPECT_GT(udp_sockets(), sockets_before);
    crl_team_destroy(team);
    const Stopwatch watch;
    while (udp_sockets() > sockets_before && watch.seconds() < 20) {
      expect_ok(crl_context_progress(context));
    }
    EXPECT_EQ(udp_sockets(), sockets_before);
    crl_context_destroy(context);
  });
}

// A member without the interface, or that does not want it: all do without, and say the same.
TEST_P(MulticastTeam, AllDecideAlike) {
  for (const char* const other : {"off", "udp:no_such0"}) {
    Meeting world(kRanks), members(kRanks), more(kRanks);
    expect_processes_ok(kRanks, [&](int rank) {
      set_environment(GetParam(), rank == 3 ? other : "udp:lo");
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, members.oob(rank));
      broadcast_rounds(team, 7);
      EXPECT_EQ(crl_team_last_algorithm(team), std::string("bcast.hierarchical"));
      crl_team_h second = make_team(context, more.oob(rank));
      broadcast_rounds(second, 7);
      crl_team_destroy(second);
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, MulticastTeam,
                         testing::Values("multicast", "multicast_leader", "multicast_dynamic"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace carillon::test
