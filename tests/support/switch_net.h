// SPDX-License-Identifier: Apache-2.0
//
// A network of model switches and hosts, in virtual time: it loses, repeats and overtakes. What
// happens depends on the seed only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "switch/model/switch.h"
#include "switch/protocol/packet.h"
#include "transport/aggregate/control.h"

namespace carillon::aggregate {

inline constexpr SipKey kAdministrator = {0x1122334455667788, 0x99aabbccddeeff00};

struct NetFaults {
  double lose = 0, duplicate = 0, reorder = 0;
};

class SwitchNet {
 public:
  using Bytes = std::vector<std::byte>;
  using Receiver = std::function<void(const Endpoint& from, std::span<const std::byte>)>;

  SwitchNet(std::uint64_t seed, const NetFaults& faults) : random_(seed), faults_(faults) {}

  Switch& add_switch(const Endpoint& at, const SwitchConfig& config) {
    auto one = std::make_unique<Switch>(config);
    Switch& added = *one;
    receivers_[key(at)] = [this, at, &added](const Endpoint& from,
                                             std::span<const std::byte> datagram) {
      Port port(*this, at);
      added.receive(from, datagram, port);
    };
    switches_.push_back(std::move(one));
    return added;
  }
  void add_host(const Endpoint& at, Receiver receiver) {
    receivers_[key(at)] = std::move(receiver);
  }
  void remove(const Endpoint& at) { receivers_.erase(key(at)); }

  /// What sends from there.
  class Port final : public Output {
   public:
    Port(SwitchNet& net, const Endpoint& at) : net_(net), at_(at) {}
    void send(std::span<const Endpoint> to, std::span<const std::byte> datagram) override {
      for (const Endpoint& one : to) net_.post(at_, one, datagram);
    }

   private:
    SwitchNet& net_;
    Endpoint at_;
  };

  [[nodiscard]] std::int64_t now_ns() const { return now_ns_; }
  /// Delivers what comes next; false if nothing is under way before `until`, which it then is.
  bool step(std::int64_t until_ns) {
    if (queue_.empty() || queue_.top().at_ns > until_ns) {
      now_ns_ = until_ns;
      return false;
    }
    const Flying flying = queue_.top();
    queue_.pop();
    now_ns_ = flying.at_ns;
    ++delivered_;
    const auto found = receivers_.find(key(flying.to));
    if (found != receivers_.end()) found->second(flying.from, flying.datagram);
    return true;
  }
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }

 private:
  struct Flying {
    std::int64_t at_ns;
    std::uint64_t number;
    Endpoint from, to;
    Bytes datagram;
    bool operator<(const Flying& other) const {  // the last in a queue comes first
      return std::pair(at_ns, number) > std::pair(other.at_ns, other.number);
    }
  };
  static std::uint64_t key(const Endpoint& at) { return std::uint64_t{at.ip} << 16 | at.port; }
  bool chance(double share) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < share;
  }
  void post(const Endpoint& from, const Endpoint& to, std::span<const std::byte> datagram) {
    if (chance(faults_.lose)) return;
    const int copies = chance(faults_.duplicate) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      constexpr std::int64_t kHop = 10'000;
      const std::int64_t late =
          chance(faults_.reorder) ? static_cast<std::int64_t>(random_() % (20 * kHop)) : 0;
      queue_.push({now_ns_ + kHop + late, ++number_, from, to, {datagram.begin(), datagram.end()}});
    }
  }

  std::mt19937_64 random_;
  NetFaults faults_;
  std::map<std::uint64_t, Receiver> receivers_;
  std::vector<std::unique_ptr<Switch>> switches_;
  std::priority_queue<Flying> queue_;
  std::int64_t now_ns_ = 0;
  std::uint64_t number_ = 0, delivered_ = 0;
};

}  // namespace carillon::aggregate
