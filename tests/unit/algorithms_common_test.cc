// SPDX-License-Identifier: Apache-2.0
//
// The rank arithmetic of src/algorithms/common, over many team sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "algorithms/common/blocks.h"
#include "algorithms/common/fold.h"
#include "algorithms/common/halving.h"
#include "algorithms/common/knomial.h"
#include "algorithms/common/segments.h"
#include "algorithms/common/vrank.h"

namespace carillon {
namespace {

TEST(Wrap, StaysInTheTeam) {
  EXPECT_EQ(wrap(-1, 5), 4);
  EXPECT_EQ(wrap(5, 5), 0);
  EXPECT_EQ(wrap(-5, 5), 0);
  EXPECT_EQ(wrap(12, 5), 2);
  EXPECT_EQ(wrap(0, 1), 0);
}

TEST(Vranks, AreARotationOfTheRanks) {
  for (Rank root = 0; root < 7; ++root) {
    const Vranks vranks{7, root};
    EXPECT_EQ(vranks.vrank(root), 0);
    for (Rank rank = 0; rank < 7; ++rank) EXPECT_EQ(vranks.rank(vranks.vrank(rank)), rank);
  }
}

TEST(RingNeighbours, CloseARing) {
  for (Rank ranks = 1; ranks <= 9; ++ranks) {
    Rank at = 0;
    for (Rank i = 0; i < ranks; ++i) {
      const Rank next = ring_neighbours(at, ranks).right;
      EXPECT_EQ(ring_neighbours(next, ranks).left, at);
      at = next;
    }
    EXPECT_EQ(at, 0);
  }
}

TEST(Blocks, CoverTheVectorNearlyEvenly) {
  for (std::int64_t count = 0; count <= 40; ++count) {
    for (Rank parts = 1; parts <= 17; ++parts) {
      const Blocks blocks(count, 4, parts);
      std::int64_t end = 0;
      for (Rank i = 0; i < parts; ++i) {
        EXPECT_EQ(blocks[i].offset, end);
        EXPECT_EQ(blocks[i].length % 4, 0);
        EXPECT_GE(blocks[i].length, count / parts * 4);
        EXPECT_LE(blocks[i].length, (count / parts + 1) * 4);
        end += blocks[i].length;
      }
      EXPECT_EQ(end, count * 4);
      EXPECT_EQ(blocks.span(0, parts), (Range{0, count * 4}));
    }
  }
}

TEST(Knomial, SubtreesAreRunsThatCoverTheTeam) {
  for (Rank ranks = 1; ranks <= 70; ++ranks) {
    for (const Rank radix : {2, 3, 4, 7, 100}) {
      const Knomial tree{ranks, radix};
      EXPECT_EQ(tree.parent(0), -1);
      EXPECT_EQ(tree.span(0), ranks);
      for (Rank v = 0; v < ranks; ++v) {
        Rank next = v + 1;  // the children's subtrees follow v, one after another
        for (const Rank child : tree.children(v)) {
          EXPECT_EQ(tree.parent(child), v);
          EXPECT_EQ(child, next);
          next += tree.span(child);
        }
        EXPECT_EQ(next, v + tree.span(v));
      }
    }
  }
}

TEST(Knomial, DepthIsTheLogarithm) {
  for (Rank ranks = 2; ranks <= 300; ++ranks) {
    const Knomial tree{ranks, 4};
    int levels = 0;
    for (std::int64_t reach = 1; reach < ranks; reach *= 4) ++levels;
    for (Rank v = 0; v < ranks; ++v) {
      int depth = 0;
      for (Rank at = v; at != 0; at = tree.parent(at)) ++depth;
      EXPECT_LE(depth, levels);
    }
  }
}

TEST(Fold, BaseRanksCarryRunsOfRanks) {
  for (Rank ranks = 1; ranks <= 40; ++ranks) {
    for (Rank keep = -1; keep < ranks; ++keep) {
      const Fold fold(ranks, keep);
      EXPECT_LE(fold.size(), ranks);
      EXPECT_GT(2 * fold.size(), ranks);
      EXPECT_EQ(fold.first(0), 0);
      EXPECT_EQ(fold.first(fold.size()), ranks);
      EXPECT_FALSE(keep >= 0 && fold.is_extra(keep));
      for (Rank rank = 0; rank < ranks; ++rank) {
        const Rank index = fold.index(rank);
        EXPECT_LE(fold.first(index), rank);
        EXPECT_GT(fold.first(index + 1), rank);
        if (fold.is_extra(rank)) {
          EXPECT_EQ(fold.base(index), Fold::other(rank));
          EXPECT_TRUE(fold.has_extra(Fold::other(rank)));
        } else {
          EXPECT_EQ(fold.base(index), rank);
          EXPECT_EQ(fold.has_extra(rank), fold.first(index + 1) - fold.first(index) == 2);
        }
      }
    }
  }
}

TEST(Halving, PartnersSplitTheSameRunAndBlocksEndUpOnce) {
  for (Rank size = 1; size <= 32; size *= 2) {
    std::set<Rank> owned;
    for (Rank index = 0; index < size; ++index) {
      BlockRun kept{0, size};
      for (const HalvingStep& step : halving_steps(index, size)) {
        const auto theirs = halving_steps(step.partner, size);
        const auto same = std::find_if(theirs.begin(), theirs.end(),
                                       [&](const HalvingStep& s) { return s.mask == step.mask; });
        ASSERT_NE(same, theirs.end());
        EXPECT_EQ(same->partner, index);
        EXPECT_EQ(same->give.first, step.keep.first);
        EXPECT_EQ(same->give.last, step.keep.last);
        EXPECT_EQ(std::min(step.keep.first, step.give.first), kept.first);
        EXPECT_EQ(std::max(step.keep.last, step.give.last), kept.last);
        kept = step.keep;
      }
      EXPECT_EQ(kept.last - kept.first, 1);
      owned.insert(kept.first);
    }
    EXPECT_EQ(owned.size(), static_cast<std::size_t>(size));
  }
}

// The pieces that a loop of segments stands for.
struct Recorder {
  std::int64_t segment;
  std::vector<Range> seen;
  void operator()(Range s) {
    seen.push_back(s);
    EXPECT_LE(s.length, segment);
  }
};

TEST(Exchange, KeepsPutsAndTakesInStep) {
  const Call call{.shared = {.ranks = 2}};
  for (std::int64_t put_bytes = 0; put_bytes <= 13; ++put_bytes) {
    for (std::int64_t take_bytes = 0; take_bytes <= 13; ++take_bytes) {
      Builder b(call);
      Recorder puts{4, {}};
      Recorder takes{4, {}};
      exchange(
          b, put_bytes, take_bytes, 4, [&](Range s) { puts(s); }, [&](Range s) { takes(s); });
      ASSERT_TRUE(b.finish().ok());
      for (const auto& [seen, bytes] :
           {std::pair{&puts.seen, put_bytes}, std::pair{&takes.seen, take_bytes}}) {
        std::int64_t end = 0;
        for (std::size_t i = 0; i < seen->size(); ++i) {
          const Range s = (*seen)[i];
          EXPECT_EQ(s.offset, end);
          // A loop's segments reach to where the next call begins, or are all full.
          const std::int64_t next = i + 1 < seen->size() ? (*seen)[i + 1].offset : bytes;
          end = s.stride == 0 ? s.offset + s.length : next;
          EXPECT_EQ((end - s.offset) % (s.stride == 0 ? 1 : s.stride), 0);
        }
        EXPECT_EQ(end, bytes);
      }
    }
  }
}

TEST(Pieces, SliceAcrossTheirBreaks) {
  const Call call{.shared = {.ranks = 2}};
  const Builder b(call);
  Pieces pieces;
  pieces.add(b.input({100, 6, 0}));
  pieces.add(b.input({0, 0, 0}));
  pieces.add(b.scratch({0, 10, 0}));
  EXPECT_EQ(pieces.length(), 16);
  EXPECT_EQ(pieces.breaks(), (std::vector<std::int64_t>{6}));
  const BufferList list = pieces.slice({4, 5, 0});
  ASSERT_EQ(list.items().size(), 2U);
  EXPECT_EQ(list.items()[0].range, (Range{104, 2, 0}));
  EXPECT_EQ(list.items()[1].range, (Range{0, 3, 0}));
  EXPECT_EQ(pieces.slice({8, 2, 2}).items().front().range, (Range{2, 2, 2}));
}

TEST(Pieces, ThatTouchAreOneWhereAsked) {
  const Call call{.shared = {.ranks = 2}};
  const Builder b(call);
  for (const auto touching : {Pieces::Touching::kApart, Pieces::Touching::kOne}) {
    Pieces pieces(touching);
    for (const std::int64_t offset : {8, 16, 32, 40, 0}) pieces.add(b.input({offset, 8}));
    const BufferList all = pieces.slice({0, 40});
    const bool one = touching == Pieces::Touching::kOne;
    EXPECT_EQ(all.items().size(), one ? 3U : 5U);
    EXPECT_EQ(all.runs(), 3);
    EXPECT_EQ(pieces.breaks().size(), one ? 2U : 4U);
    EXPECT_EQ(pieces.slice({4, 8}).runs(), 1);
  }
}

TEST(SegmentsAround, CutsTheSameSegmentsAndKeepsBreaksOutOfLoops) {
  const Call call{.shared = {.ranks = 2}};
  Builder b(call);
  std::vector<Range> seen;
  segments_around(b, 50, 4, {22, 9, 40}, [&](Range s) { seen.push_back(s); });
  EXPECT_EQ(seen, (std::vector<Range>{{0, 4, 4},   // 0 4
                                      {8, 4, 0},   // holds break 9
                                      {12, 4, 4},  // 12 16
                                      {20, 4, 0},  // holds break 22
                                      {24, 4, 4},  // 24 28 32 36, up to break 40
                                      {40, 4, 4},  // 40 44
                                      {48, 2, 0}}));
}

}  // namespace
}  // namespace carillon
