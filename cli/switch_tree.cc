// SPDX-License-Identifier: Apache-2.0
//
// carillon switch-tree: what allreduces take in trees of the switch's hardware, cycle by cycle,
// each result compared with the reference.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "machine/sheet.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/switch_engine.h"
#include "support/table.h"
#include "support/units.h"
#ifdef CARILLON_WITH_SWITCH_RTL
#include "switch/tree/doubling.h"
#include "switch/tree/tree.h"
#endif

namespace carillon::cli {
namespace {

#ifdef CARILLON_WITH_SWITCH_RTL
constexpr int kMostPorts = static_cast<int>(tree::kRadix);
#else
constexpr int kMostPorts = 64;
#endif
constexpr double kNsPerMhzCycle = 1e3;
constexpr const char* kNone = "none";
constexpr const char* kWrites = "writes";
constexpr const char* kMpi = "mpi";

struct SwitchTreeOptions {
  std::vector<std::uint32_t> nodes = {2, 16, 256, 4096};
  std::string bytes = "8";
  std::string op = "sum", type = "int64";
  std::string machine = "hu2013";
  std::map<std::string, double> changed;  // of its numbers, by what follows `switch.`
  std::int32_t ports = 0;
  std::int32_t window = 0;
  std::string against = kNone;
  int threads = 0;
  bool json = false;
};

#ifdef CARILLON_WITH_SWITCH_RTL

constexpr double kPsPerNs = 1e3;

template <class T>
T named(const char* what, const std::string& name, T last) {
  std::string known;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const T value = static_cast<T>(i);
    if (aggregate::name_of(value) == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", aggregate::name_of(value));
  }
  fail("switches have no {} {}; there are {}", what, name, known);
}

tree::Message message_of(const SwitchTreeOptions& options, std::int64_t bytes) {
  tree::Message message = {named("operation", options.op, aggregate::Op::kXor),
                           named("type", options.type, aggregate::Type::kFloat64), 0};
  const auto element = static_cast<std::int64_t>(message.element_bytes());
  if (!aggregate::is_defined(message.op, message.type)) {
    fail("switches have no {} of {}", options.op, options.type);
  }
  if (bytes == 0 || bytes % element != 0) {
    fail("{} bytes are no number of elements of {}, which have {} each", bytes, options.type,
         element);
  }
  message.count = static_cast<std::uint64_t>(bytes / element);
  return message;
}

machine::Machine machine_of(const SwitchTreeOptions& options) {
  machine::Machine machine = value_or_fail(machine::load(options.machine));
  machine::InSwitch& s = machine.in_switch;
  const std::map<std::string, std::int64_t*> numbers = {{"cycle-ns", &s.cycle_ps},
                                                        {"link-ns", &s.link_ps},
                                                        {"nic-ns", &s.nic_ps},
                                                        {"send-ns", &s.send_ps},
                                                        {"receive-ns", &s.receive_ps}};
  for (const auto& [name, value] : options.changed) {
    *numbers.at(name) = static_cast<std::int64_t>(value * kPsPerNs);
  }
  if (s.cycle_ps <= 0) fail("--cycle-ns is more than 0");
  if (options.ports > 0) s.ports = options.ports;
  if (options.window > 0) {
    if (!std::has_single_bit(static_cast<unsigned>(options.window))) {
      fail("--window {} is no power of two", options.window);
    }
    s.window = options.window;
  }
  return machine;
}

Json hop_json(const tree::Hop& hop) {
  return {{"up_cycles", hop.up}, {"down_cycles", hop.down ? Json(*hop.down) : Json()}};
}

struct ByHosts {
  tree::Cycles tree = 0, fat_tree = 0;
  bool hardware = false;  // the tree is of the same switches, not of models
};

class Report {
 public:
  Report(const SwitchTreeOptions& options, const machine::Machine& machine)
      : options_(options), machine_(machine) {}

  /// `hosts`: what hosts take by themselves, if that was asked for.
  void add(std::uint32_t nodes, std::int64_t bytes, const tree::Tree& tree, const tree::Call& call,
           const std::optional<ByHosts>& hosts, double wall_s) {
    const double us = us_of(call.cycles);
    Json hops = Json::array();
    std::string up, down;
    for (const tree::Hop& hop : call.hops) {
      hops.push_back(hop_json(hop));
      up += fmt::format("{}{}", up.empty() ? "" : " ", hop.up);
      if (hop.down) down += fmt::format("{}{}", down.empty() ? "" : " ", *hop.down);
    }
    rows_.push_back({{"nodes", nodes},
                     {"bytes", bytes},
                     {"switches", tree.switches()},
                     {"levels", tree.levels()},
                     {"cycles", call.cycles},
                     {"latency_us", us},
                     {"hops", hops},
                     {"most_waiting_bytes", call.most_waiting_words * tree::kWordBytes},
                     {"switch_cycles", call.switch_cycles},
                     {"evaluated_cycles", call.evaluated_cycles},
                     {"hosts", hosts ? hosts_json(*hosts, call) : Json()},
                     {"wall_s", wall_s}});
    table_.add({fmt::format("{}", nodes), short_bytes(bytes), fmt::format("{}", tree.levels()),
                fmt::format("{}", call.cycles), fmt::format("{:.3f}", us), up, down,
                fmt::format("{}", call.most_waiting_words * tree::kWordBytes),
                hosts ? times_text(hosts->tree, call) : "",
                hosts ? times_text(hosts->fat_tree, call) : "", fmt::format("{:.1f}", wall_s)});
    auto& [first, last] = span_[bytes];
    if (first.nodes == 0 || nodes < first.nodes) first = {nodes, us};
    if (nodes >= last.nodes) last = {nodes, us};
  }

  void print(const tree::Tree& tree) const {
    const machine::InSwitch& s = machine_.in_switch;
    const auto ns = [](std::int64_t ps) { return static_cast<double>(ps) / kPsPerNs; };
    Json growth = Json::array();
    for (const auto& [bytes, range] : span_) {
      if (range.first.nodes == range.last.nodes) continue;
      growth.push_back({{"bytes", bytes},
                        {"from_nodes", range.first.nodes},
                        {"to_nodes", range.last.nodes},
                        {"us", range.last.us - range.first.us}});
    }
    if (options_.json) {
      const Json json{{"machine", machine_.name},
                      {"operation", options_.op},
                      {"type", options_.type},
                      {"cycle_ns", ns(s.cycle_ps)},
                      {"link_ns", ns(s.link_ps)},
                      {"nic_ns", ns(s.nic_ps)},
                      {"send_ns", ns(s.send_ps)},
                      {"receive_ns", ns(s.receive_ps)},
                      {"radix", tree.radix()},
                      {"window", tree.window()},
                      {"rows", rows_},
                      {"growth", growth}};
      std::puts(json.dump(2).c_str());
      return;
    }
    fmt::print(
        "allreduce, {} of {}, in switches of {} ports at {:.4g} MHz (simulated; what place and "
        "route reaches: docs/switch-hardware.md), windows of {}, links of {:g} ns; hosts as of {}: "
        "{:g} ns a packet, {:g} a result, {:g} in the NIC each way, and copies\n\n{}",
        options_.op, options_.type, tree.radix(), 1e6 / static_cast<double>(s.cycle_ps),
        tree.window(), ns(s.link_ps), machine_.name, ns(s.send_ps), ns(s.receive_ps), ns(s.nic_ps),
        table_.text());
    for (const Json& each : growth) {
      fmt::print("growth of {} from {} to {} nodes: {:.3f} us\n",
                 short_bytes(each["bytes"].integer()), each["from_nodes"].dump(),
                 each["to_nodes"].dump(), each["us"].number());
    }
  }

 private:
  struct Point {
    std::uint32_t nodes = 0;
    double us = 0;
  };
  struct Span {
    Point first, last;
  };

  [[nodiscard]] Json hosts_json(const ByHosts& hosts, const tree::Call& call) const {
    const auto times = [&](tree::Cycles cycles) {
      return static_cast<double>(cycles) / static_cast<double>(call.cycles);
    };
    return {{"tree_by", hosts.hardware ? "rtl" : "model"},
            {"tree_cycles", hosts.tree},
            {"tree_us", us_of(hosts.tree)},
            {"tree_times", times(hosts.tree)},
            {"fat_tree_cycles", hosts.fat_tree},
            {"fat_tree_us", us_of(hosts.fat_tree)},
            {"fat_tree_times", times(hosts.fat_tree)}};
  }
  [[nodiscard]] std::string times_text(tree::Cycles cycles, const tree::Call& call) const {
    return fmt::format("{:.2f} ({:.1f}x)", us_of(cycles),
                       static_cast<double>(cycles) / static_cast<double>(call.cycles));
  }
  [[nodiscard]] double us_of(tree::Cycles cycles) const {
    return static_cast<double>(cycles * machine_.in_switch.cycle_ps) / kPsPerUs;
  }

  const SwitchTreeOptions& options_;
  const machine::Machine& machine_;
  Json rows_ = Json::array();
  Table table_{{">nodes", ">bytes", ">levels", ">cycles", ">us", "up, cycles", "down",
                ">waiting, B", ">hosts, tree, us", ">fat tree, us", ">wall, s"}};
  std::map<std::int64_t, Span> span_;
};

int threads_of(const SwitchTreeOptions& options) {
  return options.threads > 0 ? options.threads : usable_cores();
}

class Hosts {
 public:
  Hosts(const SwitchTreeOptions& options, const machine::Machine& machine)
      : options_(options), machine_(machine) {
    if (options.against != kNone) timing_ = value_or_fail(tree::measure_forwarding());
  }

  [[nodiscard]] std::optional<ByHosts> allreduce(std::uint32_t nodes,
                                                 const tree::Message& message) const {
    if (options_.against == kNone) return std::nullopt;
    ByHosts hosts;
    hosts.hardware = nodes <= tree::kForwardEntries;
    tree::DoublingConfig config = {
        .hosts = nodes,
        .machine = machine_,
        .messages = options_.against == kMpi ? tree::Messages::kMpi : tree::Messages::kWrites,
        .fabric = hosts.hardware ? tree::Fabric::kHardwareTree : tree::Fabric::kTree,
        .timing = timing_,
        .threads = threads_of(options_)};
    hosts.tree = value_or_fail(tree::allreduce_by_hosts(config, message));
    config.fabric = tree::Fabric::kFatTree;
    hosts.fat_tree = value_or_fail(tree::allreduce_by_hosts(config, message));
    return hosts;
  }

 private:
  const SwitchTreeOptions& options_;
  const machine::Machine& machine_;
  tree::ForwardTiming timing_;
};

int run(const SwitchTreeOptions& options) {
  const machine::Machine machine = machine_of(options);
  const Hosts hosts(options, machine);
  Report report(options, machine);
  std::unique_ptr<tree::Tree> tree;
  for (const std::uint32_t nodes : options.nodes) {
    tree.reset();  // before there is memory for the next
    tree = value_or_fail(
        tree::Tree::make({.hosts = nodes, .machine = machine, .threads = threads_of(options)}));
    for (const std::int64_t bytes : parse_sizes(options.bytes)) {
      const auto begin = std::chrono::steady_clock::now();
      const tree::Message message = message_of(options, bytes);
      const tree::Call call = value_or_fail(tree->allreduce(message));
      const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
      report.add(nodes, bytes, *tree, call, hosts.allreduce(nodes, message), wall.count());
    }
  }
  report.print(*tree);
  return 0;
}

#else

int run(const SwitchTreeOptions&) {
  fail("switch-tree is not part of this build: it was made without Verilator");
}

#endif

}  // namespace

Action define_switch_tree(Command command) {
  auto options = std::make_shared<SwitchTreeOptions>();
  command.option("--nodes,-n", options->nodes, "of each tree, as 2,16,256")
      .comma_separated()
      .in_range(2, 4096)
      .with_default();
  command.option("--bytes,-b", options->bytes, "of each message, as 8,64K").with_default();
  command.option("--op", options->op, "what is computed").with_default();
  command.option("--type", options->type, "of what").with_default();
  command
      .option("--machine,-m", options->machine,
              "clock, links and hosts: sections switch and memory of a machine (carillon model "
              "--list), or of a machine file; its cycles of switches do not count here")
      .with_default();
  for (const char* const name : {"cycle-ns", "link-ns", "nic-ns", "send-ns", "receive-ns"}) {
    command
        .number(
            fmt::format("--{}", name),
            [options, name](double value) { options->changed[name] = value; },
            "instead of the machine's")
        .in_range(0.0, 1e9);
  }
  command
      .option("--radix,--ports", options->ports,
              fmt::format("children of a switch, at most; the hardware of this build has {}",
                          kMostPorts))
      .in_range(2, kMostPorts);
  command
      .number(
          "--mhz", [options](double mhz) { options->changed["cycle-ns"] = kNsPerMhzCycle / mhz; },
          "the simulated clock, instead of the machine's --cycle-ns")
      .in_range(1.0, 1e4)
      .excludes("--cycle-ns");
  command.option("--window", options->window, "packets in flight, a power of two; at most 16")
      .in_range(1, 16);
  command
      .option("--against", options->against,
              "what hosts take by themselves, by recursive doubling over the same switches, and "
              "over a fat tree of full bisection: by writes of adapters, or by MPI over TCP")
      .one_of({kNone, kWrites, kMpi})
      .with_default();
  command.option("--threads", options->threads, "that switches are gone through by; default: cores")
      .in_range(1, 1024);
  command.flag("--json", options->json, "print JSON");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
