// SPDX-License-Identifier: Apache-2.0
//
// "To everybody else": one message all of them read, or a plain pair message where there is only
// one other rank (cheaper: no counting of readers).
#pragma once

#include "algorithms/common/vrank.h"
#include "schedule/builder.h"

namespace carillon {

inline void put_others(const Call& call, Builder& b, const BufferList& src) {
  if (call.shared.ranks == 2) {
    b.put(1 - call.rank, src);
  } else {
    b.put_all(src);
  }
}

/// The next message `peer` put to the others; `bytes` as for Builder::wait.
inline Message wait_other(const Call& call, Builder& b, Rank peer,
                          std::int64_t bytes = Builder::kUnknown) {
  return call.shared.ranks == 2 ? b.wait(peer, bytes) : b.wait_all(peer, bytes);
}

/// The others, by step 0, ..., ranks - 2, in the order in which what they put to all arrives: where
/// that is a message for each reader (Builder::put_all), the rank before this one first.
inline Rank other_in_turn(const Call& call, const Builder& b, Rank step) {
  if (!b.reaches_all()) return wrap(std::int64_t{call.rank} - 1 - step, call.shared.ranks);
  return step < call.rank ? step : step + 1;
}

}  // namespace carillon
