// SPDX-License-Identifier: Apache-2.0
#include "switch/tree/hardware_switch.h"

#include <TreeSwitch.h>
#include <verilated.h>

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>

#include "switch/frames/signals.h"

namespace carillon::tree {
namespace {

constexpr std::uint16_t kPatienceWithoutEnd = 0xffff;
constexpr int kMostWriteCycles = 10'000;
// Of the engine's rest, until all that it counts has been counted.
constexpr int kStillCycles = 8;
// In the order of counter_e of sw_switch_pkg: what may be counted in a tree that loses nothing.
constexpr std::size_t kOperandsCounter = 0, kResultsCounter = 1, kForwardedCounter = 15;
constexpr std::size_t kCounters = 18;

// Signals are numbers, or arrays of words if they have more than 64 bits.
template <class Bits, class Signal>
void put(const Bits& bits, Signal& signal) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if constexpr (std::is_integral_v<Signal>) {
      signal = static_cast<Signal>(i == 0 ? bits[0] : signal | std::uint64_t{bits[i]} << (32 * i));
    } else {
      signal[i] = bits[i];
    }
  }
}

template <class Bits, class Signal>
Bits bits_of(const Signal& signal) {
  Bits bits{};
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if constexpr (std::is_integral_v<Signal>) {
      bits[i] = static_cast<std::uint32_t>(std::uint64_t{signal} >> (32 * i));
    } else {
      bits[i] = signal[i];
    }
  }
  return bits;
}

template <class Bits>
bool any(const Bits& bits) {
  return std::ranges::any_of(bits, [](std::uint32_t word) { return word != 0; });
}

}  // namespace

HardwareSwitch::HardwareSwitch(const rtl::Address& own)
    : context_(std::make_unique<VerilatedContext>()),
      module_(std::make_unique<TreeSwitch>(context_.get())) {
  TreeSwitch& it = *module_;
  it.clk_i = 0;
  it.own_mac_i = own.mac;
  it.own_ip_i = own.endpoint.ip;
  it.own_udp_port_i = own.endpoint.port;
  it.control_port_i = kProcessorPort;
  it.patience_i = kPatienceWithoutEnd;
  it.control_valid_i = 0;
  put(PortBits{}, it.s_valid_i);
  put(PortBits{}, it.m_ready_i);
  // No clock before the reset falls: nothing is as it asserts then.
  it.rst_ni = 1;
  it.eval();
  for (const int level : {0, 1}) {
    it.rst_ni = level != 0;
    it.eval();
    tick();
  }
}

HardwareSwitch::~HardwareSwitch() { module_->final(); }

void HardwareSwitch::attach(std::size_t port, Link& in, Link& out) {
  ports_[port].in = &in;
  ports_[port].out = &out;
}

// Inputs and what comes of them have been evaluated with the clock low.
void HardwareSwitch::tick() {
  module_->clk_i = 1;
  module_->eval();
  module_->clk_i = 0;
}

Status HardwareSwitch::write(rtl::Table table, std::size_t index, const rtl::Record& record) {
  TreeSwitch& it = *module_;
  it.control_table_i = static_cast<std::uint8_t>(table);
  it.control_index_i = static_cast<std::uint16_t>(index);
  for (std::size_t i = 0; i < rtl::Record::kBits / 32; ++i) {
    it.control_record_i[i] = record.word(i);
  }
  it.control_valid_i = 1;
  bool taken = false;
  for (int i = 0; i < kMostWriteCycles && !taken; ++i) {
    it.eval();
    taken = it.control_ready_o != 0;
    tick();
  }
  it.control_valid_i = 0;
  if (taken) return {};
  return {Code::kInternal, "switch-tree: the hardware takes no record of a table"};
}

bool HardwareSwitch::rests() const { return rests_ && untaken_ == 0 && still_ >= kStillCycles; }

Cycles HardwareSwitch::next_arrival() const {
  Cycles next = kNever;
  for (const Port& port : ports_) {
    if (port.in != nullptr) next = std::min(next, port.in->next());
  }
  return next;
}

Cycles HardwareSwitch::next() const {
  // Who never rests waits for something nevertheless: else there would be no end.
  if (untaken_ == 0 && still_ >= kStillCycles) return next_arrival();
  return now_;
}

void HardwareSwitch::run(Cycles begin, Cycles end) {
  now_ = std::max(now_, rests_ ? begin : now_);
  while (now_ < end) {
    if (rests()) {
      now_ = std::max(now_, std::min(end, next_arrival()));
      if (now_ == end) return;
      still_ = 0;
    }
    step();
    ++now_;
  }
}

// Whether anything is offered.
bool HardwareSwitch::offer(Cycles cycle) {
  TreeSwitch& it = *module_;
  PortBits valid{}, last{}, ready{};
  for (std::size_t i = 0; i < kPorts; ++i) {
    const Port& port = ports_[i];
    const std::uint32_t bit = std::uint32_t{1} << (i % 32);
    if (port.out == nullptr || port.free <= cycle) ready[i / 32] |= bit;
    if (port.in == nullptr || port.in->next() > cycle) continue;
    const Word& word = port.in->front();
    valid[i / 32] |= bit;
    if (word.last) last[i / 32] |= bit;
    it.s_data_i[2 * i] = static_cast<std::uint32_t>(word.data);
    it.s_data_i[2 * i + 1] = static_cast<std::uint32_t>(word.data >> 32);
    rtl::set_byte(it.s_keep_i, i, word.keep);  // a bit for each of the word's bytes
  }
  put(valid, it.s_valid_i);
  put(last, it.s_last_i);
  put(ready, it.m_ready_i);
  return any(valid);
}

void HardwareSwitch::for_each(const PortBits& bits, void (HardwareSwitch::*handle)(std::size_t)) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    for (std::uint32_t word = bits[i]; word != 0; word &= word - 1) {
      (this->*handle)(32 * i + static_cast<std::size_t>(std::countr_zero(word)));
    }
  }
}

void HardwareSwitch::take_in(std::size_t at) {
  Port& port = ports_[at];
  if (!port.inside) {
    most_waiting_ = std::max(most_waiting_, port.in->waiting(now_));
    ++untaken_;
  }
  const bool last = port.in->front().last;
  port.inside = !last;
  port.in->pop();
  if (!last) return;
  (at == kParentPort ? down_ : up_).in = now_;
}

void HardwareSwitch::send_out(std::size_t at) {
  const TreeSwitch& it = *module_;
  Port& port = ports_[at];
  if (port.out == nullptr) {
    ++lost_;
    return;
  }
  const auto last = bits_of<PortBits>(it.m_last_o);
  const Word word = {.data = std::uint64_t{it.m_data_o[2 * at + 1]} << 32 | it.m_data_o[2 * at],
                     .keep = rtl::byte_of(it.m_keep_o, at),
                     .last = (last[at / 32] >> (at % 32) & 1) != 0};
  port.out->send(now_, word);
  port.free = now_ + 1 + (word.last ? kGapCycles : 0);
  // The root sends down what comes up.
  const bool is_root = ports_[kParentPort].in == nullptr;
  if (word.last) (at == kParentPort || is_root ? up_ : down_).out = now_;
}

void HardwareSwitch::step() {
  TreeSwitch& it = *module_;
  const bool offered = offer(now_);
  it.eval();
  const auto sending = bits_of<PortBits>(it.m_valid_o);
  const auto valid = bits_of<PortBits>(it.s_valid_i), ready = bits_of<PortBits>(it.s_ready_o);
  const auto takes = bits_of<PortBits>(it.m_ready_i), begun = bits_of<PortBits>(it.taken_o);
  PortBits taken{}, sent{};
  for (std::size_t i = 0; i < taken.size(); ++i) {
    taken[i] = valid[i] & ready[i];
    sent[i] = sending[i] & takes[i];
    untaken_ -= std::popcount(begun[i]);
  }
  for_each(taken, &HardwareSwitch::take_in);
  for_each(sent, &HardwareSwitch::send_out);
  const bool moves = offered || any(sending) || it.control_ready_o == 0 || any(begun);
  still_ = moves ? 0 : still_ + 1;
  tick();
  ++evaluated_;
}

Status HardwareSwitch::check() const {
  if (lost_ > 0) {
    return {Code::kInternal, "switch-tree: a switch has sent " + std::to_string(lost_) +
                                 " words to ports without a link"};
  }
  for (std::size_t i = 0; i < kCounters; ++i) {
    if (i == kOperandsCounter || i == kResultsCounter || i == kForwardedCounter) continue;
    const std::uint64_t counted =
        std::uint64_t{module_->counters_o[2 * i + 1]} << 32 | module_->counters_o[2 * i];
    if (counted == 0) continue;
    return {Code::kInternal, "switch-tree: a switch's counter " + std::to_string(i) + " is " +
                                 std::to_string(counted) + ", and should be 0"};
  }
  return {};
}

}  // namespace carillon::tree
