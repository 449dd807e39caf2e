// SPDX-License-Identifier: Apache-2.0
//
// The pairwise exchange: in step i every rank sends to the rank i after it and receives from the
// one i before it. Sends and receives are strands of their own: a long block holds up neither.
// Between nodes several steps are under way at once, each of both in a strand of its own: a rank
// that is late holds up only what it takes part in, and the others' links stay busy.
#pragma once

#include <algorithm>

#include "algorithms/common/vrank.h"
#include "schedule/builder.h"

namespace carillon {

/// Steps under way at once. More are more messages at once to a rank that is late with its own.
inline constexpr Rank kStepsAtOnce = 4;

inline Rank steps_at_once(const Call& call) { return call.limits.one_node() ? 1 : kStepsAtOnce; }

/// Calls body(step) for the steps 1, ..., last, those that are under way at once in strands of
/// their own.
template <typename Body>
void in_lanes(Builder& b, Rank last, Rank at_once, Body body) {
  const Rank lanes = std::clamp(last, 1, at_once);
  for (Rank lane = 0; lane < lanes; ++lane) {
    if (lane > 0) b.strand();
    for (const Rank turn : b.steps((last - lane + lanes - 1) / lanes)) {
      body(static_cast<Rank>(1 + lane + turn * lanes));
    }
  }
}

/// Calls send(to), and in other strands keep() and receive(from).
template <typename Send, typename Keep, typename Receive>
void pairwise_steps(const Call& call, Builder& b, Rank at_once, Send send, Keep keep,
                    Receive receive) {
  const Rank ranks = call.shared.ranks;
  in_lanes(b, ranks - 1, at_once,
           [&](Rank step) { send(wrap(std::int64_t{call.rank} + step, ranks)); });
  b.strand();
  keep();
  in_lanes(b, ranks - 1, at_once, [&](Rank step) { receive(wrap(call.rank - step, ranks)); });
}

/// source(peer) goes to each peer, and target(peer) is where its block belongs.
template <typename Source, typename Target>
void exchange_pairwise(const Call& call, Builder& b, Source source, Target target) {
  pairwise_steps(
      call, b, steps_at_once(call), [&](Rank to) { b.send(to, source(to)); },
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
