// SPDX-License-Identifier: Apache-2.0
//
// allgather.linear: in step i every rank sends its block to the rank i after it and receives that
// of the one i before it where it belongs (common/pairwise_exchange.h): what allgatherv.pairwise
// does with tables. On one node a rank's own block goes where it belongs as it is sent for the last
// time: who writes a message reads it once for both.
//
// Source: the textbook pairwise exchange.
//
// 5 ranks, blocks a b c d e:
//            0       1       2       3       4
//   start    a       b       c       d       e
//   step 1   a...e   ab      bc      cd      de
//   step 2   a..de   ab..e   abc     bcd     cde
//   step 4   abcde   abcde   abcde   abcde   abcde
//
// Cost: (P-1) (alpha + n beta), n: one block.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/pairwise_exchange.h"

namespace carillon {

void emit_allgather_linear(const Call& call, Builder& b) {
  const Blocks blocks = Blocks::per_rank(call);
  const Range own{0, call.shared.block_bytes()};
  const Rank ranks = call.shared.ranks;
  const Rank last = wrap(call.rank - 1, ranks);
  const bool as_sent = call.limits.one_node() && ranks > 1;
  const auto keep = [&] { b.copy(b.output(blocks[call.rank]), b.input(own)); };
  pairwise_steps(
      call, b, steps_at_once(call),
      [&](Rank to) {
        b.send(to, b.input(own));
        if (as_sent && to == last) keep();
      },
      [&] {
        if (!as_sent) keep();
      },
      [&](Rank from) { b.recv(from, b.output(blocks[from])); });
}

}  // namespace carillon
