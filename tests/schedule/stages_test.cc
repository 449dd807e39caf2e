// SPDX-License-Identifier: Apache-2.0
//
// Stages: a gather of unequal blocks along a binomial tree, where a rank learns how much its
// subtree holds from its subtree. Test-only: each rank's input begins with its own byte count,
// because a schedule cannot write constants into messages.
//
// Stage 0 sends the counts of each subtree up, one int64 per rank; stage 1 the blocks themselves.
// On 5 ranks: 1 -> 0, 3 -> 2, then 2 -> 0, then 4 -> 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "schedule/builder.h"
#include "schedule/interpret.h"
#include "schedule/verify.h"

namespace carillon {
namespace {

constexpr std::int64_t kCount = 8;  // bytes of one count

struct Child {
  Rank rank = 0;
  Rank size = 0;  // of its subtree
};

// The subtree of a rank is rank, rank + 1, ... rank + size - 1.
std::vector<Child> children_of(Rank rank, Rank ranks) {
  std::vector<Child> children;
  for (Rank dist = 1; rank + dist < ranks && (rank & dist) == 0; dist *= 2) {
    children.push_back({rank + dist, std::min(dist, ranks - rank - dist)});
  }
  return children;
}
Rank parent_of(Rank rank) { return rank & (rank - 1); }
Rank subtree_size(Rank rank, Rank ranks) {
  Rank size = 1;
  for (const Child& child : children_of(rank, ranks)) size += child.size;
  return size;
}

void emit_counts(const Call& call, Builder& b) {
  const Rank size = subtree_size(call.rank, call.shared.ranks);
  const Range counts = b.allocate_scratch(size * kCount);
  b.copy(b.scratch(counts.sub({0, kCount})), b.input({0, kCount}));
  for (const Child& child : children_of(call.rank, call.shared.ranks)) {
    const Range all{0, child.size * kCount};
    const Message m = b.wait(child.rank);
    b.copy(b.scratch(counts.sub({(child.rank - call.rank) * kCount, all.length})), b.slot(m, all));
  }
  if (call.rank != 0) b.put(parent_of(call.rank), b.scratch(counts));
  b.next_stage(counts);
}

// Blocks of the subtree lie one after another: in the output at the root, else in scratch.
void emit_blocks(const Call& call, Builder& b) {
  b.allocate_scratch(static_cast<std::int64_t>(call.learned.size()) * kCount);
  const auto sum = [&](Rank first, Rank size) {
    const auto begin = call.learned.begin() + first;
    return std::accumulate(begin, begin + size, std::int64_t{0});
  };
  const auto total = sum(0, static_cast<Rank>(call.learned.size()));
  const bool root = call.rank == 0;
  const Range all = root ? Range{0, total} : b.allocate_scratch(total);
  const auto place = [&](Range range) { return root ? b.output(range) : b.scratch(range); };
  b.copy(place(all.sub({0, sum(0, 1)})), b.input({0, sum(0, 1)}));
  for (const Child& child : children_of(call.rank, call.shared.ranks)) {
    const Range block{sum(0, child.rank - call.rank), sum(child.rank - call.rank, child.size)};
    b.segments(block.length, call.limits.slot_bytes, [&](Range segment) {
      const Message m = b.wait(child.rank);
      b.copy(place(all.sub(block).sub(segment)), b.slot(m, {0, segment.length}));
    });
  }
  if (root) return;
  b.segments(total, call.limits.slot_bytes,
             [&](Range segment) { b.put(parent_of(call.rank), place(all.sub(segment))); });
}

// As an alltoallv in which everybody sends to rank 0 only.
struct Gatherv {
  explicit Gatherv(Rank ranks) : tables(static_cast<std::size_t>(ranks)) {
    call.shared = {.collective = Collective::kAlltoallv, .ranks = ranks};
    call.limits = {.slot_bytes = 128, .inline_bytes = 16};
    for (Rank rank = 0; rank < ranks; ++rank) {
      const std::int64_t bytes = kCount + (rank * 37) % 90;
      Owned& own = tables[static_cast<std::size_t>(rank)];
      for (auto& table : own) table.resize(static_cast<std::size_t>(ranks));
      own[0][0] = bytes;
      Bytes input(static_cast<std::size_t>(bytes));
      for (std::size_t i = 0; i < input.size(); ++i) {
        input[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank));
      }
      std::memcpy(input.data(), &bytes, sizeof bytes);
      inputs.push_back(input);
      expected.insert(expected.end(), input.begin(), input.end());
    }
    std::int64_t offset = 0;
    for (std::size_t rank = 0; rank < tables.size(); ++rank) {
      tables[0][2][rank] = tables[rank][0][0];
      tables[0][3][rank] = offset;
      offset += tables[rank][0][0];
    }
    for (const Owned& own : tables) {
      call.locals.push_back({false, {own[0], own[1], own[2], own[3]}});
    }
  }
  Emit emit() const {
    return [this](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
      const Call own{.shared = call.shared,
                     .local = call.local(rank),
                     .rank = rank,
                     .limits = call.limits,
                     .params = {},
                     .stage = stage,
                     .learned = learned};
      Builder b(own);
      stage == 0 ? emit_counts(own, b) : emit_blocks(own, b);
      return b.finish();
    };
  }

  using Owned = std::array<std::vector<std::int64_t>, 4>;
  std::vector<Owned> tables;
  TeamCall call;
  std::vector<Bytes> inputs;
  Bytes expected;
};

TEST(Stages, LearnRealValues) {
  for (Rank ranks = 1; ranks <= 17; ++ranks) {
    const Gatherv gatherv(ranks);
    for (const std::uint64_t seed : {0, 1, 2}) {
      const auto run =
          interpret(gatherv.call, gatherv.emit(), gatherv.inputs, {}, {.run = {.seed = seed}});
      ASSERT_TRUE(run.ok()) << ranks << " ranks: " << run.status().to_string();
      EXPECT_EQ(run.value().outputs[0], gatherv.expected) << ranks << " ranks";
      EXPECT_EQ(run.value().stats.stages, 2);
    }
  }
}

TEST(Stages, AreProved) {
  for (Rank ranks = 1; ranks <= 32; ++ranks) {
    const Gatherv gatherv(ranks);
    const Report report = verify(gatherv.call, gatherv.emit(), gatherv.inputs);
    EXPECT_TRUE(report.ok()) << ranks << " ranks: " << report.status.to_string();
    EXPECT_EQ(report.stats.stages, 2);
  }
}

TEST(Stages, VerifyNeedsTheInputs) {
  const Gatherv gatherv(3);
  const Report report = verify(gatherv.call, gatherv.emit());
  EXPECT_EQ(report.status.message(),
            "rank 1, end of stage 0: a stage learns from the input; verify needs input bytes");
}

// Rank 1 lies about its count in stage 1: too short a block.
TEST(Stages, ErrorsNameTheStage) {
  const Gatherv gatherv(3);
  const Emit honest = gatherv.emit();
  const Emit lies = [&](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
    std::vector<std::int64_t> values(learned.begin(), learned.end());
    if (rank == 1 && stage == 1) values[0] -= 1;
    return honest(rank, stage, values);
  };
  const Report report = verify(gatherv.call, lies, gatherv.inputs);
  EXPECT_NE(report.status.message().find("rank 0, stage 1, strand 0"), std::string_view::npos)
      << report.status.message();
}

}  // namespace
}  // namespace carillon
