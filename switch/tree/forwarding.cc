// SPDX-License-Identifier: Apache-2.0
#include "switch/tree/forwarding.h"

#include <algorithm>

#include "switch/tree/addresses.h"
#include "switch/tree/hardware_switch.h"

namespace carillon::tree {

// A frame's turn comes when so many that were chosen before have not left yet (sw_sender.sv).
constexpr std::size_t kChosenAhead = 3;

void ForwardingSwitch::attach(std::size_t port, Link& in, Link& out) {
  ports_[port].in = &in;
  ports_[port].out = &out;
}

// When what the port keeps could leave.
Cycles ForwardingSwitch::ready(const Port& port) const {
  if (port.frames.empty()) return kNever;
  return std::max(port.frames.front().last + timing_.latency, port.again);
}

Cycles ForwardingSwitch::next_turn() const {
  Cycles first = kNever;
  for (const Port& port : ports_) first = std::min(first, ready(port));
  if (first == kNever || ends_.size() < kChosenAhead) return first;
  return std::max(first, ends_.front());
}

Cycles ForwardingSwitch::next() const {
  Cycles next = next_turn();
  for (const Port& port : ports_) {
    if (port.in != nullptr) next = std::min(next, port.in->next());
  }
  return next;
}

// What is whole before `end`, in the order in which it is.
void ForwardingSwitch::take_in(Cycles end, std::vector<Frame>* whole) {
  for (std::size_t at = 0; at < ports_.size(); ++at) {
    Port& port = ports_[at];
    if (port.in == nullptr) continue;
    while (port.in->next() < end) {
      const Cycles cycle = port.in->next();
      const bool is_whole = port.reader.add(port.in->front());
      port.in->pop();
      if (is_whole) whole->push_back({port.reader.frame(), at, cycle});
    }
  }
  std::ranges::stable_sort(*whole, {}, &Frame::last);
}

void ForwardingSwitch::pass_on(const Frame& frame, Cycles cycle) {
  Port& port = ports_[routes_[rank_of(rtl::load_mac(frame.bytes.data()))]];
  const Cycles end = port.out->send(std::max(cycle, port.free), frame.bytes);
  sent_last_ = end - 1;
  port.free = end + kGapCycles;
}

void ForwardingSwitch::take_turn(Cycles cycle) {
  std::size_t at = last_;
  do {
    at = (at + 1) % ports_.size();
  } while (ready(ports_[at]) > cycle);
  last_ = at;
  Port& port = ports_[at];
  const Cycles before = ends_.empty() ? 0 : ends_.back();
  pass_on(port.frames.front(), std::max(cycle, before));
  port.frames.pop_front();
  port.again = sent_last_ + timing_.again;
  ends_.push_back(sent_last_ + timing_.between);
  if (ends_.size() > kChosenAhead) ends_.pop_front();
}

void ForwardingSwitch::run(Cycles, Cycles end) {
  std::vector<Frame> whole;
  take_in(end, &whole);
  for (Frame& frame : whole) {
    if (one_at_a_time_) {
      ports_[frame.port].frames.push_back(std::move(frame));
    } else {
      pass_on(frame, frame.last + timing_.latency);
    }
  }
  for (Cycles turn = next_turn(); turn < end; turn = next_turn()) take_turn(turn);
}

namespace {

// When the first and the last word of each frame leave a switch to whose ports these frames come,
// in order.
struct Leaves {
  Cycles first = 0, last = 0;
};

constexpr std::size_t kWords = 11, kTo = 4;

Result<std::vector<Leaves>> leaves(const std::vector<std::size_t>& ports) {
  HardwareSwitch one(switch_address(0, kProcessorPort));
  const rtl::Record place = rtl::Record().add(1, 1).add(host_address(kTo, kTo).mac, 48).add(kTo, 8);
  if (Status wrote = one.write(rtl::Table::kForward, 0, place); !wrote.ok()) return wrote;
  std::vector<Link> in(kPorts, Link(1)), out(kPorts, Link(1));
  for (std::size_t port = 0; port < kPorts; ++port) one.attach(port, in[port], out[port]);
  rtl::Bytes frame(kWords * kWordBytes);
  rtl::store_mac(frame.data(), host_address(kTo, kTo).mac);
  Cycles end = 0;
  for (const std::size_t port : ports) {
    end = in[port].send(in[port].last_sent() + 1, frame);
    in[port].pass();
  }
  constexpr Cycles kMostCycles = 10'000;
  one.run(0, end + kMostCycles);
  if (Status fine = one.check(); !fine.ok()) return fine;
  out[kTo].pass();
  std::vector<Leaves> all;
  FrameReader reader;
  for (; out[kTo].next() != kNever; out[kTo].pop()) {
    const Cycles cycle = out[kTo].next() - out[kTo].delay();
    if (reader.begins()) all.push_back({cycle, cycle});
    if (reader.add(out[kTo].front())) all.back().last = cycle;
  }
  if (all.size() == ports.size()) return all;
  return Status(Code::kInternal, "switch-tree: the hardware does not pass frames on");
}

}  // namespace

Result<ForwardTiming> measure_forwarding() {
  const auto two_ports = leaves({0, 1});
  if (!two_ports.ok()) return two_ports.status();
  const auto one_port = leaves({0, 0});
  if (!one_port.ok()) return one_port.status();
  const std::vector<Leaves>&apart = two_ports.value(), &behind = one_port.value();
  constexpr Cycles kBehindTheFirst = kWords - 1;
  ForwardTiming timing;
  // Words come in the cycle after that in which they are sent.
  timing.latency = apart[0].first - (kBehindTheFirst + 1);
  timing.between = apart[1].first - apart[0].last;
  timing.again = behind[1].first - behind[0].last;
  return timing;
}

}  // namespace carillon::tree
