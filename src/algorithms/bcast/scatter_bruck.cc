// SPDX-License-Identifier: Apache-2.0
//
// bcast.scatter_bruck: the root scatters the vector down an 8-nomial tree, a block to every other
// rank; then these gather all of them by Bruck's exchange (allgather.bruck) of radix k.
//
// Source: van de Geijn's broadcast; Thakur, Rabenseifner, Gropp 2005, with Bruck's allgather in
// place of recursive doubling.
//
// 5 ranks, root 0, blocks a b c d, k = 2:
//            0      1      2      3      4
//   start    abcd   .      .      .      .
//   scatter  abcd   a      b      c      d
//   step 0   abcd   ab     bc     cd     da
//   step 1   abcd   abcd   abcd   abcd   abcd
//
// Cost: (ceil(log_8 P) + ceil(log_k P)) alpha + 2 n beta, and k - 1 messages to post and to take in
// each step of the exchange.
// Restrictions: none. For vectors that are too short for bcast.scatter_direct.
#include <algorithm>
#include <numeric>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/vector_scatter.h"
#include "algorithms/common/vrank.h"
#include "algorithms/registry.h"

namespace carillon {

constexpr Rank kTreeRadix = 8;

void emit_bcast_scatter_bruck(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Rank owners = shared.ranks - 1;
  const Vranks vranks{shared.ranks, shared.root};
  const Blocks blocks(shared.count, shared.element_bytes, owners);
  // How many elements a block has is a weight.
  if (blocks.longest() / shared.element_bytes > INT32_MAX)
    return emit_bcast_scatter_direct(call, b);
  b.phase("scatter");
  const Knomial tree{shared.ranks, kTreeRadix};
  scatter_vector(call, b, tree, vranks, blocks, 1);

  const Rank v = vranks.vrank(call.rank);
  if (v == 0 || owners == 1) return;
  std::vector<Rank> members, elements;
  for (Rank owner = 0; owner < owners; ++owner) {
    members.push_back(vranks.rank(owner + 1));
    elements.push_back(static_cast<Rank>(blocks[owner].length / shared.element_bytes));
  }
  b.phase("allgather");
  emit_on({.shared = {.collective = Collective::kAllgather,
                      .count = 1,
                      .element_bytes = shared.element_bytes,
                      .commutative = shared.commutative},
           .rank = v - 1,
           .members = members,
           .input = b.output(blocks[v - 1]),
           .output = b.output({}),
           .weights = elements},
          {.algorithm = find_algorithm("allgather.bruck"),
           .params = {.k = std::min(call.params.k, owners),
                      .segment_bytes = call.params.segment_bytes,
                      .two_sided = call.params.two_sided}},
          call, b);
}

}  // namespace carillon
