// SPDX-License-Identifier: Apache-2.0
//
// bcast.domains: the root writes each segment once; its own NUMA domain and the first rank of each
// other one read it, and that rank writes it once more for its domain. All of a domain read what
// the root has written where that costs less (Limits::domain_costs): few ranks, or few bytes.
// Across nodes the root puts each segment to the first rank of each other domain. Where nothing is
// known of domains, nodes are what it goes by; on one node it is bcast.flat then.
//
// Source: Mamidala, Chai, Jin, Panda, "Efficient SMP-aware MPI-level broadcast over InfiniBand's
// hardware multicast", 2006, has nodes of several memories; one copy for each of them.
//
// 7 ranks in domains 3, 2, 2; root 1, a segment a:
//            0   1   2  |  3   4  |  5   6
//   start    .   a   .     .   .     .   .
//   heads    .   a   .     a   .     a   .
//   domains  a   a   a     a   a     a   a
//
// Cost: alpha + n beta to write, n beta_cross to read at the heads, then alpha + n beta to write
// for a domain: of one segment while the root writes the next. Restrictions: none.
#include "algorithms/common/domains.h"

#include "algorithms/catalogue.h"

namespace carillon {

void emit_bcast_domains(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Domains domains(call, b, shared.root, shared.block_bytes());
  b.segments(shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    if (call.rank == shared.root) {
      domains.put(b.input(s));
      return;
    }
    const Message m = domains.wait(s.length);
    b.copy(b.output(s), b.slot(m, Range{0, s.length}));
    domains.pass_on(b.output(s));
  });
}

}  // namespace carillon
