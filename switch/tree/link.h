// SPDX-License-Identifier: Apache-2.0
//
// One direction of a wire with the MAC and PHY at its ends: what is sent in a cycle can be taken so
// many cycles later, and waits there until it is. Who sends and who takes may be different threads,
// as long as neither does while pass() is called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "switch/frames/frames.h"

namespace carillon::tree {

/// A number of cycles, or a cycle.
using Cycles = std::int64_t;
inline constexpr Cycles kNever = std::numeric_limits<Cycles>::max();
inline constexpr std::size_t kWordBytes = 8;

/// What a port moves in a cycle. keep: a bit per byte that is there.
struct Word {
  std::uint64_t data = 0;
  std::uint8_t keep = 0;
  bool last = false;  ///< of a frame
};

class Link {
 public:
  explicit Link(Cycles delay) : delay_(delay) {}

  [[nodiscard]] Cycles delay() const { return delay_; }

  // For the sender; cycles ascend.
  void send(Cycles cycle, const Word& word) {
    sent_.push_back({cycle + delay_, word});
    last_sent_ = cycle;
  }
  /// Word by word from that cycle on. The first cycle after it.
  Cycles send(Cycles cycle, const rtl::Bytes& frame);
  /// The cycle in which the last word was sent; -1: none was.
  [[nodiscard]] Cycles last_sent() const { return last_sent_; }

  // For who takes it.
  /// When the next word is there; kNever: none has been sent.
  [[nodiscard]] Cycles next() const { return at_ < there_.size() ? there_[at_].cycle : kNever; }
  [[nodiscard]] const Word& front() const { return there_[at_].word; }
  void pop() { ++at_; }
  /// Words that wait in that cycle.
  [[nodiscard]] std::size_t waiting(Cycles cycle) const;

  /// What has been sent so far can be taken when it is there.
  void pass();

 private:
  struct Timed {
    Cycles cycle = 0;
    Word word;
  };

  Cycles delay_;
  Cycles last_sent_ = -1;
  std::vector<Timed> sent_, there_;
  std::size_t at_ = 0;  // those before have been taken
};

/// Puts words together again.
class FrameReader {
 public:
  /// Whether the frame is whole: frame() is it, until the next word comes.
  bool add(const Word& word);
  /// Whether the next word is a frame's first.
  [[nodiscard]] bool begins() const { return whole_ || frame_.empty(); }
  [[nodiscard]] const rtl::Bytes& frame() const { return frame_; }

 private:
  rtl::Bytes frame_;
  bool whole_ = false;
};

/// What ports and switches do in one stretch of cycles, each for itself.
class Node {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  /// The first cycle in which it has something to do, if nothing else is sent to it.
  [[nodiscard]] virtual Cycles next() const = 0;
  /// Goes through the cycles from begin to before end. Nothing that is sent to it in these comes in
  /// these.
  virtual void run(Cycles begin, Cycles end) = 0;
};

}  // namespace carillon::tree
