// SPDX-License-Identifier: Apache-2.0
//
// What the emission of one rank's part costs in a large team on nodes: as much as the part is, and
// not as much as there are ranks or nodes. This binary counts the bytes that operator new is asked
// for: lists of all ranks, or nodes, would be some hundred KiB for each rank.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "algorithms/registry.h"
#include "support/shapes.h"

namespace {

std::size_t g_bytes = 0;

}  // namespace

// The other forms are the library's, and call these.
// Not inlined: GCC would take free for the wrong partner of the new that it sees.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  g_bytes += bytes;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace carillon {
namespace {

constexpr Rank kRanks = 65'536, kPpn = 16;

class EmissionOf : public testing::TestWithParam<const char*> {};

// Every rank's, with a builder that is used again, as the simulator does it.
std::size_t bytes_per_rank(const Algorithm& algorithm, const test::Shape& shape, Rank root) {
  const Shared shared{.collective = algorithm.collective,
                      .ranks = shape.ranks(),
                      .root = has_root(algorithm.collective) ? root : 0,
                      .count = 1,
                      .element_bytes = 8};
  const Result<Call> prepared =
      prepare(algorithm, {.shared = shared, .limits = {.nodes = shape.nodes}});
  EXPECT_TRUE(prepared.ok()) << prepared.status().to_string();
  if (!prepared.ok()) return 0;
  Call call = prepared.value();
  Builder builder(call);
  const std::size_t before = g_bytes;
  std::size_t ops = 0;
  for (call.rank = 0; call.rank < shape.ranks(); ++call.rank) {
    builder.restart(call.rank, call.local, {});
    emit_prepared(algorithm, call, builder);
    const Status status = builder.end();
    EXPECT_TRUE(status.ok()) << call.rank << ": " << status.to_string();
    if (!status.ok()) return 0;
    ops += builder.built().ops.size();
  }
  EXPECT_GE(ops, static_cast<std::size_t>(shape.ranks())) << "somebody has nothing to do";
  return (g_bytes - before) / static_cast<std::size_t>(shape.ranks());
}

TEST_P(EmissionOf, ARankGoesThroughItsOwnPartOnly) {
  constexpr std::size_t kMostBytes = 4096;
  const Algorithm& algorithm = *find_algorithm(GetParam());
  const test::Shape blocked = test::blocked(std::vector<Rank>(kRanks / kPpn, kPpn));
  const test::Shape dealt = test::round_robin(kRanks, kRanks / kPpn);
  EXPECT_LE(bytes_per_rank(algorithm, blocked, 0), kMostBytes);
  EXPECT_LE(bytes_per_rank(algorithm, blocked, kRanks / 2 + 3), kMostBytes);
  EXPECT_LE(bytes_per_rank(algorithm, dealt, 5), kMostBytes);
}

INSTANTIATE_TEST_SUITE_P(OnNodes, EmissionOf,
                         testing::Values("barrier.hierarchical", "bcast.hierarchical",
                                         "reduce.hierarchical", "allreduce.hierarchical",
                                         "gather.node_tree", "scatter.node_tree"),
                         [](const auto& each) {
                           std::string name = each.param;
                           name[name.find('.')] = '_';
                           return name;
                         });

}  // namespace
}  // namespace carillon
