// SPDX-License-Identifier: Apache-2.0
//
// Alltoallvs with tables that differ from rank to rank: whole calls, their bytes, and what must
// come of them, by an algorithm that is made from tables.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/registry.h"
#include "schedule/interpret.h"
#include "schedule/verify.h"

namespace carillon::test {

// Bytes of the block from one rank to another.
using Lengths = std::function<std::int64_t(Rank from, Rank to)>;

struct Pattern {
  const char* name;
  std::function<Lengths(Rank ranks)> of;
};

inline const std::array<Pattern, 6> kPatterns = {{
    {"uneven",
     [](Rank) -> Lengths { return [](Rank from, Rank to) { return (from * 7 + to * 5) % 11; }; }},
    {"nothing", [](Rank) -> Lengths { return [](Rank, Rank) { return 0; }; }},
    {"one rank has nothing",
     [](Rank ranks) -> Lengths {
       return [=](Rank from, Rank to) {
         return from == ranks / 2 || to == ranks / 2 ? 0 : 3 + (from + 2 * to) % 5;
       };
     }},
    {"one rank sends all",
     [](Rank ranks) -> Lengths {
       return [=](Rank from, Rank to) { return from == ranks / 3 ? 1 + to % 4 : 0; };
     }},
    {"one rank gets all",
     [](Rank ranks) -> Lengths {
       return [=](Rank from, Rank to) { return to == ranks / 3 ? 1 + from % 4 : 0; };
     }},
    {"one long block",
     [](Rank ranks) -> Lengths {
       return [=](Rank from, Rank to) {
         return from == 0 && to == ranks - 1 ? 5000 : (from + to) % 3;
       };
     }},
}};

// The whole call, its bytes, and what must come of it.
class UnevenExchange {
 public:
  /// k: the algorithm's; 0: its default.
  UnevenExchange(std::string_view algorithm, Rank ranks, const Lengths& lengths,
                 const Limits& limits, std::int32_t k = 0)
      : algorithm_(*find_algorithm(algorithm)),
        lengths_(lengths),
        k_(k),
        tables_(static_cast<std::size_t>(ranks)) {
    call_.shared = {.collective = Collective::kAlltoallv, .ranks = ranks};
    call_.limits = limits;
    for (Rank rank = 0; rank < ranks; ++rank) add(rank);
    for (const Owned& own : tables_) {
      call_.locals.push_back({false, {own[0], own[1], own[2], own[3]}});
    }
  }

  [[nodiscard]] Report proved() const { return verify(call_, emitter()); }
  [[nodiscard]] Result<Interpretation> interpreted(std::uint64_t seed) const {
    return interpret(call_, emitter(), inputs_, {}, {.run = {.seed = seed}, .fill = kFill});
  }
  /// What the ranks do, by rank and stage.
  [[nodiscard]] std::map<std::pair<Rank, std::int32_t>, Schedule> schedules() const {
    std::map<std::pair<Rank, std::int32_t>, Schedule> all;
    const Report report =
        verify(call_, [&](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
          const Result<Schedule> schedule = emitted(rank, stage, learned);
          if (schedule.ok()) all.insert_or_assign({rank, stage}, schedule.value());
          return schedule;
        });
    EXPECT_TRUE(report.ok()) << report.status.to_string();
    return all;
  }
  [[nodiscard]] const std::vector<Bytes>& expected() const { return expected_; }
  /// What rank 0 is told about the length of the block from `from`.
  void lie(Rank from, std::int64_t bytes) { tables_[0][2][static_cast<std::size_t>(from)] = bytes; }
  [[nodiscard]] Result<Schedule> emitted(Rank rank, std::int32_t stage,
                                         std::span<const std::int64_t> learned) const {
    return emit(algorithm_, {.shared = call_.shared,
                             .local = call_.local(rank),
                             .rank = rank,
                             .limits = call_.limits,
                             .params = {.k = k_},
                             .stage = stage,
                             .learned = learned});
  }

 private:
  using Owned = std::array<std::vector<std::int64_t>, 4>;
  static constexpr std::byte kFill{0xEE};

  static std::byte byte_of(Rank from, Rank to, std::int64_t i) {
    return static_cast<std::byte>((from * 31 + to * 17 + i * 3) % 251);
  }
  void add(Rank rank) {
    Owned& own = tables_[static_cast<std::size_t>(rank)];
    Bytes input, output;
    for (Rank peer = 0; peer < call_.shared.ranks; ++peer) {
      const std::int64_t out = lengths_(rank, peer), in = lengths_(peer, rank);
      input.insert(input.end(), 2, kFill);  // gaps
      output.insert(output.end(), 1, kFill);
      own[0].push_back(out);
      own[1].push_back(static_cast<std::int64_t>(input.size()));
      own[2].push_back(in);
      own[3].push_back(static_cast<std::int64_t>(output.size()));
      for (std::int64_t i = 0; i < out; ++i) input.push_back(byte_of(rank, peer, i));
      for (std::int64_t i = 0; i < in; ++i) output.push_back(byte_of(peer, rank, i));
    }
    const Local local{.in_place = false, .tables = {own[0], own[1], own[2], own[3]}};
    input.resize(static_cast<std::size_t>(input_bytes(call_.shared, local, rank)));
    output.resize(static_cast<std::size_t>(output_bytes(call_.shared, local, rank)));
    inputs_.push_back(input);
    expected_.push_back(output);
  }
  [[nodiscard]] Emit emitter() const {
    return [this](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
      return emitted(rank, stage, learned);
    };
  }

  const Algorithm& algorithm_;
  Lengths lengths_;
  std::int32_t k_;
  std::vector<Owned> tables_;
  TeamCall call_;
  std::vector<Bytes> inputs_, expected_;
};

}  // namespace carillon::test
