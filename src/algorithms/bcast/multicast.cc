// SPDX-License-Identifier: Apache-2.0
//
// bcast.multicast: the root sends each segment once, and the network copies it to every process.
//
// Source: Mamidala, Chai, Jin, Panda, "Efficient SMP-aware MPI-level broadcast over InfiniBand's
// hardware multicast", 2006: what their design is compared with.
//
// 5 ranks, root 1, two segments a b:
//            0      1      2      3      4
//   start    .      ab     .      .      .
//   step 0   a      ab     a      a      a
//   step 1   ab     ab     ab     ab     ab
//
// Cost: alpha + n beta, whatever the number of ranks; a node of p ranks takes p copies from its
// network card.
// Restrictions: the team has multicast.
#include "algorithms/catalogue.h"

namespace carillon {

void emit_bcast_multicast(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  b.segments(shared.block_bytes(), call.multicast_segment_bytes(), [&](Range s) {
    if (call.rank == shared.root) {
      b.multicast(Channel::kTeam, b.input(s));
    } else {
      b.receive(Channel::kTeam, shared.root, b.output(s));
    }
  });
}

}  // namespace carillon
