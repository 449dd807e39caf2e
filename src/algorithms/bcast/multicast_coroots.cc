// SPDX-License-Identifier: Apache-2.0
//
// bcast.multicast_coroots: the root sends each segment once, and the network copies it to every
// process. One in k processes, a co-root, gets it a second time, by puts down a binomial tree of
// the co-roots, and keeps that for those in its care.
//
// Source: MVAPICH 1.2, multicast over InfiniBand's unreliable datagrams: a co-root would send to
// processes in its care what they miss. Here the transport sees to that (docs/multicast.md), so
// that the copies are not needed: for comparing.
//
// 7 ranks, root 0, k = 3:          who has the data   who has it twice
//   0 -> all                       0 1 2 3 4 5 6      0
//   0 -> 6                         0 1 2 3 4 5 6      0           6
//   0 -> 3                         0 1 2 3 4 5 6      0     3     6
//
// Cost: alpha + n beta to everybody; ceil(log2 (P/k)) (alpha + s beta) more at co-roots.
// Restrictions: the team has multicast.
#include <algorithm>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/common/knomial.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_bcast_multicast_coroots(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Vranks vranks{shared.ranks, shared.root};
  const Rank k = call.params.k;
  const Rank v = vranks.vrank(call.rank);
  const Knomial tree{(shared.ranks - 1) / k + 1, 2};
  const auto coroot = [&](Rank place) { return vranks.rank(place * k); };
  const bool is_coroot = v % k == 0;
  std::vector<Rank> children = is_coroot ? tree.children(v / k) : std::vector<Rank>{};
  std::reverse(children.begin(), children.end());
  const std::int64_t segment = call.multicast_segment_bytes();
  const Range kept =
      is_coroot && v > 0 ? b.allocate_scratch(std::min(segment, shared.block_bytes())) : Range{};
  b.segments(shared.block_bytes(), segment, [&](Range s) {
    if (v == 0) {
      b.multicast(Channel::kTeam, b.input(s));
      for (const Rank child : children) b.put(coroot(child), b.input(s));
      return;
    }
    b.receive(Channel::kTeam, shared.root, b.output(s));
    if (!is_coroot) return;
    const Message m = b.wait(coroot(tree.parent(v / k)), s.length);
    const Buffer arrived = b.slot(m, Range{0, s.length});
    for (const Rank child : children) b.put(coroot(child), arrived);
    b.copy(Builder::scratch({kept.offset, s.length}), arrived);
  });
}

}  // namespace carillon
