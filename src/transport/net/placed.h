// SPDX-License-Identifier: Apache-2.0
//
// Messages that are placed: sent from where they stand to where they belong, by the network alone.
// The writer announces one in a line, as it tells of an exposed one (exposure.h). The reader, who
// has come to it, posts receives with its own list and says so; then the writer sends. Nothing is
// posted that is not bound to come, so that receives of all teams may be filled in one order.
//
//   writer                                        reader
//   announces: bytes, cuts        -> line
//                                                 posts receives, one for each part
//                 its block's place of the line <- ready: the first receive's number, parts
//   sends the parts               -> the places of its list
//
// A list that is longer than a post takes is cut. Both have lists, and a part must suit both: the
// writer says where it has to cut its own, the reader adds its cuts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/shm/layout.h"
#include "transport/wire.h"

namespace carillon::net {

/// A longer list is copied together.
inline constexpr std::uint32_t kMostCuts = 7;
inline constexpr std::uint32_t kMostParts = 2 * kMostCuts - 1;

/// Where the parts of a message end.
struct Parts {
  std::array<std::uint32_t, kMostParts> ends = {};
  std::uint32_t count = 0;

  [[nodiscard]] std::uint32_t begin_of(std::uint32_t part) const {
    return part == 0 ? 0 : ends[part - 1];
  }
  /// Told by others: anything.
  [[nodiscard]] bool are_of(std::uint64_t bytes, std::uint32_t most) const;
  /// Do parts end wherever these do?
  [[nodiscard]] bool suit(const Parts& cuts) const;
  [[nodiscard]] Parts with(const Parts& other) const;
};

/// Parts of at most so many entries; none if there are more than kMostCuts.
std::optional<Parts> cut(std::span<const wire::Piece> list, std::size_t most_entries);

/// The bytes [begin, end) of a list.
class Slice {
 public:
  Slice(std::span<const wire::Piece> list, std::uint64_t begin, std::uint64_t end);
  /// As far as they are in so many entries as any network takes.
  [[nodiscard]] std::span<const wire::Piece> pieces() const { return {pieces_.data(), count_}; }

 private:
  std::array<wire::Piece, 32> pieces_;
  std::size_t count_ = 0;
};

/// What the writer tells. Plain data: it travels as bytes.
struct Announcement {
  std::uint64_t bytes = 0;
  std::uint32_t count = 0;
  std::uint32_t cuts[kMostCuts] = {};

  [[nodiscard]] Parts parts() const;
  /// Told by others: anything. `most_bytes`: of a message.
  [[nodiscard]] bool is_sound(std::uint64_t most_bytes) const {
    return count <= kMostCuts && bytes <= most_bytes && parts().are_of(bytes, kMostCuts);
  }
};
static_assert(sizeof(Announcement) <= shm::kInlineBytes);

/// What the reader answers. Plain data.
struct Ready {
  std::uint32_t number = 0;  ///< of the message, the last bits
  std::uint32_t first = 0;   ///< how many receives of what is placed this end posted to it before
  std::uint32_t count = 0;
  std::uint32_t ends[kMostParts] = {};

  [[nodiscard]] Parts parts() const;
  /// Is it the answer to this message? It may have been told again, of an older one.
  [[nodiscard]] bool answers(std::uint64_t message) const {
    return number == static_cast<std::uint32_t>(message);
  }
  /// Of a message of so many bytes, whose writer has to cut it there?
  [[nodiscard]] bool is_of(std::uint64_t bytes, const Parts& cuts) const {
    return count <= kMostParts && parts().are_of(bytes, kMostParts) && parts().suit(cuts);
  }
};
static_assert(sizeof(Ready) == 64);

class Pair;

/// A message on its way to the reader's list.
struct Placed {
  std::vector<wire::Piece> to;  ///< empty: none is
  Parts parts;
  std::uint32_t posted = 0;  ///< of the parts
  std::uint32_t first = 0;
  bool told = false;
  bool in_place = false;  ///< the message may stay there
  int process = -1;       ///< whose it is
  Pair* pair = nullptr;
  std::uint64_t number = 0;
  std::array<wire::Operation, kMostParts> operations;

  [[nodiscard]] bool all_done() const {
    return std::all_of(operations.begin(), operations.begin() + posted,
                       [](const wire::Operation& one) { return one.done(); });
  }
  void start(const Parts& these, bool stays, Pair& of, std::uint64_t message);
  void end() {
    to.clear();
    posted = 0;
  }
};

}  // namespace carillon::net
