// SPDX-License-Identifier: Apache-2.0
//
// Closed forms of exchanges in rounds in which ranks do not all do the same: parts that differ,
// lists that wrap around. They are computed rank by rank, round by round.
#include <algorithm>
#include <vector>

#include "machine/model_team.h"

namespace carillon::machine {
namespace {

// Ranks that follow one another, in parts of which the first ones are one rank longer.
class Group {
 public:
  Group(std::int64_t first, std::int64_t size, std::int64_t most)
      : first_(first), count_(std::min(size, most)), each_(size / count_), longer_(size % count_) {}

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t size(std::int64_t part) const {
    return each_ + (part < longer_ ? 1 : 0);
  }
  [[nodiscard]] std::int64_t start(std::int64_t part) const {
    return first_ + part * each_ + std::min(part, longer_);
  }
  [[nodiscard]] std::int64_t part_of(std::int64_t rank) const {
    const std::int64_t place = rank - first_, shorter = longer_ * (each_ + 1);
    return place < shorter ? place / (each_ + 1) : longer_ + (place - shorter) / each_;
  }
  // Who has the other part's partial result for that rank: who is in its place, or, for the last
  // rank of a longer part, one of the shorter one by turns.
  [[nodiscard]] std::int64_t source(std::int64_t rank, std::int64_t part) const {
    const std::int64_t own = part_of(rank), place = rank - start(own);
    return start(part) + (place < size(part) ? place : own % size(part));
  }
  // In the order in which it sends.
  [[nodiscard]] std::vector<std::int64_t> readers(std::int64_t rank) const {
    const std::int64_t own = part_of(rank), place = rank - start(own);
    std::vector<std::int64_t> list;
    for (std::int64_t step = 1; step < count_; ++step) {
      const std::int64_t part = (own + step) % count_;
      if (place < size(part)) list.push_back(start(part) + place);
    }
    for (std::int64_t part = 0; part < count_; ++part) {
      const std::int64_t end = start(part) + size(part);
      if (size(part) > size(own) && source(end - 1, own) == rank) list.push_back(end - 1);
    }
    return list;
  }

 private:
  std::int64_t first_, count_, each_, longer_;
};

// One round of allreduce.recursive_multiplying, of a rank's group: it puts, then reduces in the
// order of the parts.
struct Member {
  std::int64_t rank = 0;
  Group group;
  bool is_first = false;  // round of the rank: it has nothing but its input
};

// By depth from the whole team on, who is in a group there.
std::vector<std::vector<Member>> members_by_depth(std::int32_t ranks, std::int64_t most) {
  std::vector<std::vector<Member>> depths;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::int64_t first = 0, size = ranks;
    for (std::size_t depth = 0; size > 1; ++depth) {
      const Group group(first, size, most);
      const std::int64_t own = group.part_of(rank);
      first = group.start(own);
      size = group.size(own);
      if (depths.size() <= depth) depths.emplace_back();
      depths[depth].push_back({rank, group, size == 1});
    }
  }
  return depths;
}

// Bruck's exchange among the ranks first, first + 1, ... of a team: blocks go to those before.
class Bruck {
 public:
  Bruck(Team& team, const ModelCall& call, std::int32_t first, const BlockBytes& block)
      : team_(team), call_(call), first_(first), owners_(call.ranks - first), block_(block) {}

  // `from`: where a rank's own block is at first; it is copied to the output if that is not there.
  void run(std::int32_t radix, From from) {
    for (std::int64_t have = 1; have < owners_; have *= radix) {
      const auto digits = std::min<std::int64_t>(radix - 1, (owners_ - 1) / have);
      const bool all_at_once = have * block_(0, 1) <= call_.inline_bytes;
      const auto ahead = std::min<std::int64_t>(digits, all_at_once ? digits : call_.large_slots);
      for (std::int64_t digit = 1; digit < digits + ahead; ++digit) {
        if (digit <= digits) put(have, digit, have == 1 ? from : From::kOutput);
        if (digit >= ahead) take(have, digit - ahead + 1);
      }
      if (have > 1 || from == From::kOutput) continue;
      for (std::int64_t owner = 0; owner < owners_; ++owner) {
        team_.way().copy(team_.host(first_ + owner), block_(owner, owner + 1));
      }
    }
  }
  // The most blocks that a message may have.
  static std::int64_t most_blocks(std::int64_t owners, std::int32_t radix) {
    std::int64_t have = 1;
    while (have * radix < owners) have *= radix;
    return have;
  }

 private:
  // The blocks of owner, owner + 1, ... around the ring, in one run or two.
  struct Run {
    std::int64_t bytes = 0;
    std::int32_t entries = 1;
  };
  [[nodiscard]] Run run_of(std::int64_t owner, std::int64_t have, std::int64_t digit) const {
    const std::int64_t end = owner + std::min(have, owners_ - digit * have);
    if (end <= owners_ || call_.bytes == 0) return {block_(owner, std::min(end, owners_)), 1};
    return {block_(owner, owners_) + block_(0, end - owners_), 2};
  }
  void put(std::int64_t have, std::int64_t digit, From from) {
    for (std::int64_t owner = 0; owner < owners_; ++owner) {
      const std::int64_t to = (owner + owners_ - digit * have % owners_) % owners_;
      const Run run = run_of(owner, have, digit);
      team_.send(first_ + owner, first_ + to, run.bytes, from, run.entries);
    }
  }
  void take(std::int64_t have, std::int64_t digit) {
    for (std::int64_t owner = 0; owner < owners_; ++owner) {
      const std::int64_t from = (owner + digit * have) % owners_;
      const Run run = run_of(from, have, digit);
      team_.take(first_ + owner, first_ + from);
      team_.way().copy(team_.host(first_ + owner), run.bytes, run.entries);
    }
  }

  Team& team_;
  const ModelCall& call_;
  std::int64_t first_, owners_;
  const BlockBytes& block_;
};

// Down a tree of radix 8, a block to each rank but the root.
constexpr std::int64_t kScatterRadix = 8;

void scatter(Team& team, std::int64_t ranks, const BlockBytes& block) {
  std::int64_t whole = 1;
  while (whole < ranks) whole *= kScatterRadix;
  for (std::int64_t v = 0; v < ranks; ++v) {
    std::int64_t reach = v == 0 ? whole : 1;
    while (v != 0 && v % (reach * kScatterRadix) == 0) reach *= kScatterRadix;
    for (std::int64_t distance = reach / kScatterRadix; distance > 0; distance /= kScatterRadix) {
      for (std::int64_t each = kScatterRadix - 1; each > 0; --each) {
        const std::int64_t child = v + each * distance;
        if (child >= ranks) continue;
        const std::int64_t bytes = block(child - 1, std::min(child + distance, ranks) - 1);
        const From from = v == 0 ? From::kInput : From::kOutput;
        team.send(v, child, bytes, from);
        team.take(child, v);
        team.way().copy(team.host(child), bytes);
      }
    }
  }
}

// allreduce.recursive_multiplying of so many bytes, whose partial results gather at `sums`; ranks
// have begun.
class Multiplying {
 public:
  Multiplying(const ModelCall& call, std::int32_t k, std::int64_t bytes, From sums)
      : bytes_(bytes),
        sums_(sums),
        depths_(members_by_depth(
            call.ranks, bytes <= call.inline_bytes ? k : std::min(k, call.large_slots + 1))) {}

  void run(Team& team) const {
    for (auto depth = depths_.rbegin(); depth != depths_.rend(); ++depth) {
      for (const Member& each : *depth) {
        for (const std::int64_t reader : each.group.readers(each.rank)) {
          team.send(each.rank, reader, bytes_, each.is_first ? From::kInput : sums_);
        }
      }
      for (const Member& each : *depth) {
        const std::int64_t own = each.group.part_of(each.rank);
        for (std::int64_t part = 0; part < each.group.count(); ++part) {
          if (part != own) team.take(each.rank, each.group.source(each.rank, part));
          if (part > 0) team.way().reduce(team.host(each.rank), bytes_);
        }
      }
    }
  }

 private:
  std::int64_t bytes_;
  From sums_;
  std::vector<std::vector<Member>> depths_;
};

}  // namespace

std::int64_t allreduce_recursive_multiplying_ps(const Machine& machine, const ModelCall& call) {
  const Multiplying multiplying(call, call.k, call.bytes, From::kOutput);
  Team team(machine, call);
  return team.last_ps([&] {
    team.begin(call.bytes);
    multiplying.run(team);
    team.end(call.bytes);
  });
}

// With a rank on each node.
std::int64_t reduce_scatter_block_through_all_ps(const Machine& machine, const ModelCall& call) {
  constexpr std::int32_t kParts = 3;
  const std::int64_t all = call.bytes * call.ranks;
  const Multiplying multiplying(call, kParts, all, From::kScratch);
  Team team(machine, call);
  return team.last_ps([&] {
    team.begin(all);
    multiplying.run(team);
    for (std::int64_t rank = 0; rank < call.ranks; ++rank) {
      team.way().copy(team.host(rank), call.bytes);
    }
    team.end(call.bytes);
  });
}

std::int64_t bcast_scatter_bruck_ps(const Machine& machine, const ModelCall& call) {
  const BlockBytes block(call, call.ranks - 1);
  Team team(machine, call);
  Bruck exchange(team, call, 1, block);
  return team.last_ps([&] {
    team.way().begin(team.host(0), call.bytes);
    scatter(team, call.ranks, block);
    exchange.run(std::min(call.k, call.ranks - 1), From::kOutput);
    for (std::int64_t v = 1; v < call.ranks; ++v) team.way().end(team.host(v), call.bytes);
  });
}

std::int64_t allgather_bruck_ps(const Machine& machine, const ModelCall& call) {
  const BlockBytes block(call, call.ranks, call.ranks);
  Team team(machine, call);
  Bruck exchange(team, call, 0, block);
  return team.last_ps([&] {
    team.begin(call.bytes);
    exchange.run(call.k, From::kInput);
    team.end(call.bytes * call.ranks);
  });
}

std::int64_t longest_of_bruck(const ModelCall& call) {
  return call.bytes * Bruck::most_blocks(call.ranks, call.k);
}

std::int64_t longest_of_scatter_bruck(const ModelCall& call) {
  std::int64_t reach = 1;
  while (reach * kScatterRadix < call.ranks) reach *= kScatterRadix;
  const std::int64_t owners = call.ranks - 1;
  return BlockBytes(call, owners)(0, 1) *
         std::max(reach, Bruck::most_blocks(owners, std::max(call.k, 2)));
}

}  // namespace carillon::machine
