// SPDX-License-Identifier: Apache-2.0
//
// exscan.recursive_doubling: as scan.recursive_doubling, but the prefix begins with the first lower
// partner's partial result and leaves the rank's own part out.
//
// Source: the textbook prefix on a hypercube, for any number of ranks.
//
// 5 ranks (prefix | partial result; 01 stands for x0 (op) x1):
//            0        1         2          3            4
//   start    |0       |1        |2         |3           |4
//   step 0   |01      0|01      |23        2|23         |4
//   step 1   |0123    0|.       01|.       012|.        |4
//   step 2   .        0         01         012          0123
//
// Cost: log2 P (alpha + n beta + up to 2 n gamma).
// Restrictions: none.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/prefix.h"

namespace carillon {

void emit_exscan_recursive_doubling(const Call& call, Builder& b) {
  const std::int64_t bytes = call.shared.block_bytes();
  const std::int64_t segment = call.segment_bytes();
  const Range scratch = b.allocate_scratch(std::min(bytes, segment));
  b.segments(bytes, segment, [&](Range s) {
    const Buffer combined = b.scratch({scratch.offset, s.length});
    bool has_prefix = false;
    double_prefixes(call, b, s, combined,
                    [&](const Buffer& theirs, const Buffer& partial, bool later) {
                      // In place the output is the input, which is then used no more.
                      if (later) b.reduce(combined, theirs, partial);
                      if (has_prefix) {
                        b.reduce(b.output(s), theirs, b.output(s));
                      } else {
                        b.copy(b.output(s), theirs);
                      }
                      has_prefix = true;
                      return combined;
                    });
  });
}

}  // namespace carillon
