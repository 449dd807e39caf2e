// SPDX-License-Identifier: Apache-2.0
//
// Memory is short where a collective begins that has waited for its team: nobody waits for it in
// vain, neither here nor at the other ranks. This binary refuses long blocks of memory on demand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "support/calls.h"

namespace {

constexpr std::size_t kLong = 1 << 20;
thread_local bool g_short = false;

}  // namespace

// The other forms are the library's, and call this; but what is asked for with nothrow is freed by
// the same delete, and a sanitizer's library has its own for that. Not inlined: GCC would take free
// for the wrong partner of the new that it sees.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
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

}  // namespace
}  // namespace carillon::test
