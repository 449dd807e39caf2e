// SPDX-License-Identifier: Apache-2.0
//
// How long who waits for a message leaves its line alone before the first look. A look that comes
// too early takes the line from the cache of the writer, which has to get it back before it can
// write there: the message takes two flights of the line more. Of ranks that enter a collective at
// almost the same time, as after a barrier, all but the last one look too early. So the wait for
// each message of a repeated call learns by when the message is mostly there. Where it always is,
// or where the writer comes much later, nobody tarries (docs/performance.md has the measurement).
#pragma once

#include <algorithm>

namespace carillon {

class Patience {
 public:
  /// Before the first look of a wait; not before those of one that has given up polling meanwhile.
  void leave_alone() const {
    for (int turn = late_ ? turns_ : 0; turn < turns_; ++turn) asm volatile("" : : : "memory");
  }
  /// The message was there at the first look.
  void note_there() {
    if (!late_) turns_ = std::max(turns_ - kShorter, 0);
    late_ = false;
  }
  /// It came after so many more looks: the first one was too early, if that is not many.
  void note_looks(int looks) {
    if (!late_ && looks < kSoon) turns_ = std::min(turns_ + kLonger, kMostTurns);
    late_ = false;
  }
  /// It has not come; the wait goes on later.
  void note_none() { late_ = true; }
  [[nodiscard]] int turns() const { return turns_; }

  /// A turn takes a cycle of the processor; the longest is about two flights between near cores.
  static constexpr int kMostTurns = 400;
  /// As many looks as there are while a line comes back from cores that are far apart.
  static constexpr int kSoon = 80;

 private:
  // One early look for four in time: waiting costs every time, an early look several times as much.
  static constexpr int kLonger = 8, kShorter = 2;
  int turns_ = 0;
  bool late_ = false;  // the message now waited for did not come within the first polls
};

}  // namespace carillon
