// SPDX-License-Identifier: Apache-2.0
#include "engine/join_network.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/trace_file.h"
#include "team/bootstrap.h"
#include "transport/fabric/fabric.h"
#include "transport/verbs/verbs.h"
#include "transport/wrap/fault.h"
#include "transport/wrap/trace.h"

namespace carillon {
namespace {

enum Kind : std::uint32_t { kAny, kVerbs, kFabric, kOff };

// What CARILLON_NETWORK asks for.
struct Wanted {
  Kind kind = kAny;
  std::string device;  // verbs: the device; fabric: the provider
};

Wanted read_wanted(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  Wanted wanted{.device = colon == text.npos ? "" : std::string(text.substr(colon + 1))};
  wanted.kind = name.empty()       ? kAny
                : name == "verbs"  ? kVerbs
                : name == "fabric" ? kFabric
                                   : kOff;  // read_config has refused others
  return wanted;
}

// Plain data: it travels as bytes.
struct Choice {
  std::uint32_t wanted = kAny;
  std::uint32_t has_verbs = 0;
};

bool has_rdma_devices() {
  std::error_code error;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", error);
  return !error && devices != std::filesystem::directory_iterator();
}

Result<std::unique_ptr<wire::Wire>> open_wire(Kind kind, const std::string& device) {
  return kind == kVerbs ? verbs::open_wire({.device = device})
                        : fabric::open_wire({.provider = device, .domain = {}});
}

// With faults, if the settings ask for them. Each process has its own draws.
std::unique_ptr<wire::Wire> with_faults(std::unique_ptr<wire::Wire> wire, const Config& settings,
                                        int process) {
  Faults faults = parse_faults(settings.fault).value();  // read_config has refused others
  if (!faults.any()) return wire;
  faults.seed += static_cast<std::uint64_t>(process) << 40;
  return wrap::with_faults(std::move(wire), faults);
}

// Traced, if the settings ask for it; else `trace` stays null.
std::unique_ptr<wire::Wire> with_trace(std::unique_ptr<wire::Wire> wire, const Config& settings,
                                       int process, wrap::Trace** trace) {
  if (settings.trace.empty()) return wire;
  if (Status status = empty_trace_file(settings.trace); !status.ok()) {
    log(LogLevel::kWarning, "not traced: " + status.to_string());
    return wire;
  }
  auto traced = wrap::with_trace(std::move(wire), settings.trace, process);
  *trace = traced.get();
  return traced;
}

// One attempt; everybody takes part, and comes to the same end.
Result<std::unique_ptr<net::Network>> attempt(const crl_oob_t& oob, const Config& settings,
                                              Kind kind, const std::string& device) {
  auto wire = open_wire(kind, device);
  Result<std::unique_ptr<net::Network>> network = wire.status();
  wrap::Trace* trace = nullptr;
  if (wire.ok()) {
    auto wrapped = with_faults(std::move(wire.value()), settings, oob.rank);
    wrapped = with_trace(std::move(wrapped), settings, oob.rank, &trace);
    network = net::Network::create(std::move(wrapped), oob.size, oob.rank,
                                   static_cast<std::uint64_t>(settings.slot_bytes));
  }
  net::Contact mine;
  if (network.ok()) mine = network.value()->contact();
  auto contacts = exchange(oob, mine, static_cast<int>(settings.join_timeout_s));
  if (!contacts.ok()) return contacts.status();
  if (!network.ok()) return network;
  if (Status status = network.value()->meet(contacts.value()->all()); !status.ok()) return status;
  for (int i = 0; trace != nullptr && i < oob.size; ++i) {
    const net::Contact& contact = contacts.value()->all()[static_cast<std::size_t>(i)];
    trace->name_peer(i, {contact.address, contact.address_bytes});
  }
  return network;
}

}  // namespace

Result<std::unique_ptr<net::Network>> join_network(const crl_oob_t& oob, const Config& settings) {
  const Wanted wanted = read_wanted(settings.network);
  const Choice mine{wanted.kind, has_rdma_devices() ? 1U : 0U};
  auto choices = exchange(oob, mine, static_cast<int>(settings.join_timeout_s));
  if (!choices.ok()) return choices.status();
  const auto all = choices.value()->all();
  if (std::any_of(all.begin(), all.end(),
                  [&](const Choice& c) { return c.wanted != all.front().wanted; })) {
    return Status(Code::kUnsupported, "CARILLON_NETWORK is not the same on all nodes");
  }
  if (wanted.kind == kOff) return Status(Code::kUnsupported, "CARILLON_NETWORK is off");
  if (wanted.kind != kAny) return attempt(oob, settings, wanted.kind, wanted.device);
  if (std::all_of(all.begin(), all.end(), [](const Choice& c) { return c.has_verbs != 0; })) {
    auto network = attempt(oob, settings, kVerbs, "");
    if (network.ok()) return network;
    log(LogLevel::kInfo, "not over RDMA verbs: " + network.status().to_string());
  }
  return attempt(oob, settings, kFabric, "");
}

}  // namespace carillon
