// SPDX-License-Identifier: Apache-2.0
//
// The switches of a call that reduce for its leaders: a tree, by where their nodes are. When a
// packet leaves it is known at once when it comes to the next switch, and when it has come from all
// children, when what is made of it leaves. Packets of a child come in their order, so that nothing
// depends on the order of the calls but that.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "machine/costs.h"

namespace carillon::sim {

class Switches {
 public:
  /// A leader: its number in the simulation, and its node.
  struct Host {
    std::uint32_t id = 0;
    std::int32_t place = 0;
  };
  /// A packet on its way up, and who made it the last to come.
  struct Packet {
    std::int64_t time = 0;  ///< its last byte is at the switch
    std::int64_t operand = 0;
    std::uint32_t from = 0;
    std::uint32_t path = 0;
    std::int64_t sent = 0;

    /// Of several the one that a switch waits for.
    [[nodiscard]] bool is_later(const Packet& other) const {
      return time != other.time ? time > other.time : from < other.from;
    }
  };

  /// Nodes that follow one another are at one switch, and so are such switches.
  Switches(const machine::Machine& machine, std::span<const Host> hosts);

  /// The next packet of hosts()[host]. If all have come, what the root sends down: result_at() says
  /// when it is there.
  std::optional<Packet> contribute(std::size_t host, Packet packet);
  /// When the last byte of the result that was made last is in that host's memory, if its NIC and
  /// bus are idle.
  [[nodiscard]] std::int64_t result_at(std::size_t host) const {
    return switches_[members_[host].leaf].down_end + machine_.in_switch.nic_ps;
  }
  [[nodiscard]] std::size_t hosts() const { return members_.size(); }
  [[nodiscard]] std::uint32_t id_of(std::size_t host) const { return members_[host].id; }

  /// A host is at one reduction at a time; false: it is at another one.
  bool enter(std::size_t host) { return !std::exchange(members_[host].inside, true); }
  void leave(std::size_t host) { members_[host].inside = false; }

 private:
  struct Member {
    std::uint32_t id = 0, leaf = 0;
    std::int64_t packets = 0;  // so far
    bool inside = false;
  };
  struct Slot {
    std::uint32_t arrived = 0;  // children
    Packet last;                // with the longest of their operands
  };
  struct Switch {
    std::uint32_t parent = 0, children = 0;
    std::int64_t first = 0;    // the packet of slots[head]
    std::size_t head = 0;      // those before are free
    std::vector<Slot> slots;   // of packets that some children have sent
    std::int64_t up_free = 0;  // the port upwards takes a packet; of the root, those downwards
    std::int64_t down_end = INT64_MIN / 2;  // the last byte of a result is at the children
  };

  std::vector<std::uint32_t> add_level(std::vector<std::int64_t>* places);
  bool arrive(Switch* at, std::int64_t number, const Packet& packet, Packet* last);
  void send_down(const Packet& result);

  const machine::Machine& machine_;
  std::vector<Member> members_;
  std::vector<Switch> switches_;  // level by level, the root last
};

}  // namespace carillon::sim
