// SPDX-License-Identifier: Apache-2.0
//
// Where a leader gathers the blocks of all nodes, and how they come from there to the node's ranks.
#pragma once

#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"

namespace carillon {

/// All blocks, node by node: the output, or, at a leader where that is not the ranks' order,
/// scratch.
class NodeOrder {
 public:
  NodeOrder(const Call& call, Builder& b, const Levels& levels)
      : b_(b),
        levels_(levels),
        shared_(call.shared),
        reorders_(!levels.in_rank_order() && levels.is_leader()),
        store_(b.allocate_scratch(reorders_ ? shared_.block_bytes() * shared_.ranks : 0)) {}

  [[nodiscard]] Buffer operator()(Range range) const {
    return reorders_ ? b_.scratch(store_.sub(range)) : b_.output(range);
  }
  /// They are all there: sorts them, and gives them to the others of the node.
  void finish() const {
    const std::int64_t block = shared_.block_bytes();
    if (reorders_) {
      BufferList sorted;
      for (std::int32_t node = 0; node < levels_.nodes(); ++node) {
        for (const Rank rank : levels_.members(node)) sorted.add(b_.output({block * rank, block}));
      }
      b_.copy(sorted, (*this)({0, block * shared_.ranks}));
    }
    if (levels_.is_alone()) return;
    const std::int64_t total = shared_.count * shared_.ranks;
    levels_.on_node(Algorithm::kAfter, total, b_.output({}), b_.output({}));
  }

 private:
  Builder& b_;
  const Levels& levels_;
  const Shared& shared_;
  bool reorders_;
  Range store_;
};

}  // namespace carillon
