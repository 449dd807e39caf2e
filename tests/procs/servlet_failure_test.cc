// SPDX-License-Identifier: Apache-2.0
//
// A rank dies while the servlets move the bytes of its collectives: every other rank gets an error
// in bounded time, none hangs, and what has come to its end is right. On one node and, in tests of
// the label `nodes`, between several.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/objects.h"
#include "support/calls.h"
#include "support/started.h"

namespace carillon::test {
namespace {

constexpr int kDeadPeerMs = 200;
constexpr int kRanks = 4;

// The victim starts some of the collectives and none of the others, which then cannot come to an
// end.
constexpr std::size_t kAll = 12, kOfTheVictim = 8;

// Whether the victim has come to its end.
class Death {
 public:
  Death()
      : was_(static_cast<std::atomic<bool>*>(mmap(nullptr, sizeof *was_, PROT_READ | PROT_WRITE,
                                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Death() { munmap(static_cast<void*>(was_), sizeof *was_); }
  Death(const Death&) = delete;
  Death& operator=(const Death&) = delete;
  void is_now() { was_->store(true); }
  [[nodiscard]] bool was() const { return was_->load(); }

 private:
  std::atomic<bool>* was_;
};

struct Job {
  const Started& collective;
  Meeting world{kRanks}, meeting{kRanks}, living{kRanks - 1};
  Death death;
};

class ServletFailure : public testing::Test {
 protected:
  void SetUp() override {
    setenv("CARILLON_SERVLET", "on", 1);
    // The servlet itself writes to the output, not the kernel or the network for it.
    setenv("CARILLON_LEND_BYTES", "0", 1);
    setenv("CARILLON_FETCH_BYTES", "0", 1);
  }
  void TearDown() override {
    for (const char* name : {"CARILLON_SERVLET", "CARILLON_LEND_BYTES", "CARILLON_FETCH_BYTES"}) {
      unsetenv(name);
    }
  }

  // What a rank that lives does, and is told.
  static void survive(Job& job, int rank, int victim) {
    crl_context_h context = make_context(job.world, rank, false, kDeadPeerMs);
    crl_team_h team = make_team(context, job.meeting.oob(rank));
    crl_team_h rest = make_team(context, job.living.oob(rank < victim ? rank : rank - 1));
    expect_ok(settle(team));
    expect_ok(settle(rest));
    const auto in = values_of(rank, 1, kStartedCount);
    const auto expected = job.collective.expected(rank, kRanks);
    // A broadcast may have come to an end without the victim.
    const std::size_t may_end = job.collective.start == start_bcast ? kAll : kOfTheVictim;
    std::vector<std::vector<std::int64_t>> outs(kAll, std::vector<std::int64_t>(expected.size()));
    std::vector<crl_request_h> requests(kAll);
    job.world.barrier(rank);
    crl_status_t started = CRL_OK;
    for (std::size_t i = 0; i < kAll && started == CRL_OK; ++i) {
      started = job.collective.start({team, rank, kRanks, in.data(), outs[i].data()}, &requests[i]);
    }
    EXPECT_TRUE(started == CRL_OK || started == CRL_ERR_PEER_DEAD) << crl_last_error();
    for (std::size_t i = 0; i < kAll && requests[i] != nullptr; ++i) {
      const crl_status_t status = crl_request_wait(&requests[i]);
      if (status == CRL_OK && i < may_end) {
        EXPECT_EQ(outs[i], expected) << "request " << i;
      } else {
        EXPECT_EQ(status, CRL_ERR_PEER_DEAD) << "request " << i << ": " << crl_last_error();
      }
    }
    EXPECT_EQ(crl_barrier(team), CRL_ERR_PEER_DEAD);
    EXPECT_TRUE(job.death.was());
    for (int i = 0; i < 20; ++i) expect_ok(crl_barrier(rest), "of those who live");
    crl_team_destroy(rest);
    crl_team_destroy(team);
    crl_context_destroy(context);
  }

  // `die` gets the victim's team, and says when it dies; it does not come back.
  static void run(
      const Started& collective, int victim, int signal,
      const std::function<void(crl_team_h, const std::int64_t* in, Death& death)>& die) {
    SCOPED_TRACE(std::string(collective.name) + ", victim " + std::to_string(victim));
    Job job{.collective = collective};
    const std::vector<int> exits = run_processes(
        kRanks,
        [&](int rank) {
          if (rank != victim) return survive(job, rank, victim);
          const rlimit none{};
          setrlimit(RLIMIT_CORE, &none);
          crl_context_h context = make_context(job.world, rank, false, kDeadPeerMs);
          crl_team_h team = make_team(context, job.meeting.oob(rank));
          expect_ok(settle(team));
          const auto in = values_of(rank, 1, kStartedCount);
          job.world.barrier(rank);
          die(team, in.data(), job.death);
        },
        30);
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(exits[static_cast<std::size_t>(rank)], rank == victim ? -signal : 0)
          << "rank " << rank;
    }
  }
};

// When so much of its output stands: a part of it in a quarter, and which request that is.
struct Moment {
  std::size_t request, quarters;
};

TEST_F(ServletFailure, KilledWhenSoMuchHasCome) {
  const std::pair<int, Moment> deaths[] = {{0, {0, 0}}, {1, {0, 2}}, {0, {3, 1}}, {1, {7, 4}}};
  for (const Started& collective : kStarted) {
    for (const auto& [victim, moment] : deaths) {
      run(collective, victim, SIGKILL, [&](crl_team_h team, const std::int64_t* in, Death& death) {
        const std::size_t size = collective.expected(victim, kRanks).size();
        std::vector<std::vector<std::int64_t>> outs(kOfTheVictim, std::vector<std::int64_t>(size));
        std::vector<crl_request_h> requests(kOfTheVictim);
        for (std::size_t i = 0; i < kOfTheVictim; ++i) {
          expect_ok(collective.start({team, victim, kRanks, in, outs[i].data()}, &requests[i]));
        }
        const std::int64_t* const last = &outs[moment.request][(size - 1) * moment.quarters / 4];
        const Stopwatch watch;
        while (look_at(last) == 0 && watch.seconds() < kPatienceS) sched_yield();
        if (look_at(last) == 0) return;
        death.is_now();
        raise(SIGKILL);
      });
    }
  }
}

// No thread of the program calls carillon, or has it look at anything, until the collective has
// ended.
TEST_F(ServletFailure, ServletsNoticeADeathByThemselves) {
  for (const Started& collective : kStarted) {
    if (collective.start == start_bcast) continue;  // it may end without the victim
    SCOPED_TRACE(collective.name);
    constexpr int kVictim = 1;
    Meeting world(kRanks), meeting(kRanks);
    const std::vector<int> exits = run_processes(
        kRanks,
        [&](int rank) {
          crl_context_h context = make_context(world, rank, false, kDeadPeerMs);
          crl_team_h team = make_team(context, meeting.oob(rank));
          expect_ok(settle(team));
          const auto in = values_of(rank, 1, kStartedCount);
          std::vector<std::int64_t> out(collective.expected(rank, kRanks).size());
          crl_request_h request = nullptr;
          if (rank != kVictim) {
            expect_ok(collective.start({team, rank, kRanks, in.data(), out.data()}, &request));
          }
          world.barrier(rank);
          if (rank == kVictim) raise(SIGKILL);
          while (!request->done()) sched_yield();  // until the alarm
          EXPECT_EQ(crl_request_wait(&request), CRL_ERR_PEER_DEAD);
          crl_team_destroy(team);
          crl_context_destroy(context);
        },
        30);
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(exits[static_cast<std::size_t>(rank)], rank == kVictim ? -SIGKILL : 0)
          << "rank " << rank;
    }
  }
}

// In the middle of the servlet's own writing for sure: half of the output may not be written to.
TEST_F(ServletFailure, DiesOfWhatItsServletWrites) {
  for (const Started& collective : kStarted) {
    for (const int victim : {0, 1}) {
      run(collective, victim, SIGSEGV, [&](crl_team_h team, const std::int64_t* in, Death& death) {
        const std::size_t bytes = collective.expected(victim, kRanks).size() * sizeof *in;
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t half = bytes / 2 / page * page;
        void* const memory =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        ASSERT_EQ(mprotect(static_cast<char*>(memory) + half, bytes - half, PROT_NONE), 0);
        crl_request_h request = nullptr;
        death.is_now();  // or a little later
        expect_ok(collective.start({team, victim, kRanks, in, static_cast<std::int64_t*>(memory)},
                                   &request));
        for (;;) pause();
      });
    }
  }
}

}  // namespace
}  // namespace carillon::test
