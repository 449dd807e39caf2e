// SPDX-License-Identifier: Apache-2.0
//
// The switch in hardware in lock step with the reference: random packets to all ports, right and
// wrong, with pauses of the ports in all combinations, while groups come and go. Whenever the
// hardware begins with a frame the reference is given it; what leaves a port is, in order, what the
// reference sends there, and in the end all counters are the same. CARILLON_TEST_RTL_FRAMES: so
// many in each test.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "switch/rtl/switch_bench.h"
#include "switch/rtl/switch_reference.h"
#include "switch/rtl/switch_traffic.h"

namespace carillon::rtl {
namespace {

constexpr std::uint64_t kFrames = 5000;
constexpr std::uint64_t kMostCycles = 200'000;     // without a frame that is begun or sent
constexpr std::uint64_t kBlockCycles = 130;        // docs/switch-hardware.md
constexpr std::uint64_t kBlockAtOnceCycles = 230;  // as well
constexpr Endpoint kManager = {0x0a0000f0, 99};
constexpr std::array<const char*, kCounters> kNames = {
    "operands", "results",     "resent_results", "resent_partials", "duplicates",   "refused",
    "refusals", "unknown_job", "unknown_group",  "malformed",       "bad_tag",      "wrong_source",
    "stale",    "premature",   "mismatched",     "forwarded",       "undeliverable"};

std::string text_of(const Bytes& bytes) {
  std::string text;
  for (const std::byte byte : std::span(bytes).first(std::min<std::size_t>(bytes.size(), 96))) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text + " of " + std::to_string(bytes.size());
}

class RtlSwitchTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  RtlSwitchTest() {
    for (std::size_t i = 0; i < kHosts; ++i) {
      reference_.place(host(i));
      bench_.write(Table::kForward, i,
                   Record().add(1, 1).add(host(i).mac, 48).add(host(i).port, 8));
    }
    load_job(0, 0);
    aggregate::Job job = {.nonce = kNonce, .groups = 64, .memory_bytes = 1U << 30};
    Bytes payload(aggregate::kJobBytes);
    aggregate::store(payload.data(), job);
    for (std::size_t i = 0; i < kJobs.size(); ++i) {
      ask(Kind::kInstallJob, kJobs[i], 0, kAdministrator, payload);
      load_job(1 + i, kJobs[i]);
    }
    for (std::size_t i = 0; i < traffic_.groups.size(); ++i) rebuild(i);
  }

  void load_job(std::size_t index, std::uint32_t job) {
    const SipKey key = key_of(job);
    bench_.write(Table::kJobs, index,
                 Record().add(1, 1).add(job, 32).add(key.high, 64).add(key.low, 64));
  }

  void ask(Kind kind, std::uint32_t job, std::uint32_t group, const SipKey& key,
           const Bytes& payload) {
    Bytes datagram(aggregate::kHeaderBytes + payload.size());
    std::copy(payload.begin(), payload.end(), datagram.begin() + aggregate::kHeaderBytes);
    const Header header = {.version = aggregate::kVersion,
                           .kind = kind,
                           .job = job,
                           .group = group,
                           .sequence = ++requests_};
    aggregate::seal(key, header, datagram);
    reference_.ask(kManager, datagram);
  }

  // Frees the group of this index, and makes one of another shape.
  void rebuild(std::size_t index) {
    TestGroup& group = traffic_.groups[index];
    if (group.group != 0) {
      bench_.write(Table::kGroups, index, Record().add(0, 1).add(0, Record::kBits - 1));
      ask(Kind::kFreeGroup, group.job, group.group, key_of(group.job), {});
    }
    traffic_.change(group, ++ids_);
    build(index);
  }

  void build(std::size_t index) {
    const TestGroup& group = traffic_.groups[index];
    const aggregate::Tree tree = {.parent_ip = group.parent.endpoint.ip,
                                  .parent_port = group.parent.endpoint.port,
                                  .parent_child = group.parent_child,
                                  .window = group.window,
                                  .operand_bytes = group.operand_bytes,
                                  .children = kChildren};
    Bytes payload(aggregate::kTreeBytes + kChildren * aggregate::kChildBytes);
    aggregate::store(payload.data(), tree);
    std::uint64_t there = 0;
    for (std::size_t i = 0; i < kChildren; ++i) {
      if (!group.children[i].has_value()) continue;
      const Address& child = *group.children[i];
      there |= std::uint64_t{1} << i;
      aggregate::store(payload.data() + aggregate::kTreeBytes + i * aggregate::kChildBytes,
                       aggregate::Child{.ip = child.endpoint.ip, .port = child.endpoint.port});
      bench_.write(Table::kChildren, index * kChildren + i, Record().add(child));
    }
    Record record;
    record.add(1, 1).add(group.job, 32).add(group.group, 32).add(group.root ? 1 : 0, 1);
    record.add(group.parent).add(group.parent_child, 16).add(group.window, 16);
    bench_.write(Table::kGroups, index, record.add(group.operand_bytes, 16).add(there, 64));
    ask(Kind::kBuildGroup, group.job, group.group, key_of(group.job), payload);
  }

  void sent(std::size_t port, const Bytes& frame) {
    quiet_ = 0;
    ++sent_frames_;
    auto& expected = reference_.expected(port);
    if (expected.empty()) {
      ADD_FAILURE() << "port " << port << " sends " << text_of(frame) << ", and should nothing";
      return;
    }
    if (frame != expected.front()) {
      ADD_FAILURE() << "port " << port << " sends\n  " << text_of(frame) << ", and should\n  "
                    << text_of(expected.front());
    }
    expected.pop_front();
  }

  void observe(std::span<const std::byte> datagram) {
    const Header header = aggregate::load_header(datagram.data());
    for (TestGroup& group : traffic_.groups) {
      if (group.job == header.job && group.group == header.group) group.see(header, datagram);
    }
  }

  [[nodiscard]] bool is_idle() {
    for (std::size_t port = 0; port < kPorts; ++port) {
      if (bench_.waiting(port) != 0 || !reference_.expected(port).empty()) return false;
    }
    return quiet_ > 20'000;  // longer than the switch has anything to do with the longest frame
  }

  void run(std::uint64_t frames) {
    for (std::uint64_t made = 0; made < frames && !HasFailure();) {
      Input input = traffic_.next();
      while (bench_.waiting(input.port) > 2) ASSERT_NO_FATAL_FAILURE(cycle());
      bench_.send(input.port, std::move(input.frame));
      if (++made % 500 == 0) rebuild(made / 500 % traffic_.groups.size());
      if (made % 50 == 0 && changes_pauses_) change_pauses();
    }
    while (!is_idle() && !HasFailure()) ASSERT_NO_FATAL_FAILURE(cycle());
    const auto expected = reference_.counters();
    for (std::size_t i = 0; i < kCounters; ++i) {
      EXPECT_EQ(bench_.counter(i), expected[i]) << kNames[i];
      EXPECT_TRUE(expected[i] > 0 || frames < kFrames) << kNames[i] << " is not tested";
    }
  }

  // Each port has one of the combinations.
  void change_pauses() {
    for (std::size_t port = 0; port < kPorts; ++port) {
      const auto choice = static_cast<unsigned>(pauses_.below(4));
      bench_.set_pauses(port, {.idle = choice % 2 * 70, .stall = choice / 2 * 70});
    }
  }

  void cycle() {
    bench_.cycle();
    ASSERT_LT(++quiet_, kMostCycles) << "stands still";
  }

  // The first group, as before its first packet, with a host at each port.
  void build_anew() {
    TestGroup& group = traffic_.groups[0];
    ASSERT_NO_FATAL_FAILURE(rebuild(0));
    ask(Kind::kFreeGroup, group.job, group.group, key_of(group.job), {});
    group = {.job = kJobs[0], .group = ++ids_};
    for (std::size_t i = 0; i < kChildren; ++i) group.children[i] = host(i);
    build(0);
  }

  // A block of one element to it.
  void contribute(std::uint16_t child) {
    const TestGroup& group = traffic_.groups[0];
    const Header header = {.version = aggregate::kVersion,
                           .kind = Kind::kContribute,
                           .type = Type::kFloat64,
                           .count = 1,
                           .job = group.job,
                           .group = group.group,
                           .child = child};
    Bytes datagram(aggregate::kHeaderBytes + 8);
    const double value = 1.5 + child;
    std::memcpy(&datagram[aggregate::kHeaderBytes], &value, 8);
    aggregate::seal(key_of(group.job), header, datagram);
    bench_.send(child, frame_of(host(child), kSwitch, datagram));
  }

  static std::uint64_t frames() { return setting("CARILLON_TEST_RTL_FRAMES", kFrames); }

  Traffic traffic_{GetParam()};
  SwitchReference reference_{kAdministrator,
                             [this](std::span<const std::byte> datagram) { observe(datagram); }};
  SwitchBench bench_{GetParam() + 1,
                     [this](std::size_t port, const Bytes& frame) {
                       quiet_ = 0;
                       reference_.take(port, frame);
                     },
                     [this](std::size_t port, const Bytes& frame) { sent(port, frame); }};
  Operands pauses_{GetParam() + 2};
  bool changes_pauses_ = false;
  std::uint32_t requests_ = 0, ids_ = 0;
  std::uint64_t quiet_ = 0, sent_frames_ = 0;
};

TEST_P(RtlSwitchTest, WithoutPauses) { run(frames()); }

TEST_P(RtlSwitchTest, PausesOfAllPorts) {
  for (std::size_t port = 0; port < kPorts; ++port) {
    bench_.set_pauses(port, {.idle = 40, .stall = 60});
  }
  run(frames());
}

TEST_P(RtlSwitchTest, PausesThatChange) {
  changes_pauses_ = true;
  run(frames());
}

// An element of each of five hosts: from the last word of the last contribution to the last word of
// the last result, and that the result is right.
TEST_P(RtlSwitchTest, CyclesOfABlock) {
  ASSERT_NO_FATAL_FAILURE(build_anew());
  std::uint64_t begins = 0;
  for (std::uint16_t i = 0; i < kChildren; ++i) {
    contribute(i);
    while (bench_.waiting(i) != 0) ASSERT_NO_FATAL_FAILURE(cycle());
    begins = bench_.cycles();
    if (i + 1 == kChildren) break;
    for (int wait = 0; wait < 200; ++wait) ASSERT_NO_FATAL_FAILURE(cycle());
  }
  while (sent_frames_ < kChildren) ASSERT_NO_FATAL_FAILURE(cycle());
  EXPECT_EQ(bench_.cycles() - begins, kBlockCycles);
}

// Contributions that come at the same time are worked off one after the other.
TEST_P(RtlSwitchTest, CyclesOfABlockThatComesAtOnce) {
  ASSERT_NO_FATAL_FAILURE(build_anew());
  for (std::uint16_t i = 0; i < kChildren; ++i) contribute(i);
  while (bench_.waiting(0) != 0) ASSERT_NO_FATAL_FAILURE(cycle());
  const std::uint64_t begins = bench_.cycles();
  for (std::size_t i = 0; i < kChildren; ++i) EXPECT_EQ(bench_.waiting(i), 0U);
  while (sent_frames_ < kChildren) ASSERT_NO_FATAL_FAILURE(cycle());
  EXPECT_EQ(bench_.cycles() - begins, kBlockAtOnceCycles);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RtlSwitchTest, testing::Values(1, 2));

}  // namespace
}  // namespace carillon::rtl
