// SPDX-License-Identifier: Apache-2.0
//
// Packets of the multicast protocol: what is read is what was built, and nothing else is read. With
// CARILLON_TEST_FUZZ_S, each fuzz test tries mutants for so many seconds.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/datagram_net.h"
#include "transport/multicast/group.h"
#include "transport/multicast/packet.h"
#include "transport/multicast/setup.h"

namespace carillon::multicast {
namespace {

constexpr Key kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
constexpr std::uint32_t kMembers = 5;
using Bytes = std::vector<std::byte>;

Bytes numbered(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

// From the reference implementation's vectors.
TEST(SipHash, GivesTheReferenceValues) {
  EXPECT_EQ(siphash(kKey, {}), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(siphash(kKey, numbered(1)), 0x74f839c593dc67fdU);
  EXPECT_EQ(siphash(kKey, numbered(8)), 0x93f5f5799a932462U);
  EXPECT_EQ(siphash(kKey, numbered(15)), 0xa129ca6149be45e5U);
}

Packet example(Kind kind) {
  const bool answers = kind == Kind::kNack || kind == Kind::kAck;
  return {.kind = kind,
          .from = answers ? 3U : 2U,
          .source = 2,
          .sequence = 77,
          .message = 5,
          .message_bytes = 1000,
          .offset = 100};
}

constexpr std::array kKinds = {Kind::kData, Kind::kNack, Kind::kAck, Kind::kAsk, Kind::kProbe};

Bytes built(const Packet& packet, const Key& key = kKey) {
  Bytes bytes(kHeadBytes + packet.payload.size());
  build(key, packet, bytes);
  return bytes;
}

TEST(MulticastPacket, IsReadAsItWasBuilt) {
  for (const Kind kind : kKinds) {
    for (const std::size_t count : {0, 1, 7, 8, 100}) {
      const Bytes payload = numbered(count);
      Packet packet = example(kind);
      packet.payload = payload;
      const Bytes bytes = built(packet);
      const auto read = parse(kKey, kMembers, bytes);
      ASSERT_TRUE(read);
      EXPECT_EQ(read->kind, packet.kind);
      EXPECT_EQ(read->from, packet.from);
      EXPECT_EQ(read->source, packet.source);
      EXPECT_EQ(read->sequence, packet.sequence);
      EXPECT_EQ(read->message, packet.message);
      EXPECT_EQ(read->message_bytes, packet.message_bytes);
      EXPECT_EQ(read->offset, packet.offset);
      EXPECT_TRUE(
          std::equal(payload.begin(), payload.end(), read->payload.begin(), read->payload.end()));
    }
  }
}

TEST(MulticastPacket, IsNothingIfAnyBitIsWrongOrAnyByteMissing) {
  const Bytes payload = numbered(20);
  Packet packet = example(Kind::kData);
  packet.payload = payload;
  const Bytes whole = built(packet);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes damaged = whole;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(parse(kKey, kMembers, damaged)) << bit;
  }
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(parse(kKey, kMembers, std::span(whole).first(bytes)));
  }
  Bytes longer = whole;
  longer.push_back({});
  EXPECT_FALSE(parse(kKey, kMembers, longer));
  EXPECT_FALSE(parse({kKey.low, kKey.high + 1}, kMembers, whole));
  EXPECT_FALSE(parse(kKey, 2, whole)) << "there is no member 2 of two";
}

TEST(MulticastPacket, OnlyASourceSendsOfItsStream) {
  for (const Kind kind : kKinds) {
    Packet packet = example(kind);
    std::swap(packet.from, packet.source);
    if (packet.from == packet.source) packet.from = 1;
    const bool answers = kind == Kind::kNack || kind == Kind::kAck;
    EXPECT_EQ(parse(kKey, kMembers, built(packet)).has_value(), answers);
    packet.from = packet.source;
    EXPECT_EQ(parse(kKey, kMembers, built(packet)).has_value(), !answers);
  }
  for (const int kind : {0, 6, 255}) {
    EXPECT_FALSE(parse(kKey, kMembers, built(example(static_cast<Kind>(kind)))));
  }
}

TEST(MulticastPacket, RangesAreChecked) {
  const auto read = [](const std::vector<Range>& ranges) {
    return parse_ranges(std::as_bytes(std::span(ranges)));
  };
  EXPECT_EQ(read({{1, 2}, {3, 1}, {9, 5}})->size(), 3U);
  EXPECT_EQ(read({})->size(), 0U);
  EXPECT_FALSE(read({{1, 0}}));
  EXPECT_FALSE(read({{5, 2}, {6, 1}})) << "they overlap";
  EXPECT_FALSE(read({{5, UINT64_MAX}})) << "it runs over the end of numbers";
  EXPECT_FALSE(read(std::vector<Range>(kMaxRanges + 1, {1, 1})));
  EXPECT_FALSE(parse_ranges(numbered(15)));
}

// A packet of any kind, near what members send: small numbers, now and then a huge one.
Packet drawn(std::mt19937_64& random, Bytes& payload) {
  const auto number = [&]() -> std::uint64_t {
    switch (random() % 8) {
      case 0: return random();
      case 1: return UINT64_MAX - random() % 4;
      default: return random() % 40;
    }
  };
  constexpr std::uint64_t kPayload = 100;
  Packet packet = {.kind = static_cast<Kind>(1 + random() % 5),
                   .from = static_cast<Member>(random() % kMembers),
                   .source = static_cast<Member>(random() % kMembers),
                   .sequence = number(),
                   .message = number() % 4,
                   .message_bytes = random() % 2 == 0 ? random() % 700 : number(),
                   .offset = random() % 2 == 0 ? kPayload * (random() % 7) : number()};
  if (random() % 2 == 0) packet.from = packet.source;
  payload.resize(random() % 3 == 0 ? random() % 400 : kPayload);
  for (std::byte& byte : payload) byte = static_cast<std::byte>(random() % 4);
  packet.payload = payload;
  return packet;
}

// Seeds, for some time.
template <typename Body>
void each_seed(Body body) {
  const char* const given = std::getenv("CARILLON_TEST_FUZZ_S");
  const std::chrono::duration<double> limit(given != nullptr ? std::atof(given) : 0);
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t seed = 1; seed <= 300 || std::chrono::steady_clock::now() - start < limit;
       ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    body(seed);
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

// Of the members on three nodes.
std::shared_ptr<const Places> places() {
  return std::make_shared<Places>(Places{.of = {0, 0, 1, 1, 2}, .count = 3});
}

// What the member of a place does when others take over, and it again.
void change_places(Group& group, std::mt19937_64& random) {
  const auto source = static_cast<Member>(1 + random() % (kMembers - 1));
  switch (random() % 12) {
    case 0: {
      std::array<Group::Position, kMembers> positions;
      for (Group::Position& one : positions) one = {random() % 40, random() % 4};
      EXPECT_TRUE(group.take_over(positions).ok());
      break;
    }
    case 1: group.stand_back(); break;
    case 2: group.confirm(source, {random() % 40, random() % 4}); break;
    case 3: group.expect(source, random() % 4000); break;
    default: break;
  }
}

// Whatever comes, with the right key or not, nothing is written but into posted memory. The address
// sanitizer looks on.
TEST(MulticastFuzz, AGroupBearsAnything) {
  each_seed([](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    test::DatagramNet net(
        {.seed = seed, .datagram_bytes = kMinDatagramBytes, .receive_packets = 1000});
    std::vector<std::unique_ptr<Carrier>> carriers;
    for (Member i = 0; i < kMembers; ++i) carriers.push_back(net.carrier());
    Group group({.member = 0,
                 .members = kMembers,
                 .window = 8,
                 .payload_bytes = 100,
                 .radix = 2,
                 .early_packets = 6,
                 .key = kKey,
                 .places = seed % 2 == 0 ? places() : nullptr},
                std::move(carriers[0]));
    std::array<std::vector<std::byte>, 8> memory;
    std::array<Receiving, 8> receivings;
    wire::Operation sending;
    const Bytes message = numbered(3000);
    for (int i = 0; i < 400; ++i) {
      Bytes payload;
      Bytes bytes = built(drawn(random, payload));
      const bool mutant = random() % 3 == 0;
      if (mutant) bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
      EXPECT_TRUE(!mutant || !parse(kKey, kMembers, bytes));
      (void)carriers[1]->send_member(0, bytes);
      const std::size_t which = random() % receivings.size();
      if (receivings[which].done()) {
        memory[which].assign(random() % 600, std::byte{0xee});
        (void)group.receive(1 + static_cast<Member>(random() % (kMembers - 1)), memory[which],
                            receivings[which]);
      }
      if (sending.done()) (void)group.post(message, sending);
      if (seed % 2 == 0) change_places(group, random);
      net.advance_to(net.now() + random() % (2 * kMillisecond));
      EXPECT_TRUE(group.progress(net.now()).ok());
      for (const Receiving& one : receivings) EXPECT_LE(one.arrived_bytes(), 600U);
    }
    group.member_dead(1);
    if (seed % 2 == 1) {
      for (const Receiving& one : receivings) EXPECT_TRUE(one.done());
    }
  });
}

// The others' hellos are this member's own, but for the random numbers; their verdicts are drawn,
// or this member's own. So the key is known here.
struct Mirror {
  static constexpr std::size_t kRandomAt = 32, kRandomBytes = 16;
  explicit Mirror(std::uint64_t seed) : random(seed) {}
  crl_oob_t oob() {
    return {
        .arg = this, .rank = 0, .size = kMembers, .allgather_post = post, .allgather_test = test};
  }
  static int post(void* arg, const void* in, void* out, std::size_t bytes, void** /*request*/) {
    auto& self = *static_cast<Mirror*>(arg);
    const std::span mine(static_cast<const std::byte*>(in), bytes);
    const std::span all(static_cast<std::byte*>(out), bytes * kMembers);
    for (std::size_t i = 0; i < kMembers; ++i) {
      std::copy(mine.begin(), mine.end(), all.subspan(i * bytes).begin());
      if (i == 0) continue;
      const bool hello = self.posts == 0;
      const bool whole = !hello && self.random() % 4 == 0;
      const auto drawn = hello ? all.subspan(i * bytes + kRandomAt, kRandomBytes)
                               : all.subspan(i * bytes, whole ? bytes : 0);
      for (std::byte& byte : drawn) byte = static_cast<std::byte>(self.random());
    }
    for (std::size_t i = 0; self.posts == 0 && i < kMembers; ++i) {
      const auto own = all.subspan(i * bytes + kRandomAt, kRandomBytes);
      self.randoms.insert(self.randoms.end(), own.begin(), own.end());
    }
    ++self.posts;
    return 0;
  }
  static int test(void* arg, void* /*request*/) {
    return static_cast<Mirror*>(arg)->random() % 3 == 0 ? 0 : 1;
  }
  [[nodiscard]] Key key() const { return {siphash({1, 0}, randoms), siphash({2, 0}, randoms)}; }

  std::mt19937_64 random;
  Bytes randoms;
  int posts = 0;
};

// Now and then a probe that counts: of another member, of a length that is tried.
Packet drawn_at_setup(std::mt19937_64& random, Bytes& payload) {
  Packet packet = drawn(random, payload);
  if (random() % 3 == 0) return packet;
  packet.kind = Kind::kProbe;
  packet.from = packet.source = static_cast<Member>(random() % kMembers);
  if (random() % 4 != 0) packet.sequence = random() % 8;
  if (random() % 4 != 0) packet.message = random() % 2;
  return packet;
}

// Whatever comes while it looks for the others. Nobody is heard by what has a wrong key.
TEST(MulticastFuzz, ASetupBearsAnything) {
  std::size_t groups = 0;
  each_seed([&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    test::DatagramNet net({.seed = seed, .datagram_bytes = 1472, .receive_packets = 1000});
    std::vector<std::unique_ptr<Carrier>> carriers;
    for (Member i = 0; i < kMembers; ++i) carriers.push_back(net.carrier());
    Mirror mirror(seed);
    const bool forged = seed % 3 == 0;
    multicast::Setup setup(
        std::move(carriers[0]), mirror.oob(),
        {.patience = 20 * kMillisecond, .places = seed % 2 == 0 ? places() : nullptr});
    bool over = false;
    for (int i = 0; i < 2000 && !over; ++i) {
      Bytes payload;
      Key key = mirror.key();
      if (forged) key.high ^= 1;
      Bytes bytes = built(drawn_at_setup(random, payload), key);
      if (random() % 4 == 0) {
        bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
      }
      (void)carriers[1]->send_member(0, bytes);
      net.advance_to(net.now() + random() % (200 * kMicrosecond));
      const auto answer = setup.progress(net.now());
      ASSERT_TRUE(answer.ok());
      over = answer.value();
    }
    ASSERT_TRUE(over) << "it hangs";
    const auto group = setup.result();
    groups += group.ok() ? 1 : 0;
    EXPECT_FALSE(forged && group.ok());
    if (!group.ok()) {
      EXPECT_EQ(group.status().code(), Code::kUnsupported);
    }
  });
  EXPECT_GT(groups, 0U);
}

}  // namespace
}  // namespace carillon::multicast
