// SPDX-License-Identifier: Apache-2.0
#include "switch/verilated/engine.h"

#include <algorithm>
#include <string>

namespace carillon::rtl {
namespace {

using aggregate::Kind;

aggregate::SwitchConfig with_room(aggregate::SwitchConfig config) {
  config.jobs = std::min(config.jobs, kJobs - 1);
  config.groups = std::min(config.groups, kGroups);
  config.children = std::min(config.children, kChildren);
  config.window = std::min(config.window, kWindow);
  config.operand_bytes = std::min(config.operand_bytes, kOperandBytes);
  return config;
}

// What the hardware hands to the processor: it looks at the header only.
bool is_control(std::span<const std::byte> datagram) {
  if (datagram.size() < aggregate::kHeaderBytes || datagram.size() > aggregate::kMaxDatagramBytes) {
    return false;
  }
  const Header header = aggregate::load_header(datagram.data());
  return header.version == aggregate::kVersion && header.zero == 0 &&
         (header.flags & ~aggregate::kAllFlags) == 0 && is_known(header.reason) &&
         is_known(header.kind) && header.kind != Kind::kContribute &&
         header.kind != Kind::kResult && header.kind != Kind::kRefuse;
}

Status differs(const std::string& how) {
  return {Code::kInternal, "switchd: the hardware is not what the reference is: " + how};
}

}  // namespace

void HardwareEngine::Expected::send(std::span<const Endpoint> to,
                                    std::span<const std::byte> datagram) {
  for (const Endpoint& one : to) {
    const Address address = address_of(one);
    frames.push_back({one, {address.port, frame_of(kOwn, address, datagram)}});
  }
}

HardwareEngine::HardwareEngine(const aggregate::SwitchConfig& config)
    : tables_(hardware_, config.administrator, config.first),
      reference_(with_room(config), &tables_) {}

HardwareEngine::Counts HardwareEngine::counts() const {
  const aggregate::Counters& c = reference_.counters();
  return {c.operands, c.results,      c.resent_results, c.resent_partials, c.duplicates,
          c.refused,  c.refusals,     c.unknown_job,    c.unknown_group,   c.malformed,
          c.bad_tag,  c.wrong_source, c.stale,          c.premature,       c.mismatched};
}

Status HardwareEngine::receive(const Endpoint& from, std::span<const std::byte> datagram,
                               aggregate::Output& output) {
  const Address source = address_of(from);
  const Bytes in = frame_of(source, kOwn, datagram);
  const bool control = is_control(datagram);
  sent_.clear();
  if (Status passed = hardware_.pass(source.port, in, sent_); !passed.ok()) return passed;
  expected_.frames.clear();
  const Counts before = counts();
  reference_.receive(from, datagram, expected_);
  const Counts after = counts();
  if (control) ++forwarded_;
  for (std::size_t i = 0; i < kBoth && !control; ++i) counted_[i] += after[i] - before[i];
  if (!tables_.status().ok()) return tables_.status();
  if (!control) order_sent();
  if (Status same = check_sent(in, control); !same.ok()) return same;
  if (Status same = check_counts(); !same.ok()) return same;
  // Of a packet, what the hardware has sent; of a request, what the processor answers.
  for (std::size_t i = 0; i < expected_.frames.size(); ++i) {
    const auto& [to, frame] = expected_.frames[i];
    const Bytes& bytes = control ? frame.frame : sent_[i].frame;
    output.send({&to, 1}, std::span(bytes).subspan(kDatagramAt));
  }
  return {};
}

// Ports send at once: what leaves by the same one is in order.
void HardwareEngine::order_sent() {
  auto at = sent_.begin();
  for (const auto& [to, frame] : expected_.frames) {
    const auto next = std::ranges::find(at, sent_.end(), frame.port, &SentFrame::port);
    if (next == sent_.end()) return;  // check_sent says so
    std::rotate(at, next, next + 1);
    ++at;
  }
}

Status HardwareEngine::check_sent(const Bytes& in, bool control) const {
  if (control) {
    if (sent_.size() == 1 && sent_[0] == SentFrame{kProcessorPort, in}) return {};
    return differs("a request does not reach the processor");
  }
  if (sent_.size() != expected_.frames.size()) {
    return differs("it sends " + std::to_string(sent_.size()) + " frames, and should " +
                   std::to_string(expected_.frames.size()));
  }
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    if (sent_[i] == expected_.frames[i].second) continue;
    return differs("frame " + std::to_string(i + 1) + " of " + std::to_string(sent_.size()) +
                   " is another one, or leaves by another port");
  }
  return {};
}

Status HardwareEngine::check_counts() const {
  for (std::size_t i = 0; i < kCounters; ++i) {
    const std::uint64_t expected = i < kBoth ? counted_[i] : i == kForwarded ? forwarded_ : 0;
    if (hardware_.counter(i) == expected) continue;
    return differs("its counter " + std::to_string(i) + " is " +
                   std::to_string(hardware_.counter(i)) + ", and should be " +
                   std::to_string(expected));
  }
  return {};
}

Status HardwareEngine::pass_time(std::uint64_t most) {
  reference_.pass_time(most);
  return tables_.status();
}

}  // namespace carillon::rtl
