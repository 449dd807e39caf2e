// SPDX-License-Identifier: Apache-2.0
//
// Closed forms of what goes through switches that reduce. All hosts do the same at the same time,
// and so do all switches of a level: one host and one switch per level stand for all, and packets
// follow one another through them. In a broadcast one host alone has something to give; then there
// is another one for those that give packets of nothing, and another switch per level for those
// that are above such hosts only.
#include <algorithm>
#include <vector>

#include "machine/model_way.h"

namespace carillon::machine {
namespace {

// The hosts that give data, and those that give nothing, if there are such.
struct Left {
  std::int64_t data_ps = 0;
  std::int64_t empty_ps = 0;
  bool both = false;
};

class SwitchTree {
 public:
  SwitchTree(const Machine& machine, std::int64_t hosts) : m_(machine) {
    do {
      up_.push_back(0);
      hosts = (hosts + m_.in_switch.ports - 1) / m_.in_switch.ports;
    } while (hosts > 1);
    down_.resize(up_.size());
    empty_up_.resize(up_.size() - 1);
  }

  // Packets whose last bytes leave the hosts then: when that of the result can be in their NICs.
  std::int64_t pass(const Left& left, std::int64_t operand) {
    const InSwitch& s = m_.in_switch;
    std::int64_t time = left.data_ps + to_switch_ps(s);
    std::int64_t empty = left.empty_ps + to_switch_ps(s);
    for (std::size_t level = 0; level < up_.size(); ++level) {
      if (left.both) time = std::max(time, empty);
      time = go_up(&up_[level], time, operand);
      if (left.both && level < empty_up_.size()) empty = go_up(&empty_up_[level], empty, 0);
    }
    for (std::size_t level = 1; level < down_.size(); ++level) {
      const std::int64_t end =
          std::max(down_[level], time + forward_ps(s)) + packet_ps(m_, operand);
      down_[level] = end + m_.network.gap_ps;
      time = end + s.link_ps;
    }
    return time + s.nic_ps;
  }

 private:
  std::int64_t go_up(std::int64_t* free, std::int64_t time, std::int64_t operand) const {
    const InSwitch& s = m_.in_switch;
    const std::int64_t end =
        std::max(*free, time + combine_ps(s, operand)) + packet_ps(m_, operand);
    *free = end + m_.network.gap_ps;
    return end + s.link_ps;
  }

  const Machine& m_;
  // Per level: when the port is free; the root's is up.
  std::vector<std::int64_t> up_, down_, empty_up_;
};

// Hosts that do the same.
class Side {
 public:
  explicit Side(const Machine& machine, bool gives = true) : m_(machine), gives_(gives) {}

  Host host;

  void begin(std::int64_t window) { seen_.assign(static_cast<std::size_t>(window), 0); }
  // The packet of that number leaves, and in its place comes the result of one a window before it.
  std::int64_t send(std::int64_t operand) {
    const std::int64_t given = gives_ ? operand : 0;
    host.cpu_ps = std::max(host.queue.room(m_, host.cpu_ps) + contribute_ps(m_, given),
                           host.cpu_ps + memory_ps(m_.memory, given));
    const Injection sent = inject(m_, &host.nic, &host.bus, host.cpu_ps, occupancy_of(given));
    if (sent.waited) host.queue.add(sent.begin_ps);
    return sent.end_ps;
  }
  void land_result(std::int64_t packet, std::int64_t arrival_ps, std::int64_t operand) {
    seen(packet) = land(m_, &host.nic, &host.bus, arrival_ps, occupancy_of(operand));
  }
  void take(std::int64_t packet, std::int64_t operand) {
    host.cpu_ps = std::max(host.cpu_ps, seen(packet)) +
                  std::max(take_result_ps(m_, operand), memory_ps(m_.memory, operand));
  }

 private:
  // When the result of that packet, one of those in flight, is in memory.
  std::int64_t& seen(std::int64_t packet) {
    return seen_[static_cast<std::size_t>(packet) % seen_.size()];
  }
  [[nodiscard]] Occupancy occupancy_of(std::int64_t operand) const {
    return occupancy(m_, {.bytes = m_.in_switch.header_bytes + operand}, 0, false);
  }

  const Machine& m_;
  bool gives_;
  std::vector<std::int64_t> seen_;
};

// One reduction of `bytes`, by those that give something and, if there are such, those that do not.
void reduce(const Machine& machine, SwitchTree* tree, std::int64_t bytes, Side* data, Side* empty) {
  const InSwitch& s = machine.in_switch;
  const std::int64_t count = packets(s, bytes);
  const std::int64_t window = std::min<std::int64_t>(s.window, count);
  const auto each = [&](auto body) {
    body(data);
    if (empty != nullptr) body(empty);
  };
  const auto take = [&](std::int64_t packet) {
    each([&](Side* side) { side->take(packet, operand_bytes(s, bytes, packet)); });
  };
  each([&](Side* side) { side->begin(window); });
  for (std::int64_t packet = 0; packet < count; ++packet) {
    if (packet >= window) take(packet - window);
    if (data->host.cpu_ps > kLastPs) return;
    const std::int64_t operand = operand_bytes(s, bytes, packet);
    Left left{.data_ps = data->send(operand), .both = empty != nullptr};
    if (empty != nullptr) left.empty_ps = empty->send(operand);
    const std::int64_t arrival = tree->pass(left, operand);
    each([&](Side* side) { side->land_result(packet, arrival, operand); });
  }
  for (std::int64_t packet = count - window; packet < count; ++packet) take(packet);
}

// What is combined is a word, or several.
constexpr std::int64_t kWord = 4;

}  // namespace

// Also of a reduce, whose result all leaders get and one keeps.
std::int64_t allreduce_switch_ps(const Machine& machine, const ModelCall& call) {
  const Way way(machine, call);
  Side all(machine);
  way.begin(&all.host, call.bytes);
  SwitchTree tree(machine, call.ranks);
  reduce(machine, &tree, call.bytes, &all, nullptr);
  way.end(&all.host, call.bytes);
  return all.host.cpu_ps;
}

std::int64_t barrier_switch_ps(const Machine& machine, const ModelCall& call) {
  ModelCall nothing = call;
  nothing.bytes = 0;
  return allreduce_switch_ps(machine, nothing);
}

// A vector of whole words, and the last word again if it is not; a shorter one is filled with its
// last byte.
std::int64_t bcast_switch_ps(const Machine& machine, const ModelCall& call) {
  const Way way(machine, call);
  Side root(machine), others(machine, false);
  SwitchTree tree(machine, call.ranks);
  way.begin(&root.host, call.bytes);
  const std::int64_t words = call.bytes / kWord * kWord;
  if (words > 0) reduce(machine, &tree, words, &root, &others);
  for (std::int64_t i = 0; words == 0 && i < kWord; ++i) way.copy(&root.host, 1);
  if (words < call.bytes) reduce(machine, &tree, kWord, &root, &others);
  if (words == 0) way.copy(&others.host, call.bytes);
  way.end(&others.host, call.bytes);
  return std::max(root.host.cpu_ps, others.host.cpu_ps);
}

}  // namespace carillon::machine
