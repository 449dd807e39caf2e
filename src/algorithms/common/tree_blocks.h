// SPDX-License-Identifier: Apache-2.0
//
// Scatter down and gather up a tree of positions (common/node_tree.h): a rank has its subtree's
// blocks as one run. Short runs are passed on straight from the slots they arrived in; longer ones
// are stored.
#pragma once

#include <algorithm>
#include <vector>

#include "algorithms/common/blocks.h"
#include "algorithms/common/node_tree.h"
#include "algorithms/common/segments.h"

namespace carillon {

template <typename Tree>
class TreeBlocks {
 public:
  TreeBlocks(const Call& call, Builder& b, const Tree& tree)
      : call_(call),
        b_(b),
        tree_(tree),
        v_(tree.position(call.rank)),
        block_(call.shared.block_bytes()),
        segment_(call.segment_bytes()) {}

  void scatter() {
    if (block_ == 0) return;
    if (v_ == 0) {
      scatter_at_root();
    } else if (total() <= segment_) {
      pass_on();
    } else {
      store_and_pass_on();
    }
  }

  void gather() {
    if (block_ == 0) return;
    if (v_ == 0) {
      gather_at_root();
      return;
    }
    const bool is_short = total() <= segment_;  // one message: nothing to store
    const Range store = b_.allocate_scratch(is_short ? 0 : total() - block_);
    Pieces run;
    run.add(b_.input(own()));
    for (const Rank child : tree_.children(v_)) {
      const Rank peer = tree_.rank(child);
      const std::int64_t bytes = block_ * tree_.span(child);
      if (is_short) {
        run.add(b_.slot(b_.wait(peer, bytes), Range{0, bytes}));
        continue;
      }
      const Range part = stored(store, child);
      b_.segments(bytes, segment_, [&](Range s) {
        const Message m = b_.wait(peer, s.length);
        b_.copy(b_.scratch(part.sub(s)), b_.slot(m, Range{0, s.length}));
      });
    }
    if (!is_short) run.add(b_.scratch(store));
    segments_around(b_, total(), segment_, run.breaks(),
                    [&](Range s) { b_.put(parent(), run.slice(s)); });
  }

 private:
  [[nodiscard]] std::int64_t total() const { return block_ * tree_.span(v_); }
  [[nodiscard]] Range own() const { return {0, block_}; }
  [[nodiscard]] Rank parent() const { return tree_.rank(tree_.parent(v_)); }
  /// The largest subtree first: it has the longest way to go.
  [[nodiscard]] std::vector<Rank> largest_first() const {
    std::vector<Rank> children = tree_.children(v_);
    std::reverse(children.begin(), children.end());
    return children;
  }
  /// A child's run, in the memory of all that are below this rank.
  [[nodiscard]] Range stored(Range store, Rank child) const {
    return {store.offset + block_ * (child - v_ - 1), block_ * tree_.span(child)};
  }
  /// A child's run of the root's blocks.
  template <typename Side>
  [[nodiscard]] Pieces run_of(Rank child, Side side) const {
    const Blocks blocks = Blocks::per_rank(call_);
    Pieces pieces;
    for (const RankRun& run : tree_.runs(child)) {
      pieces.add(side(blocks.span(run.first, run.first + run.count)));
    }
    return pieces;
  }

  void scatter_at_root() {
    for (const Rank child : largest_first()) {
      const Pieces run = run_of(child, [&](Range range) { return b_.input(range); });
      segments_around(b_, run.length(), segment_, run.breaks(),
                      [&](Range s) { b_.put(tree_.rank(child), run.slice(s)); });
    }
    b_.copy(b_.output(own()), b_.input(Blocks::per_rank(call_)[call_.rank]));
  }
  void pass_on() {
    const Message m = b_.wait(parent(), total());
    for (const Rank child : largest_first()) {
      b_.put(tree_.rank(child), b_.slot(m, {block_ * (child - v_), block_ * tree_.span(child)}));
    }
    b_.copy(b_.output(own()), b_.slot(m, own()));
  }
  void store_and_pass_on() {
    const Range store = b_.allocate_scratch(total() - block_);
    Pieces run;
    run.add(b_.output(own()));
    run.add(b_.scratch(store));
    segments_around(b_, total(), segment_, run.breaks(), [&](Range s) {
      const Message m = b_.wait(parent(), s.length);
      b_.copy(run.slice(s), b_.slot(m, Range{0, s.length}));
    });
    for (const Rank child : largest_first()) {
      const Range part = stored(store, child);
      b_.segments(part.length, segment_,
                  [&](Range s) { b_.put(tree_.rank(child), b_.scratch(part.sub(s))); });
    }
  }

  void gather_at_root() {
    b_.copy(b_.output(Blocks::per_rank(call_)[call_.rank]), b_.input(own()));
    for (const Rank child : tree_.children(0)) {
      const Pieces run = run_of(child, [&](Range range) { return b_.output(range); });
      segments_around(b_, run.length(), segment_, run.breaks(), [&](Range s) {
        const Message m = b_.wait(tree_.rank(child), s.length);
        b_.copy(run.slice(s), b_.slot(m, Range{0, s.length}));
      });
    }
  }

  const Call& call_;
  Builder& b_;
  Tree tree_;
  Rank v_;
  std::int64_t block_, segment_;
};

}  // namespace carillon
