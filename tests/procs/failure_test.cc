// SPDX-License-Identifier: Apache-2.0
//
// Ranks that die, stop, leave early or give up: the others get an answer in bounded time, and
// nothing is left behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "support/calls.h"
#include "support/process.h"

namespace carillon::test {
namespace {

// The tests run twice: on one node, and with ranks that count as several.
bool on_several_nodes() { return std::getenv("CARILLON_NODE_RANKS") != nullptr; }

// How long an answer takes is up to who else wants the cores. But it must not be one that comes for
// lack of any other: those who wait for ever are ended by the alarm, before this.
constexpr const char* kNobodyWaitsSoLong_s = "600";
constexpr int kAlarm_s = 60;

// Whatever a test does to its ranks: afterwards there is no process of theirs. (Memory and sockets
// have no names in a file system, and end with the last process that has them; what jobs leave is
// looked for in tests/mpi/launch_test.py.)
class Failure : public testing::Test {
 protected:
  // Whom a rank leaves behind becomes this one's.
  void SetUp() override {
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    setenv("CARILLON_JOIN_TIMEOUT_S", kNobodyWaitsSoLong_s, 1);
  }
  void TearDown() override {
    unsetenv("CARILLON_JOIN_TIMEOUT_S");
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
    EXPECT_EQ(errno, ECHILD);
  }
};

void expect_peer_dead(crl_status_t status, const char* word) {
  EXPECT_EQ(status, CRL_ERR_PEER_DEAD);
  EXPECT_NE(std::string(crl_last_error()).find(word), std::string::npos) << crl_last_error();
}

void expect_killed(const std::vector<int>& exits, std::size_t victim) {
  for (std::size_t rank = 0; rank < exits.size(); ++rank) {
    EXPECT_EQ(exits[rank], rank == victim ? -9 : 0) << "rank " << rank;
  }
}

TEST_F(Failure, KilledWhileOthersAreInACollective) {
  constexpr int kRanks = 4;
  Meeting world(kRanks), meeting(kRanks);
  expect_killed(run_processes(
                    kRanks,
                    [&](int rank) {
                      crl_context_h context = make_context(world, rank);
                      crl_team_h team = make_team(context, meeting.oob(rank));
                      for (int i = 0; i < 100; ++i) expect_ok(crl_barrier(team));
                      if (rank == 2) raise(SIGKILL);
                      expect_peer_dead(crl_barrier(team), "rank ");
                      EXPECT_EQ(crl_barrier(team), CRL_ERR_PEER_DEAD);  // and at once from now on
                      double value = 0;
                      EXPECT_EQ(crl_bcast(team, &value, 8, 0), CRL_ERR_PEER_DEAD);
                      crl_team_destroy(team);
                      crl_context_destroy(context);
                    },
                    kAlarm_s),
                2);
}

// Polling instead of blocking, with many collectives outstanding on two teams; the team without
// the dead rank goes on.
TEST_F(Failure, KilledWhileOthersPoll) {
  constexpr int kRanks = 4;
  Meeting world(kRanks), all(kRanks), living(kRanks - 1);
  expect_killed(run_processes(
                    kRanks,
                    [&](int rank) {
                      crl_context_h context = make_context(world, rank);
                      crl_team_h team = make_team(context, all.oob(rank));
                      crl_team_h rest = rank < 3 ? make_team(context, living.oob(rank)) : nullptr;
                      expect_ok(settle(team));
                      if (rest != nullptr) expect_ok(settle(rest));
                      world.barrier(rank);
                      if (rank == 3) raise(SIGKILL);
                      std::vector<std::int64_t> in(100000, rank), out(100000);
                      std::vector<crl_request_h> requests(20), healthy(20);
                      for (auto& request : requests) {
                        expect_ok(crl_iallreduce(team, in.data(), out.data(), in.size(), CRL_INT64,
                                                 CRL_SUM, &request));
                      }
                      for (auto& request : healthy) expect_ok(crl_ibarrier(rest, &request));
                      for (auto& request : requests) {
                        crl_status_t status = CRL_IN_PROGRESS;
                        while (status == CRL_IN_PROGRESS) status = crl_request_test(&request);
                        expect_peer_dead(status, "rank ");
                        EXPECT_EQ(request, nullptr);
                      }
                      for (auto& request : healthy) expect_ok(crl_request_wait(&request));
                      for (int i = 0; i < 50; ++i) expect_ok(crl_barrier(rest));
                      crl_team_destroy(team);
                      crl_team_destroy(rest);
                      crl_context_destroy(context);
                    },
                    kAlarm_s),
                3);
}

// Progress tells the first error once, whether or not the request has been asked before.
TEST_F(Failure, ProgressTellsOfRequestsThatFailed) {
  Meeting world(2), meeting(2);
  expect_killed(run_processes(
                    2,
                    [&](int rank) {
                      crl_context_h context = make_context(world, rank);
                      crl_team_h team = make_team(context, meeting.oob(rank));
                      expect_ok(settle(team));
                      EXPECT_EQ(crl_context_progress(context), CRL_OK);
                      world.barrier(rank);
                      if (rank == 1) raise(SIGKILL);
                      std::vector<crl_request_h> requests(3);
                      for (auto& request : requests) expect_ok(crl_ibarrier(team, &request));
                      crl_status_t told = CRL_OK;
                      while (told == CRL_OK) {
                        told = crl_context_progress(context);
                      }
                      expect_peer_dead(told, "rank ");
                      EXPECT_EQ(crl_context_progress(context), CRL_OK);
                      for (auto& request : requests) {
                        EXPECT_EQ(crl_request_wait(&request), CRL_ERR_PEER_DEAD);
                      }
                      EXPECT_EQ(crl_context_progress(context), CRL_OK);
                      crl_team_destroy(team);
                      crl_context_destroy(context);
                    },
                    kAlarm_s),
                1);
}

TEST_F(Failure, ProgressTellsOfRequestsThatWereAskedFirst) {
  Meeting world(2), meeting(2);
  expect_killed(run_processes(
                    2,
                    [&](int rank) {
                      crl_context_h context = make_context(world, rank);
                      crl_team_h team = make_team(context, meeting.oob(rank));
                      expect_ok(settle(team));
                      world.barrier(rank);
                      if (rank == 1) raise(SIGKILL);
                      crl_request_h request = nullptr;
                      expect_ok(crl_ibarrier(team, &request));
                      EXPECT_EQ(crl_request_wait(&request), CRL_ERR_PEER_DEAD);
                      EXPECT_EQ(crl_context_progress(context), CRL_ERR_PEER_DEAD);
                      EXPECT_EQ(crl_context_progress(context), CRL_OK);
                      crl_team_destroy(team);
                      crl_context_destroy(context);
                    },
                    kAlarm_s),
                1);
}

TEST_F(Failure, KilledWhileATeamIsMade) {
  constexpr int kRanks = 3;
  for (const bool blocking : {true, false}) {
    Meeting world(kRanks), first(kRanks), second(kRanks);
    expect_killed(run_processes(
                      kRanks,
                      [&](int rank) {
                        crl_context_h context = make_context(world, rank);
                        crl_team_h good = make_team(context, first.oob(rank));
                        expect_ok(crl_barrier(good));
                        if (rank == 0) raise(SIGKILL);
                        crl_team_h team = make_team(context, second.oob(rank));
                        expect_peer_dead(blocking ? crl_barrier(team) : settle(team), "died");
                        crl_request_h request = nullptr;
                        EXPECT_EQ(crl_ibarrier(team, &request), CRL_ERR_PEER_DEAD);
                        crl_team_destroy(team);
                        crl_team_destroy(good);
                        crl_context_destroy(context);
                      },
                      kAlarm_s),
                  0);
  }
}

// A team without the dead rank. Who waits for the others meanwhile cannot know that; who comes late
// finds all that they have told, and takes the team for made.
TEST_F(Failure, NobodyWaitsForWhoHasGivenUpWhileATeamWasMade) {
  constexpr int kRanks = 3;
  Meeting world(kRanks), living(kRanks - 1), failed(kRanks - 1), told(kRanks - 1);
  expect_killed(run_processes(
                    kRanks,
                    [&](int rank) {
                      crl_context_h context = make_context(world, rank, false, 200);
                      world.barrier(rank);
                      if (rank == 2) raise(SIGKILL);
                      if (rank == 0) failed.barrier(rank);
                      crl_team_h team = make_team(context, living.oob(rank));
                      if (rank == 1) {
                        EXPECT_EQ(settle(team), CRL_ERR_PEER_DEAD);
                        failed.barrier(rank);
                      }
                      EXPECT_EQ(crl_barrier(team), CRL_ERR_PEER_DEAD);
                      // Between nodes it is the network that tells, and this process moves it on.
                      meet(context, told, rank);
                      crl_team_destroy(team);
                      crl_context_destroy(context);
                    },
                    kAlarm_s),
                2);
}

// Requests started before the team is ready end, too.
TEST_F(Failure, KilledWhileCollectivesWaitForTheirTeam) {
  Meeting world(2), meeting(2);
  expect_killed(run_processes(
                    2,
                    [&](int rank) {
                      crl_context_h context = make_context(world, rank);
                      if (rank == 1) raise(SIGKILL);
                      crl_team_h team = make_team(context, meeting.oob(rank));
                      std::vector<crl_request_h> requests(5);
                      for (auto& request : requests) expect_ok(crl_ibarrier(team, &request));
                      for (auto& request : requests)
                        expect_peer_dead(crl_request_wait(&request), "died");
                      crl_team_destroy(team);
                      crl_context_destroy(context);
                    },
                    kAlarm_s),
                1);
}

// It falls asleep in a barrier that the others enter later, and dies there.
TEST_F(Failure, KilledWhileSleeping) {
  constexpr int kVictim = 2;
  Meeting world(3), meeting(3), rest(2);
  const auto body = [&](int rank) {
    const OtherProcess victim(tell_process(world, rank)[kVictim]);
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    crl_team_h pair = rank != kVictim ? make_team(context, rest.oob(rank)) : nullptr;
    expect_ok(crl_barrier(team));
    meet(context, world, rank);  // which sends what the barrier has left
    if (rank == kVictim) {
      (void)crl_barrier(team);
      _exit(3);
    }
    // Over a network it hardly sleeps.
    if (rank == 0 && on_several_nodes()) victim.kill();
    if (rank == 0 && !on_several_nodes()) victim.kill_asleep();
    ASSERT_TRUE(victim.wait_for_end());
    for (int i = 0; i < 200; ++i) expect_ok(crl_barrier(pair));  // nobody else minds
    const crl_status_t last = crl_barrier(team);                 // it had done its part of this one
    if (last != CRL_OK && on_several_nodes()) {                  // but may not have sent it
      EXPECT_EQ(last, CRL_ERR_PEER_DEAD);
    } else {
      expect_ok(last);
    }
    expect_peer_dead(crl_barrier(team), "rank ");
    crl_team_destroy(team);
    crl_team_destroy(pair);
    crl_context_destroy(context);
  };
  expect_killed(run_processes(3, body, kAlarm_s), kVictim);
}

TEST_F(Failure, EarlyExitAfterCompletedCollectivesHarmsNobody) {
  constexpr int kRanks = 4;
  for (const bool orderly : {true, false}) {
    Meeting world(kRanks), all(kRanks), rest(kRanks - 1);
    expect_processes_ok(
        kRanks,
        [&](int rank) {
          crl_context_h context = make_context(world, rank);
          crl_team_h team = make_team(context, all.oob(rank));
          crl_team_h others = rank > 0 ? make_team(context, rest.oob(rank - 1)) : nullptr;
          if (others != nullptr) expect_ok(settle(others));
          expect_ok(crl_barrier(team));
          // The root is done with these long before the readers, and gone.
          std::vector<std::int64_t> large(4 * 8000, rank == 0 ? 42 : 0);
          if (rank != 0) usleep(300000);
          expect_ok(crl_bcast(team, large.data(), large.size() * 8, 0));
          std::int64_t small = rank == 0 ? 43 : 0;
          expect_ok(crl_bcast(team, &small, 8, 0));
          EXPECT_EQ(large, std::vector<std::int64_t>(4 * 8000, 42));
          EXPECT_EQ(small, 43);
          if (rank == 0 && !orderly) _exit(0);  // not even crl_context_destroy
          for (int i = 0; rank != 0 && i < 100; ++i) expect_ok(crl_barrier(others));
          if (rank == 1) usleep(600000);  // the others wait, and look for dead peers
          if (rank != 0) expect_ok(crl_barrier(others));
          crl_team_destroy(team);
          crl_team_destroy(others);
          crl_context_destroy(context);
        },
        kAlarm_s);
  }
}

// Who comes late, and looks for dead ranks each time it looks for messages, takes what is there for
// it before it believes that no more will come.
TEST_F(Failure, TheLastWordsOfARankAreHeard) {
  constexpr int kRanks = 2, kCalls = 2, kRootEndsWithin_ms = 1000;
  constexpr std::size_t kCount = 20000;  // some messages, and as many as are sent unasked
  Meeting world(kRanks), meeting(kRanks), known(kRanks);
  expect_processes_ok(
      kRanks,
      [&](int rank) {
        crl_context_h context = make_context(world, rank, false, 1);
        crl_team_h team = make_team(context, meeting.oob(rank));
        expect_ok(crl_barrier(team));
        // Each knows whether the other lives, before it ends.
        const Stopwatch watch;
        while (watch.seconds() < 0.5) (void)crl_context_progress(context);
        const OtherProcess root(tell_process(known, rank)[0]);
        known.barrier(rank);
        std::vector<std::vector<std::int64_t>> data(kCalls, values_of(0, 1, kCount));
        if (rank == 1) {
          for (auto& values : data) std::fill(values.begin(), values.end(), 0);
          // Who is read by this one does not end before.
          (void)root.wait_for_end(kRootEndsWithin_ms);
        }
        std::vector<crl_request_h> requests(kCalls);
        for (std::size_t i = 0; i < kCalls; ++i) {
          expect_ok(crl_ibcast(team, data[i].data(), kCount * sizeof data[i][0], 0, &requests[i]));
        }
        for (std::size_t i = 0; i < kCalls; ++i) {
          crl_status_t status = CRL_IN_PROGRESS;
          while (status == CRL_IN_PROGRESS) status = crl_request_test(&requests[i]);
          expect_ok(status);
          EXPECT_EQ(data[i], values_of(0, 1, kCount));
        }
        if (rank == 0) _exit(testing::Test::HasFailure() ? 1 : 0);  // not even the context's end
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      kAlarm_s);
}

TEST_F(Failure, LeavingEarlyIsReportedToThoseWhoStillWait) {
  Meeting world(3), meeting(3);
  expect_processes_ok(
      3,
      [&](int rank) {
        crl_context_h context = make_context(world, rank);
        crl_team_h team = make_team(context, meeting.oob(rank));
        expect_ok(crl_barrier(team));
        if (rank != 1) expect_peer_dead(crl_barrier(team), "rank ");
        crl_context_destroy(context);
        world.barrier(rank);  // it lives on, but for carillon
      },
      kAlarm_s);
}

// A member that cannot take part says so, before the team is there or later: nobody waits for ever.
TEST_F(Failure, AMemberThatGivesUpFailsTheTeamForAll) {
  for (const bool at_once : {true, false}) {
    Meeting world(3), meeting(3);
    expect_processes_ok(
        3,
        [&](int rank) {
          crl_context_h context = make_context(world, rank);
          crl_team_h team = make_team(context, meeting.oob(rank));
          for (int i = 0; !at_once && i < 10; ++i) expect_ok(crl_barrier(team));
          if (rank == 1) {
            crl_team_fail(team, CRL_ERR_NO_MEMORY);
            crl_team_fail(team, CRL_ERR_SYSTEM);  // the first word counts
          }
          EXPECT_EQ(crl_barrier(team), CRL_ERR_NO_MEMORY);
          EXPECT_NE(std::string(crl_last_error()).find("gave "), std::string::npos);
          EXPECT_EQ(crl_barrier(team), CRL_ERR_NO_MEMORY);
          crl_team_destroy(team);
          crl_context_destroy(context);
        },
        kAlarm_s);
  }
}

// As it does where it ends by exit, and objects of static lifetime are destroyed.
TEST_F(Failure, AForkedChildHarmsNobody) {
  Meeting world(2), meeting(2);
  expect_processes_ok(
      2,
      [&](int rank) {
        crl_context_h context = make_context(world, rank, false, 200);
        crl_team_h team = make_team(context, meeting.oob(rank));
        expect_ok(crl_barrier(team));
        if (rank == 0) {
          const pid_t child = fork();
          if (child == 0) {
            crl_team_destroy(team);
            crl_context_destroy(context);
            _exit(0);
          }
          int status = -1;
          ASSERT_EQ(waitpid(child, &status, 0), child);
          EXPECT_EQ(status, 0);
          usleep(600000);
        }
        expect_ok(crl_barrier(team));
        expect_ok(crl_barrier(team));
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      kAlarm_s);
}

TEST_F(Failure, StoppingARankChangesNothingButTime) {
  constexpr int kRanks = 3;
  Meeting world(kRanks), meeting(kRanks);
  auto* const pid = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  expect_processes_ok(
      kRanks,
      [&](int rank) {
        if (rank == 1) pid->store(getpid());
        crl_context_h context = make_context(world, rank);
        crl_team_h team = make_team(context, meeting.oob(rank));
        // Where others want the cores each takes some turns of theirs.
        for (int i = 0; i < 400; ++i) {
          const bool stop = rank == 0 && i % 100 == 20;
          if (stop) kill(pid->load(), SIGSTOP);
          const auto in = values_of(rank, i, 1000);
          std::vector<std::int64_t> out(1000);
          crl_request_h request = nullptr;
          expect_ok(
              crl_iallreduce(team, in.data(), out.data(), 1000, CRL_INT64, CRL_SUM, &request));
          if (stop) {
            usleep(i == 20 ? 1500000 : 100000);  // longer than dead peers live unnoticed
            kill(pid->load(), SIGCONT);
          }
          expect_ok(crl_request_wait(&request));
          ASSERT_EQ(out, sums_of(kRanks, i, 1000));
        }
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      kAlarm_s);
  munmap(pid, 4096);
}

TEST_F(Failure, ARankThatNeverComesIsReported) {
  Meeting world(2);
  expect_processes_ok(
      2,
      [&](int rank) {
        if (rank == 1) return;
        setenv("CARILLON_JOIN_TIMEOUT_S", "1", 1);
        crl_context_config_t config = {};
        config.struct_bytes = sizeof config;
        config.oob = world.oob(rank);
        crl_context_h context = nullptr;
        EXPECT_EQ(crl_context_create(&config, &context), CRL_ERR_TIMEOUT);
        EXPECT_EQ(context, nullptr);
        EXPECT_NE(std::string(crl_last_error()).find("not all 2 ranks"), std::string::npos);
      },
      kAlarm_s);
}

}  // namespace
}  // namespace carillon::test
