// SPDX-License-Identifier: Apache-2.0
//
// The switch in hardware as switchd has it, datagram by datagram: jobs and groups that come, go,
// are forgotten and find no room, sums that are right, and packets that are wrong in every way. The
// engine itself compares each with the reference: no error is what is looked for.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "switch/switch_fuzz.h"
#include "switch/verilated/engine.h"

namespace carillon::rtl {
namespace {

using aggregate::Kind;
using aggregate::Op;
using aggregate::Reason;
using aggregate::Type;

constexpr SipKey kAdministrator = {0x1122334455667788, 0x99aabbccddeeff00};
constexpr Endpoint kManager = {0x0a000063, 99};
constexpr std::uint64_t kNonce = 5;
constexpr std::size_t kHosts = 5;

Endpoint host(std::size_t i) { return {0x0a000001, static_cast<std::uint16_t>(1000 + 7 * i)}; }
SipKey key_of(std::uint32_t job) { return aggregate::job_key(kAdministrator, job, kNonce); }

class Sent final : public aggregate::Output {
 public:
  void send(std::span<const Endpoint> to, std::span<const std::byte> datagram) override {
    for (const Endpoint& one : to) all.push_back({one, {datagram.begin(), datagram.end()}});
  }
  std::vector<std::pair<Endpoint, Bytes>> all;
};

class RtlEngineTest : public testing::Test {
 protected:
  void receive(const Endpoint& from, const Bytes& datagram) {
    sent_.all.clear();
    const Status status = engine_.receive(from, datagram, sent_);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }

  static Bytes packet(const SipKey& key, Header header, const Bytes& payload = {}) {
    Bytes bytes(aggregate::kHeaderBytes + payload.size());
    std::copy(payload.begin(), payload.end(), bytes.begin() + aggregate::kHeaderBytes);
    header.version = aggregate::kVersion;
    aggregate::seal(key, header, bytes);
    return bytes;
  }

  // A request, and the header of its answer.
  Header ask(const SipKey& key, Kind kind, std::uint32_t job, std::uint32_t group,
             const Bytes& payload = {}) {
    receive(
        kManager,
        packet(key, {.kind = kind, .job = job, .group = group, .sequence = ++requests_}, payload));
    EXPECT_EQ(sent_.all.size(), 1U);
    return sent_.all.empty() ? Header{} : aggregate::load_header(sent_.all[0].second.data());
  }

  Reason install(std::uint32_t job) {
    Bytes payload(aggregate::kJobBytes);
    aggregate::store(
        payload.data(),
        aggregate::Job{.nonce = kNonce, .groups = 2 * kGroups, .memory_bytes = 1U << 30});
    return ask(kAdministrator, Kind::kInstallJob, job, 0, payload).reason;
  }

  // The group of this id, a root with all hosts.
  Reason build(std::uint32_t job, std::uint32_t group) {
    Bytes payload(aggregate::kTreeBytes + kHosts * aggregate::kChildBytes);
    aggregate::store(payload.data(),
                     aggregate::Tree{.window = 2, .operand_bytes = 104, .children = kHosts});
    for (std::size_t i = 0; i < kHosts; ++i) {
      aggregate::store(payload.data() + aggregate::kTreeBytes + i * aggregate::kChildBytes,
                       aggregate::Child{.ip = host(i).ip, .port = host(i).port});
    }
    return ask(key_of(job), Kind::kBuildGroup, job, group, payload).reason;
  }

  // Of one host; its values depend on it and on the index.
  static Bytes contribution(std::uint32_t job, std::uint32_t group, std::uint32_t sequence,
                            std::size_t from, std::uint16_t count) {
    Bytes operand(count * std::size_t{8});
    for (std::size_t i = 0; i < count; ++i) {
      const double value = value_of(from, sequence, i);
      std::memcpy(&operand[8 * i], &value, 8);
    }
    return packet(key_of(job),
                  {.kind = Kind::kContribute,
                   .flags = aggregate::kBurstFlag,
                   .op = Op::kSum,
                   .type = Type::kFloat64,
                   .count = count,
                   .job = job,
                   .group = group,
                   .sequence = sequence,
                   .slot = static_cast<std::uint16_t>(sequence % 4),
                   .child = static_cast<std::uint16_t>(from)},
                  operand);
  }

  static double value_of(std::size_t from, std::uint32_t sequence, std::size_t i) {
    return 0.1 * static_cast<double>(from + 1) + 1e10 * sequence - 0.7 * static_cast<double>(i);
  }

  // As a switch adds: 0 and 1, 2 and 3, these, and then 4.
  static double sum_of(std::uint32_t sequence, std::size_t i) {
    const auto value = [&](std::size_t from) { return value_of(from, sequence, i); };
    return ((value(0) + value(1)) + (value(2) + value(3))) + value(4);
  }

  // Everybody's, and all get the sum.
  void reduce(std::uint32_t job, std::uint32_t group, std::uint32_t sequence, std::uint16_t count) {
    for (std::size_t i = 0; i < kHosts; ++i) {
      ASSERT_NO_FATAL_FAILURE(receive(host(i), contribution(job, group, sequence, i, count)));
      ASSERT_EQ(sent_.all.size(), i + 1 < kHosts ? 0 : kHosts);
    }
    for (std::size_t to = 0; to < kHosts; ++to) {
      const auto& [endpoint, datagram] = sent_.all[to];
      EXPECT_EQ(endpoint, host(to));
      ASSERT_EQ(datagram.size(), aggregate::kHeaderBytes + count * std::size_t{8});
      for (std::size_t i = 0; i < count; ++i) {
        double sum = 0;
        std::memcpy(&sum, &datagram[aggregate::kHeaderBytes + 8 * i], 8);
        EXPECT_EQ(sum, sum_of(sequence, i)) << i;
      }
    }
  }

  HardwareEngine engine_{{.administrator = kAdministrator}};
  Sent sent_;
  std::uint32_t requests_ = 0;
};

TEST_F(RtlEngineTest, SumsAreRight) {
  ASSERT_EQ(install(7), Reason::kNone);
  ASSERT_EQ(build(7, 1), Reason::kNone);
  ASSERT_EQ(build(7, 2), Reason::kNone);
  std::uint32_t sequence = 0;
  for (const std::uint16_t count : std::initializer_list<std::uint16_t>{1, 2, 3, 5, 7, 8, 13}) {
    for (const std::uint32_t group : {2U, 1U}) {
      ASSERT_NO_FATAL_FAILURE(reduce(7, group, sequence, count));
    }
    ++sequence;
  }
  EXPECT_GT(engine_.cycles(), 0U);
}

TEST_F(RtlEngineTest, PlacesOfTablesAreUsedAgain) {
  for (std::uint32_t job = 1; job < kJobs; ++job) ASSERT_EQ(install(job), Reason::kNone);
  EXPECT_EQ(install(kJobs), Reason::kNoRoom);
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < kGroups; ++i) {
      ASSERT_EQ(build(1 + i % 3, 10 + i), Reason::kNone);
    }
    EXPECT_EQ(build(1, 9), Reason::kNoRoom);
    ASSERT_NO_FATAL_FAILURE(reduce(1 + (kGroups - 1) % 3, 10 + kGroups - 1, 0, 3));
    for (std::uint32_t i = 0; i < kGroups; ++i) {
      ask(key_of(1 + i % 3), Kind::kFreeGroup, 1 + i % 3, 10 + i);
    }
  }
  ASSERT_EQ(build(3, 1), Reason::kNone);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(engine_.pass_time(0).ok());  // groups, then jobs
  EXPECT_EQ(engine_.reference().groups(), 0U);
  EXPECT_EQ(engine_.reference().jobs(), 0U);
  ASSERT_NO_FATAL_FAILURE(receive(host(0), contribution(3, 1, 0, 0, 1)));
  ASSERT_EQ(sent_.all.size(), 1U);
  EXPECT_EQ(aggregate::load_header(sent_.all[0].second.data()).reason, Reason::kUnknownJob);
  EXPECT_EQ(install(kJobs), Reason::kNone);
}

// Right ones among those with a bit, a byte or the length changed, and repeated ones.
TEST_F(RtlEngineTest, PacketsThatAreWrong) {
  ASSERT_EQ(install(7), Reason::kNone);
  ASSERT_EQ(build(7, 1), Reason::kNone);
  std::mt19937_64 random(3);
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const std::uint32_t sequence = i / 40 + static_cast<std::uint32_t>(below(3));
    const std::size_t from = below(kHosts);
    Bytes datagram = contribution(7, 1, sequence, from, static_cast<std::uint16_t>(sequence % 14));
    switch (below(8)) {
      case 0: datagram[below(datagram.size())] ^= static_cast<std::byte>(1U << below(8)); break;
      case 1: datagram[below(aggregate::kHeaderBytes)] = static_cast<std::byte>(random()); break;
      case 2: datagram.resize(below(datagram.size())); break;
      case 3: datagram.resize(datagram.size() + below(9)); break;
      default: break;
    }
    const Endpoint source = below(30) == 0 ? kManager : host(from);
    ASSERT_NO_FATAL_FAILURE(receive(source, datagram));
  }
  const aggregate::Counters& counters = engine_.reference().counters();
  for (const std::uint64_t count : {counters.operands, counters.bad_tag, counters.malformed,
                                    counters.duplicates, counters.wrong_source}) {
    EXPECT_GT(count, 0U);
  }
  ASSERT_NO_FATAL_FAILURE(receive(host(0), Bytes(aggregate::kMaxDatagramBytes + 1)));
}

// What the reference is given by its own test: both drop and count the same, or the engine says so.
TEST(RtlEngineFuzzTest, DropsAndCountsWhatTheReferenceDoes) {
  HardwareEngine engine({.administrator = aggregate::kAdministrator,
                         .jobs = 3,
                         .groups = 8,
                         .memory_bytes = 1 << 20});
  Sent sent;
  aggregate::Fuzzer fuzzer([&](const Endpoint& from, const Bytes& datagram) {
    sent.all.clear();
    const Status status = engine.receive(from, datagram, sent);
    EXPECT_TRUE(status.ok()) << status.to_string();
    std::vector<Bytes> all;
    for (auto& [to, bytes] : sent.all) all.push_back(std::move(bytes));
    return all;
  });
  ASSERT_NO_FATAL_FAILURE(fuzzer.begin());
  const char* const wanted = std::getenv("CARILLON_TEST_FUZZ_PACKETS");
  const std::uint64_t packets = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 8'000;
  for (std::uint64_t i = 0; i < packets && !HasFailure(); ++i) {
    ASSERT_NO_FATAL_FAILURE(fuzzer.next());
    if (fuzzer.below(1000) == 0) {
      ASSERT_TRUE(engine.pass_time(10).ok());
    }
  }
  // What the hardware counts.
  const aggregate::Counters& c = engine.reference().counters();
  for (const std::uint64_t count :
       {c.operands, c.results, c.resent_results, c.resent_partials, c.duplicates, c.refused,
        c.refusals, c.unknown_job, c.unknown_group, c.malformed, c.bad_tag, c.wrong_source, c.stale,
        c.premature, c.mismatched}) {
    EXPECT_GT(count, 0U);
  }
}

}  // namespace
}  // namespace carillon::rtl
