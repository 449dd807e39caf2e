// SPDX-License-Identifier: Apache-2.0
//
// Two switches in hardware with a link between them, each with two hosts that send as fast as they
// can to one behind the other switch: more than the link takes, so that both switches may have a
// frame for it while the other one still has the one before. With inputs that have an end to their
// patience they do not wait for each other; frames that found no room are counted, and all others
// arrive, in order and whole. With a patience without end the same frames end in a standstill.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>

#include "switch/frames/frames.h"
#include "switch/rtl/module.h"
#include "switch/rtl/operands.h"
#include "switch/rtl/switch_shape.h"

namespace carillon::rtl {
namespace {

constexpr std::size_t kLink = 0, kReceiver = 1, kSender = 2, kSenders = 2, kOverrun = 17;
constexpr std::size_t kSent = 200;  // frames of each sender
constexpr std::size_t kMostCycles = 1'000'000;
constexpr std::uint16_t kPatience = 100, kWithoutEnd = 0xffff;

constexpr std::uint64_t receiver_mac(std::size_t at) { return 0x020000000200 + at; }

class Links {
 public:
  explicit Links(std::uint16_t patience) {
    for (std::size_t i = 0; i < 2; ++i) {
      SwitchModule& one = *switches_[i];
      one.own_mac_i = 0x0200000000f0 + i;
      one.control_port_i = kPorts - 1;
      one.patience_i = patience;
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

  // From a sender at a switch to the receiver at the other.
  void send(std::size_t at, std::size_t sender, Bytes frame) {
    in_[at][sender].frames.push_back(std::move(frame));
  }

  void cycle() {
    for (std::size_t i = 0; i < 2; ++i) {
      SwitchModule& one = *switches_[i];
      const SwitchModule& other = *switches_[1 - i];
      one.s_valid_i = static_cast<std::uint8_t>(other.m_valid_o >> kLink & 1);
      one.s_data_i[2 * kLink] = other.m_data_o[2 * kLink];
      one.s_data_i[2 * kLink + 1] = other.m_data_o[2 * kLink + 1];
      one.s_keep_i = other.m_keep_o >> (8 * kLink) & 0xff;
      one.s_last_i = static_cast<std::uint8_t>(other.m_last_o >> kLink & 1);
      // All that leaves elsewhere is taken.
      one.m_ready_i = static_cast<std::uint8_t>(0xfe | (other.s_ready_o >> kLink & 1));
      for (std::size_t sender = 0; sender < kSenders; ++sender) offer(i, sender);
    }
    // None of what is read of one depends on what is set of the other before the clock rises.
    for (std::size_t i = 0; i < 2; ++i) {
      switches_[i]->eval();
      for (std::size_t sender = 0; sender < kSenders; ++sender) advance(i, sender);
      collect(i);
    }
    for (auto& one : switches_) rise(*one);
    for (auto& one : switches_) fall(*one);
  }

  [[nodiscard]] std::size_t waiting() const {
    std::size_t frames = 0;
    for (const auto& senders : in_) {
      for (const Input& input : senders) frames += input.frames.size();
    }
    return frames;
  }
  [[nodiscard]] std::uint64_t overruns(std::size_t at) const {
    return switches_[at]->counters_o[2 * kOverrun];
  }
  [[nodiscard]] const std::vector<Bytes>& received(std::size_t at) const { return received_[at]; }

 private:
  struct Input {
    std::deque<Bytes> frames;
    std::size_t at = 0;  // so many bytes of the first have been taken
  };

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

  void offer(std::size_t i, std::size_t sender) {
    const Input& input = in_[i][sender];
    if (input.frames.empty()) return;
    SwitchModule& one = *switches_[i];
    const std::size_t port = kSender + sender;
    const Bytes& frame = input.frames.front();
    const std::size_t bytes = std::min<std::size_t>(8, frame.size() - input.at);
    std::uint64_t word = 0;
    std::memcpy(&word, &frame[input.at], bytes);
    one.s_valid_i = static_cast<std::uint8_t>(one.s_valid_i | 1U << port);
    one.s_data_i[2 * port] = static_cast<std::uint32_t>(word);
    one.s_data_i[2 * port + 1] = static_cast<std::uint32_t>(word >> 32);
    one.s_keep_i |= std::uint64_t{(1U << bytes) - 1} << (8 * port);
    const unsigned last = input.at + bytes == frame.size() ? 1U << port : 0;
    one.s_last_i = static_cast<std::uint8_t>(one.s_last_i | last);
  }

  void advance(std::size_t i, std::size_t sender) {
    Input& input = in_[i][sender];
    if (input.frames.empty() || (switches_[i]->s_ready_o >> (kSender + sender) & 1) == 0) return;
    input.at += 8;
    if (input.at < input.frames.front().size()) return;
    input.frames.pop_front();
    input.at = 0;
  }

  void collect(std::size_t i) {
    const SwitchModule& one = *switches_[i];
    if ((one.m_valid_o >> kReceiver & 1) == 0) return;
    for (std::size_t byte = 0; byte < 8; ++byte) {
      if ((one.m_keep_o >> (8 * kReceiver + byte) & 1) == 0) continue;
      const std::uint32_t half = one.m_data_o[2 * kReceiver + byte / 4];
      out_[i].push_back(static_cast<std::byte>(half >> (8 * (byte % 4))));
    }
    if ((one.m_last_o >> kReceiver & 1) == 0) return;
    received_[i].push_back(std::move(out_[i]));
    out_[i].clear();
  }

  std::array<ModulePointer<SwitchModule>, 2> switches_ = {make_module<SwitchModule>(),
                                                          make_module<SwitchModule>()};
  std::array<std::array<Input, kSenders>, 2> in_;
  std::array<Bytes, 2> out_;
  std::array<std::vector<Bytes>, 2> received_;
};

// What each sender of each switch has sent.
using Sent = std::array<std::array<std::vector<Bytes>, kSenders>, 2>;

Sent send_all(Links& links) {
  Operands random(3);
  Sent sent;
  for (std::size_t i = 0; i < kSent * kSenders * 2; ++i) {
    const std::size_t at = i % 2, sender = i / 2 % kSenders;
    Bytes frame(14 + random.below(600));
    for (std::byte& byte : frame) byte = static_cast<std::byte>(random.bits());
    store_mac(frame.data(), receiver_mac(1 - at));
    store_mac(&frame[6], sender);
    sent[at][sender].push_back(frame);
    links.send(at, sender, std::move(frame));
  }
  return sent;
}

TEST(RtlLinksTest, PatienceThatEnds) {
  Links links(kPatience);
  const Sent sent = send_all(links);
  for (std::size_t i = 0; links.waiting() > 0 && i < kMostCycles; ++i) links.cycle();
  ASSERT_EQ(links.waiting(), 0U) << "they stand still";
  for (int i = 0; i < 2000; ++i) links.cycle();  // the last ones
  std::size_t arrived = 0;
  for (std::size_t at = 0; at < 2; ++at) {
    std::array<std::size_t, kSenders> next = {};
    for (const Bytes& frame : links.received(at)) {
      ASSERT_GE(frame.size(), 14U);
      const std::uint64_t sender = load_mac(&frame[6]);
      ASSERT_LT(sender, kSenders);
      const auto& from = sent[1 - at][sender];
      while (next[sender] < kSent && from[next[sender]] != frame) ++next[sender];
      ASSERT_LT(next[sender]++, kSent) << "none of those that are left";
    }
    EXPECT_GT(links.received(at).size(), kSent / 10);
    arrived += links.received(at).size();
  }
  EXPECT_EQ(arrived + links.overruns(0) + links.overruns(1), 2 * kSenders * kSent);
  EXPECT_LT(arrived, 2 * kSenders * kSent);  // there was not room for all
}

TEST(RtlLinksTest, PatienceWithoutEnd) {
  Links links(kWithoutEnd);
  send_all(links);
  constexpr std::size_t kStandstill = 10'000;  // the longest frame takes some hundred cycles
  std::size_t before = 0;
  while (links.waiting() > 0 && links.waiting() != before) {
    before = links.waiting();
    for (std::size_t i = 0; i < kStandstill; ++i) links.cycle();
  }
  EXPECT_GT(links.waiting(), 0U) << "these frames show nothing";
  EXPECT_EQ(links.overruns(0) + links.overruns(1), 0U);
}

}  // namespace
}  // namespace carillon::rtl
