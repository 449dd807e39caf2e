// SPDX-License-Identifier: Apache-2.0
//
// Hosts on a tree of model switches, on a simulated network: their allreduces, each bit compared
// with that of the same order of operations, written down plainly here a second time.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "support/switch_net.h"
#include "transport/aggregate/stream.h"

namespace carillon::aggregate {

inline constexpr std::uint32_t kJob = 7;
inline constexpr Job kQuota = {.nonce = 99, .groups = 8, .memory_bytes = 64 << 20};

// ---- the oracle

template <class T>
T oracle(Op op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    if (std::isnan(a) || std::isnan(b)) return nan;
    if (op == Op::kSum) return std::isnan(a + b) ? nan : a + b;
    const bool a_first = a < b || (a == b && std::signbit(a) && !std::signbit(b));
    return a_first == (op == Op::kMin) ? a : b;
  } else {
    using U = std::make_unsigned_t<T>;
    switch (op) {
      case Op::kSum: return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
      case Op::kMin: return std::min(a, b);
      case Op::kMax: return std::max(a, b);
      case Op::kAnd: return a & b;
      case Op::kOr: return a | b;
      case Op::kXor: return a ^ b;
    }
    return a;
  }
}

template <class T>
using Operand = std::optional<T>;

// Of ports [first, first + width), of which those past the end are absent.
template <class T, class Ports>
Operand<T> combined(Op op, const Ports& ports, std::size_t first, std::size_t width) {
  if (first >= ports.size()) return {};
  if (width == 1) return ports[first];
  const auto left = combined<T>(op, ports, first, width / 2);
  const auto right = combined<T>(op, ports, first + width / 2, width / 2);
  if (!left) return right;
  if (!right) return left;
  return oracle<T>(op, *left, *right);
}

// ---- a team of hosts and its tree

struct TreeShape {
  int hosts;
  int fan_out;
  bool holes;  // ports without a child
};

inline Endpoint host_at(int host) { return {0x0a000001, static_cast<std::uint16_t>(1000 + host)}; }
inline Endpoint switch_at(std::size_t i) { return {0x0a000002, static_cast<std::uint16_t>(1 + i)}; }

// From the hosts up; then turned around, for the root comes first in a plan.
inline TreePlan plan_of(const TreeShape& shape, std::mt19937_64& random) {
  std::vector<TreeSwitch> up;
  std::vector<Endpoint> level;
  for (int host = 0; host < shape.hosts; ++host) level.push_back(host_at(host));
  do {
    std::vector<Endpoint> next;
    for (std::size_t at = 0; at < level.size();) {
      TreeSwitch one = {.at = switch_at(up.size()), .parent = {}, .children = {}};
      for (int i = 0; i < shape.fan_out && at < level.size(); ++i) {
        if (shape.holes && random() % 3 == 0) one.children.emplace_back();
        one.children.push_back(level[at++]);
      }
      next.push_back(one.at);
      up.push_back(one);
    }
    level = next;
  } while (level.size() > 1);
  TreePlan plan;
  plan.switches.assign(up.rbegin(), up.rend());
  for (std::size_t i = 1; i < plan.switches.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      for (const Endpoint& child : plan.switches[j].children) {
        if (child == plan.switches[i].at) plan.switches[i].parent = j;
      }
    }
  }
  return plan;
}

class Team {
 public:
  Team(const TreeShape& shape, std::uint16_t window, std::uint16_t operand_bytes,
       const NetFaults& faults, std::uint64_t seed)
      : random_(seed), net_(seed + 1, faults) {
    plan_ = plan_of(shape, random_);
    plan_.window = window;
    plan_.operand_bytes = operand_bytes;
    for (std::size_t i = 0; i < plan_.switches.size(); ++i) {
      switches_.push_back(&net_.add_switch(
          plan_.switches[i].at,
          {.administrator = kAdministrator, .number = static_cast<std::uint16_t>(i)}));
    }
    build();
    for (int host = 0; host < shape.hosts; ++host) add_host(host);
  }

  int hosts() const { return static_cast<int>(streams_.size()); }
  SwitchNet& net() { return net_; }
  Stream& stream(int host) { return *streams_[static_cast<std::size_t>(host)]; }
  const TreePlan& plan() const { return plan_; }
  Switch& at(std::size_t i) { return *switches_[i]; }
  std::mt19937_64& random() { return random_; }

  // Until all are done or failed; false if that takes an hour of the network's.
  bool run(const std::vector<Stream::Ticket>& tickets) {
    const std::int64_t end = net_.now_ns() + std::int64_t{3600} * 1'000'000'000;
    while (net_.now_ns() < end) {
      bool all = true;
      for (int host = 0; host < hosts(); ++host) {
        SwitchNet::Port port(net_, host_at(host));
        stream(host).progress(net_.now_ns(), port);
        all = all && (stream(host).done(tickets[static_cast<std::size_t>(host)]) ||
                      !stream(host).status().ok());
      }
      if (all) return true;
      const std::int64_t next = net_.now_ns() + 50'000;
      while (net_.step(next)) {
      }
    }
    return false;
  }

  // The element that all get.
  template <class T>
  T expected(Op op, const std::vector<Operand<T>>& of_hosts) const {
    const auto all = of_switch<T>(op, 0, of_hosts);
    return all ? *all : T{};
  }

 private:
  template <class Control>
  void settle(Control& control, const Endpoint& from) {
    net_.add_host(from, [&](const Endpoint& at, std::span<const std::byte> datagram) {
      (void)control.take(at, datagram);
    });
    SwitchNet::Port port(net_, from);
    while (!control.done()) {
      control.progress(net_.now_ns(), port);
      const std::int64_t next = net_.now_ns() + 1'000'000;
      while (net_.step(next)) {
      }
    }
    ASSERT_TRUE(control.status().ok()) << control.status().to_string();
    net_.remove(from);
  }

  void build() {
    const Endpoint manager = {0x0a000003, 1};
    const ControlTimes times = {.retry_ns = 50'000'000, .give_up_ns = 50'000'000'000};
    Requests install(kAdministrator, 1000, times);
    std::vector<Request> requests;
    for (const TreeSwitch& one : plan_.switches) {
      requests.push_back(install_job(one.at, kJob, kQuota));
    }
    install.start(requests, net_.now_ns());
    settle(install, manager);
    ASSERT_TRUE(check_plan(plan_).ok()) << check_plan(plan_).to_string();
    TreeControl control(kJob, job_key(kAdministrator, kJob, kQuota.nonce), 5000, times);
    control.build(plan_, net_.now_ns());
    settle(control, manager);
    group_ = control.group();
  }

  void add_host(int host) {
    StreamConfig config = {.job = kJob,
                           .group = group_,
                           .key = job_key(kAdministrator, kJob, kQuota.nonce),
                           .window = plan_.window,
                           .operand_bytes = plan_.operand_bytes,
                           .path = {}};
    for (std::size_t i = 0; i < plan_.switches.size(); ++i) {
      const auto& ports = plan_.switches[i].children;
      for (std::size_t port = 0; port < ports.size(); ++port) {
        if (!(ports[port] == host_at(host))) continue;
        config.child = static_cast<std::uint16_t>(port);
        for (std::optional<std::size_t> up = i; up; up = plan_.switches[*up].parent) {
          config.path.push_back(plan_.switches[*up].at);
        }
      }
    }
    streams_.push_back(std::make_unique<Stream>(config));
    Stream* const stream = streams_.back().get();
    net_.add_host(host_at(host),
                  [this, stream](const Endpoint& from, std::span<const std::byte> datagram) {
                    (void)stream->take(from, datagram, net_.now_ns());
                  });
  }

  template <class T>
  Operand<T> of_switch(Op op, std::size_t i, const std::vector<Operand<T>>& of_hosts) const {
    std::vector<Operand<T>> ports;
    for (const Endpoint& child : plan_.switches[i].children) {
      ports.emplace_back();
      if (child.ip == host_at(0).ip) ports.back() = of_hosts[child.port - 1000U];
      for (std::size_t j = i + 1; j < plan_.switches.size(); ++j) {
        if (plan_.switches[j].at == child) ports.back() = of_switch<T>(op, j, of_hosts);
      }
    }
    return combined<T>(op, ports, 0, 64);
  }

  std::mt19937_64 random_;
  SwitchNet net_;
  TreePlan plan_;
  std::uint32_t group_ = 0;
  std::vector<Switch*> switches_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

// Depends on host and place; for floats also what is special.
template <class T>
T value_of(std::mt19937_64& random) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    switch (random() % 16) {
      case 0: return std::bit_cast<T>(static_cast<Bits>(random()));  // anything
      case 1: return T(0);
      case 2: return T(-0.0);
      case 3: return std::numeric_limits<T>::denorm_min() * static_cast<T>(random() % 100);
      default:
        return std::ldexp(static_cast<T>(static_cast<std::int64_t>(random() >> 20)) -
                              static_cast<T>(std::int64_t{1} << 43),
                          static_cast<int>(random() % 40));
    }
  } else {
    return static_cast<T>(random());
  }
}

template <class T>
void allreduce(Team& team, Op op, Type type, std::size_t count, bool some_empty) {
  const auto hosts = static_cast<std::size_t>(team.hosts());
  std::vector<std::vector<T>> inputs(hosts), outputs(hosts);
  std::vector<bool> empty(hosts, false);
  std::vector<Stream::Ticket> tickets;
  for (std::size_t host = 0; host < hosts; ++host) {
    empty[host] = some_empty && team.random()() % 2 == 0;
    for (std::size_t i = 0; i < count; ++i) inputs[host].push_back(value_of<T>(team.random()));
    outputs[host].resize(count);
    const bool in_place = host % 2 == 1 && !empty[host];
    if (in_place) outputs[host] = inputs[host];
    const auto* const input = in_place ? outputs[host].data() : inputs[host].data();
    const auto ticket =
        team.stream(static_cast<int>(host))
            .post({.op = op,
                   .type = type,
                   .input = empty[host] ? nullptr : reinterpret_cast<const std::byte*>(input),
                   .output = reinterpret_cast<std::byte*>(outputs[host].data()),
                   .count = count});
    ASSERT_TRUE(ticket);
    tickets.push_back(*ticket);
  }
  ASSERT_TRUE(team.run(tickets)) << "takes too long";
  for (std::size_t host = 0; host < hosts; ++host) {
    const Status& status = team.stream(static_cast<int>(host)).status();
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Operand<T>> operands;
    for (std::size_t host = 0; host < hosts; ++host) {
      operands.push_back(empty[host] ? Operand<T>() : inputs[host][i]);
    }
    const T expected = team.expected<T>(op, operands);
    for (std::size_t host = 0; host < hosts; ++host) {
      ASSERT_EQ(std::memcmp(&outputs[host][i], &expected, sizeof(T)), 0)
          << name_of(op) << " of " << name_of(type) << ", element " << i << " of " << count
          << ", host " << host << " of " << hosts;
    }
  }
}

inline void allreduce_any(Team& team, std::size_t count, bool some_empty) {
  auto& random = team.random();
  const auto type = static_cast<Type>(random() % 4);
  const bool integers = type == Type::kInt32 || type == Type::kInt64;
  const auto op = static_cast<Op>(random() % (integers ? 6 : 3));
  switch (type) {
    case Type::kInt32: allreduce<std::int32_t>(team, op, type, count, some_empty); break;
    case Type::kInt64: allreduce<std::int64_t>(team, op, type, count, some_empty); break;
    case Type::kFloat32: allreduce<float>(team, op, type, count, some_empty); break;
    case Type::kFloat64: allreduce<double>(team, op, type, count, some_empty); break;
  }
}

inline constexpr NetFaults kBad = {.lose = 0.1, .duplicate = 0.05, .reorder = 0.2};

}  // namespace carillon::aggregate
