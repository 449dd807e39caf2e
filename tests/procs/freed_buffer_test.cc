// SPDX-License-Identifier: Apache-2.0
//
// Programs that give a buffer away while a collective uses it: who finds out says of which one it
// is, and nobody reads or writes what is there afterwards.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kCount = 20000, kBytes = kCount * sizeof(std::int64_t);
using Tables = std::vector<std::int64_t>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What rank 0 has comes to rank 1.
crl_status_t start(crl_team_h team, const std::string& collective, int rank, std::int64_t* buffer,
                   crl_request_h* request) {
  if (collective == "bcast") return crl_ibcast(team, buffer, kBytes, 0, request);
  constexpr auto kBlock = static_cast<std::int64_t>(kBytes);
  const Tables send = {0, rank == 0 ? kBlock : 0}, receive = {rank == 1 ? kBlock : 0, 0};
  const Tables offsets = {0, 0};
  return crl_ialltoallv(team, rank == 0 ? buffer : nullptr, send.data(), offsets.data(),
                        rank == 1 ? buffer : nullptr, receive.data(), offsets.data(), request);
}

class FreedBuffer : public testing::TestWithParam<std::string> {};

TEST_P(FreedBuffer, ThatWasLentIsAnErrorOfItsReader) {
  Meeting world(kRanks), meeting(kRanks);
  auto* const lent = static_cast<std::atomic<bool>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  expect_processes_ok(kRanks, [&](int rank) {
    setenv("CARILLON_LEND_BYTES", "64", 1);
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    void* const memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* const buffer = static_cast<std::int64_t*>(memory);
    if (rank == 1) world.barrier(rank);
    crl_request_h request = nullptr;
    expect_ok(start(team, GetParam(), rank, buffer, &request));
    crl_traffic_t traffic;
    crl_context_traffic(context, &traffic);
    if (rank == 0) {
      lent->store(traffic.lent_bytes > 0);
      if (lent->load()) munmap(buffer, kBytes);
      world.barrier(rank);
    }
    // Rank 0 may see that nobody needs its memory any more, or that rank 1 has given up.
    const crl_status_t status = crl_request_wait(&request);
    if (rank == 1 && lent->load()) {
      EXPECT_EQ(status, CRL_ERR_INVALID_ARGUMENT);
      const std::string why = crl_last_error();
      EXPECT_TRUE(contains(why, "its " + GetParam() + " (its collective ")) << why;
      EXPECT_TRUE(contains(why, "rank 0 of a team of 2")) << why;
    }
    if (!lent->load()) GTEST_SKIP() << "the kernel forbids it here";
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
  munmap(lent, 4096);
}

INSTANTIATE_TEST_SUITE_P(Collectives, FreedBuffer, testing::Values("bcast", "alltoallv"),
                         [](const auto& name) { return name.param; });

void expect_refused(crl_context_h context, void* block, const std::string& collective) {
  EXPECT_EQ(crl_free(context, block), CRL_ERR_INVALID_ARGUMENT) << collective;
  const std::string why = crl_last_error();
  EXPECT_TRUE(contains(why, "'s " + collective + " on a team of 2")) << why;
}

// Rank 0 is alone yet: nothing can have ended.
TEST(HeapBlock, IsNotFreedWhileACollectiveUsesIt) {
  Meeting world(kRanks), meeting(kRanks), later(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    const auto block = [&] { return static_cast<std::int64_t*>(crl_alloc(context, kBytes)); };
    std::int64_t *const in = block(), *const out = block(), *const passed = block(),
                        *const idle = block();
    ASSERT_NE(idle, nullptr);
    const auto values = values_of(rank, 4, kCount);
    std::copy(values.begin(), values.end(), in);
    std::copy(values.begin(), values.end(), passed);

    crl_team_h team = make_team(context, meeting.oob(rank));
    crl_request_h early = nullptr, sum = nullptr, blocks = nullptr, gathered = nullptr;
    if (rank == 1) later.barrier(rank);
    expect_ok(crl_ibcast(team, passed, kBytes, 0, &early));
    if (rank == 0) expect_refused(context, passed, "bcast");
    expect_ok(crl_iallreduce(team, in, out, kCount / 2, CRL_INT64, CRL_SUM, &sum));
    // The second half of `out`; of what rank 0 has, nothing is for itself.
    const auto half = static_cast<std::int64_t>(kBytes) / 2;
    const Tables bytes = {rank == 1 ? half : 0, rank == 0 ? half : 0}, offsets = {half, half};
    expect_ok(crl_ialltoallv(team, in, bytes.data(), offsets.data(), out, bytes.data(),
                             offsets.data(), &blocks));
    // Only the root's output means anything.
    std::vector<std::int64_t> all(2 * kCount);
    expect_ok(crl_igather(team, in, rank == 1 ? all.data() : idle, kBytes, 1, &gathered));
    if (rank == 0) {
      expect_refused(context, in, "allreduce");
      expect_refused(context, out, "allreduce");
      later.barrier(rank);
    }
    for (crl_request_h* request : {&early, &sum, &blocks, &gathered}) {
      expect_ok(crl_request_wait(request));
    }
    auto expected = sums_of(kRanks, 4, kCount / 2);
    const auto other = values_of(1 - rank, 4, kCount);
    expected.insert(expected.end(), other.begin() + kCount / 2, other.end());
    EXPECT_EQ(std::vector<std::int64_t>(out, out + kCount), expected);
    EXPECT_EQ(std::vector<std::int64_t>(passed, passed + kCount), values_of(0, 4, kCount));
    for (void* const each : {in, out, passed, idle}) expect_ok(crl_free(context, each));
    EXPECT_EQ(block(), in) << "they were freed";
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// What another collective's table names, not the whole of its buffer.
TEST(HeapBlock, IsFreedIfNoByteOfItIsUsed) {
  Meeting world(kRanks), meeting(kRanks), later(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    auto* const used = static_cast<char*>(crl_alloc(context, 4096));
    auto* const unused = static_cast<char*>(crl_alloc(context, 4096));
    std::vector<char> out(100);
    std::fill_n(used, 100, static_cast<char>('a' + rank));
    const Tables bytes = {rank == 1 ? 100 : 0, rank == 0 ? 100 : 0}, zero = {0, 0};
    const Tables from = {used - unused, used - unused};  // from another block's beginning
    if (rank == 1) later.barrier(rank);
    crl_request_h request = nullptr;
    expect_ok(crl_ialltoallv(team, unused, bytes.data(), from.data(), out.data(), bytes.data(),
                             zero.data(), &request));
    expect_ok(crl_free(context, unused));
    if (rank == 0) {
      expect_refused(context, used, "alltoallv");
      later.barrier(rank);
    }
    expect_ok(crl_request_wait(&request));
    EXPECT_EQ(out, std::vector<char>(100, static_cast<char>('b' - rank)));
    expect_ok(crl_free(context, used));
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

}  // namespace
}  // namespace carillon::test
