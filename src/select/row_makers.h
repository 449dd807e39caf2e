// SPDX-License-Identifier: Apache-2.0
//
// What rows of the built-in table are written with.
#pragma once

#include "select/rows.h"

namespace carillon::rows {

inline constexpr Rank kFewRanks = 16;  // as many as may all read what one wrote
inline constexpr Rank kAnyRanks = Rule::kAnyRanks;
inline constexpr std::int64_t kAnyBytes = Rule::kAnyBytes;
inline constexpr std::int64_t kKiB = 1024;
inline constexpr Rank kMulticastRanks = 256;  // more have not been tried
inline constexpr std::int32_t kLaneNodes =
    64;  // each rank of which has a message for each other node
inline constexpr std::int32_t kRingNodes = 16;  // around which a long vector may go

inline constexpr bool kByModel = true;

// The row for blocks of so many bytes and more.
constexpr Row from_bytes(std::int64_t least, Row row) {
  row.min_bytes = least;
  return row;
}

// The row for teams of at most, at least or just so many nodes, of nodes none of which has one rank
// where another has more than eight, of as many ranks on each, of at most so many, or of nodes one
// of which has so many times the ranks of another.
constexpr Row on_few_nodes(std::int32_t most, Row row) {
  row.max_nodes = most;
  return row;
}
constexpr Row on_many_nodes(std::int32_t least, Row row) {
  row.min_nodes = least;
  return row;
}
constexpr Row on_nodes(std::int32_t number, Row row) {
  return on_few_nodes(number, on_many_nodes(number, row));
}
constexpr Row on_like_nodes(Row row) {
  row.alike_only = true;
  return row;
}
constexpr Row on_even_nodes(Row row) {
  row.even_only = true;
  return row;
}
constexpr Row on_small_nodes(Rank most, Row row) {
  row.max_ppn = most;
  return row;
}
constexpr Row on_skewed_nodes(Rank least, Row row) {
  row.min_skew = least;
  return row;
}

// The row for teams whose messages between nodes go through sockets.
constexpr Row by_sockets(Row row) {
  row.sockets_only = true;
  return row;
}

}  // namespace carillon::rows
