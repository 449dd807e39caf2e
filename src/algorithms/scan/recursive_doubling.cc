// SPDX-License-Identifier: Apache-2.0
//
// scan.recursive_doubling: in step i ranks that differ in bit i exchange the partial results of
// their groups of 2^i (common/prefix.h). A lower partner's is put in front of the prefix; both
// sides join their groups' for the next step, as long as somebody needs them.
//
// Source: the textbook prefix on a hypercube, for any number of ranks.
//
// 5 ranks (prefix | partial result; 01 stands for x0 (op) x1):
//            0        1         2          3            4
//   start    0|0      1|1       2|2        3|3          4|4
//   step 0   0|01     01|01     2|23       23|23        4|4
//   step 1   0|0123   01|.      012|.      0123|.       4|4
//   step 2   0        01        012        0123         01234
//
// Cost: log2 P (alpha + n beta + up to 2 n gamma).
// Restrictions: none.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/prefix.h"

namespace carillon {

void emit_scan_recursive_doubling(const Call& call, Builder& b) {
  const std::int64_t bytes = call.shared.block_bytes();
  const std::int64_t segment = call.segment_bytes();
  const Range scratch = b.allocate_scratch(std::min(bytes, segment));
  b.segments(bytes, segment, [&](Range s) {
    const Buffer combined = b.scratch({scratch.offset, s.length});
    Buffer prefix = b.input(s);
    double_prefixes(call, b, s, combined,
                    [&](const Buffer& theirs, const Buffer& partial, bool later) {
                      const bool same = partial == prefix;  // only lower partners so far
                      if (!same && later) b.reduce(combined, theirs, partial);
                      b.reduce(b.output(s), theirs, prefix);
                      prefix = b.output(s);
                      return same ? prefix : combined;
                    });
    b.copy(b.output(s), prefix);
  });
}

}  // namespace carillon
