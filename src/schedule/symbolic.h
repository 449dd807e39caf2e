// SPDX-License-Identifier: Apache-2.0
//
// SymbolicMemory: the verifier's memory. A byte is "byte i of expression e" or undefined; moving
// bytes moves that, reduce makes new expressions. Says no to undefined reads, operands that do not
// belong together, overlap within an op, and unordered accesses of strands.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "schedule/expression.h"
#include "schedule/interval_map.h"
#include "schedule/layout.h"
#include "schedule/machine.h"
#include "schedule/ordering.h"

namespace carillon {

/// The byte at address a is byte a + delta of the expression.
struct Symbol {
  Node node = 0;
  std::int64_t delta = 0;
  bool operator==(const Symbol&) const = default;
};

class SymbolicMemory final : public Memory {
 public:
  /// A piece of real memory, for overlap checks.
  struct Extent {
    Region region = Region::kInput;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  SymbolicMemory() = default;
  /// `inputs`: real bytes for stages to learn from; may be empty.
  SymbolicMemory(const TeamCall& call, std::span<const std::vector<std::byte>> inputs) {
    begin(call, inputs);
  }
  /// What a new one would be, in the memory that is there.
  void begin(const TeamCall& call, std::span<const std::vector<std::byte>> inputs);

  Status begin_stage(Rank rank, const Schedule& schedule) override;
  Status copy(Site site, std::span<const Piece> dst, std::span<const Piece> src) override;
  Status reduce(Site site, const Piece& dst, const Piece& left, const Piece& right) override;
  Status capture(Site site, std::span<const Piece> src, Payload* payload) override;
  Status arrive(Site site, Payload payload) override;
  Status deliver(Site site, std::span<const Piece> dst, Payload payload) override;
  Status combine(Payload left, Payload right) override;
  void follow(Payload message, Payload other) override;
  void discard(Payload payload) override;
  Status learn(Rank rank, Range scratch, std::vector<std::int64_t>* values) override;

  /// The rank's output space as it is now.
  [[nodiscard]] const IntervalMap<Symbol>& output(Rank rank) const;
  [[nodiscard]] const Expressions& expressions() const { return expressions_; }
  [[nodiscard]] const Ordering& ordering() const { return ordering_; }

 private:
  // `length` bytes that are bytes index, index + 1, ... of the expression.
  struct Run {
    Node node = 0;
    std::int64_t index = 0;
    std::int64_t length = 0;
  };
  struct State {
    Layout layout;
    std::array<IntervalMap<Symbol>, kRegions> regions;
    IntervalMap<char> writable;  // of the output (where there are tables: what they name)
    std::vector<std::int64_t> counts;

    void begin(const Layout& of) {
      layout = of;
      for (auto& region : regions) region.clear();
      writable.clear();
      counts.clear();
    }
  };
  struct Letter {
    IntervalMap<Symbol> bytes;
    std::int64_t length = 0;
    Clock clock;
  };

  State& state(Rank rank) { return states_[static_cast<std::size_t>(rank)]; }
  void add_rank(const TeamCall& call, Rank rank);
  [[nodiscard]] Place place(Rank rank, const Piece& piece);
  Status read(Site site, const Piece& piece, std::vector<Run>* runs);
  Status look_up(Rank rank, const Piece& piece, std::vector<Run>* runs);
  Result<std::span<const std::byte>> real_bytes(const Run& run) const;
  Status write(Site site, std::span<const Piece> dst, std::span<const Run> runs);
  Status note_access(Site site, const Piece& piece, bool write);
  Status check_copy(Rank rank, std::span<const Piece> dst, std::span<const Piece> src);
  Status check_disjoint(Rank rank, std::span<const Piece> dst);
  Status combine(std::span<const Run> left, std::span<const Run> right, std::vector<Run>* result);
  static void fill(Letter& letter, std::span<const Run> runs);

  std::int64_t element_bytes_ = 1;
  std::span<const std::vector<std::byte>> inputs_;
  Expressions expressions_;
  Ordering ordering_;
  std::vector<State> states_;
  std::vector<Letter> letters_;
  std::vector<Payload> free_;
  // Of the op being executed.
  std::vector<Run> left_, right_, result_;
  std::vector<Extent> written_, read_;
};

}  // namespace carillon
