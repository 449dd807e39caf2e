// SPDX-License-Identifier: Apache-2.0
//
// A switch that passes frames on to where they are for, as a model: as quick as the hardware is,
// which is measured (measure_forwarding), but not its registers. It stores frames and forwards
// them.
//
// One frame at a time, as the hardware does: whose turn it is goes round the ports, which keep
// frames enough that the next one is there when the one before has left, and is decided when there
// is room among those on their way out. Or as switches at line rate do: a frame leaves as soon as
// it is there and its port is free.
#pragma once

#include <deque>
#include <vector>

#include "base/status.h"
#include "switch/tree/link.h"

namespace carillon::tree {

/// Of the hardware, in cycles.
struct ForwardTiming {
  Cycles latency = 0;  ///< from a frame's last word to where its first leaves, at rest
  Cycles between = 0;  ///< from a frame's last word to the first of one that waits at another port
  Cycles again = 0;    ///< and at the same port
};
Result<ForwardTiming> measure_forwarding();

class ForwardingSwitch final : public Node {
 public:
  ForwardingSwitch(const ForwardTiming& timing, bool one_at_a_time, std::size_t ports)
      : timing_(timing), one_at_a_time_(one_at_a_time), ports_(ports), last_(ports - 1) {}

  /// The links live as long.
  void attach(std::size_t port, Link& in, Link& out);
  /// By ranks: the port that leads there.
  void set_routes(std::vector<std::uint8_t> routes) { routes_ = std::move(routes); }

  [[nodiscard]] Cycles next() const override;
  void run(Cycles begin, Cycles end) override;

 private:
  struct Frame {
    rtl::Bytes bytes;
    std::size_t port = 0;  // that it came to
    Cycles last = 0;       // word
  };
  struct Port {
    Link* in = nullptr;
    Link* out = nullptr;
    FrameReader reader;
    std::deque<Frame> frames;
    Cycles again = 0;  // the next frame that came to it may leave
    Cycles free = 0;   // the link takes the next word
  };

  void take_in(Cycles end, std::vector<Frame>* whole);
  void pass_on(const Frame& frame, Cycles cycle);
  [[nodiscard]] Cycles ready(const Port& port) const;
  [[nodiscard]] Cycles next_turn() const;
  void take_turn(Cycles cycle);

  ForwardTiming timing_;
  bool one_at_a_time_;
  std::vector<Port> ports_;
  std::vector<std::uint8_t> routes_;
  std::size_t last_;         // whose turn it was
  std::deque<Cycles> ends_;  // of the frames that were passed on last, when another may leave
  Cycles sent_last_ = 0;     // word of the frame that was passed on last
};

}  // namespace carillon::tree
