// SPDX-License-Identifier: Apache-2.0
//
// The closed form of allreduce in switches. All hosts do the same at the same time, and so do all
// switches of a level: one host and one switch per level stand for all, and packets follow one
// another through them.
#include <algorithm>
#include <vector>

#include "machine/model_way.h"

namespace carillon::machine {
namespace {

class Tree {
 public:
  Tree(const Machine& machine, std::int64_t hosts) : m_(machine) {
    do {
      up_.push_back(0);
      hosts = (hosts + m_.in_switch.ports - 1) / m_.in_switch.ports;
    } while (hosts > 1);
    down_.resize(up_.size());
  }

  // A packet whose last byte leaves the host then: when that of the result can be in its NIC.
  std::int64_t pass(std::int64_t left_ps, std::int64_t operand) {
    const InSwitch& s = m_.in_switch;
    const std::int64_t packet = packet_ps(m_, operand);
    std::int64_t time = left_ps + to_switch_ps(s);
    for (std::int64_t& free : up_) {
      const std::int64_t end = std::max(free, time + combine_ps(s, operand)) + packet;
      free = end + m_.network.gap_ps;
      time = end + s.link_ps;
    }
    for (std::size_t level = 1; level < down_.size(); ++level) {
      const std::int64_t end = std::max(down_[level], time + forward_ps(s)) + packet;
      down_[level] = end + m_.network.gap_ps;
      time = end + s.link_ps;
    }
    return time + s.nic_ps;
  }

 private:
  const Machine& m_;
  std::vector<std::int64_t> up_, down_;  // per level: when the port is free; the root's is up
};

}  // namespace

std::int64_t allreduce_switch_ps(const Machine& machine, const ModelCall& call) {
  const InSwitch& s = machine.in_switch;
  const Way way(machine, call);
  Host host;
  way.begin(&host, call.bytes);
  Tree tree(machine, call.ranks);
  const std::int64_t count = packets(s, call.bytes);
  const std::int64_t window = std::min<std::int64_t>(s.window, count);
  // When the result of each packet in flight is in memory.
  std::vector<std::int64_t> seen(static_cast<std::size_t>(window));
  const auto seen_of = [&](std::int64_t packet) -> std::int64_t& {
    return seen[static_cast<std::size_t>(packet % window)];
  };
  std::int64_t taken = 0;
  const auto take = [&] {
    const std::int64_t operand = operand_bytes(s, call.bytes, taken);
    host.cpu_ps = std::max(host.cpu_ps, seen_of(taken)) + take_result_ps(machine, operand);
    ++taken;
  };
  for (std::int64_t packet = 0; packet < count; ++packet) {
    if (packet >= window) take();
    if (host.cpu_ps > kLastPs) return host.cpu_ps;
    const std::int64_t operand = operand_bytes(s, call.bytes, packet);
    host.cpu_ps = host.queue.room(machine, host.cpu_ps) + contribute_ps(machine, operand);
    const Occupancy busy = occupancy(machine, {.bytes = s.header_bytes + operand}, 0, false);
    const Injection sent = inject(machine, &host.nic, &host.bus, host.cpu_ps, busy);
    if (sent.waited) host.queue.add(sent.begin_ps);
    seen_of(packet) = land(machine, &host.nic, &host.bus, tree.pass(sent.end_ps, operand), busy);
  }
  while (taken < count) take();
  way.end(&host, call.bytes);
  return host.cpu_ps;
}

}  // namespace carillon::machine
