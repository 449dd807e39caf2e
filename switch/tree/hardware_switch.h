// SPDX-License-Identifier: Apache-2.0
//
// A switch of a tree: the hardware (switch/rtl), run by Verilator cycle by cycle while it has
// something to do. Links end in a buffer without end, from which a port takes a frame when it has
// room, so that nobody waits for another's port; what is sent keeps the port busy for the gap that
// Ethernet wants after a frame.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/status.h"
#include "switch/tree/link.h"

class VerilatedContext;
class TreeSwitch;

namespace carillon::tree {

// As CMakeLists.txt has Verilator make it.
inline constexpr std::size_t kRadix = CARILLON_TREE_RADIX;  ///< children, at ports from 0 on
inline constexpr std::size_t kParentPort = kRadix;
inline constexpr std::uint8_t kProcessorPort = kRadix + 1;
inline constexpr std::size_t kPorts = kRadix + 2;
inline constexpr std::uint16_t kWindow = 16;
inline constexpr std::uint16_t kOperandBytes = aggregate::kBurstOperandBytes;
inline constexpr std::size_t kForwardEntries = 64;

/// Of Ethernet, as words of a port: preamble and check sequence, and the gap between frames.
inline constexpr Cycles kGapCycles = 3;

class HardwareSwitch final : public Node {
 public:
  /// The last word that a switch waits for, and the last of what it makes of that. Of calls of one
  /// packet.
  struct Passage {
    Cycles in = 0, out = 0;
    [[nodiscard]] Cycles cycles() const { return out - in; }
  };

  explicit HardwareSwitch(const rtl::Address& own);
  ~HardwareSwitch() override;

  /// The links live as long.
  void attach(std::size_t port, Link& in, Link& out);
  /// An error: the hardware does not take it.
  Status write(rtl::Table table, std::size_t index, const rtl::Record& record);
  /// Goes through cycles in which nothing can come of it, too: the same, but slower.
  void never_rest() { rests_ = false; }

  [[nodiscard]] Cycles next() const override;
  void run(Cycles begin, Cycles end) override;

  /// Since the last begin_call().
  void begin_call() { up_ = down_ = {}; }
  [[nodiscard]] const Passage& up() const { return up_; }
  [[nodiscard]] const Passage& down() const { return down_; }

  /// An error: it has counted what should not be.
  [[nodiscard]] Status check() const;
  [[nodiscard]] std::uint64_t evaluated_cycles() const { return evaluated_; }
  /// The most words that have waited at a port's link.
  [[nodiscard]] std::size_t most_waiting() const { return most_waiting_; }

 private:
  struct Port {
    Link* in = nullptr;
    Link* out = nullptr;
    bool inside = false;  // a frame has come in part
    Cycles free = 0;      // the link takes the next word
  };

  using PortBits = std::array<std::uint32_t, (kPorts + 31) / 32>;  // the lowest ports first

  [[nodiscard]] bool rests() const;
  [[nodiscard]] Cycles next_arrival() const;
  void tick();
  void step();
  bool offer(Cycles cycle);
  void for_each(const PortBits& bits, void (HardwareSwitch::*handle)(std::size_t));
  void take_in(std::size_t port);
  void send_out(std::size_t port);

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<TreeSwitch> module_;
  std::array<Port, kPorts> ports_;
  Cycles now_ = 0;   // all cycles before it have been gone through
  int untaken_ = 0;  // frames, whole or not, that the switch has not begun with
  int still_ = 0;    // cycles since something happened
  bool rests_ = true;
  Passage up_, down_;
  std::uint64_t evaluated_ = 0;
  std::size_t most_waiting_ = 0;
  std::size_t lost_ = 0;  // words to ports without a link
};

}  // namespace carillon::tree
