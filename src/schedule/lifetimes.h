// SPDX-License-Identifier: Apache-2.0
//
// What an engine may do later, or earlier, than a schedule says, because nobody could tell: leave
// the bytes of a put where they are until they are read (they keep their value), or let a message
// land where a copy would bring it anyway.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace carillon {

class Lifetimes {
 public:
  Lifetimes(const Schedule& schedule, const Call& call);

  /// Do the bytes that op `put` captures keep their value until the end of the schedule? Writes
  /// that surely come before it do not count, and neither does `except`. Only memory of the caller:
  /// scratch and slots are used again.
  [[nodiscard]] bool lasts(std::size_t put, const Buffer& source,
                           std::optional<std::size_t> except = {}) const;
  /// The same where it captures a message, or a part of it, that has landed by this copy.
  [[nodiscard]] bool lasts_landed(std::size_t put, const Buffer& slot, std::size_t copy) const;

  /// The ops that may overwrite what op `put` has captured, after it: those that must wait while
  /// somebody still reads it where it stood. Of ops that follow one another only the first.
  [[nodiscard]] std::vector<std::size_t> overwriters(std::size_t put) const;

  /// May what op `send` has captured be overwritten before the peer comes to its recv? Not if other
  /// ranks do what this one does, and this one has had as many messages by then as it had sent.
  [[nodiscard]] bool is_hasty(std::size_t send) const;

  /// The copy that brings all that is read of this wait's message to the output, if the message may
  /// as well stand there from the wait on: nothing looks at those bytes in between, and nothing
  /// changes them while the message is in use.
  [[nodiscard]] std::optional<std::size_t> landing(std::size_t wait) const {
    return landings_[wait];
  }

 private:
  struct Place {
    std::size_t strand = 0;
    std::size_t loop = 0;  // its repeat op + 1; 0: in none
    std::int64_t rounds = 1;
  };
  struct Bytes {
    Region region = Region::kInput;
    bool all = false;  // given by a table: anywhere in that space
    std::int64_t begin = 0, end = 0;
  };
  [[nodiscard]] std::optional<Bytes> bytes_of(const Buffer& buffer, std::int64_t rounds) const;
  [[nodiscard]] std::optional<Bytes> callers_bytes_of(const Buffer& buffer,
                                                      std::int64_t rounds) const;
  [[nodiscard]] static bool meet(const Bytes& a, const Bytes& b);
  [[nodiscard]] bool writes(std::size_t op, const Bytes& bytes) const;
  [[nodiscard]] std::span<const Buffer> written_by(std::size_t op) const;
  [[nodiscard]] bool overwrites(std::size_t op, std::size_t put) const;
  [[nodiscard]] std::optional<std::size_t> find_landing(std::size_t wait) const;
  [[nodiscard]] bool disturbs(std::size_t op, const Buffer& landing, bool reading) const;
  [[nodiscard]] std::optional<std::size_t> first_copy(std::size_t wait) const;

  const Schedule& schedule_;
  Layout layout_;
  std::vector<Place> places_;
  std::vector<std::int64_t> releases_;
  std::vector<std::optional<std::size_t>> landings_;  // by op
};

}  // namespace carillon
