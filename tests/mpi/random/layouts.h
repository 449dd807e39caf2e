// SPDX-License-Identifier: Apache-2.0
//
// Random datatypes of a given signature, and what each of their bytes is.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rng.h"
#include "support.h"

namespace mpi_test {

/// A predefined datatype, or one of MPI_Type_create_f90_*.
struct Basic {
  enum class Number : std::uint8_t { kInteger, kFloat, kBool, kNone };
  const char* name = "";
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::int64_t extent = 0;
  Number number = Number::kNone;
  int number_bytes = 0;                   // of each number in it
  std::vector<std::pair<int, int>> runs;  // offset and length of what counts in it
};
const std::vector<Basic>& basics();

/// What a datatype is made of, in order: indices of basics().
using Unit = std::vector<int>;

struct Entry {
  int basic = 0;
  std::int64_t offset = 0;
};

/// A committed datatype.
struct Layout {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool derived = false;
  std::vector<Entry> map;
  std::int64_t extent = 0;
  std::string text;

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> span() const;  // first byte, end
};

/// Whether some byte is in two of `elements` elements.
bool overlaps(const Layout& layout, int elements);

/// A datatype of `units` units, as it comes.
Layout make_layout(Random& random, const Unit& unit, int units);
/// The same, whose elements, so many of them, overlap nowhere.
Layout make_apart(Random& random, const Unit& unit, int units, int elements);
/// The same type, whose displacements are addresses, for MPI_BOTTOM.
Layout at_address(const Layout& layout, const void* address);
void free_layout(Layout& layout);

}  // namespace mpi_test
