// SPDX-License-Identifier: Apache-2.0
//
// Closed forms of what goes by recursive halving and doubling where ranks do not all do the same:
// blocks that differ, teams that are folded to a power of two, and what goes to rank 0. They are
// computed rank by rank.
#include <algorithm>
#include <vector>

#include "machine/model_team.h"

namespace carillon::machine {
namespace {

// Recursive halving of a vector, then the way back: a gather to rank 0, or recursive doubling. Of
// as many of the call's vectors end to end; ranks have begun.
class Halving {
 public:
  // Where rank 0, and all others, gather partial results.
  struct Sums {
    From first, others;
  };
  Halving(Team& team, const ModelCall& call, std::int64_t vectors, Sums sums)
      : team_(team),
        bytes_(call.bytes * vectors),
        fold_(call.ranks),
        block_(call, fold_.size, vectors),
        sums_(sums) {
    std::vector<Run> runs(static_cast<std::size_t>(fold_.size), Run{0, fold_.size});
    for (std::int64_t mask = 1; mask < fold_.size; mask *= 2) {
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const std::int64_t middle = (runs[i].first + runs[i].last) / 2;
        const bool upper = (static_cast<std::int64_t>(i) & mask) != 0;
        (upper ? runs[i].first : runs[i].last) = middle;
      }
      kept_.push_back(runs);
    }
  }

  void halve() {
    for (std::int64_t i = 0; i < fold_.extras; ++i) {
      team_.send(fold_.base(i) + 1, fold_.base(i), bytes_, From::kInput);
      take(i, fold_.base(i) + 1, bytes_, true);
    }
    for (std::size_t step = 0; step < kept_.size(); ++step) {
      for (std::int64_t i = 0; i < fold_.size; ++i) {
        const bool untouched = step == 0 && i >= fold_.extras;
        send(i, mask(step), kept(step, i ^ mask(step)), untouched ? From::kInput : sums(i));
      }
      for (std::int64_t i = 0; i < fold_.size; ++i) {
        take(i, fold_.base(i ^ mask(step)), kept(step, i), true);
      }
    }
  }
  // Of those that still gather, half send what they have to the others.
  void gather() {
    for (std::size_t step = kept_.size(); step-- > 0;) {
      for (std::int64_t i = 0; i < mask(step); ++i) {
        const std::int64_t partner = i ^ mask(step);
        send(partner, mask(step), kept(step, partner), sums(partner));
        take(i, fold_.base(partner), kept(step, partner), false);
      }
    }
  }
  void double_back() {
    for (std::size_t step = kept_.size(); step-- > 0;) {
      for (std::int64_t i = 0; i < fold_.size; ++i) send(i, mask(step), kept(step, i), sums(i));
      for (std::int64_t i = 0; i < fold_.size; ++i) {
        const std::int64_t partner = i ^ mask(step);
        take(i, fold_.base(partner), kept(step, partner), false);
      }
    }
    for (std::int64_t i = 0; i < fold_.extras; ++i) {
      const std::int64_t extra = fold_.base(i) + 1;
      team_.send(fold_.base(i), extra, bytes_, sums(i));
      team_.take(extra, fold_.base(i));
      team_.way().copy(team_.host(extra), bytes_);
    }
  }

 private:
  struct Run {  // of blocks
    std::int64_t first = 0, last = 0;
  };

  static std::int64_t mask(std::size_t step) { return std::int64_t{1} << step; }
  [[nodiscard]] From sums(std::int64_t index) const {
    return index == 0 ? sums_.first : sums_.others;
  }
  // What the base index keeps in that step.
  [[nodiscard]] std::int64_t kept(std::size_t step, std::int64_t index) const {
    const Run run = kept_[step][static_cast<std::size_t>(index)];
    return block_(run.first, run.last);
  }
  // Blocks of nothing are not sent.
  void send(std::int64_t index, std::int64_t mask, std::int64_t bytes, From from) {
    if (bytes > 0) team_.send(fold_.base(index), fold_.base(index ^ mask), bytes, from);
  }
  void take(std::int64_t index, std::int64_t from, std::int64_t bytes, bool reduces) {
    if (bytes == 0) return;
    team_.take(fold_.base(index), from);
    Host* const host = team_.host(fold_.base(index));
    reduces ? team_.way().reduce(host, bytes) : team_.way().copy(host, bytes);
  }

  Team& team_;
  std::int64_t bytes_;
  FoldedRanks fold_;
  BlockBytes block_;
  Sums sums_;
  std::vector<std::vector<Run>> kept_;  // by step and base index
};

// A k-nomial tree whose root is rank 0.
struct KnomialTree {
  std::int64_t ranks, radix;

  [[nodiscard]] std::int64_t reach(std::int64_t v) const {
    std::int64_t reach = 1;
    if (v == 0) {
      while (reach < ranks) reach *= radix;
    } else {
      while (v % (reach * radix) == 0) reach *= radix;
    }
    return reach;
  }
  [[nodiscard]] std::int64_t parent(std::int64_t v) const {
    const std::int64_t above = reach(v) * radix;
    return v / above * above;
  }
  // How many ranks are in its subtree.
  [[nodiscard]] std::int64_t span(std::int64_t v) const { return std::min(reach(v), ranks - v); }
  [[nodiscard]] std::vector<std::int64_t> children(std::int64_t v) const {
    std::vector<std::int64_t> list;
    for (std::int64_t distance = 1; distance < reach(v); distance *= radix) {
      for (std::int64_t each = 1; each < radix && v + each * distance < ranks; ++each) {
        list.push_back(v + each * distance);
      }
    }
    return list;
  }
};

// reduce.degree_k to rank 0.
void reduce_up(Team& team, const KnomialTree& tree, std::int64_t bytes) {
  for (std::int64_t v = tree.ranks - 1; v >= 0; --v) {
    for (const std::int64_t child : tree.children(v)) {
      team.take(v, child);
      team.way().reduce(team.host(v), bytes);
    }
    if (v > 0)
      team.send(v, tree.parent(v), bytes, tree.span(v) > 1 ? From::kScratch : From::kInput);
  }
}

// scatter.knomial of what rank 0 has in scratch memory.
void scatter_down(Team& team, const KnomialTree& tree, std::int64_t block) {
  for (std::int64_t v = 0; v < tree.ranks; ++v) {
    if (v > 0) team.take(v, tree.parent(v));
    const std::vector<std::int64_t> children = tree.children(v);
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      const From from = v == 0 ? From::kScratch : From::kSlot;
      team.send(v, *child, block * tree.span(*child), from);
    }
    team.way().copy(team.host(v), block);
  }
}

}  // namespace

std::int64_t reduce_reduce_scatter_gather_ps(const Machine& machine, const ModelCall& call) {
  Team team(machine, call);
  Halving halving(team, call, 1, {From::kOutput, From::kScratch});
  return team.last_ps([&] {
    team.begin(call.bytes);
    halving.halve();
    halving.gather();
    team.way().end(team.host(0), call.bytes);
  });
}

std::int64_t allreduce_unequal_halves_ps(const Machine& machine, const ModelCall& call) {
  Team team(machine, call);
  Halving halving(team, call, 1, {From::kOutput, From::kOutput});
  return team.last_ps([&] {
    team.begin(call.bytes);
    halving.halve();
    halving.double_back();
    team.end(call.bytes);
  });
}

// With a rank on each node.
std::int64_t reduce_scatter_block_through_root_ps(const Machine& machine, const ModelCall& call) {
  constexpr std::int64_t kFewBytes = 8192, kFewestBytes = 512;
  const std::int64_t all = call.bytes * call.ranks;
  const bool up_a_tree = all <= kFewBytes && !call.two_sided;
  const KnomialTree up{call.ranks, all <= kFewestBytes ? 5 : 4}, down{call.ranks, 4};
  Team team(machine, call);
  Halving halving(team, call, call.ranks, {From::kScratch, From::kScratch});
  return team.last_ps([&] {
    team.begin(all);
    if (up_a_tree) {
      reduce_up(team, up, all);
    } else {
      halving.halve();
      halving.gather();
    }
    scatter_down(team, down, call.bytes);
    team.end(call.bytes);
  });
}

// Groups of base ranks exchange the blocks of all ranks that they stand for.
std::int64_t allgather_folded_doubling_ps(const Machine& machine, const ModelCall& call) {
  const FoldedRanks fold(call.ranks);
  const std::int64_t all = call.bytes * call.ranks;
  Team team(machine, call);
  const auto take = [&](std::int64_t rank, std::int64_t from, std::int64_t bytes) {
    team.take(rank, from);
    team.way().copy(team.host(rank), bytes);
  };
  return team.last_ps([&] {
    team.begin(call.bytes);
    for (std::int64_t i = 0; i < fold.extras; ++i) {
      team.send(fold.base(i) + 1, fold.base(i), call.bytes, From::kInput);
      team.way().copy(team.host(fold.base(i)), call.bytes);
      take(fold.base(i), fold.base(i) + 1, call.bytes);
    }
    for (std::int64_t mask = 1; mask < fold.size; mask *= 2) {
      for (std::int64_t i = 0; i < fold.size; ++i) {
        const From from = mask == 1 && i >= fold.extras ? From::kInput : From::kOutput;
        team.send(fold.base(i), fold.base(i ^ mask), fold.ranks_of(i, mask) * call.bytes, from);
      }
      for (std::int64_t i = 0; i < fold.size; ++i) {
        take(fold.base(i), fold.base(i ^ mask), fold.ranks_of(i ^ mask, mask) * call.bytes);
        if (mask == 1 && i >= fold.extras) team.way().copy(team.host(fold.base(i)), call.bytes);
      }
    }
    for (std::int64_t i = 0; i < fold.extras; ++i) {
      team.send(fold.base(i), fold.base(i) + 1, all, From::kOutput);
      take(fold.base(i) + 1, fold.base(i), all);
    }
    team.end(all);
  });
}

// The other way around, the furthest partner first.
std::int64_t reduce_scatter_block_folded_halving_ps(const Machine& machine, const ModelCall& call) {
  const FoldedRanks fold(call.ranks);
  const std::int64_t all = call.bytes * call.ranks;
  Team team(machine, call);
  const auto take = [&](std::int64_t index, std::int64_t from, std::int64_t bytes) {
    team.take(fold.base(index), from);
    team.way().reduce(team.host(fold.base(index)), bytes);
  };
  return team.last_ps([&] {
    team.begin(all);
    for (std::int64_t i = 0; i < fold.extras; ++i) {
      team.send(fold.base(i) + 1, fold.base(i), all, From::kInput);
      take(i, fold.base(i) + 1, all);
    }
    for (std::int64_t mask = fold.size / 2; mask > 0; mask /= 2) {
      for (std::int64_t i = 0; i < fold.size; ++i) {
        const bool untouched = mask == fold.size / 2 && i >= fold.extras;
        team.send(fold.base(i), fold.base(i ^ mask), fold.ranks_of(i ^ mask, mask) * call.bytes,
                  untouched ? From::kInput : From::kScratch);
      }
      for (std::int64_t i = 0; i < fold.size; ++i) {
        take(i, fold.base(i ^ mask), fold.ranks_of(i, mask) * call.bytes);
      }
    }
    for (std::int64_t i = 0; i < fold.extras; ++i) {
      const std::int64_t extra = fold.base(i) + 1;
      team.send(fold.base(i), extra, call.bytes, From::kScratch);
      team.way().copy(team.host(fold.base(i)), call.bytes);
      team.take(extra, fold.base(i));
      team.way().copy(team.host(extra), call.bytes);
    }
    team.end(call.bytes);
  });
}

}  // namespace carillon::machine
