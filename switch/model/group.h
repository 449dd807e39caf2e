// SPDX-License-Identifier: Apache-2.0
//
// One group of a switch: its slots, and what they do with contributions and results.
//
//   collecting --all children have contributed--> partial sent up --result--> result
//       |  (root: no parent)                                                     ^
//       +------------------------------------------------------------------------+
//
// A contribution with sequence s proves that its sender has the result of s - window, which is made
// of everybody's contribution s - window, which proves that everybody has the result of
// s - 2 * window: the one whose slot it takes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "switch/model/counters.h"
#include "switch/protocol/packet.h"

namespace carillon::aggregate {

/// What build_group says.
struct Shape {
  Endpoint parent;                 ///< nowhere: this is the root
  std::uint16_t parent_child = 0;  ///< this switch's port there
  std::uint16_t window = 0;
  std::uint16_t operand_bytes = 0;
  std::vector<Endpoint> children;  ///< one per port; nowhere: absent
  /// Where the children's operands come in the order of combination; empty: by port. Of hosts that
  /// do the work of several switches; no request says it.
  std::vector<std::uint32_t> places;
  bool operator==(const Shape&) const = default;

  [[nodiscard]] bool is_root() const { return parent == Endpoint{}; }
  /// What its slots take.
  [[nodiscard]] std::uint64_t memory_bytes() const;
};

class Group {
 public:
  /// `first`: the sequence that comes first.
  Group(std::uint32_t job, std::uint32_t id, const SipKey& key, Shape shape,
        std::uint32_t first = 0);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] bool is_child(std::size_t child, const Endpoint& from) const {
    return child < shape_.children.size() && shape_.children[child] == from && is_host(from);
  }
  /// To be sent to from the address that it has sent to.
  void note_way(std::size_t child, const Endpoint& from);

  /// A contribution of child header.child's. The reason why it is refused, or kNone.
  Reason contribute(const Packet& packet, Counters& counters, Output& output);
  /// A result of the parent's; the datagram is the packet.
  void take_result(const Packet& packet, std::span<const std::byte> datagram, Counters& counters,
                   Output& output);
  /// The parent does not take what was sent up; the datagram is the packet, whose tag has not been
  /// checked if it does not know the job.
  void take_refusal(const Packet& packet, std::span<const std::byte> datagram, Counters& counters,
                    Output& output);

 private:
  enum class State : std::uint8_t { kCollecting, kSentUp, kResult };
  struct Slot {
    State state = State::kResult;
    std::uint8_t flags = 0;
    Op op = {};
    Type type = {};
    std::uint16_t count = 0;
    std::uint32_t offset = 0;
    std::uint32_t sequence = 0;
    std::uint64_t arrived = 0;  // a bit per port
    std::uint64_t present = 0;  // of these, those with an operand
    std::size_t packet_bytes = 0;
  };

  void begin(Slot& slot, const Header& header) const;
  static bool matches(const Slot& slot, const Header& header);
  void complete(Slot& slot, std::uint16_t index, Output& output);
  void send_down(std::span<const std::byte> datagram, Output& output) const {
    output.send(present_children_, datagram);
  }
  [[nodiscard]] std::span<std::byte> packet_of(std::size_t index) const;
  [[nodiscard]] std::byte* operand_of(std::size_t index, std::size_t child) const;
  [[nodiscard]] std::span<const std::byte> sent(const Slot& slot, std::size_t index) const {
    return packet_of(index).first(slot.packet_bytes);
  }

  std::uint32_t job_, id_;
  SipKey key_;
  Shape shape_;
  std::vector<Endpoint> present_children_;
  std::vector<std::byte*> operands_;  // by place, while they are combined
  std::uint64_t all_ = 0;             // bits of the ports that are there
  std::vector<Slot> slots_;
  // Per slot: the packet that was sent up or is the result; the children's operands.
  std::unique_ptr<std::byte[]> memory_;
  std::size_t slot_bytes_ = 0;
};

}  // namespace carillon::aggregate
