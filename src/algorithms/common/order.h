// SPDX-License-Identifier: Apache-2.0
//
// Reductions with a fixed operand order.
#pragma once

#include "schedule/builder.h"

namespace carillon {

/// dst <- a (op) b with the lower ranks' part on the left.
inline void reduce_pair(Builder& b, const Buffer& dst, const Buffer& mine, const Buffer& theirs,
                        bool theirs_is_lower) {
  if (theirs_is_lower) {
    b.reduce(dst, theirs, mine);
  } else {
    b.reduce(dst, mine, theirs);
  }
}

/// dst <- ((x0 (op) x1) (op) x2) (op) ..., x_i = operand(i), which may wait for a message. The
/// parts before this rank's own operand gather in `prefix`, which may be dst itself unless dst
/// is the memory of the own operand.
template <typename Operand>
void reduce_in_rank_order(Builder& b, Rank ranks, Rank own, const Buffer& dst, const Buffer& prefix,
                          Operand operand) {
  Buffer sum = operand(0);
  for (Rank i = 1; i < ranks; ++i) {
    const Buffer right = operand(i);
    const Buffer& target = i < own ? prefix : dst;
    b.reduce(target, sum, right);
    sum = target;
  }
}

}  // namespace carillon
