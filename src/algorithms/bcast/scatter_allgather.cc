// SPDX-License-Identifier: Apache-2.0
//
// bcast.scatter_allgather: the root scatters the vector down a binomial tree, block v to vrank v,
// then a ring allgather. What a rank already has from passing it on in the scatter is not sent
// to it again.
//
// Source: van de Geijn's broadcast; Thakur, Rabenseifner, Gropp 2005.
//
// 5 ranks, root 0, blocks a b c d e:
//                  0        1        2        3        4
//   start          abcde    .        .        .        .
//   scatter        abcde    b        cd       d        e
//   ring, step 0   abcde    ab       bcd      cd       de
//   ring, step 1   abcde    ab..e    abcd     bcd      cde
//   ring, step 3   abcde    abcde    abcde    abcde    abcde
//
// Cost: (ceil(log2 P) + P - 1) alpha + 2 (P-1)/P n beta.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/segments.h"
#include "algorithms/common/vector_scatter.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_bcast_scatter_allgather(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  const Vranks vranks{ranks, call.shared.root};
  const Knomial tree{ranks, 2};
  const Rank v = vranks.vrank(call.rank);
  const Blocks blocks(call.shared.count, call.shared.element_bytes, ranks);

  b.phase("scatter");
  scatter_vector(call, b, tree, vranks, blocks, 0);

  b.phase("allgather");
  const RingNeighbours ring = ring_neighbours(v, ranks);
  const auto needs = [&](Rank vrank, Rank block) {  // not held since the scatter
    return wrap(block - vrank, ranks) >= tree.span(vrank);
  };
  for (const int step : b.steps(ranks - 1)) {
    const Rank give = wrap(v - step, ranks);
    const Rank get = wrap(v - step - 1, ranks);
    const Range out = needs(ring.right, give) ? blocks[give] : Range{};
    const Range in = needs(v, get) ? blocks[get] : Range{};
    exchange(
        b, out.length, in.length, call.segment_bytes(),
        [&](Range s) {
          const Range part = out.sub(s);
          b.put(vranks.rank(ring.right), v == 0 ? b.input(part) : b.output(part));
        },
        [&](Range s) {
          const Message m = b.wait(vranks.rank(ring.left), s.length);
          b.copy(b.output(in.sub(s)), b.slot(m, Range{0, s.length}));
        });
  }
}

}  // namespace carillon
