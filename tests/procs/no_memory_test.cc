// SPDX-License-Identifier: Apache-2.0
//
// Memory is short where a collective begins that has waited for its team: nobody waits for it in
// vain, neither here nor at the other ranks. This binary refuses long blocks of memory on demand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "support/calls.h"

namespace {

constexpr std::size_t kLong = 1 << 20;
thread_local bool g_short = false;
thread_local int g_left =
    0;  // of so many blocks, of any length, the last one cannot be had; 0: all

}  // namespace

// The other forms are the library's, and call this; but what is asked for with nothrow is freed by
// the same delete, and a sanitizer's library has its own for that. Not inlined: GCC would take free
// for the wrong partner of the new that it sees.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  if (g_left > 0 && --g_left == 0) return nullptr;
  return g_short && bytes >= kLong ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace carillon::test {
namespace {

constexpr int kRanks = 4, kVictim = 2;
constexpr std::size_t kBlock = 4 * kLong, kCount = kRanks * kBlock / sizeof(std::int64_t);

// What each rank is told of its collectives, which it started before the team was there.
void expect_no_memory(Meeting& world, Meeting& meeting, int rank) {
  crl_context_h context = make_context(world, rank);
  if (rank != kVictim) world.barrier(rank);  // the victim's wait for their team
  crl_team_h team = make_team(context, meeting.oob(rank));
  const auto in = values_of(rank, 1, kCount);
  std::vector<std::vector<std::int64_t>> outs(2, std::vector<std::int64_t>(kCount));
  std::vector<crl_request_h> requests(outs.size());
  for (std::size_t i = 0; i < outs.size(); ++i) {
    expect_ok(crl_ialltoall(team, in.data(), outs[i].data(), kBlock, &requests[i]));
  }
  if (rank == kVictim) world.barrier(rank);
  g_short = rank == kVictim;
  for (crl_request_h& request : requests) {
    EXPECT_EQ(crl_request_wait(&request), CRL_ERR_NO_MEMORY) << "rank " << rank;
    EXPECT_EQ(request, nullptr) << "rank " << rank << " has a request that never ends";
  }
  g_short = false;
  EXPECT_EQ(crl_barrier(team), CRL_ERR_NO_MEMORY) << "rank " << rank;
  crl_team_destroy(team);
  crl_context_destroy(context);
}

TEST(NoMemory, WhereACollectiveBeginsThatHasWaitedForItsTeam) {
  setenv("CARILLON_ALGORITHM", "alltoall=bruck_zerocopy",
         1);  // it needs scratch memory
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(
      kRanks, [&](int rank) { expect_no_memory(world, meeting, rank); }, 20);
  unsetenv("CARILLON_ALGORITHM");
}

// Others take the team for made: what the victim had to tell them, it has told.
TEST(NoMemory, WhereAllHaveToldWhatATeamIsMadeOf) {
  bool made = false;
  for (int blocks = 1; !made; ++blocks) {
    Meeting world(2), meeting(2);
    const auto exits = run_processes(
        2,
        [&](int rank) {
          crl_context_h context = make_context(world, rank, false, 200);
          crl_team_h team = make_team(context, meeting.oob(rank));
          world.barrier(rank);
          g_left = rank == 0 ? blocks : 0;
          const crl_status_t status = settle(team);
          const bool had_all = g_left > 0;
          g_left = 0;
          EXPECT_EQ(status, rank == 1 || had_all ? CRL_OK : CRL_ERR_NO_MEMORY);
          const crl_status_t ended = crl_barrier(team);
          if (rank == 0) {
            EXPECT_EQ(ended, status);
          } else {
            EXPECT_TRUE(ended == CRL_OK || ended == CRL_ERR_NO_MEMORY) << ended;
          }
          world.barrier(rank);
          crl_team_destroy(team);
          crl_context_destroy(context);
          if (had_all) _exit(testing::Test::HasFailure() ? 1 : 77);
        },
        20);
    ASSERT_TRUE(exits[0] == 0 || exits[0] == 77) << exits[0] << ", block " << blocks;
    ASSERT_EQ(exits[1], 0) << "block " << blocks;
    made = exits[0] == 77;
    ASSERT_LT(blocks, 200);
  }
}

// Who has told others makes the team.
TEST(NoMemory, WhereATeamBegins) {
  Meeting world(1), meeting(1);
  crl_context_h context = make_context(world, 0);
  std::vector<crl_team_h> teams;
  for (int blocks = 1; teams.size() < 20; ++blocks) {
    const crl_oob_t oob = meeting.oob(0);
    crl_team_h team = nullptr;
    g_left = blocks % 20 + 1;
    const crl_status_t status = crl_team_create(context, &oob, &team);
    g_left = 0;
    if (status == CRL_OK) {
      expect_ok(settle(team));
      teams.push_back(team);
    } else {
      ASSERT_EQ(status, CRL_ERR_NO_MEMORY);
      ASSERT_EQ(team, nullptr);
    }
    ASSERT_LT(blocks, 1000);
  }
  for (crl_team_h team : teams) {
    expect_ok(crl_barrier(team));
    crl_team_destroy(team);
  }
  crl_context_destroy(context);
}

}  // namespace
}  // namespace carillon::test
