// SPDX-License-Identifier: Apache-2.0
//
// A repeated small collective allocates nothing, and no kind of call pushes another's preparation
// out. This binary counts what operator new is asked for, per thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "support/calls.h"
#include "support/surveyed.h"

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

// The other forms (arrays) are the library's, and call these.
// Not inlined: GCC would take free for the wrong partner of the new that it sees.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return counted(bytes, 1); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  ++g_news;
  return std::malloc(bytes == 0 ? 1 : bytes);
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
constexpr int kSeriesRounds = 70;  // of each of several; a survey is among them
// Of which one has no allocation. The lifelines of two peers take memory in fewer: each is asked,
// called, accepted, told and watched, and a busy machine spreads these over as many series.
constexpr int kSeries = 24;

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

// One call of each kind.
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
  add("scan", [=] { return crl_scan(team, in, out, ints, CRL_INT32, CRL_SUM); });
  add("exscan", [=] { return crl_exscan(team, in, out, ints, CRL_INT32, CRL_SUM); });
  const auto size = static_cast<std::size_t>(crl_team_size(team));
  const std::vector<std::int64_t> lengths(size, static_cast<std::int64_t>(bytes));
  const std::vector<std::int64_t> counts(size, static_cast<std::int64_t>(ints)), zeros(size, 0);
  add("gatherv",
      [=] { return crl_gatherv(team, in, bytes, out, lengths.data(), zeros.data(), 0); });
  add("reduce_scatter",
      [=] { return crl_reduce_scatter(team, in, out, counts.data(), CRL_INT32, CRL_SUM); });
  return calls;
}

// In rounds, so that each call has all others between itself and its repetition. The least of the
// series counts: between nodes lifelines come now and then, which take memory.
void expect_no_allocations(const std::vector<Call>& calls, int rounds = kRounds, int series = 1) {
  std::vector<long> least(calls.size(), LONG_MAX);
  for (int i = 0; i < kWarmUp * static_cast<int>(calls.size()); ++i) {
    const Call& call = calls[static_cast<std::size_t>(i) % calls.size()];
    ASSERT_EQ(call.run(), CRL_OK) << call.name << ": " << crl_last_error();
  }
  for (int one = 0; one < series; ++one) {
    std::vector<long> news(calls.size());
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const long before = g_news;
        const crl_status_t status = calls[i].run();
        news[i] += g_news - before;
        ASSERT_EQ(status, CRL_OK) << calls[i].name << ": " << crl_last_error();
      }
    }
    for (std::size_t i = 0; i < calls.size(); ++i) least[i] = std::min(least[i], news[i]);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(least[i], 0) << calls[i].name;
}

using MakeCalls = std::function<std::vector<Call>(crl_team_h, Buffers&)>;

void on_team(Meeting& world, Meeting& meeting, int rank, bool threaded, const MakeCalls& make,
             int series) {
  crl_context_h context = make_context(world, rank, threaded);
  crl_team_h team = make_team(context, meeting.oob(rank));
  Buffers buffers;
  expect_no_allocations(make(team, buffers), series == 1 ? kRounds : kSeriesRounds, series);
  crl_team_destroy(team);
  crl_context_destroy(context);
}

void expect_none(const MakeCalls& make, int series = 1) {
  for (const int ranks : {2, 3}) {
    Meeting world(ranks), meeting(ranks), threads_world(ranks), threads_meeting(ranks);
    expect_processes_ok(ranks,
                        [&](int rank) { on_team(world, meeting, rank, false, make, series); });
    // In a process of their own: libfabric keeps what a search for leaks at the end would find.
    expect_processes_ok(1, [&](int /*process*/) {
      run_threads(ranks, [&](int rank) {
        on_team(threads_world, threads_meeting, rank, true, make, series);
      });
    });
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

// Each rank is a node. The layouts' lists, put and placed, and what they pack, in memory from
// crl_alloc.
TEST(Allocation, ListsBetweenNodesTakeNone) {
  constexpr int kRanks = 3;
  constexpr std::size_t kBytes = 200;
  setenv("CARILLON_NODE_RANKS", "1", 1);
  setenv("CARILLON_GATHER_ENTRIES", "30", 1);
  setenv("CARILLON_GATHER_BYTES", "1", 1);
  setenv("CARILLON_PLACE_BYTES", "1", 1);
  for (const char* const layout : {"inplace", "resident", "reversed", "zerocopy"}) {
    for (const char* const memory :
         {"gather", "pack", "gather,transfer=sendrecv", "pack,transfer=sendrecv"}) {
      const std::string name = std::string(layout) + ":memory=" + memory;
      setenv("CARILLON_ALGORITHM", ("alltoall=bruck_" + name).c_str(), 1);
      Meeting world(kRanks), meeting(kRanks);
      expect_processes_ok(kRanks, [&](int rank) {
        crl_context_h context = make_context(world, rank);
        crl_team_h team = make_team(context, meeting.oob(rank));
        void* const in = crl_alloc(context, kRanks * kBytes);
        void* const out = crl_alloc(context, kRanks * kBytes);
        long least = LONG_MAX;
        for (int series = 0; series < kSeries; ++series) {
          const long before = g_news;
          for (int i = 0; i < kWarmUp; ++i) expect_ok(crl_alltoall(team, in, out, kBytes));
          least = std::min(least, g_news - before);
        }
        EXPECT_EQ(least, 0) << name;
        crl_free(context, in);
        crl_free(context, out);
        crl_team_destroy(team);
        crl_context_destroy(context);
      });
      if (HasFailure()) break;
    }
  }
  for (const char* const variable :
       {"NODE_RANKS", "GATHER_ENTRIES", "GATHER_BYTES", "PLACE_BYTES", "ALGORITHM"}) {
    unsetenv((std::string("CARILLON_") + variable).c_str());
  }
}

// The later stage of a call with the tables of an earlier one.
TEST(Allocation, AnAlltoallvOfTwoPhasesTakesNone) {
  setenv("CARILLON_ALGORITHM", "alltoallv=bruck_two_phase", 1);
  expect_none([](crl_team_h team, Buffers& b) {
    static const std::array<std::int64_t, 3> bytes{8, 8, 8}, offsets{0, 8, 16};
    return std::vector<Call>{{"alltoallv", [=, &b] {
                                return crl_alltoallv(team, b.in.data(), bytes.data(),
                                                     offsets.data(), b.out.data(), bytes.data(),
                                                     offsets.data());
                              }}};
  });
  unsetenv("CARILLON_ALGORITHM");
}

// Nor do surveys of its tables, where they are held, nor what follows from them.
TEST(Allocation, ASurveyedAlltoallvTakesNone) {
  setenv("CARILLON_NODE_RANKS", "1", 1);
  setenv("CARILLON_CROWDED", "0", 1);
  expect_none(
      [](crl_team_h team, Buffers& b) {
        take_two_phases_for_cheap(*team->context);
        static const std::array<std::int64_t, 3> bytes{8, 8, 8}, offsets{0, 8, 16};
        return std::vector<Call>{{"alltoallv", [=, &b] {
                                    return crl_alltoallv(team, b.in.data(), bytes.data(),
                                                         offsets.data(), b.out.data(), bytes.data(),
                                                         offsets.data());
                                  }}};
      },
      kSeries);
  unsetenv("CARILLON_NODE_RANKS");
  unsetenv("CARILLON_CROWDED");
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
