// SPDX-License-Identifier: Apache-2.0
#include "switch/tree/hardware_switch.h"

#include <TreeSwitch.h>
#include <verilated.h>

#include <algorithm>
#include <string>

namespace carillon::tree {
namespace {

constexpr std::uint16_t kPatienceWithoutEnd = 0xffff;
constexpr int kMostWriteCycles = 10'000;
// Of the engine's rest, until all that it counts has been counted.
constexpr int kStillCycles = 8;
// In the order of counter_e of sw_switch_pkg: what may be counted in a tree that loses nothing.
constexpr std::size_t kOperandsCounter = 0, kResultsCounter = 1, kForwardedCounter = 15;
constexpr std::size_t kCounters = 18;

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
  it.s_valid_i = 0;
  it.m_ready_i = 0;
  for (const int level : {1, 0, 1}) {
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
  std::uint32_t valid = 0, last = 0, ready = 0;
  for (std::size_t i = 0; i < kPorts; ++i) {
    const Port& port = ports_[i];
    const std::uint32_t bit = std::uint32_t{1} << i;
    if (port.out == nullptr || port.free <= cycle) ready |= bit;
    if (port.in == nullptr || port.in->next() > cycle) continue;
    const Word& word = port.in->front();
    valid |= bit;
    if (word.last) last |= bit;
    it.s_data_i[2 * i] = static_cast<std::uint32_t>(word.data);
    it.s_data_i[2 * i + 1] = static_cast<std::uint32_t>(word.data >> 32);
    std::uint32_t& keep = it.s_keep_i[i / 4];
    const std::size_t shift = kWordBytes * (i % 4);
    keep = (keep & ~(0xffU << shift)) | std::uint32_t{word.keep} << shift;
  }
  it.s_valid_i = valid;
  it.s_last_i = last;
  it.m_ready_i = ready;
  return valid != 0;
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
  const Word word = {.data = std::uint64_t{it.m_data_o[2 * at + 1]} << 32 | it.m_data_o[2 * at],
                     .keep = it.m_keep_o,
                     .last = it.m_last_o != 0};
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
  const std::uint32_t taken = it.s_valid_i & it.s_ready_o;
  const std::uint32_t sent = it.m_valid_o & it.m_ready_i;
  for (std::uint32_t bits = taken; bits != 0; bits &= bits - 1) {
    take_in(static_cast<std::size_t>(std::countr_zero(bits)));
  }
  for (std::uint32_t bits = sent; bits != 0; bits &= bits - 1) {
    send_out(static_cast<std::size_t>(std::countr_zero(bits)));
  }
  if (it.taken_o != 0) --untaken_;
  const bool moves = offered || it.m_valid_o != 0 || it.control_ready_o == 0 || it.taken_o != 0;
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
