// SPDX-License-Identifier: Apache-2.0
//
// The split of a vector into near-equal blocks of whole elements.
//
//   Blocks(11 elements, 4 parts)   [0 1 2][3 4 5][6 7 8][9 10]
//   Blocks(2 elements, 4 parts)    [0][1][][]
#pragma once

#include <algorithm>

#include "schedule/schedule.h"

namespace carillon {

class Blocks {
 public:
  Blocks(std::int64_t count, std::int32_t element_bytes, Rank parts)
      : each_(count / parts), longer_(count % parts), element_bytes_(element_bytes) {}

  /// One block of shared.count elements per rank, end to end.
  static Blocks per_rank(const Shared& shared) {
    return {shared.count * shared.ranks, shared.element_bytes, shared.ranks};
  }

  /// Bytes of block `part`.
  [[nodiscard]] Range operator[](Rank part) const { return span(part, part + 1); }
  /// Bytes of the blocks first, ..., last-1 together.
  [[nodiscard]] Range span(Rank first, Rank last) const {
    return {start(first), start(last) - start(first)};
  }

 private:
  [[nodiscard]] std::int64_t start(Rank part) const {
    return (each_ * part + std::min<std::int64_t>(part, longer_)) * element_bytes_;
  }

  std::int64_t each_, longer_;  // elements; the first `longer_` blocks have one more
  std::int64_t element_bytes_;
};

}  // namespace carillon
