// SPDX-License-Identifier: Apache-2.0
//
// The switch in hardware in lock step with the reference: random packets to all ports, right and
// wrong, with pauses of the ports in all combinations, while groups come and go. Whenever the
// hardware begins with a frame the reference is given it; what leaves a port is, in order, what the
// reference sends there, and in the end all counters are the same. CARILLON_TEST_RTL_FRAMES: so
// many in each test.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>

#include "switch/rtl/switch_bench.h"
#include "switch/rtl/switch_reference.h"
#include "switch/rtl/switch_traffic.h"

namespace carillon::rtl {
namespace {

constexpr std::uint64_t kEnough = 5000;  // frames, so that all that is counted comes
constexpr std::uint64_t kMostCycles =
    200'000;  // in which no beat is taken, and no frame begun or sent
// Of an element of each child, whether they come at once or not: 42 and 60 for five children, as
// docs/switch-hardware.md has it.
constexpr std::uint64_t kBlockCycles = kOneBlockCycles + kTreeCycles;
constexpr std::uint64_t kFloatBlockCycles = kOneBlockCycles + kFloatTreeCycles;
constexpr std::uint32_t kLateFirst = 0xfffffffb;  // soon it begins at 0 again
constexpr Endpoint kManager = {0x0a0000f0, 99};
constexpr std::array<const char*, kCounters> kNames = {
    "operands", "results",     "resent_results", "resent_partials", "duplicates",    "refused",
    "refusals", "unknown_job", "unknown_group",  "malformed",       "bad_tag",       "wrong_source",
    "stale",    "premature",   "mismatched",     "forwarded",       "undeliverable", "overruns"};

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
  RtlSwitchTest() { load(); }

  void load() {
    for (std::size_t i = 0; i < kHosts; ++i) {
      reference_.place(host(i));
      bench_.write(Table::kForward, i,
                   Record().add(1, 1).add(host(i).mac, 48).add(host(i).port, 8));
    }
    load_job(0, 0);
    install_jobs();
    for (std::size_t i = 0; i < kJobs.size(); ++i) load_job(1 + i, kJobs[i]);
    for (std::size_t i = 0; i < traffic_.groups.size(); ++i) rebuild(i);
  }

  void install_jobs() {
    const aggregate::Job job = {.nonce = kNonce, .groups = 64, .memory_bytes = 1U << 30};
    Bytes payload(aggregate::kJobBytes);
    aggregate::store(payload.data(), job);
    for (const std::uint32_t id : kJobs) ask(Kind::kInstallJob, id, 0, kAdministrator, payload);
  }

  void load_job(std::size_t index, std::uint32_t job) { load_job(index, job, key_of(job)); }
  void load_job(std::size_t index, std::uint32_t job, const SipKey& key) {
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
    record.add(group.operand_bytes, 16).add(group.first, 32).add(there, 64);
    bench_.write(Table::kGroups, index, record);
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

  // Everything begins anew.
  void reset(std::uint64_t seed) {
    bench_.reset_again(pauses_.below(3));
    reference_.reset();
    traffic_ = Traffic(seed, first_);
    ids_ = requests_ = 0;
    quiet_ = 0;
    load();
  }

  void run(std::uint64_t frames) {
    for (std::uint64_t made = 0; made < frames && !HasFailure();) {
      Input input = traffic_.next();
      while (bench_.waiting(input.port) > 2) ASSERT_NO_FATAL_FAILURE(cycle());
      bench_.send(input.port, std::move(input.frame));
      ++made;
      if (forgets_ && made % 8 == 0) forget();
      if (!forgets_ && made % 500 == 0) rebuild(made / 500 % traffic_.groups.size());
      if (made % 50 == 0 && changes_pauses_) change_pauses();
    }
    finish();
    const auto expected = reference_.counters();
    for (std::size_t i = 0; i + 1 < kCounters; ++i) {
      EXPECT_TRUE(expected[i] > 0 || forgets_ || frames < kEnough) << kNames[i] << " is not tested";
    }
  }

  // What both have counted is the same when there is nothing left to do.
  void finish() {
    while (!is_idle() && !HasFailure()) ASSERT_NO_FATAL_FAILURE(cycle());
    const auto expected = reference_.counters();
    for (std::size_t i = 0; i < kCounters; ++i) {
      EXPECT_EQ(bench_.counter(i), expected[i]) << kNames[i];
    }
  }

  // Groups that the hardware says nothing came to are those that the reference forgets, and others
  // take their places.
  void forget() {
    std::uint64_t touched = 0;
    for (std::size_t i = 0; i < kGroups; ++i) {  // between the same two packets
      bench_.write(Table::kTouched, i, Record());
      touched |= bench_.touched() & std::uint64_t{1} << i;
    }
    const auto idle = kGroups - static_cast<std::size_t>(std::popcount(touched));
    ASSERT_EQ(reference_.pass_time(), idle);
    forgotten_ += idle;
    install_jobs();  // without groups they are forgotten, too
    for (std::size_t i = 0; i < kGroups; ++i) {
      if ((touched >> i & 1) != 0) continue;
      traffic_.change(traffic_.groups[i], ++ids_);
      build(i);
    }
  }

  // A group of all children, each with an element of 8 bytes in a packet.
  TestGroup& make_full_group(std::size_t index) {
    TestGroup& group = traffic_.groups[index];
    ask(Kind::kFreeGroup, group.job, group.group, key_of(group.job), {});
    group = {.job = kJobs[0], .group = ++ids_, .first = first_};
    group.base = first_;
    for (std::size_t i = 0; i < kChildren; ++i) group.children[i] = host(i);
    return group;
  }

  // The group's packet number `at`, of so many elements.
  void contribute(const TestGroup& group, std::uint16_t child, std::uint32_t at = 0,
                  std::uint16_t count = 1, Type type = Type::kFloat64) {
    const std::uint32_t sequence = group.first + at;
    const Header header = {
        .version = aggregate::kVersion,
        .kind = Kind::kContribute,
        .flags = count * sizeof(double) > aggregate::kBlockOperandBytes ? aggregate::kBurstFlag
                                                                        : std::uint8_t{0},
        .type = type,
        .count = count,
        .job = group.job,
        .group = group.group,
        .sequence = sequence,
        .slot = static_cast<std::uint16_t>(sequence % aggregate::slots_of(group.window)),
        .child = child};
    Bytes datagram(aggregate::kHeaderBytes + count * sizeof(double));
    for (std::size_t i = 0; i < count; ++i) {
      const double value = 1.5 + child + static_cast<double>(at) * 0.1 + static_cast<double>(i);
      std::memcpy(&datagram[aggregate::kHeaderBytes + i * sizeof(double)], &value, sizeof(double));
    }
    aggregate::seal(key_of(group.job), header, datagram);
    bench_.send(host(child).port, frame_of(*group.children[child], kSwitch, datagram));
  }

  // Until the switch has all that its ports were given.
  void wait_for_ports() {
    for (std::size_t port = 0; port < kPorts; ++port) {
      while (bench_.waiting(port) != 0) ASSERT_NO_FATAL_FAILURE(cycle());
    }
  }

  // Each port has one of the combinations.
  void change_pauses() {
    for (std::size_t port = 0; port < kPorts; ++port) {
      const auto choice = static_cast<unsigned>(pauses_.below(4));
      bench_.set_pauses(port, {.idle = choice % 2 * 70, .stall = choice / 2 * 70});
    }
  }

  void cycles(std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) ASSERT_NO_FATAL_FAILURE(cycle());
  }

  static void expect_block(std::uint64_t cycles, std::uint64_t expected) {
    EXPECT_GE(cycles, expected);
    EXPECT_LE(cycles, expected + kPhaseCycles);
  }

  void cycle() {
    bench_.cycle();
    if (bench_.took()) quiet_ = 0;
    ASSERT_LT(++quiet_, kMostCycles) << "stands still";
  }

  static std::uint64_t frames() { return setting("CARILLON_TEST_RTL_FRAMES", kFrames); }

  const std::uint32_t first_ = GetParam() == 1 ? 0 : kLateFirst;
  Traffic traffic_{GetParam(), first_};
  SwitchReference reference_{kAdministrator, first_,
                             [this](std::span<const std::byte> datagram) { observe(datagram); }};
  SwitchBench bench_{GetParam() + 1,
                     [this](std::size_t port, const Bytes& frame) {
                       quiet_ = 0;
                       reference_.take(port, frame);
                     },
                     [this](std::size_t port, const Bytes& frame) { sent(port, frame); }};
  Operands pauses_{GetParam() + 2};
  bool changes_pauses_ = false, forgets_ = false;
  std::uint32_t requests_ = 0, ids_ = 0;
  std::uint64_t quiet_ = 0, sent_frames_ = 0, forgotten_ = 0;
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

// Whatever is under way at a reset, nothing is left of it after that.
TEST_P(RtlSwitchTest, ResetAtAnyTime) {
  const std::uint64_t resets = 10 + frames() / 50;
  for (std::uint64_t i = 0; i < resets && !HasFailure(); ++i) {
    change_pauses();
    for (std::uint64_t made = pauses_.below(60); made > 0; --made) {
      Input input = traffic_.next();
      while (bench_.waiting(input.port) > 2) ASSERT_NO_FATAL_FAILURE(cycle());
      bench_.send(input.port, std::move(input.frame));
    }
    ASSERT_NO_FATAL_FAILURE(cycles(pauses_.below(200)));
    reset(GetParam() + 1000 * (i + 1));
  }
  run(frames() / 10);
}

// As they leave, beats end anywhere in a word, and words anywhere in a beat.
TEST_P(RtlSwitchTest, FramesOfAllLengths) {
  constexpr std::size_t kShortest = 14, kLengths = 128;
  for (std::size_t i = 0; i < 2 * kLengths; ++i) {
    if (i % 16 == 0) change_pauses();
    Bytes frame = frame_of(host(i % 6), host((i + 1) % 6), {});
    frame.resize(kShortest + i % kLengths, static_cast<std::byte>(i));
    bench_.send(host(i % 6).port, std::move(frame));
    while (bench_.waiting(host(i % 6).port) > 2) ASSERT_NO_FATAL_FAILURE(cycle());
  }
  finish();
  EXPECT_EQ(sent_frames_, 2 * kLengths);
}

// Contributions to the same packet at all ports in the same cycle, or one a few cycles late; some
// of them odd, which are not worked off with the others.
TEST_P(RtlSwitchTest, ContributionsAtOnce) {
  const std::uint64_t rounds = frames() / 4;
  for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    for (Input& input : traffic_.round()) {
      if (pauses_.below(16) == 0) {
        ASSERT_NO_FATAL_FAILURE(cycles(pauses_.below(20)));
      }
      bench_.send(input.port, std::move(input.frame));
    }
    if (pauses_.below(2) == 0) {
      ASSERT_NO_FATAL_FAILURE(wait_for_ports());
    }
    ASSERT_NO_FATAL_FAILURE(cycles(pauses_.below(300)));
    for (int i = 0; i < 2; ++i) {
      Input input = traffic_.next();
      bench_.send(input.port, std::move(input.frame));
    }
    ASSERT_NO_FATAL_FAILURE(wait_for_ports());
    if (round % 100 == 99) rebuild(round / 100 % traffic_.groups.size());
    if (round % 20 == 0) change_pauses();
    if (round % 20 == 10) {
      for (std::size_t port = 0; port < kPorts; ++port) bench_.set_pauses(port, {});
    }
  }
  finish();
  if (kRoundsTogether == 0) {
    EXPECT_EQ(bench_.together(), 0U);
  } else {
    EXPECT_GT(bench_.together() * kRoundsTogether, rounds);
  }
}

TEST_P(RtlSwitchTest, GroupsThatAreForgotten) {
  forgets_ = true;
  run(frames() / 2);
  EXPECT_TRUE(forgotten_ > 0 || frames() < kEnough);
}

// What would go to a port that is not there is dropped, and counted; all else goes on. Verilator
// stops at such a record, as nobody writes one, but for these.
TEST_P(RtlSwitchTest, PortsThatAreNotThere) {
  constexpr Address kNowhere = {200, 0x0200000001ff, {0x0a000063, 77}};
  constexpr Address kBehindTheLast = {kPorts, 0x0200000001fe, {0x0a000063, 78}};
  reference_.place(kNowhere);
  reference_.place(kBehindTheLast);
  TestGroup& root = make_full_group(0);
  root.children[1] = kNowhere;
  TestGroup& inner = make_full_group(1);
  inner.root = false;
  inner.parent = kBehindTheLast;
  Verilated::assertOn(false);
  build(0);
  build(1);
  Verilated::assertOn(true);
  for (const TestGroup& group : {root, inner}) {
    for (std::uint16_t i = 0; i < kChildren; ++i) contribute(group, i);
    ASSERT_NO_FATAL_FAILURE(wait_for_ports());
    contribute(group, 2);  // what was sent is sent again
  }
  finish();
  EXPECT_EQ(reference_.counters()[16], 1 + 2);  // undeliverable: a child's result, and the partial
  EXPECT_EQ(sent_frames_, kChildren - 1 + 1);
  rebuild(0);
  rebuild(1);
  run(200);
}

// A packet that was checked, and had not the tag of the key, is checked again when its job has
// another one before the switch begins with it.
TEST_P(RtlSwitchTest, KeysThatChange) {
  const TestGroup& group = make_full_group(0);
  build(0);
  load_job(1, kJobs[0], key_of(kJobs[1]));
  // A frame that nobody takes comes before it, and more answers than the switch keeps behind it.
  bench_.set_pauses(host(1).port, {.stall = 100});
  bench_.send(host(4).port, frame_of(host(4), host(1), Bytes(20)));
  TestGroup unknown = group;
  unknown.job = kUnknownJob;
  for (int i = 0; i < 6; ++i) contribute(unknown, 3);
  for (int wait = 0; wait < 200; ++wait) ASSERT_NO_FATAL_FAILURE(cycle());
  contribute(group, 0);
  for (int wait = 0; wait < 200; ++wait) ASSERT_NO_FATAL_FAILURE(cycle());
  EXPECT_EQ(reference_.counters()[0], 0U);
  bench_.set_pauses(host(1).port, {});
  load_job(1, kJobs[0]);
  finish();
  EXPECT_EQ(reference_.counters()[0], 1U);  // operands
}

// An element of each of all hosts: from the last word of the last contribution to the last word of
// the last result, and that the result is right.
TEST_P(RtlSwitchTest, CyclesOfABlock) {
  TestGroup& group = make_full_group(0);
  group.window = 2;
  build(0);
  for (const Type type : {Type::kInt64, Type::kFloat64}) {
    const std::uint32_t at = type == Type::kInt64 ? 0 : 1;
    sent_frames_ = 0;
    for (std::uint16_t i = 0; i < kChildren - 1; ++i) {
      contribute(group, i, at, 1, type);
      ASSERT_NO_FATAL_FAILURE(cycles(200));
    }
    contribute(group, kChildren - 1, at, 1, type);
    ASSERT_NO_FATAL_FAILURE(wait_for_ports());
    const std::uint64_t begins = bench_.cycles();
    while (sent_frames_ < kChildren) ASSERT_NO_FATAL_FAILURE(cycle());
    expect_block(bench_.cycles() - begins, type == Type::kInt64 ? kBlockCycles : kFloatBlockCycles);
    ASSERT_NO_FATAL_FAILURE(cycles(200));
  }
}

#ifndef CARILLON_RTL_WIDE  // which has not a port for each child
// Contributions that come at the same time are checked at once, and worked off together, or one
// after the other.
TEST_P(RtlSwitchTest, CyclesOfABlockThatComesAtOnce) {
  const TestGroup& group = make_full_group(0);
  build(0);
  ASSERT_NO_FATAL_FAILURE(cycles(200));  // ports are told of a group's children one after the other
  for (std::uint16_t i = 0; i < kChildren; ++i) contribute(group, i, 0, 1, Type::kInt64);
  while (bench_.waiting(0) != 0) ASSERT_NO_FATAL_FAILURE(cycle());
  const std::uint64_t begins = bench_.cycles();
  for (std::size_t i = 0; i < kChildren; ++i) EXPECT_EQ(bench_.waiting(i), 0U);
  while (sent_frames_ < kChildren) ASSERT_NO_FATAL_FAILURE(cycle());
  expect_block(bench_.cycles() - begins, kBlockCycles + kOneByOneCycles);
}

// A message of many packets: each host sends without pauses, as far as the window lets it, and the
// results leave as fast as the packets come.
TEST_P(RtlSwitchTest, CyclesOfABurst) {
  TestGroup& group = make_full_group(0);
  group.window = kWindow;
  group.operand_bytes = kOperandBytes;
  build(0);
  constexpr std::uint32_t kFirst = 8, kLast = 40;  // those that are measured
  std::uint32_t begun = 0;
  std::uint64_t begins = 0;
  while (sent_frames_ < kLast * kChildren) {
    const auto results = static_cast<std::uint32_t>(sent_frames_ / kChildren);
    for (; begun < std::min<std::uint32_t>(results + kWindow, kLast); ++begun) {
      for (std::uint16_t i = 0; i < kChildren; ++i) {
        contribute(group, i, begun, kOperandBytes / sizeof(double));
      }
    }
    ASSERT_NO_FATAL_FAILURE(cycle());
    if (results < kFirst) begins = bench_.cycles();
  }
  EXPECT_EQ(bench_.cycles() - begins, (kLast - kFirst) * kBurstPacketCycles);
  finish();
}
#endif

INSTANTIATE_TEST_SUITE_P(Seeds, RtlSwitchTest, testing::Values(1, 2));

}  // namespace
}  // namespace carillon::rtl
