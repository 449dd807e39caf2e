// SPDX-License-Identifier: Apache-2.0
//
// The oracle's operators, as the interpreter takes them.
#pragma once

#include <algorithm>

#include "schedule/interpret.h"
#include "support/oracle.h"

namespace carillon::test {

/// Of elements of 8 bytes; its result may stand where an operand does.
inline Operator operator_of(const Shared& shared) {
  const auto apply = shared.commutative ? apply_sum : apply_affine;
  return
      [apply](std::byte* dst, const std::byte* left, const std::byte* right, std::int64_t bytes) {
        Bytes result(right, right + bytes);
        apply(left, result.data(), result.size() / 8);
        std::ranges::copy(result, dst);
      };
}

}  // namespace carillon::test
