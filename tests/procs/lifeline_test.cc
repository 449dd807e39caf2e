// SPDX-License-Identifier: Apache-2.0
//
// Who lives and who does not: what processes see of each other's lifelines, whoever ends, stops,
// forks, or calls without belonging there.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "support/lines.h"

namespace carillon::test {
namespace {

// A rank in a process of its own, and how it meets the others.
class Member {
 public:
  Member(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {
    ranks_ = meeting.oob(rank).size;
    line = make_line(rank, ranks_);
    addresses = gather(line->address());
    pids = gather(getpid());
  }
  template <typename T>
  std::vector<T> gather(const T& mine) {
    const crl_oob_t oob = meeting_.oob(rank_);
    std::vector<T> all(static_cast<std::size_t>(oob.size));
    void* request = nullptr;
    EXPECT_EQ(oob.allgather_post(oob.arg, &mine, all.data(), sizeof(T), &request), 0);
    // Goes on serving the others' lifelines.
    const bool met =
        within(kPatience, {line.get()}, [&] { return oob.allgather_test(oob.arg, request) != 1; });
    EXPECT_TRUE(met);
    return all;
  }
  void barrier() { gather(rank_); }
  void watch(int rank) { line->watch(rank, addresses[static_cast<std::size_t>(rank)]); }
  bool sees(int rank, State state, double seconds = kPatience) {
    const bool seen = within(seconds, {line.get()}, [&] { return line->state(rank) == state; });
    EXPECT_TRUE(seen) << "rank " << rank_ << " of " << rank << ": "
                      << static_cast<int>(line->state(rank)) << " "
                      << line->reason(rank).to_string();
    return seen;
  }
  void watch_all() {
    for (int rank = 0; rank < ranks_; ++rank) watch(rank);
    for (int rank = 0; rank < ranks_; ++rank) sees(rank, State::kAlive);
    barrier();
  }
  bool says(int rank, const std::string& word) {
    const std::string text = line->reason(rank).to_string();
    EXPECT_NE(text.find(word), std::string::npos) << text;
    return text.find(word) != std::string::npos;
  }

  std::unique_ptr<Lifeline> line;
  std::vector<LifelineAddress> addresses;
  std::vector<pid_t> pids;

 private:
  Meeting& meeting_;
  int rank_, ranks_;
};

void on_ranks(int ranks, const std::function<void(Member&, int)>& body, int killed = -1) {
  Meeting meeting(ranks);
  const auto exits = run_processes(ranks, [&](int rank) {
    Member member(meeting, rank);
    if (testing::Test::HasFailure()) return;
    body(member, rank);
  });
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(exits[static_cast<std::size_t>(rank)], rank == killed ? -9 : 0) << "rank " << rank;
  }
}

template <typename T>
T* shared_value() {
  void* const memory =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) T();
}

TEST(Lifeline, FiveProcessesAliveThenOneIsKilled) {
  for (const int ranks : {2, 5}) {
    const int victim = ranks / 2;
    on_ranks(
        ranks,
        [&](Member& member, int rank) {
          member.watch_all();
          if (rank == victim) raise(SIGKILL);
          member.sees(victim, State::kDead, kSeen);
          member.says(victim, "rank " + std::to_string(victim));
          for (int other = 0; other < ranks; ++other) {
            if (other == victim) continue;
            EXPECT_NE(member.line->state(other), State::kDead);  // it may have left already
          }
          // Final, and for ever.
          member.watch(victim);
          member.sees(victim, State::kDead);
        },
        victim);
  }
}

// Nobody hears "dead" of those who end in order, whoever ends first.
TEST(Lifeline, OrderlyLeaveIsSeenAsSuch) {
  for (const int ranks : {2, 5}) {
    on_ranks(ranks, [&](Member& member, int rank) {
      member.watch_all();
      for (int leaver = 0; leaver < rank; ++leaver) {
        const bool left = within(kPatience, {member.line.get()}, [&] {
          EXPECT_NE(member.line->state(leaver), State::kDead);
          return member.line->state(leaver) == State::kLeft;
        });
        EXPECT_TRUE(left);
        member.says(leaver, "has ended");
      }
      member.line.reset();
    });
  }
}

// One that leaves while another's call has not been looked at yet.
TEST(Lifeline, WhoCallsALeaverHearsThatItLeaves) {
  auto leaver = make_line(0, 2), caller = make_line(1, 2);
  caller->watch(0, leaver->address());
  ASSERT_EQ(caller->state(0), State::kConnecting);
  // Its hello is on its way, in the kernel's hands.
  within(0.1, {caller.get()}, [] { return false; });
  leaver.reset();
  EXPECT_TRUE(within(kPatience, {caller.get()}, [&] { return caller->state(0) == State::kLeft; }));
}

// And one that leaves before its own call has been answered.
TEST(Lifeline, ACallerThatLeavesIsNotDead) {
  auto called = make_line(0, 2), leaver = make_line(1, 2);
  leaver->watch(0, called->address());
  within(0.1, {leaver.get()}, [] { return false; });
  leaver.reset();
  const bool left = within(kPatience, {called.get()}, [&] {
    EXPECT_NE(called->state(1), State::kDead);
    return called->state(1) == State::kLeft;
  });
  EXPECT_TRUE(left);
}

TEST(Lifeline, OneSideWatchesBothKnow) {
  on_ranks(
      2,
      [](Member& member, int rank) {
        if (rank == 0) member.watch(1);
        member.sees(1 - rank, State::kAlive);
        if (rank == 1) member.watch(0);  // known already
        EXPECT_EQ(member.line->state(1 - rank), State::kAlive);
        member.barrier();
        if (rank == 0) raise(SIGKILL);
        member.sees(0, State::kDead, kSeen);
      },
      0);
}

// Both call before either has looked: two connections, one life.
TEST(Lifeline, BothCallAtOnce) {
  auto a = make_line(0, 2), b = make_line(1, 2);
  a->watch(1, b->address());
  b->watch(0, a->address());
  EXPECT_TRUE(within(kPatience, {a.get(), b.get()},
                     [&] { return a->state(1) == State::kAlive && b->state(0) == State::kAlive; }));
  // For a while after, with both connections made.
  within(0.3, {a.get(), b.get()}, [] { return false; });
  EXPECT_EQ(a->state(1), State::kAlive);
  EXPECT_EQ(b->state(0), State::kAlive);
  a.reset();
  EXPECT_TRUE(within(kPatience, {b.get()}, [&] { return b->state(0) == State::kLeft; }));
}

TEST(Lifeline, DeadBeforeItIsWatched) {
  on_ranks(
      2,
      [](Member& member, int rank) {
        if (rank == 1) raise(SIGKILL);
        while (kill(member.pids[1], 0) == 0) {
          std::string word;  // a zombie holds no port
          std::ifstream stat("/proc/" + std::to_string(member.pids[1]) + "/stat");
          stat >> word >> word >> word;
          if (word == "Z") break;
        }
        member.watch(1);
        member.sees(1, State::kDead, kSeen + 1);
        member.says(1, "does not listen any more");
      },
      1);
}

bool is_stopped(pid_t pid) {
  std::string word;
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  stat >> word >> word >> word;
  return word == "T";
}

// Longer than any silence of the network is borne.
TEST(Lifeline, AStoppedProcessIsNotDead) {
  auto* const has_looked = shared_value<std::atomic<bool>>();
  on_ranks(3, [&](Member& member, int rank) {
    if (rank == 0) member.watch(1);
    if (rank == 0) member.sees(1, State::kAlive);
    member.barrier();
    if (rank == 1) raise(SIGSTOP);
    if (rank != 1) {
      ASSERT_TRUE(within(kPatience, {}, [&] { return is_stopped(member.pids[1]); }));
      if (rank == 2) member.watch(1);  // calls while it is stopped
      const State expected = rank == 0 ? State::kAlive : State::kConnecting;
      const bool changed =
          within(6, {member.line.get()}, [&] { return member.line->state(1) != expected; });
      EXPECT_FALSE(changed) << member.line->reason(1).to_string();
      if (rank == 2) *has_looked = true;
      if (rank == 0) {
        EXPECT_TRUE(within(kPatience, {member.line.get()}, [&] { return has_looked->load(); }));
        kill(member.pids[1], SIGCONT);
      }
      member.sees(1, State::kAlive);
    }
    member.barrier();
  });
}

// A child has all its parent has, the parent's death excepted.
TEST(Lifeline, AForkedChildDoesNotKeepItsParentAlive) {
  auto* const child = shared_value<std::atomic<pid_t>>();
  on_ranks(
      2,
      [&](Member& member, int rank) {
        member.watch_all();
        if (rank == 1) {
          const pid_t pid = fork();
          if (pid == 0) {
            alarm(30);
            for (;;) pause();
          }
          *child = pid;
          member.barrier();
          raise(SIGKILL);
        }
        member.barrier();
        member.sees(1, State::kDead, kSeen);
        EXPECT_EQ(kill(*child, 0), 0);  // it lives on
        kill(*child, SIGKILL);
      },
      1);
}

TEST(Lifeline, AChildMayDestroyWhatItInherits) {
  on_ranks(2, [](Member& member, int rank) {
    member.watch_all();
    if (rank == 1) {
      const pid_t pid = fork();
      if (pid == 0) {
        // What it opens itself gets the numbers of what was closed.
        const UniqueFd first(dup(1)), second(dup(1));
        member.line->progress();
        member.line.reset();
        _exit(fcntl(first.get(), F_GETFD) >= 0 && fcntl(second.get(), F_GETFD) >= 0 ? 0 : 1);
      }
      int status = 0;
      waitpid(pid, &status, 0);
      EXPECT_EQ(status, 0);
    }
    member.barrier();
    within(0.3, {member.line.get()}, [] { return false; });
    EXPECT_EQ(member.line->state(1 - rank), State::kAlive);
    member.barrier();
  });
}

constexpr int kSkipped = 77;

bool command(const std::string& line) { return std::system(line.c_str()) == 0; }

using Pids = std::array<std::atomic<pid_t>, 2>;  // seen by both

// Two nodes, each a network of its own, joined by a wire; false: not to be had here.
bool make_two_nodes(Meeting& meeting, Pids& pids, int rank) {
  const auto meet = [&](bool mine) {
    const crl_oob_t oob = meeting.oob(rank);
    std::array<bool, 2> all = {};
    void* request = nullptr;
    oob.allgather_post(oob.arg, &mine, all.data(), sizeof mine, &request);
    while (oob.allgather_test(oob.arg, request) == 1) nap();
    return all[0] && all[1];
  };
  pids[static_cast<std::size_t>(rank)] = getpid();
  if (!meet(unshare(CLONE_NEWNET) == 0 && command("ip link set lo up"))) return false;
  const std::string other = std::to_string(pids[1].load());
  if (!meet(rank != 0 || command("ip link add wire0 type veth peer name wire1 netns " + other))) {
    return false;
  }
  const std::string wire = "wire" + std::to_string(rank);
  return meet(command("ip addr add 10.77.0." + std::to_string(rank + 1) + "/24 dev " + wire) &&
              command("ip link set " + wire + " up"));
}

// Nothing is said at all when a host loses its power: here, its wire is cut.
TEST(Lifeline, AVanishedHostIsDeadWithinFiveSeconds) {
  Meeting wiring(2), meeting(2);
  auto* const pids = shared_value<Pids>();
  const auto exits = run_processes(2, [&](int rank) {
    if (!make_two_nodes(wiring, *pids, rank)) _exit(kSkipped);
    Member member(meeting, rank);
    EXPECT_NE(member.addresses[0].node, member.addresses[1].node);
    member.watch_all();
    if (rank == 1) {
      EXPECT_TRUE(command("ip link set wire1 down"));
    }
    member.sees(1 - rank, State::kDead, 5);
    member.says(1 - rank, "cannot be reached any more");
  });
  if (exits[0] == kSkipped) GTEST_SKIP() << "no networks of its own to be had here (root, ip)";
  expect_all_ok(exits);
}

}  // namespace
}  // namespace carillon::test
