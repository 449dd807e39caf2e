// SPDX-License-Identifier: Apache-2.0
//
// What an operator of the user's is given to work on is aligned as the buffers of the calls are, by
// every algorithm and however long the messages are: elements of 16 bytes may be read by
// instructions that want them on a boundary of 16.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "algorithms/registry.h"
#include "support/calls.h"
#include "support/shapes.h"

namespace carillon::test {
namespace {

constexpr int kRanks = 5;

struct alignas(16) Wide {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Wide&) const = default;
};

bool is_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignof(Wide) == 0;
}

struct Seen {
  std::uint64_t calls = 0, not_aligned = 0;
};

void add(void* arg, const void* left, void* right, std::size_t count) {
  auto& seen = *static_cast<Seen*>(arg);
  ++seen.calls;
  if (!is_aligned(left) || !is_aligned(right)) {
    ++seen.not_aligned;
    return;
  }
  const auto* const from = static_cast<const Wide*>(left);
  auto* const to = static_cast<Wide*>(right);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = {from[i].low + to[i].low, from[i].high + to[i].high};
  }
}

Wide value_at(int rank, std::size_t index) {
  const auto low = static_cast<std::uint64_t>(rank + 1) * 1000003 + index;
  return {low, low * low};
}

// Of the ranks [0, end).
std::vector<Wide> sums(int end, std::size_t count) {
  std::vector<Wide> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (int rank = 0; rank < end; ++rank) {
      const Wide one = value_at(rank, i);
      all[i] = {all[i].low + one.low, all[i].high + one.high};
    }
  }
  return all;
}

// What the rank is to have after the call with `count` elements at a time; empty: nothing.
std::vector<Wide> expected(Collective collective, int rank, std::size_t count) {
  switch (collective) {
    case Collective::kReduce: return rank == 0 ? sums(kRanks, count) : std::vector<Wide>();
    case Collective::kAllreduce: return sums(kRanks, count);
    case Collective::kScan: return sums(rank + 1, count);
    case Collective::kExscan: return rank == 0 ? std::vector<Wide>() : sums(rank, count);
    default: {  // reduce_scatter_block
      const std::vector<Wide> all = sums(kRanks, count * kRanks);
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(count) * rank;
      return {first, first + static_cast<std::ptrdiff_t>(count)};
    }
  }
}

crl_status_t call(Collective collective, crl_team_h team, const Wide* in, Wide* out,
                  std::size_t count, crl_op_t op) {
  const crl_dtype_t type = CRL_OPAQUE(sizeof(Wide));
  switch (collective) {
    case Collective::kReduce: return crl_reduce(team, in, out, count, type, op, 0);
    case Collective::kAllreduce: return crl_allreduce(team, in, out, count, type, op);
    case Collective::kScan: return crl_scan(team, in, out, count, type, op);
    case Collective::kExscan: return crl_exscan(team, in, out, count, type, op);
    default: return crl_reduce_scatter_block(team, in, out, count, type, op);
  }
}

void run_rank(const Algorithm& algorithm, Meeting& world, Meeting& members, int rank) {
  crl_context_h context = make_context(world, rank);
  crl_team_h team = make_team(context, members.oob(rank));
  Seen seen;
  crl_op_t op = 0;
  expect_ok(crl_op_create(add, &seen, 1, &op));
  for (const std::size_t count : {1, 2, 3, 4, 7, 40, 700, 9000}) {
    std::vector<Wide> in(count * kRanks), out(count * kRanks);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = value_at(rank, i);
    expect_ok(call(algorithm.collective, team, in.data(), out.data(), count, op));
    EXPECT_EQ(seen.not_aligned, 0) << algorithm.id << " of " << count << ", rank " << rank;
    const std::vector<Wide> right = expected(algorithm.collective, rank, count);
    out.resize(right.size());
    EXPECT_TRUE(out == right) << algorithm.id << " of " << count << ", rank " << rank;
    if (testing::Test::HasFailure()) break;
  }
  crl_op_free(op);
  crl_team_destroy(team);
  crl_context_destroy(context);
}

class Alignment : public testing::TestWithParam<const char*> {};

void try_all(const char* nodes) {
  setenv("CARILLON_NODE_RANKS", nodes, 1);
  int tried = 0;
  for (const Algorithm& algorithm : algorithms()) {
    const bool known =
        has_reduction(algorithm.collective) && algorithm.collective != Collective::kReduceScatter;
    if (!known || algorithm.traits.multicast || algorithm.traits.in_switch) continue;
    ++tried;
    setenv("CARILLON_ALGORITHM", std::string(algorithm.id).c_str(), 1);
    Meeting world(kRanks), members(kRanks);
    expect_processes_ok(kRanks, [&](int rank) { run_rank(algorithm, world, members, rank); });
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(tried, 10);
  unsetenv("CARILLON_ALGORITHM");
  unsetenv("CARILLON_NODE_RANKS");
}

TEST_P(Alignment, OfWhatAnOperatorIsGiven) { try_all(GetParam()); }

TEST_P(Alignment, InSlotsOfAnyLength) {
  setenv("CARILLON_SLOT_BYTES", "10001", 1);
  try_all(GetParam());
  unsetenv("CARILLON_SLOT_BYTES");
}

INSTANTIATE_TEST_SUITE_P(Nodes, Alignment, testing::Values("", "2,2,1"));

}  // namespace
}  // namespace carillon::test
