// SPDX-License-Identifier: Apache-2.0
//
// The pairwise exchange of blocks that tables describe: in step i every rank sends to the rank i
// after it and receives from the one i before it. Sends and receives are strands of their own: a
// long block holds up neither.
#pragma once

#include "algorithms/common/vrank.h"
#include "schedule/builder.h"

namespace carillon {

inline void exchange_pairwise_by_tables(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  for (const Rank step : b.steps(ranks - 1)) {
    const Rank to = wrap(std::int64_t{call.rank} + step + 1, ranks);
    b.send(to, b.input_of(to));
  }
  b.strand();
  b.copy(b.output_of(call.rank), b.input_of(call.rank));
  for (const Rank step : b.steps(ranks - 1)) {
    const Rank from = wrap(call.rank - step - 1, ranks);
    b.recv(from, b.output_of(from));
  }
}

}  // namespace carillon
