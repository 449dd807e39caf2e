// SPDX-License-Identifier: Apache-2.0
//
// The ports of the switch in hardware: frames go in and come out word by word, with pauses on
// either side as the test wants.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>

#include "switch/frames/frames.h"
#include "switch/rtl/module.h"
#include "switch/rtl/operands.h"
#include "switch/rtl/switch_shape.h"

namespace carillon::rtl {

inline constexpr std::size_t kCounters = 18;
inline constexpr std::uint16_t kPatienceWithoutEnd = 0xffff;
inline constexpr std::uint8_t kControlPort = kPorts - 1;
inline constexpr Address kSwitch = {
    .port = kControlPort, .mac = 0x0200000000fe, .endpoint = {0x0a0000fe, aggregate::kUdpPort}};

/// Of 100 cycles, those in which a port has nothing for the switch, and those in which it takes
/// nothing of it.
struct Pauses {
  unsigned idle = 0;
  unsigned stall = 0;
};

class SwitchBench {
 public:
  using Handler = std::function<void(std::size_t port, const Bytes& frame)>;

  /// `taken`: the switch begins with a frame, with those of a cycle in the order of the ports;
  /// `sent`: one has left it.
  SwitchBench(std::uint64_t seed, Handler taken, Handler sent)
      : taken_(std::move(taken)), sent_(std::move(sent)), random_(seed) {
    switch_->own_mac_i = kSwitch.mac;
    switch_->own_ip_i = kSwitch.endpoint.ip;
    switch_->own_udp_port_i = kSwitch.endpoint.port;
    switch_->control_port_i = kControlPort;
    switch_->patience_i = kPatienceWithoutEnd;
    switch_->control_valid_i = 0;
    for (std::size_t i = 0; i < kPorts; ++i) {
      set_bit(switch_->s_valid_i, i, false);
      set_bit(switch_->m_ready_i, i, false);
    }
    reset(*switch_);
    // Assertions look back by a cycle.
    switch_->rst_ni = 0;
    rise(*switch_);
    fall(*switch_);
    switch_->rst_ni = 1;
  }

  /// A reset, whatever is under way, for so many cycles, or for none: between two of them. All
  /// frames on either side are gone.
  void reset_again(std::uint64_t cycles) {
    switch_->rst_ni = 0;
    switch_->control_valid_i = 0;
    for (std::size_t i = 0; i < kPorts; ++i) {
      ports_[i] = {.pauses = ports_[i].pauses};
      set_bit(switch_->s_valid_i, i, false);
      set_bit(switch_->m_ready_i, i, false);
    }
    switch_->eval();
    for (std::uint64_t i = 0; i < cycles; ++i) {
      rise(*switch_);
      fall(*switch_);
    }
    switch_->rst_ni = 1;
    // Assertions look back by a cycle.
    Verilated::assertOn(false);
    for (int i = 0; i < 2; ++i) {
      ASSERT_NO_FATAL_FAILURE(cycle());
    }
    Verilated::assertOn(true);
  }

  void set_pauses(std::size_t port, const Pauses& pauses) { ports_[port].pauses = pauses; }
  /// With an end, `taken` is given the frame that came first of those that the switch has, or
  /// dropped.
  void set_patience(std::uint16_t cycles) { switch_->patience_i = cycles; }
  void set_control_port(std::uint8_t port) { switch_->control_port_i = port; }
  void send(std::size_t port, Bytes frame) { ports_[port].in.push_back(std::move(frame)); }
  [[nodiscard]] std::size_t waiting(std::size_t port) const { return ports_[port].in.size(); }
  /// Whether a port has taken a beat in the last cycle.
  [[nodiscard]] bool took() const { return took_; }
  [[nodiscard]] std::uint64_t cycles() const { return cycles_; }
  /// Cycles in which it has begun with more than one frame.
  [[nodiscard]] std::uint64_t together() const { return together_; }
  [[nodiscard]] std::uint64_t counter(std::size_t i) const {
    return std::uint64_t{switch_->counters_o[2 * i + 1]} << 32 | switch_->counters_o[2 * i];
  }

  /// Bit i: something came to group i, as of the last record that was written.
  [[nodiscard]] std::uint64_t touched() const { return touched_; }

  /// Waits until the switch has taken it.
  void write(Table table, std::size_t index, const Record& record) {
    switch_->control_table_i = static_cast<std::uint8_t>(table);
    switch_->control_index_i = static_cast<std::uint16_t>(index);
    for (std::size_t i = 0; i < Record::kBits / 32; ++i) {
      switch_->control_record_i[i] = record.word(i);
    }
    // What lies above the record's bits is none of a port's.
    switch_->control_record_i[Record::kBits / 32 - 1] &= (1U << (314 % 32)) - 1;
    switch_->control_valid_i = 1;
    for (int i = 0;; ++i) {
      ASSERT_LT(i, 1'000'000) << "takes no record";
      cycle();
      if (wrote_) break;
    }
    switch_->control_valid_i = 0;
  }

  void cycle() {
    for (std::size_t i = 0; i < kPorts; ++i) offer(i);
    switch_->eval();
    wrote_ = switch_->control_valid_i != 0 && switch_->control_ready_o != 0;
    if (wrote_) touched_ = switch_->touched_o;
    std::size_t taken = 0;
    for (std::size_t i = 0; i < kPorts; ++i) {
      if (!bit_of(switch_->taken_o, i)) continue;
      ++taken;
      auto& begun = ports_[i].begun;
      ASSERT_FALSE(begun.empty());
      taken_(i, begun.front());
      begun.pop_front();
    }
    if (taken > 1) ++together_;
    took_ = false;
    for (std::size_t i = 0; i < kPorts; ++i) {
      if (ports_[i].offers && bit_of(switch_->s_ready_o, i)) {
        advance(ports_[i]);
        took_ = true;
      }
      if (bit_of(switch_->m_valid_o, i) && bit_of(switch_->m_ready_i, i)) collect(i);
    }
    rise(*switch_);
    fall(*switch_);
    ++cycles_;
  }

 private:
  struct Port {
    Pauses pauses;
    std::deque<Bytes> in;  // to be sent; of the first, at bytes have been taken
    std::size_t at = 0;
    bool offers = false;
    std::deque<Bytes> begun;  // taken, but the switch has not begun with them
    Bytes out;                // of a frame that comes
  };

  void offer(std::size_t i) {
    Port& port = ports_[i];
    // What has been offered stays until it is taken.
    if (!port.offers) port.offers = !port.in.empty() && random_.below(100) >= port.pauses.idle;
    set_bit(switch_->s_valid_i, i, port.offers);
    set_bit(switch_->m_ready_i, i, random_.below(100) >= port.pauses.stall);
    if (!port.offers) return;
    const Bytes& frame = port.in.front();
    const std::size_t bytes = std::min(kDataBytes, frame.size() - port.at);
    for (std::size_t byte = 0; byte < kDataBytes; ++byte) {
      const std::byte value =
          byte < bytes ? frame[port.at + byte] : static_cast<std::byte>(random_.below(256));
      set_byte(switch_->s_data_i, kDataBytes * i + byte, std::to_integer<std::uint8_t>(value));
      set_bit(switch_->s_keep_i, kDataBytes * i + byte, byte < bytes);
    }
    set_bit(switch_->s_last_i, i, port.at + bytes == frame.size());
  }

  static void advance(Port& port) {
    port.offers = false;
    port.at += kDataBytes;
    if (port.at < port.in.front().size()) return;
    port.begun.push_back(std::move(port.in.front()));
    port.in.pop_front();
    port.at = 0;
  }

  void collect(std::size_t i) {
    Bytes& out = ports_[i].out;
    for (std::size_t byte = 0; byte < kDataBytes; ++byte) {
      if (!bit_of(switch_->m_keep_o, kDataBytes * i + byte)) continue;
      out.push_back(std::byte{byte_of(switch_->m_data_o, kDataBytes * i + byte)});
    }
    if (!bit_of(switch_->m_last_o, i)) return;
    sent_(i, out);
    out.clear();
  }

  Handler taken_, sent_;
  Operands random_;
  ModulePointer<SwitchModule> switch_ = make_module<SwitchModule>();
  std::array<Port, kPorts> ports_;
  std::uint64_t cycles_ = 0, touched_ = 0, together_ = 0;
  bool wrote_ = false, took_ = false;
};

}  // namespace carillon::rtl
