// SPDX-License-Identifier: Apache-2.0
#include "predict/symmetry.h"

#include <algorithm>
#include <array>
#include <bit>

#include "algorithms/common/knomial.h"
#include "algorithms/common/vrank.h"

namespace carillon::predict {
namespace {

using sim::Symmetry;
using enum Symmetry::Peers;

std::int64_t only_class(Rank /*rank*/) { return 0; }

// Everybody does the same, with peers at the same distances around the ring.
Symmetry ring(const Call& /*call*/) { return {kTurned, only_class}; }

// The same, if the vector can be cut into equal blocks.
Symmetry ring_of_blocks(const Call& call) {
  return call.shared.count % call.shared.ranks == 0 ? ring(call) : Symmetry{};
}

// A rank of a chain has two neighbours, or one at an end.
Symmetry chain(const Call& call) {
  const Vranks vranks{call.shared.ranks, call.shared.root};
  return {kTurned, [vranks](Rank rank) {
            const Rank v = vranks.vrank(rank);
            return std::int64_t{v == 0 ? 0 : v == vranks.ranks - 1 ? 2 : 1};
          }};
}

// Where a rank's parent and children are follows from how far away the parent is and how many ranks
// there are below.
Symmetry tree(const Call& call, Rank radix) {
  const Vranks vranks{call.shared.ranks, call.shared.root};
  const Knomial tree{call.shared.ranks, radix};
  return {kTurned, [=](Rank rank) {
            const Rank v = vranks.vrank(rank);
            const std::int64_t above = v == 0 ? 0 : v - tree.parent(v);
            return above << 32 | tree.span(v);
          }};
}
Symmetry binomial(const Call& call) { return tree(call, 2); }
Symmetry knomial(const Call& call) { return tree(call, call.params.k); }
Symmetry degree_k(const Call& call) { return tree(call, call.params.k + 1); }

// Where the vector has to go on from rank 0 to the root, these two are like nobody else.
Symmetry reduce_degree_k(const Call& call) {
  return call.shared.commutative || call.shared.root == 0 ? degree_k(call) : Symmetry{};
}

// Partners differ in one bit of their numbers, where no rank is left over.
Symmetry hypercube(const Call& call) {
  const bool whole = std::has_single_bit(static_cast<std::uint32_t>(call.shared.ranks));
  return whole ? Symmetry{kFlipped, only_class} : Symmetry{};
}
Symmetry hypercube_of_blocks(const Call& call) {
  return call.shared.count % call.shared.ranks == 0 ? hypercube(call) : Symmetry{};
}

struct Row {
  std::string_view id;
  Symmetry (*of)(const Call& call);
};
constexpr std::array kRows = {
    Row{"barrier.dissemination", ring},
    Row{"barrier.degree_k", degree_k},
    Row{"bcast.binomial", binomial},
    Row{"bcast.knomial", knomial},
    Row{"bcast.chain", chain},
    Row{"reduce.degree_k", reduce_degree_k},
    Row{"allreduce.degree_k", degree_k},
    Row{"allreduce.recursive_doubling", hypercube},
    Row{"allreduce.reduce_scatter_allgather", hypercube_of_blocks},
    Row{"allreduce.ring", ring_of_blocks},
    Row{"allreduce.switch", ring},
    Row{"allgather.ring", ring},
    Row{"alltoall.pairwise", ring},
};

}  // namespace

Symmetry symmetry_of(const Algorithm& algorithm, const Call& call) {
  const auto* const row = std::find_if(kRows.begin(), kRows.end(),
                                       [&](const Row& each) { return each.id == algorithm.id; });
  const bool apart =
      call.limits.nodes != nullptr && call.limits.nodes->count() == call.shared.ranks;
  if (row == kRows.end() || !apart || call.local.in_place || call.shared.ranks < 2) return {};
  return row->of(call);
}

}  // namespace carillon::predict
