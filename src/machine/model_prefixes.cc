// SPDX-License-Identifier: Apache-2.0
//
// Closed forms of scans: along the ranks, where one message is under way at a time, and by partial
// results that go to partners at distances 1, 2, 4, ..., where ranks do not all do the same. The
// latter are computed rank by rank.
#include "machine/model_team.h"

namespace carillon::machine {
namespace {

enum class Prefix : std::uint8_t { kInclusive, kExclusive };

std::int64_t output_bytes(const ModelCall& call, Prefix prefix, std::int64_t rank) {
  return prefix == Prefix::kExclusive && rank == 0 ? 0 : call.bytes;
}

std::int64_t chain_ps(const Machine& machine, const ModelCall& call, Prefix prefix) {
  Way way(machine, call);
  std::int64_t last = 0, arrival = 0;
  for (std::int32_t rank = 0; rank < call.ranks; ++rank) {
    const bool is_first = rank == 0, is_last = rank + 1 == call.ranks;
    const bool keeps_what_came = prefix == Prefix::kExclusive && !is_first;
    Host host;
    way.begin(&host, call.bytes);
    if (!is_first) way.receive(&host, arrival, call.bytes);
    // Who excludes its own part needs the sum for the next rank only.
    if (!is_first && !(keeps_what_came && is_last)) way.reduce(&host, call.bytes);
    const From sum = keeps_what_came ? From::kScratch : From::kOutput;
    if (!is_last) arrival = way.send(&host, call.bytes, is_first ? From::kInput : sum);
    const bool copies_input = prefix == Prefix::kInclusive && is_first;
    if (copies_input || keeps_what_came) way.copy(&host, call.bytes);
    way.end(&host, output_bytes(call, prefix, rank));
    last = std::max(last, host.cpu_ps);
  }
  return last;
}

// The exchange of partial results: of ranks that differ in one bit, the lower one's is reduced in
// front of what the other one has.
class Doubling {
 public:
  Doubling(const Machine& machine, const ModelCall& call, Prefix prefix)
      : team_(machine, call), call_(call), ranks_(call.ranks), prefix_(prefix) {}

  std::int64_t last_ps() {
    return team_.last_ps([&] {
      ranks_have_.assign(static_cast<std::size_t>(ranks_), {});
      team_.begin(call_.bytes);
      for (std::int64_t distance = 1; distance < ranks_; distance *= 2) {
        for (std::int64_t rank = 0; rank < ranks_; ++rank) put(rank, distance);
        for (std::int64_t rank = 0; rank < ranks_; ++rank) take(rank, distance);
      }
      for (std::int64_t rank = 0; rank < ranks_; ++rank) {
        const bool copies_input = prefix_ == Prefix::kInclusive && !has(rank).prefix;
        if (copies_input) team_.way().copy(team_.host(rank), call_.bytes);
        team_.way().end(team_.host(rank), output_bytes(call_, prefix_, rank));
      }
    });
  }

 private:
  struct Has {
    From partial = From::kInput;  // where the partial result of its group is
    bool prefix = false;          // something is in the output,
    bool same = true;             // which is the partial result, as long as partners were lower
  };
  Has& has(std::int64_t rank) { return ranks_have_[static_cast<std::size_t>(rank)]; }
  // Whether somebody still needs the partial result of the rank's group.
  [[nodiscard]] bool goes_on(std::int64_t rank, std::int64_t distance) const {
    for (std::int64_t d = distance * 2; d < ranks_; d *= 2) {
      if ((rank ^ d) < ranks_) return true;
    }
    return false;
  }
  void put(std::int64_t rank, std::int64_t distance) {
    const std::int64_t partner = rank ^ distance;
    if (partner >= ranks_ || (partner < rank && !goes_on(partner, distance))) return;
    team_.send(rank, partner, call_.bytes, has(rank).partial);
  }
  void take(std::int64_t rank, std::int64_t distance) {
    const std::int64_t partner = rank ^ distance;
    const bool is_lower = rank < partner, later = goes_on(rank, distance);
    if (partner >= ranks_ || (is_lower && !later)) return;
    team_.take(rank, partner);
    Has& mine = has(rank);
    if (is_lower) {
      team_.way().reduce(team_.host(rank), call_.bytes);
      mine.partial = From::kScratch;
      mine.same = false;
    } else if (prefix_ == Prefix::kInclusive) {
      if (!mine.same && later) team_.way().reduce(team_.host(rank), call_.bytes);
      team_.way().reduce(team_.host(rank), call_.bytes);
      mine.partial = mine.same ? From::kOutput : From::kScratch;
      mine.prefix = true;
    } else {
      if (later) team_.way().reduce(team_.host(rank), call_.bytes);
      if (mine.prefix) team_.way().reduce(team_.host(rank), call_.bytes);
      if (!mine.prefix) team_.way().copy(team_.host(rank), call_.bytes);
      mine.partial = From::kScratch;
      mine.prefix = true;
    }
  }

  Team team_;
  const ModelCall& call_;
  std::int64_t ranks_;
  Prefix prefix_;
  std::vector<Has> ranks_have_;
};

}  // namespace

std::int64_t scan_chain_ps(const Machine& machine, const ModelCall& call) {
  return chain_ps(machine, call, Prefix::kInclusive);
}

std::int64_t exscan_chain_ps(const Machine& machine, const ModelCall& call) {
  return chain_ps(machine, call, Prefix::kExclusive);
}

std::int64_t scan_recursive_doubling_ps(const Machine& machine, const ModelCall& call) {
  return Doubling(machine, call, Prefix::kInclusive).last_ps();
}

std::int64_t exscan_recursive_doubling_ps(const Machine& machine, const ModelCall& call) {
  return Doubling(machine, call, Prefix::kExclusive).last_ps();
}

}  // namespace carillon::machine
