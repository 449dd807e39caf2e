// SPDX-License-Identifier: Apache-2.0
//
// Folding a team to a power of two. The first ranks pair up; one of each pair is the *extra*: it
// hands its data to the other, its *proxy*, and gets the result from it. Proxies and the unpaired
// ranks are the *base*: they run the algorithm, by base index. Pairs are neighbours, so that what
// a base rank carries is a run of ranks, and the runs ascend with the index.
//
//   7 ranks:   0 1 | 2 3 | 4 5 | 6      rank 0 is proxy of 1, 2 of 3, 4 of 5
//   index:      0     1     2    3
#pragma once

#include "schedule/problem.h"

namespace carillon {

class Fold {
 public:
  /// `keep` is made a base rank whatever its position (a root); -1: nobody in particular.
  explicit Fold(Rank ranks, Rank keep = -1) : keep_(keep) {
    while (size_ * 2 <= ranks) size_ *= 2;
    extras_ = ranks - size_;
  }

  /// Number of base ranks, a power of two.
  [[nodiscard]] Rank size() const { return size_; }
  [[nodiscard]] Rank index(Rank rank) const {
    return rank < 2 * extras_ ? rank / 2 : rank - extras_;
  }
  /// The rank behind a base index.
  [[nodiscard]] Rank base(Rank index) const {
    return index < extras_ ? 2 * index + upper(index) : index + extras_;
  }
  [[nodiscard]] bool is_extra(Rank rank) const { return base(index(rank)) != rank; }
  [[nodiscard]] bool has_extra(Rank rank) const { return rank < 2 * extras_ && !is_extra(rank); }
  /// The extra of a proxy, the proxy of an extra.
  [[nodiscard]] static Rank other(Rank rank) { return rank ^ 1; }
  /// First of the ranks that base index carries; index may be size().
  [[nodiscard]] Rank first(Rank index) const {
    return index < extras_ ? 2 * index : index + extras_;
  }

 private:
  // Whether the upper rank of the pair is the proxy.
  [[nodiscard]] Rank upper(Rank index) const { return keep_ == 2 * index + 1 ? 1 : 0; }

  Rank size_ = 1;
  Rank extras_ = 0;
  Rank keep_;
};

}  // namespace carillon
