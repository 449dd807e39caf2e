// SPDX-License-Identifier: Apache-2.0
//
// Where a rank reduces its own block of a vector that it puts to others at the same time.
#pragma once

#include "algorithms/catalogue.h"

namespace carillon {

/// The output, or, in place, where that lies over blocks that are still to be put, scratch.
class OwnSum {
 public:
  OwnSum(const Call& call, Builder& b, std::int64_t bytes)
      : b_(b),
        bytes_(bytes),
        in_place_(call.local.in_place),
        scratch_(b.allocate_scratch(in_place_ ? bytes : 0)) {}

  [[nodiscard]] Buffer operator()(Range part) const {
    return in_place_ ? b_.scratch(scratch_.sub(part)) : b_.output(part);
  }
  /// All is reduced and all is put.
  void finish() const {
    const Range whole{0, bytes_};
    b_.copy(b_.output(whole), (*this)(whole));
  }

 private:
  Builder& b_;
  std::int64_t bytes_;
  bool in_place_;
  Range scratch_;
};

}  // namespace carillon
