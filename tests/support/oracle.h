// SPDX-License-Identifier: Apache-2.0
//
// What a collective must produce, computed straight from its definition, with data that depend on
// rank and index, so that a wrong offset, a wrong rank and a wrong order all show.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/problem.h"

namespace carillon::test {

using Bytes = std::vector<std::byte>;

/// One problem of a team; the tables' counts derive from the ranks.
struct Case {
  Shared shared;
  bool in_place = false;  ///< asked for wherever MPI allows it

  [[nodiscard]] bool in_place_at(Rank rank) const {
    return in_place && in_place_allowed(shared, rank);
  }
};

/// Owns the tables of one rank: uneven blocks, some of them empty, in order, with a gap before each
/// where MPI lets a program say where they are.
struct OwnedTables {
  OwnedTables(const Case& problem, Rank rank);
  std::vector<std::int64_t> send_bytes, send_offsets, recv_bytes, recv_offsets;
  [[nodiscard]] Tables view() const { return {send_bytes, send_offsets, recv_bytes, recv_offsets}; }
};

/// The element operators of the tests, on 8-byte elements. Both are associative; `affine`, the
/// composition of x -> a x + b modulo 2^32, does not commute.
void apply_sum(const void* left, void* right, std::size_t count);
void apply_affine(const void* left, void* right, std::size_t count);

/// The input of `rank`, not in place.
Bytes input_of(const Case& problem, Rank rank);
/// The output of `rank`; bytes of gaps are kUntouched. Empty if the rank has none.
Bytes expected_output(const Case& problem, Rank rank);
inline constexpr std::byte kUntouched{0xA5};

}  // namespace carillon::test
