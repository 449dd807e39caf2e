// SPDX-License-Identifier: Apache-2.0
//
// Two switches in hardware with a link between them, each with a host that sends as fast as it can
// to one behind the other switch. With inputs that have an end to their patience they do not wait
// for each other; frames that found no room are counted, and all others arrive, in order and whole.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>

#include "switch/rtl/frames.h"
#include "switch/rtl/module.h"
#include "switch/rtl/operands.h"
#include "switch/rtl/switch_shape.h"

namespace carillon::rtl {
namespace {

constexpr std::size_t kLink = 0, kSender = 2, kReceiver = 3, kOverrun = 17;
constexpr std::size_t kSent = 400;  // frames of each sender
constexpr std::uint16_t kPatience = 100;

constexpr std::uint64_t receiver_mac(std::size_t at) { return 0x020000000200 + at; }

class Links {
 public:
  Links() {
    for (std::size_t i = 0; i < 2; ++i) {
      SwitchModule& one = *switches_[i];
      one.own_mac_i = 0x0200000000f0 + i;
      one.control_port_i = kPorts - 1;
      one.patience_i = kPatience;
      one.control_valid_i = one.s_valid_i = one.m_ready_i = 0;
      reset(one);
    }
    for (const int level : {0, 1}) {
      for (auto& one : switches_) {
        one->rst_ni = level != 0;
        rise(*one);
        fall(*one);
      }
    }
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t to = 0; to < 2; ++to) place(*switches_[i], to, i == to ? kReceiver : kLink);
    }
  }

  // From the sender at a switch to the receiver at the other.
  void send(std::size_t at, Bytes frame) { in_[at].push_back(std::move(frame)); }

  void cycle() {
    for (std::size_t i = 0; i < 2; ++i) {
      SwitchModule& one = *switches_[i];
      const SwitchModule& other = *switches_[1 - i];
      one.s_valid_i = static_cast<std::uint8_t>(other.m_valid_o >> kLink & 1);
      one.s_data_i[2 * kLink] = static_cast<std::uint32_t>(other.m_data_o);
      one.s_data_i[2 * kLink + 1] = static_cast<std::uint32_t>(other.m_data_o >> 32);
      one.s_keep_i = other.m_keep_o;
      one.s_last_i = other.m_last_o;
      // All that leaves elsewhere is taken.
      one.m_ready_i = static_cast<std::uint8_t>(0xfe | (other.s_ready_o >> kLink & 1));
      offer(i);
    }
    // None of what is read of one depends on what is set of the other before the clock rises.
    for (std::size_t i = 0; i < 2; ++i) {
      switches_[i]->eval();
      advance(i);
      collect(i);
    }
    for (auto& one : switches_) rise(*one);
    for (auto& one : switches_) fall(*one);
  }

  [[nodiscard]] std::size_t waiting() const { return in_[0].size() + in_[1].size(); }
  [[nodiscard]] std::uint64_t overruns(std::size_t at) const {
    return switches_[at]->counters_o[2 * kOverrun];
  }
  [[nodiscard]] const std::vector<Bytes>& received(std::size_t at) const { return received_[at]; }

 private:
  static void place(SwitchModule& one, std::size_t index, std::size_t port) {
    const Record record = Record().add(1, 1).add(receiver_mac(index), 48).add(port, 8);
    one.control_table_i = static_cast<std::uint8_t>(Table::kForward);
    one.control_index_i = static_cast<std::uint16_t>(index);
    for (std::size_t i = 0; i < Record::kBits / 32; ++i) one.control_record_i[i] = record.word(i);
    one.control_valid_i = 1;
    one.eval();
    ASSERT_EQ(one.control_ready_o, 1);
    rise(one);
    fall(one);
    one.control_valid_i = 0;
  }

  void offer(std::size_t i) {
    if (in_[i].empty()) return;
    SwitchModule& one = *switches_[i];
    const Bytes& frame = in_[i].front();
    const std::size_t bytes = std::min<std::size_t>(8, frame.size() - at_[i]);
    std::uint64_t word = 0;
    std::memcpy(&word, &frame[at_[i]], bytes);
    one.s_valid_i |= 1U << kSender;
    one.s_data_i[2 * kSender] = static_cast<std::uint32_t>(word);
    one.s_data_i[2 * kSender + 1] = static_cast<std::uint32_t>(word >> 32);
    one.s_keep_i |= std::uint64_t{(1U << bytes) - 1} << (8 * kSender);
    const unsigned last = at_[i] + bytes == frame.size() ? 1U << kSender : 0;
    one.s_last_i = static_cast<std::uint8_t>((one.s_last_i & 1U << kLink) | last);
  }

  void advance(std::size_t i) {
    if (in_[i].empty() || (switches_[i]->s_ready_o >> kSender & 1) == 0) return;
    at_[i] += 8;
    if (at_[i] < in_[i].front().size()) return;
    in_[i].pop_front();
    at_[i] = 0;
  }

  void collect(std::size_t i) {
    const SwitchModule& one = *switches_[i];
    if ((one.m_valid_o >> kReceiver & 1) == 0) return;
    for (std::size_t byte = 0; byte < 8; ++byte) {
      if ((one.m_keep_o >> byte & 1) == 0) continue;
      out_[i].push_back(static_cast<std::byte>(one.m_data_o >> (8 * byte)));
    }
    if (one.m_last_o == 0) return;
    received_[i].push_back(std::move(out_[i]));
    out_[i].clear();
  }

  std::array<std::unique_ptr<SwitchModule>, 2> switches_ = {make_module<SwitchModule>(),
                                                            make_module<SwitchModule>()};
  std::array<std::deque<Bytes>, 2> in_;
  std::array<std::size_t, 2> at_ = {};
  std::array<Bytes, 2> out_;
  std::array<std::vector<Bytes>, 2> received_;
};

TEST(RtlLinksTest, BothWays) {
  constexpr std::size_t kMostCycles = 1'000'000;  // they need a tenth of it
  Operands random(3);
  Links links;
  std::array<std::vector<Bytes>, 2> sent;
  for (std::size_t i = 0; i < kSent; ++i) {
    for (std::size_t at = 0; at < 2; ++at) {
      Bytes frame(14 + random.below(600));
      for (std::byte& byte : frame) byte = static_cast<std::byte>(random.bits());
      store_mac(frame.data(), receiver_mac(1 - at));
      sent[at].push_back(frame);
      links.send(at, std::move(frame));
    }
  }
  std::size_t cycles = 0;
  for (; links.waiting() > 0 && cycles < kMostCycles; ++cycles) links.cycle();
  ASSERT_EQ(links.waiting(), 0U) << "they stand still";
  for (int i = 0; i < 2000; ++i) links.cycle();  // the last ones
  std::size_t arrived = 0;
  for (std::size_t at = 0; at < 2; ++at) {
    std::size_t next = 0;
    for (const Bytes& frame : links.received(at)) {
      while (next < kSent && sent[1 - at][next] != frame) ++next;
      ASSERT_LT(next, kSent) << "none of those that are left";
      ++next;
    }
    EXPECT_GT(links.received(at).size(), kSent / 10);
    arrived += links.received(at).size();
  }
  EXPECT_EQ(arrived + links.overruns(0) + links.overruns(1), 2 * kSent);
  EXPECT_LT(arrived, 2 * kSent);  // there was not room for all
}

}  // namespace
}  // namespace carillon::rtl
