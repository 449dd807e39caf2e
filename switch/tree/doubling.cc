// SPDX-License-Identifier: Apache-2.0
#include "switch/tree/doubling.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "switch/tree/addresses.h"
#include "switch/tree/hardware_switch.h"
#include "switch/tree/host.h"
#include "switch/tree/network.h"
#include "switch/tree/places.h"

namespace carillon::tree {
namespace {

class Doubling {
 public:
  Doubling(const DoublingConfig& config, const Message& message)
      : config_(config),
        message_(message),
        radix_(std::min(kRadix, static_cast<std::size_t>(config.machine.in_switch.ports))),
        network_(config.threads),
        delay_(cycles_of(config.machine, config.machine.in_switch.link_ps)),
        ends_(config.hosts) {}

  Result<Cycles> run() {
    if (Status built = build(); !built.ok()) return built;
    for (std::uint32_t rank = 0; rank < config_.hosts; ++rank) {
      hosts_.push_back(std::make_unique<DoublingHost>(config_.machine, config_.messages, rank,
                                                      config_.hosts, message_, *ends_[rank].in,
                                                      *ends_[rank].out));
      network_.add(*hosts_.back());
      hosts_.back()->begin();
    }
    network_.run();
    return result();
  }

 private:
  // Of a host.
  struct End {
    Link* in = nullptr;
    Link* out = nullptr;
  };

  Status build() {
    if (config_.fabric == Fabric::kFatTree) {
      build_fat_tree();
      return {};
    }
    const bool hardware = config_.fabric == Fabric::kHardwareTree;
    if (hardware && config_.hosts > kForwardEntries) {
      return {Code::kInvalidArgument, "switch-tree: the hardware's tables have room for " +
                                          std::to_string(kForwardEntries) + " hosts, not " +
                                          std::to_string(config_.hosts)};
    }
    return hardware ? build_tree(hardware_) : build_tree(models_);
  }

  void make(std::vector<std::unique_ptr<HardwareSwitch>>& switches) {
    switches.push_back(
        std::make_unique<HardwareSwitch>(switch_address(switches.size(), kProcessorPort)));
    network_.add(*switches.back());
  }
  void make(std::vector<std::unique_ptr<ForwardingSwitch>>& switches) {
    const bool fat = config_.fabric == Fabric::kFatTree;
    switches.push_back(
        std::make_unique<ForwardingSwitch>(config_.timing, !fat, fat ? 2 * radix_ : kPorts));
    network_.add(*switches.back());
  }

  Status route(HardwareSwitch& one, const std::vector<std::uint8_t>& routes) const {
    for (std::size_t rank = 0; rank < routes.size(); ++rank) {
      const rtl::Record record =
          rtl::Record().add(1, 1).add(host_address(rank, 0).mac, 48).add(routes[rank], 8);
      if (Status wrote = one.write(rtl::Table::kForward, rank, record); !wrote.ok()) return wrote;
    }
    return {};
  }
  static Status route(ForwardingSwitch& one, const std::vector<std::uint8_t>& routes) {
    one.set_routes(routes);
    return {};
  }

  template <class Switches>
  Status build_tree(Switches& switches) {
    const Places places(config_.hosts, radix_);
    for (std::size_t at = 0; at < places.all().size(); ++at) make(switches);
    for (std::size_t at = 0; at < places.all().size(); ++at) {
      const Place& place = places.all()[at];
      for (std::size_t child = 0; child < place.children; ++child) {
        Link& up = network_.connect(delay_);
        Link& down = network_.connect(delay_);
        switches[at]->attach(child, up, down);
        const std::size_t below = place.first_child + child;
        if (place.of_hosts) {
          ends_[below] = {&down, &up};
        } else {
          switches[below]->attach(kParentPort, down, up);
        }
      }
      std::vector<std::uint8_t> routes;
      for (std::uint32_t rank = 0; rank < config_.hosts; ++rank) {
        const auto child = places.child_towards(at, rank);
        routes.push_back(static_cast<std::uint8_t>(child.value_or(kParentPort)));
      }
      if (Status routed = route(*switches[at], routes); !routed.ok()) return routed;
    }
    return {};
  }

  // A radix-ary n-tree. A switch of a level has a number of n - 1 digits. It has a link up to each
  // switch of the next level whose number differs in digit `level` at most, by the port of that
  // digit; a host's number, without its last digit, is that of its switch. Up it goes by the digits
  // of the destination, so that hosts that all send to others at one distance have ways of their
  // own.
  void build_fat_tree() {
    std::size_t levels = 1, in_level = 1;
    while (in_level * radix_ < config_.hosts) {
      in_level *= radix_;
      ++levels;
    }
    const auto digit = [&](std::size_t number, std::size_t at) {
      for (; at > 0; --at) number /= radix_;
      return number % radix_;
    };
    std::size_t weight = 1;  // of digit `level`
    for (std::size_t level = 0; level < levels; ++level) {
      for (std::size_t at = 0; at < in_level; ++at) make(models_);
    }
    for (std::size_t level = 0; level < levels; ++level) {
      for (std::size_t at = 0; at < in_level; ++at) {
        ForwardingSwitch& one = *models_[level * in_level + at];
        for (std::size_t port = 0; level + 1 < levels && port < radix_; ++port) {
          const std::size_t above = at - digit(at, level) * weight + port * weight;
          Link& up = network_.connect(delay_);
          Link& down = network_.connect(delay_);
          one.attach(radix_ + port, down, up);
          models_[(level + 1) * in_level + above]->attach(digit(at, level), up, down);
        }
        std::vector<std::uint8_t> routes;
        for (std::size_t rank = 0; rank < config_.hosts; ++rank) {
          const bool below = rank / radix_ / weight == at / weight;
          const std::size_t port = digit(rank, level) + (below ? 0 : radix_);
          routes.push_back(static_cast<std::uint8_t>(port));
        }
        one.set_routes(std::move(routes));
      }
      weight *= radix_;
    }
    for (std::size_t rank = 0; rank < config_.hosts; ++rank) {
      Link& up = network_.connect(delay_);
      Link& down = network_.connect(delay_);
      models_[rank / radix_]->attach(rank % radix_, up, down);
      ends_[rank] = {&down, &up};
    }
  }

  Result<Cycles> result() const {
    const rtl::Bytes expected = reference_result(message_, config_.hosts, radix_);
    Cycles cycles = 0;
    for (const auto& host : hosts_) {
      if (!host->status().ok()) return host->status();
      if (host->done() == kNever) {
        return Status(Code::kInternal, "switch-tree: hosts stand still without a result");
      }
      if (host->result() != expected) {
        return Status(Code::kInternal, "switch-tree: hosts have another result than the reference");
      }
      cycles = std::max(cycles, host->done());
    }
    for (const auto& each : hardware_) {
      if (Status fine = each->check(); !fine.ok()) return fine;
    }
    return cycles;
  }

  const DoublingConfig& config_;
  const Message& message_;
  std::size_t radix_;
  Network network_;
  Cycles delay_;
  std::vector<End> ends_;
  std::vector<std::unique_ptr<HardwareSwitch>> hardware_;
  std::vector<std::unique_ptr<ForwardingSwitch>> models_;
  std::vector<std::unique_ptr<DoublingHost>> hosts_;
};

}  // namespace

Result<Cycles> allreduce_by_hosts(const DoublingConfig& config, const Message& message) {
  if (message.count == 0 || message.type > aggregate::Type::kInt64) {
    return Status(Code::kInvalidArgument, "switch-tree: hosts reduce integers here, some at least");
  }
  return Doubling(config, message).run();
}

}  // namespace carillon::tree
