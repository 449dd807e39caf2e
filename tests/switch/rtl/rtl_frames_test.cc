// SPDX-License-Identifier: Apache-2.0
//
// Frames as they lie on a wire, written out, and what the switch in hardware makes of each: which
// of them are packets for it, which are for the processor beside it, and which are neither; and
// frames that find no room at a port.
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "switch/rtl/switch_bench.h"

namespace carillon::rtl {
namespace {

// Indices in counter_e of sw_switch_pkg.
constexpr std::size_t kOperands = 0, kMalformed = 9, kForwarded = 15, kUndeliverable = 16,
                      kOverrun = 17;
constexpr std::size_t kMoreThanAPortKeeps = 40;  // of some hundred bytes
constexpr int kLong = 20'000;                    // until those are taken or dropped
constexpr SipKey kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
constexpr Address kHost = {0, 0x020000000100, {0x0a000001, 1000}};
constexpr Address kOther = {1, 0x020000000101, {0x0a000002, 1001}};

// To the switch, from child 0; UDP; a contribution of one float64 to group 1 of job 7, its
// tag; 1.5.
constexpr char kMacs[] = "0200000000fe020000000100";
constexpr char kIpv4[] = "4500004a00004000401125a50a0000010a0000fe";
constexpr char kDatagram[] =
    "03e86a2e00360000"
    "010100000300000100000007000000010000000000000000000000000000"
    "a54c76bf16f46cec"
    "000000000000f83f";

Bytes bytes_of(const std::string& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

struct Case {
  const char* name;
  std::string hex;
  std::size_t counter;
};

std::vector<Case> cases() {
  const std::string macs = kMacs, datagram = kDatagram, ip = macs + "0800";
  return {
      {"right", ip + kIpv4 + datagram, kOperands},
      {"may be fragmented", ip + "4500004a00000000401165a50a0000010a0000fe" + datagram, kOperands},
      {"right sum 0", ip + "4500004a25a54000401100000a0000010a0000fe" + datagram, kOperands},
      {"right sum 0, as ffff", ip + "4500004a25a540004011ffff0a0000010a0000fe" + datagram,
       kOperands},
      {"sum 0, which is wrong", ip + "4500004a00004000401100000a0000010a0000fe" + datagram,
       kMalformed},
      {"sum ffff, which is wrong", ip + "4500004a000040004011ffff0a0000010a0000fe" + datagram,
       kMalformed},
      {"with a VLAN's tag", macs + "810000050800" + kIpv4 + datagram, kForwarded},
      {"options of IPv4", ip + "4600004e00004000401122a00a0000010a0000fe01010100" + datagram,
       kForwarded},
      {"first fragment", ip + "4500004a00002000401145a50a0000010a0000fe" + datagram, kForwarded},
      {"last fragment", ip + "4500004a00000001401165a40a0000010a0000fe" + datagram, kForwarded},
      {"reserved flag", ip + "4500004a0000c0004011a5a40a0000010a0000fe" + datagram, kForwarded},
      {"padding", ip + kIpv4 + datagram + "0000", kMalformed},
  };
}

constexpr std::uint64_t mac_of(std::size_t port) { return 0x020000000200 + port; }

// Of a frame: mostly few words, also fewer bytes than addresses have, or as many as there may be,
// and more.
std::size_t length_of(Operands& random) {
  switch (random.below(12)) {
    case 0: return 1 + random.below(16);
    case 1: return kLongestFrame - 10 + random.below(20);
    case 2: return random.below(8) == 0 ? 2 * kLongestFrame + random.below(70'000) : 60;
    case 3: return 14 + random.below(600);
    default: return 14 + random.below(24);
  }
}

class RtlFramesTest : public testing::Test {
 protected:
  RtlFramesTest() {
    bench_.write(Table::kJobs, 1,
                 Record().add(1, 1).add(7, 32).add(kKey.high, 64).add(kKey.low, 64));
    bench_.write(Table::kChildren, 0, Record().add(kHost));
    bench_.write(Table::kChildren, 1, Record().add(kOther));
    write_group();
  }

  // A root of two children; no contributions have come.
  void write_group() {
    Record group;
    group.add(1, 1).add(7, 32).add(1, 32).add(1, 1).add(Address{}).add(0, 16).add(1, 16);
    bench_.write(Table::kGroups, 0, group.add(8, 16).add(0, 32).add(0b11, 64));
  }

  void cycles(int count) {
    for (int i = 0; i < count; ++i) ASSERT_NO_FATAL_FAILURE(bench_.cycle());
  }

  std::vector<std::pair<std::size_t, Bytes>> sent_;
  SwitchBench bench_{
      1, [](std::size_t, const Bytes&) {},
      [this](std::size_t port, const Bytes& frame) { sent_.emplace_back(port, frame); }};
};

// Each is the first to the group.
TEST_F(RtlFramesTest, VerdictOf) {
  constexpr int kEnough = 1000;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    sent_.clear();
    std::vector<std::uint64_t> before(kCounters);
    for (std::size_t i = 0; i < kCounters; ++i) before[i] = bench_.counter(i);
    const Bytes frame = bytes_of(one.hex);
    bench_.send(kHost.port, frame);
    ASSERT_NO_FATAL_FAILURE(cycles(kEnough));
    for (std::size_t i = 0; i < kCounters; ++i) {
      EXPECT_EQ(bench_.counter(i) - before[i], i == one.counter) << i;
    }
    if (one.counter == kForwarded) {
      ASSERT_EQ(sent_.size(), 1U);
      EXPECT_EQ(sent_[0].first, kControlPort);
      EXPECT_EQ(sent_[0].second, frame);
    } else {
      EXPECT_TRUE(sent_.empty());
    }
    write_group();
  }
}

// A port keeps the frame that the switch has begun with, and some more, or a queue of them; the
// next ones wait for as long as it is said, and are gone then. None is sent in part.
TEST_F(RtlFramesTest, WithoutRoom) {
  constexpr std::uint16_t kPatience = 40;
  const Bytes control = bytes_of(std::string(kMacs).append("88b5").append(400, 'a'));
  Bytes later = control;
  later.back() = std::byte{1};
  bench_.set_patience(kPatience);
  bench_.set_pauses(kControlPort, {.stall = 100});
  for (std::size_t i = 0; i < kMoreThanAPortKeeps; ++i) bench_.send(kHost.port, control);
  ASSERT_NO_FATAL_FAILURE(cycles(kLong));
  EXPECT_EQ(bench_.waiting(kHost.port), 0U);
  const std::uint64_t overruns = bench_.counter(kOverrun);
  ASSERT_LT(overruns, kMoreThanAPortKeeps);
  const std::uint64_t kept = kMoreThanAPortKeeps - overruns;
  if (kPortFrames != 0) {
    EXPECT_EQ(kept, kPortFrames);
  }
  EXPECT_GT(overruns, 0U);
  EXPECT_TRUE(sent_.empty());
  // One that has waited for less is there.
  bench_.send(kHost.port, later);
  ASSERT_NO_FATAL_FAILURE(cycles(kPatience - 1));
  bench_.set_patience(kPatienceWithoutEnd);
  ASSERT_NO_FATAL_FAILURE(cycles(1000));
  EXPECT_EQ(bench_.waiting(kHost.port), 1U);
  bench_.set_pauses(kControlPort, {});
  ASSERT_NO_FATAL_FAILURE(cycles(kLong));
  EXPECT_EQ(bench_.counter(kOverrun), overruns);
  ASSERT_EQ(sent_.size(), kept + 1);
  for (std::size_t i = 0; i < kept; ++i) EXPECT_EQ(sent_[i].second, control);
  EXPECT_EQ(sent_[kept].second, later);
}

// From ports to ports, which take them now and then, as fast as they can be offered, of all
// lengths, and with any patience: each frame arrives as it was sent and after those before it, or
// is counted as without room or, as it is too short or too long, as undeliverable.
TEST_F(RtlFramesTest, AllArriveOrAreCounted) {
  constexpr std::size_t kSenders = kControlPort, kEach = 300;
  Operands random(5);
  for (std::size_t i = 0; i < kSenders; ++i) {
    bench_.write(Table::kForward, i, Record().add(1, 1).add(mac_of(i), 48).add(i, 8));
  }
  std::array<std::array<std::deque<Bytes>, kSenders>, kSenders> frames;
  std::size_t deliverable = 0;
  for (std::size_t i = 0; i < kEach; ++i) {
    for (std::size_t from = 0; from < kSenders; ++from) {
      const std::size_t to = (from + 1 + random.below(kSenders - 1)) % kSenders;
      Bytes frame(length_of(random));
      for (std::byte& byte : frame) byte = static_cast<std::byte>(random.bits());
      if (frame.size() >= 14) {
        store_mac(frame.data(), mac_of(to));
        store_mac(&frame[6], from);
        if (frame.size() <= kLongestFrame) {
          frames[from][to].push_back(frame);
          ++deliverable;
        }
      }
      bench_.send(from, std::move(frame));
    }
  }
  constexpr std::array<std::uint16_t, 5> kPatiences = {0, 1, 40, 500, 5000};
  for (bool all = false; !all;) {
    bench_.set_patience(kPatiences[random.below(kPatiences.size())]);
    for (std::size_t i = 0; i < kSenders; ++i) {
      bench_.set_pauses(i, {.stall = static_cast<unsigned>(random.below(3)) * 45});
    }
    ASSERT_NO_FATAL_FAILURE(cycles(1000));
    all = true;
    for (std::size_t i = 0; i < kSenders; ++i) all = all && bench_.waiting(i) == 0;
    ASSERT_LT(bench_.cycles(), 20'000'000U) << "stands still";
  }
  for (std::size_t i = 0; i < kSenders; ++i) bench_.set_pauses(i, {});
  ASSERT_NO_FATAL_FAILURE(cycles(100'000));
  for (const auto& [port, frame] : sent_) {
    ASSERT_LT(port, kSenders);
    ASSERT_GE(frame.size(), 14U);
    const std::uint64_t from = load_mac(&frame[6]);
    ASSERT_LT(from, kSenders);
    auto& left = frames[from][port];
    while (!left.empty() && left.front() != frame) left.pop_front();
    ASSERT_FALSE(left.empty()) << "none of those that are left";
    left.pop_front();
  }
  const std::uint64_t arrived = bench_.counter(kForwarded);
  EXPECT_EQ(arrived, sent_.size());
  EXPECT_EQ(arrived + bench_.counter(kUndeliverable) + bench_.counter(kOverrun), kSenders * kEach);
  EXPECT_LE(bench_.counter(kUndeliverable), kSenders * kEach - deliverable);
  EXPECT_GT(arrived, deliverable / 10);
  EXPECT_LT(arrived, deliverable);  // there was not room for all
}

// What has waited for longer than it may from now on is gone at once.
TEST_F(RtlFramesTest, PatienceThatIsCut) {
  const Bytes control = bytes_of(std::string(kMacs).append("88b5").append(400, 'a'));
  bench_.set_patience(60'000);
  bench_.set_pauses(kControlPort, {.stall = 100});
  for (std::size_t i = 0; i < kMoreThanAPortKeeps; ++i) bench_.send(kHost.port, control);
  ASSERT_NO_FATAL_FAILURE(cycles(kLong));
  const std::size_t waiting = bench_.waiting(kHost.port);
  EXPECT_GT(waiting, 0U);
  EXPECT_EQ(bench_.counter(kOverrun), 0U);
  bench_.set_patience(100);
  ASSERT_NO_FATAL_FAILURE(cycles(kLong));
  EXPECT_EQ(bench_.waiting(kHost.port), 0U);
  EXPECT_EQ(bench_.counter(kOverrun), waiting);
}

// A frame for a processor that is nowhere is dropped, as others are whose port is not there; the
// next ones go on.
TEST_F(RtlFramesTest, ProcessorThatIsNotThere) {
  constexpr std::size_t kRequests = 4;
  const Bytes right = bytes_of(std::string(kMacs).append("0800").append(kIpv4).append(kDatagram));
  Bytes control = right;
  control[kDatagramAt + 1] = static_cast<std::byte>(aggregate::Kind::kAskLimits);
  for (const std::size_t port : {kPorts, std::size_t{63}, std::size_t{255}}) {
    SCOPED_TRACE(port);
    bench_.set_control_port(static_cast<std::uint8_t>(port));
    const std::uint64_t operands = bench_.counter(kOperands);
    const std::uint64_t lost = bench_.counter(kUndeliverable);
    for (std::size_t i = 0; i < kRequests; ++i) bench_.send(kHost.port, control);
    bench_.send(kHost.port, right);
    ASSERT_NO_FATAL_FAILURE(cycles(2000));
    EXPECT_EQ(bench_.counter(kUndeliverable) - lost, kRequests);
    EXPECT_EQ(bench_.counter(kForwarded), 0U);
    EXPECT_EQ(bench_.counter(kOperands) - operands, 1U);
    write_group();
  }
}

}  // namespace
}  // namespace carillon::rtl
