// SPDX-License-Identifier: Apache-2.0
//
// A repeated small collective allocates nothing, and no kind of call pushes another's preparation
// out. This binary counts what operator new is asked for, per thread.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "support/calls.h"

namespace {

thread_local long g_news = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++g_news;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = alignment <= alignof(std::max_align_t)
                           ? std::malloc(bytes == 0 ? 1 : bytes)
                           : std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The other forms (arrays, nothrow) are the library's, and call these.
// Not inlined: GCC would take free for the wrong partner of the new that it sees.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return counted(bytes, 1); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace carillon::test {
namespace {

constexpr int kWarmUp = 8;
constexpr int kRounds = 300;

struct Call {
  std::string name;
  std::function<crl_status_t()> run;
};

// Room for 16 bytes of each of 3 ranks.
struct Buffers {
  std::array<double, 8> in = {}, out = {};
};

std::vector<Call> common_calls(crl_team_h team, Buffers& b) {
  return {
      {"barrier", [=] { return crl_barrier(team); }},
      {"bcast", [=, &b] { return crl_bcast(team, b.out.data(), 8, 0); }},
      {"allreduce",
       [=, &b] { return crl_allreduce(team, b.in.data(), b.out.data(), 1, CRL_FLOAT64, CRL_SUM); }},
      {"allgather", [=, &b] { return crl_allgather(team, b.in.data(), b.out.data(), 8); }},
      {"reduce", [=, &b] {
         return crl_reduce(team, b.in.data(), b.out.data(), 1, CRL_FLOAT64, CRL_SUM, 0);
       }}};
}

// All kinds but alltoallv, whose tables differ from call to call.
std::vector<Call> all_calls(crl_team_h team, Buffers& b, std::size_t bytes) {
  const std::size_t ints = bytes / 4;
  double* const in = b.in.data();
  double* const out = b.out.data();
  std::vector<Call> calls = common_calls(team, b);
  const auto add = [&](const char* name, std::function<crl_status_t()> run) {
    calls.push_back({name, std::move(run)});
  };
  add("bcast", [=] { return crl_bcast(team, out, bytes, 1); });
  add("allreduce", [=] { return crl_allreduce(team, in, out, ints, CRL_INT32, CRL_MAX); });
  add("allgather", [=] { return crl_allgather(team, in, out, bytes); });
  add("reduce", [=] { return crl_reduce(team, in, out, ints, CRL_INT32, CRL_MAX, 1); });
  add("gather", [=] { return crl_gather(team, in, out, bytes, 0); });
  add("scatter", [=] { return crl_scatter(team, in, out, bytes, 0); });
  add("alltoall", [=] { return crl_alltoall(team, in, out, bytes); });
  add("reduce_scatter_block",
      [=] { return crl_reduce_scatter_block(team, in, out, ints, CRL_INT32, CRL_SUM); });
  return calls;
}

// In rounds, so that each call has all others between itself and its repetition.
void expect_no_allocations(const std::vector<Call>& calls, int rounds = kRounds) {
  std::vector<long> news(calls.size());
  for (int round = 0; round < kWarmUp + rounds; ++round) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const long before = g_news;
      const crl_status_t status = calls[i].run();
      if (round >= kWarmUp) news[i] += g_news - before;
      ASSERT_EQ(status, CRL_OK) << calls[i].name << ": " << crl_last_error();
    }
  }
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(news[i], 0) << calls[i].name;
}

using MakeCalls = std::function<std::vector<Call>(crl_team_h, Buffers&)>;

void on_team(Meeting& world, Meeting& meeting, int rank, bool threaded, const MakeCalls& make) {
  crl_context_h context = make_context(world, rank, threaded);
  crl_team_h team = make_team(context, meeting.oob(rank));
  Buffers buffers;
  expect_no_allocations(make(team, buffers));
  crl_team_destroy(team);
  crl_context_destroy(context);
}

void expect_none(const MakeCalls& make) {
  for (const int ranks : {2, 3}) {
    Meeting world(ranks), meeting(ranks), threads_world(ranks), threads_meeting(ranks);
    expect_processes_ok(ranks, [&](int rank) { on_team(world, meeting, rank, false, make); });
    run_threads(ranks,
                [&](int rank) { on_team(threads_world, threads_meeting, rank, true, make); });
  }
}

TEST(Allocation, TheCountCounts) {
  const long before = g_news;
  auto* const memory = new std::vector<int>(5);
  EXPECT_EQ(g_news - before, 2);
  delete memory;
}

TEST(Allocation, RepeatedSmallCollectivesTakeNone) { expect_none(common_calls); }

TEST(Allocation, NoKindOfCallDisplacesAnother) {
  for (const std::size_t bytes : {4, 8, 16}) {
    expect_none([bytes](crl_team_h team, Buffers& b) { return all_calls(team, b, bytes); });
  }
}

// Whatever their places are: of so many pairs some have the same.
TEST(Allocation, TwoCallsOfAKindDoNotDisplaceEachOther) {
  constexpr int kRanks = 2;
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    std::array<double, 50> data = {};
    for (std::size_t count = 2; count <= data.size(); ++count) {
      const auto bcast = [&](std::size_t bytes) {
        return Call{"bcast of 8 and " + std::to_string(count * 8) + " bytes",
                    [team, &data, bytes] { return crl_bcast(team, data.data(), bytes, 0); }};
      };
      expect_no_allocations({bcast(8), bcast(count * 8)}, 20);
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// As programs do that share out work among roots.
TEST(Allocation, RootsInTurnTakeNone) {
  expect_none([](crl_team_h team, Buffers& b) {
    std::vector<Call> calls;
    for (int root = 0; root < crl_team_size(team); ++root) {
      calls.push_back({"bcast", [=, &b] { return crl_bcast(team, b.out.data(), 8, root); }});
      calls.push_back(
          {"gather", [=, &b] { return crl_gather(team, b.in.data(), b.out.data(), 8, root); }});
    }
    return calls;
  });
}

}  // namespace
}  // namespace carillon::test
