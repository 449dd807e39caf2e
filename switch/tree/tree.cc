// SPDX-License-Identifier: Apache-2.0
#include "switch/tree/tree.h"

#include <algorithm>
#include <bit>
#include <string>

#include "switch/tree/addresses.h"

namespace carillon::tree {
namespace {

using rtl::Address, rtl::Record, rtl::Table;

// Anything will do.
constexpr SipKey kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
constexpr std::uint32_t kJob = 1, kGroup = 1;
// The places in a switch's tables.
constexpr std::size_t kJobAt = 0, kGroupAt = 0;

Status check_config(const TreeConfig& config) {
  if (config.hosts < 2 || config.hosts > kMostHosts) {
    return {Code::kInvalidArgument, "switch-tree: " + std::to_string(config.hosts) +
                                        " nodes; a tree has 2 to " + std::to_string(kMostHosts)};
  }
  if (config.machine.in_switch.ports < 2) {
    return {Code::kInvalidArgument, "switch-tree: machine " + config.machine.name +
                                        " has no switches that reduce; hu2013 has"};
  }
  return {};
}

}  // namespace

Tree::Tree(const TreeConfig& config)
    : config_(config),
      radix_(std::min(kRadix, static_cast<std::size_t>(config.machine.in_switch.ports))),
      places_(config.hosts, radix_),
      membership_{.machine = config.machine, .key = kKey, .job = kJob, .group = kGroup},
      network_(config.threads) {
  const machine::InSwitch& s = config_.machine.in_switch;
  const auto window = static_cast<unsigned>(std::clamp<std::int64_t>(s.window, 1, kWindow));
  membership_.window = static_cast<std::uint16_t>(std::bit_floor(window));
  constexpr std::int64_t kLongestElement = 8;
  membership_.operand_bytes = static_cast<std::uint16_t>(
      std::clamp<std::int64_t>(s.operand_bytes, kLongestElement, kOperandBytes) / kLongestElement *
      kLongestElement);
}

Result<std::unique_ptr<Tree>> Tree::make(const TreeConfig& config) {
  if (Status fine = check_config(config); !fine.ok()) return fine;
  std::unique_ptr<Tree> tree(new Tree(config));
  if (Status built = tree->build(); !built.ok()) return built;
  return tree;
}

Status Tree::build() {
  for (std::size_t at = 0; at < places_.all().size(); ++at) {
    switches_.push_back(std::make_unique<HardwareSwitch>(switch_address(at, kProcessorPort)));
    if (!config_.rests) switches_.back()->never_rest();
    network_.add(*switches_.back());
  }
  const Cycles delay = cycles_of(config_.machine, config_.machine.in_switch.link_ps);
  for (std::size_t at = 0; at < switches_.size(); ++at) {
    const Place& place = places_.all()[at];
    for (std::size_t child = 0; child < place.children; ++child) {
      const std::size_t below = place.first_child + child;
      Link& up = network_.connect(delay);
      Link& down = network_.connect(delay);
      switches_[at]->attach(child, up, down);
      if (!place.of_hosts) {
        switches_[below]->attach(kParentPort, down, up);
        continue;
      }
      hosts_.push_back(std::make_unique<Host>(membership_, static_cast<std::uint32_t>(below),
                                              host_address(below, child), switch_address(at, child),
                                              static_cast<std::uint16_t>(child), down, up));
      network_.add(*hosts_.back());
    }
  }
  return write_tables();
}

Status Tree::write_tables() {
  for (std::size_t at = 0; at < switches_.size(); ++at) {
    const Record job = Record().add(1, 1).add(kJob, 32).add(kKey.high, 64).add(kKey.low, 64);
    if (Status wrote = switches_[at]->write(Table::kJobs, kJobAt, job); !wrote.ok()) return wrote;
    if (Status wrote = write_group(at); !wrote.ok()) return wrote;
  }
  return {};
}

Status Tree::write_group(std::size_t at) {
  const Place& place = places_.all()[at];
  std::uint64_t children = 0;
  for (std::size_t child = 0; child < place.children; ++child) {
    children |= std::uint64_t{1} << child;
    const std::size_t below = place.first_child + child;
    const Address address =
        place.of_hosts ? host_address(below, child) : switch_address(below, child);
    Status wrote =
        switches_[at]->write(Table::kChildren, kGroupAt * kRadix + child, Record().add(address));
    if (!wrote.ok()) return wrote;
  }
  Record group;
  group.add(1, 1).add(kJob, 32).add(kGroup, 32).add(place.is_root ? 1 : 0, 1);
  group.add(place.is_root ? Address{} : switch_address(place.parent, kParentPort));
  group.add(place.child, 16).add(membership_.window, 16).add(membership_.operand_bytes, 16);
  group.add(0, 32).add(children, 64);
  return switches_[at]->write(Table::kGroups, kGroupAt, group);
}

std::vector<Hop> Tree::hops() const {
  std::vector<Hop> hops;
  for (const Places::Level& level : places_.levels()) {
    Hop hop;
    for (std::size_t at = level.first; at < level.first + level.switches; ++at) {
      hop.up = std::max(hop.up, switches_[at]->up().cycles());
      if (places_.all()[at].is_root) continue;
      hop.down = std::max(hop.down.value_or(0), switches_[at]->down().cycles());
    }
    hops.push_back(hop);
  }
  return hops;
}

Result<Call> Tree::allreduce(const Message& message) {
  if (message.count == 0 || !aggregate::is_defined(message.op, message.type)) {
    return Status(Code::kInvalidArgument, "switch-tree: nothing that switches reduce");
  }
  const rtl::Bytes expected = reference_result(message, config_.hosts, radix_);
  std::uint64_t evaluated = 0;
  for (const auto& each : switches_) {
    each->begin_call();
    evaluated += each->evaluated_cycles();
  }
  for (const auto& host : hosts_) host->begin(message, now_, expected);
  const Cycles end = network_.run();
  Call call;
  for (const auto& host : hosts_) {
    if (!host->status().ok()) return host->status();
    if (host->done() == kNever) {
      return Status(Code::kInternal, "switch-tree: the switches stand still without a result");
    }
    call.cycles = std::max(call.cycles, host->done() - now_);
  }
  for (const auto& each : switches_) {
    if (Status fine = each->check(); !fine.ok()) return fine;
    call.evaluated_cycles += each->evaluated_cycles();
    call.most_waiting_words = std::max(call.most_waiting_words, each->most_waiting());
  }
  call.evaluated_cycles -= evaluated;
  call.switch_cycles = static_cast<std::uint64_t>(end - now_) * switches_.size();
  if (message.bytes() <= membership_.operand_bytes) call.hops = hops();
  now_ = std::max(end, now_ + call.cycles);
  return call;
}

}  // namespace carillon::tree
