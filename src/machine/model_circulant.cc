// SPDX-License-Identifier: Apache-2.0
//
// Closed forms of exchanges over distances that halve around the ring, in which ranks' lists wrap
// around at different places. They are computed rank by rank. Blocks are equal.
#include <algorithm>
#include <vector>

#include "machine/model_team.h"

namespace carillon::machine {
namespace {

// Blocks of the ranks first, ..., last - 1 after `rank`, around the ring: in how many runs they
// lie.
std::int32_t runs_after(std::int64_t rank, std::int64_t first, std::int64_t last,
                        std::int64_t ranks) {
  if (first >= last) return 0;
  const std::int64_t end = ranks - rank;
  return (first < std::min(last, end) ? 1 : 0) + (std::max(first, end) < last ? 1 : 0);
}

// Of `width` blocks that a rank still has, or is to have, some go to the rank half as far around
// the ring. Partial results gather at `sums`, those of rank 0 at `first_sums`.
class Circulant {
 public:
  Circulant(Team& team, std::int64_t ranks, std::int64_t block, From first_sums, From sums)
      : team_(team), ranks_(ranks), block_(block), first_sums_(first_sums), sums_(sums) {
    for (std::int64_t width = ranks_; width > 1; width = half(width)) widths_.push_back(width);
  }

  void reduce_scatter() {
    for (const std::int64_t width : widths_) {
      const std::int64_t kept = half(width), given = width - kept;
      // Up to there blocks have been reduced; the others are in the input.
      const std::int64_t reduced = width == ranks_ ? kept : std::clamp(ranks_ / 2, kept, width);
      for (std::int64_t rank = 0; rank < ranks_; ++rank) {
        const From from = reduced == kept    ? From::kInput
                          : reduced == width ? sums(rank)
                                             : with_input(sums(rank));
        const std::int32_t entries =
            runs_after(rank, kept, reduced, ranks_) + runs_after(rank, reduced, width, ranks_);
        team_.send(rank, (rank + kept) % ranks_, given * block_, from, entries);
      }
      for (std::int64_t rank = 0; rank < ranks_; ++rank) {
        team_.take(rank, (rank + ranks_ - kept) % ranks_);
        const std::int64_t until_end = std::min(given, ranks_ - rank);
        team_.way().reduce(team_.host(rank), until_end * block_);
        team_.way().reduce(team_.host(rank), (given - until_end) * block_);
      }
    }
  }
  void allgather() {
    for (auto width = widths_.rbegin(); width != widths_.rend(); ++width) {
      const std::int64_t have = half(*width), given = *width - have;
      for (std::int64_t rank = 0; rank < ranks_; ++rank) {
        team_.send(rank, (rank + ranks_ - have) % ranks_, given * block_, sums(rank),
                   runs_after(rank, 0, given, ranks_));
      }
      for (std::int64_t rank = 0; rank < ranks_; ++rank) {
        team_.take(rank, (rank + have) % ranks_);
        team_.way().copy(team_.host(rank), given * block_, runs_after(rank, have, *width, ranks_));
      }
    }
  }
  // The blocks, each at its rank, go up a tree to rank 0: those below a rank in one run.
  void gather(std::int64_t radix) {
    std::int64_t whole = 1;
    while (whole < ranks_) whole *= radix;
    for (std::int64_t v = ranks_ - 1; v >= 0; --v) {
      std::int64_t reach = v == 0 ? whole : 1;
      while (v != 0 && v % (reach * radix) == 0) reach *= radix;
      for (std::int64_t distance = 1; distance < reach; distance *= radix) {
        for (std::int64_t child = v + distance; child < v + distance * radix && child < ranks_;
             child += distance) {
          team_.take(v, child);
          team_.way().copy(team_.host(v), std::min(distance, ranks_ - child) * block_);
        }
      }
      if (v == 0) return;
      const std::int64_t above = reach * radix;
      team_.send(v, v / above * above, std::min(reach, ranks_ - v) * block_, sums(v));
    }
  }

 private:
  static std::int64_t half(std::int64_t width) { return width - width / 2; }
  [[nodiscard]] From sums(std::int64_t rank) const { return rank == 0 ? first_sums_ : sums_; }
  static From with_input(From sums) { return sums == From::kOutput ? From::kInputAndOutput : sums; }

  Team& team_;
  std::int64_t ranks_, block_;
  From first_sums_, sums_;
  std::vector<std::int64_t> widths_;
};

}  // namespace

std::int64_t allreduce_circulant_ps(const Machine& machine, const ModelCall& call) {
  Team team(machine, call);
  Circulant circulant(team, call.ranks, call.bytes / call.ranks, From::kOutput, From::kOutput);
  return team.last_ps([&] {
    team.begin(call.bytes);
    circulant.reduce_scatter();
    circulant.allgather();
    team.end(call.bytes);
  });
}

std::int64_t reduce_circulant_ps(const Machine& machine, const ModelCall& call) {
  Team team(machine, call);
  Circulant circulant(team, call.ranks, call.bytes / call.ranks, From::kOutput, From::kScratch);
  return team.last_ps([&] {
    team.begin(call.bytes);
    circulant.reduce_scatter();
    circulant.gather(call.k);
    team.way().end(team.host(0), call.bytes);
  });
}

// With a rank on each node reduce_scatter_block.lanes is the same.
std::int64_t reduce_scatter_block_circulant_ps(const Machine& machine, const ModelCall& call) {
  Team team(machine, call);
  Circulant circulant(team, call.ranks, call.bytes, From::kScratch, From::kScratch);
  return team.last_ps([&] {
    team.begin(call.bytes * call.ranks);
    circulant.reduce_scatter();
    team.end(call.bytes);
  });
}

}  // namespace carillon::machine
