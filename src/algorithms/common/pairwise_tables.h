// SPDX-License-Identifier: Apache-2.0
//
// The pairwise exchange by send and receive: in step i every rank sends to the rank i after it and
// receives from the one i before it. Sends and receives are strands of their own: a long block
// holds up neither.
#pragma once

#include "algorithms/common/vrank.h"
#include "schedule/builder.h"

namespace carillon {

/// Calls send(to), and in the other strand keep() and receive(from).
template <typename Send, typename Keep, typename Receive>
void pairwise_steps(const Call& call, Builder& b, Send send, Keep keep, Receive receive) {
  const Rank ranks = call.shared.ranks;
  for (const Rank step : b.steps(ranks - 1)) {
    send(wrap(std::int64_t{call.rank} + step + 1, ranks));
  }
  b.strand();
  keep();
  for (const Rank step : b.steps(ranks - 1)) receive(wrap(call.rank - step - 1, ranks));
}

/// source(peer) goes to each peer, and target(peer) is where its block belongs.
template <typename Source, typename Target>
void exchange_pairwise(const Call& call, Builder& b, Source source, Target target) {
  pairwise_steps(
      call, b, [&](Rank to) { b.send(to, source(to)); },
      [&] { b.copy(target(call.rank), source(call.rank)); },
      [&](Rank from) { b.recv(from, target(from)); });
}

/// Of blocks that tables describe.
inline void exchange_pairwise_by_tables(const Call& call, Builder& b) {
  exchange_pairwise(
      call, b, [&](Rank peer) { return b.input_of(peer); },
      [&](Rank peer) { return b.output_of(peer); });
}

}  // namespace carillon
