// SPDX-License-Identifier: Apache-2.0
//
// The multicast protocol on a simulated network and a simulated clock: thousands of seeds of what
// networks and members do.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/datagram_net.h"
#include "support/multicast_play.h"
#include "transport/wrap/fault_carrier.h"

namespace carillon::multicast {
namespace {

using test::Broadcast;
using test::DatagramNet;
using test::Part;

constexpr Nanoseconds kSecond = 1000 * kMillisecond;
constexpr Nanoseconds kPatience = 300 * kSecond;

struct Play {
  std::uint32_t members = 3;
  DatagramNet::Options net;
  std::vector<Broadcast> program;
  std::uint32_t window = 16;
  std::uint32_t radix = 2;
  std::uint32_t early_packets = 32;
  std::size_t depth = 4;
  std::vector<Nanoseconds> begins;  // by member; empty: at once
};

// The members of one play, and the clock they share.
class Stage {
 public:
  explicit Stage(const Play& play) : play_(play), net_(play.net) {
    play_.begins.resize(play.members, 0);
    std::vector<std::unique_ptr<Carrier>> carriers;
    for (Member i = 0; i < play.members; ++i) carriers.push_back(net_.carrier());
    for (Member i = 0; i < play.members; ++i) {
      const Config config = {
          .member = i,
          .members = play.members,
          .window = play.window,
          .payload_bytes = static_cast<std::uint32_t>(play.net.datagram_bytes - kHeadBytes),
          .radix = play.radix,
          .early_packets = play.early_packets,
          .seed = play.net.seed * 64 + i,
          .key = {play.net.seed, 17}};
      parts_.push_back(std::make_unique<Part>(
          std::make_unique<Group>(config, std::move(carriers[i])), play_.program, play.depth));
    }
  }

  [[nodiscard]] Part& part(std::size_t member) { return *parts_[member]; }
  [[nodiscard]] DatagramNet& net() { return net_; }
  [[nodiscard]] bool awake(std::size_t member) const { return play_.begins[member] <= net_.now(); }

  // Until `over`, or nothing more will happen, or patience ends.
  template <typename Over>
  bool run(Over over) {
    while (!over()) {
      const std::uint64_t refused = net_.refused();
      bool moved = false;
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (!awake(i) || parts_[i]->failed()) continue;
        (void)parts_[i]->group().progress(net_.now(), net_.has_arrivals(i));
        moved = parts_[i]->step() || moved;
      }
      if (moved) continue;
      // What was refused is tried again.
      const Nanoseconds again = net_.refused() > refused ? net_.now() + kMicrosecond : kNever;
      const Nanoseconds next = std::min(next_event(), again);
      if (next == kNever || next > kPatience) return over();
      net_.advance_to(next);
    }
    return true;
  }
  // All have done their part, and need nobody.
  bool run_to_end() {
    return run([&] {
      return std::all_of(parts_.begin(), parts_.end(),
                         [](const auto& part) { return part->done() && part->group().idle(); });
    });
  }

 private:
  [[nodiscard]] Nanoseconds next_event() {
    Nanoseconds next = net_.next_arrival();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      next = std::min(next, awake(i) ? parts_[i]->group().due() : play_.begins[i]);
    }
    return next == kNever ? next : std::max(next, net_.now() + 1);
  }

  Play play_;
  DatagramNet net_;
  std::vector<std::unique_ptr<Part>> parts_;
};

// A play of everything, drawn from a seed.
Play drawn_play(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](std::initializer_list<std::uint32_t> list) {
    return *(list.begin() + static_cast<std::ptrdiff_t>(random() % list.size()));
  };
  const auto share = [&](double most) {
    return random() % 2 == 0 ? 0 : most * static_cast<double>(random() % 1000) / 1000;
  };
  Play play;
  play.members = one_of({1, 2, 3, 5, 7, 8, 13});
  play.window = one_of({1, 2, 5, 16, 64});
  play.radix = one_of({1, 2, 3, 8});
  play.early_packets = one_of({1, 4, 32, 256});
  play.depth = one_of({1, 2, 8});
  play.net = {.shares = {.lose = share(0.3),
                         .duplicate = share(0.3),
                         .reorder = share(0.5),
                         .corrupt = share(0.2),
                         .refuse = share(0.2)},
              .seed = seed,
              .datagram_bytes = one_of({kMinDatagramBytes, 512, 1000}),
              .receive_packets = one_of({4, 64, 1000}),
              .loops_back = random() % 2 == 0};
  const bool one_root = random() % 2 == 0;
  const std::size_t count = 1 + random() % 20;
  for (std::size_t i = 0; i < count; ++i) {
    const auto root = static_cast<Member>(one_root ? seed % play.members : random() % play.members);
    const std::size_t payload = play.net.datagram_bytes - kHeadBytes;
    const std::size_t sizes[] = {0,
                                 1,
                                 payload - 1,
                                 payload,
                                 payload + 1,
                                 random() % 5000,
                                 random() % (payload * play.window * 3)};
    play.program.push_back({root, sizes[random() % std::size(sizes)]});
  }
  for (Member i = 0; i < play.members; ++i) {
    play.begins.push_back(random() % 4 == 0 ? random() % (3 * kSecond) : 0);
  }
  return play;
}

TEST(MulticastProtocol, EveryByteIsRightWhateverHappens) {
  // CARILLON_TEST_SEEDS: more of them.
  const char* const given = std::getenv("CARILLON_TEST_SEEDS");
  const long seeds = given != nullptr ? std::atol(given) : 1000;
  for (long seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Stage stage(drawn_play(static_cast<std::uint64_t>(seed)));
    ASSERT_TRUE(stage.run_to_end()) << "it hangs";
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

std::vector<Broadcast> same(std::size_t count, std::size_t bytes) {
  return std::vector<Broadcast>(count, Broadcast{0, bytes});
}

constexpr std::size_t kPayload = 512 - kHeadBytes;

// Of what the filter of a play sees.
std::optional<Packet> read(std::span<const std::byte> bytes) {
  return parse({1, 17}, UINT32_MAX, bytes);
}

TEST(MulticastProtocol, AFastRootIsHeldBackByALateMember) {
  constexpr Nanoseconds kLate = 2 * kSecond;
  Stage stage({.members = 5,
               .program = same(100, 1),
               .window = 16,
               .depth = 16,
               .begins = {0, 0, 0, 0, kLate}});
  EXPECT_TRUE(stage.run([&] { return stage.net().now() >= kLate; }));
  EXPECT_EQ(stage.part(0).group().counters().sent.packets, 16U);
  EXPECT_EQ(stage.part(1).group().counters().received.packets, 16U);
  EXPECT_LE(stage.part(0).group().counters().sent.asks, 60U) << "asks get rarer";
  EXPECT_TRUE(stage.run_to_end());
}

TEST(MulticastProtocol, EarlyPacketsAreBoundedAndComeAgain) {
  // Member 1 goes on receiving, but wants nothing yet: it keeps 8 packets.
  Stage stage({.members = 2, .program = same(40, 3 * kPayload), .window = 32, .early_packets = 8});
  auto& root = stage.part(0);
  auto& other = stage.part(1).group();
  for (Nanoseconds time = 0; time < kSecond; time += 50 * kMicrosecond) {
    stage.net().advance_to(time);
    (void)root.group().progress(stage.net().now());
    root.step();
    (void)other.progress(stage.net().now());
  }
  EXPECT_EQ(other.counters().received.packets, 8U);
  EXPECT_GT(other.counters().received.no_room, 0U);
  EXPECT_LT(other.counters().received.nacks, 2U) << "it asked for what it cannot keep";
  EXPECT_TRUE(stage.run_to_end());
}

TEST(MulticastProtocol, WhatAllLackIsAskedForByFewAndSentOnce) {
  Stage stage({.members = 40, .program = same(20, kPayload), .window = 64, .radix = 8});
  int lost = 0;
  stage.net().lose([&](std::size_t from, std::size_t, std::span<const std::byte> bytes) {
    const auto packet = read(bytes);
    const bool is_it = from == 0 && packet && packet->sequence == 7 && lost < 39 &&
                       packet->payload.size() == kPayload;
    lost += is_it ? 1 : 0;
    return is_it;
  });
  EXPECT_TRUE(stage.run_to_end());
  EXPECT_EQ(lost, 39);
  std::uint64_t nacks = 0;
  for (std::size_t i = 1; i < 40; ++i) {
    nacks += stage.part(i).group().counters().received.nacks;
  }
  EXPECT_LE(nacks, 12U) << "of 39 that lack it";
  const auto sent = stage.part(0).group().counters().sent;
  EXPECT_EQ(sent.group_repairs, 1U);
  EXPECT_EQ(sent.repairs, 0U);
}

TEST(MulticastProtocol, WhatOneLacksIsSentToItAlone) {
  Stage stage({.members = 40, .program = same(20, kPayload), .window = 64, .radix = 8});
  bool lost = false;
  stage.net().lose([&](std::size_t, std::size_t to, std::span<const std::byte> bytes) {
    const auto packet = read(bytes);
    const bool is_it = to == 5 && packet && packet->sequence == 7 && !lost;
    lost = lost || is_it;
    return is_it;
  });
  EXPECT_TRUE(stage.run_to_end());
  const auto sent = stage.part(0).group().counters().sent;
  EXPECT_EQ(sent.group_repairs, 0U);
  EXPECT_EQ(sent.repairs, 1U);
}

// The network stops passing multicasts on, to all, to one, or to the source.
TEST(MulticastProtocol, ItGoesOnWithoutMulticasts) {
  const std::vector<std::vector<std::size_t>> deaf{{0, 1, 2, 3, 4}, {3}, {0}};
  for (std::size_t i = 0; i < deaf.size(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    Stage stage({.members = 5,
                 .net = {.shares = {.lose = 0.05}},
                 .program = same(60, 3 * kPayload),
                 .window = 16});
    EXPECT_TRUE(stage.run([&] { return stage.part(1).group().counters().received.packets > 20; }));
    for (const std::size_t member : deaf[i]) stage.net().deafen(member);
    EXPECT_FALSE(stage.part(1).done());
    EXPECT_TRUE(stage.run_to_end());
    EXPECT_LT(stage.net().now(), 30 * kSecond);
  }
}

TEST(MulticastProtocol, WhatManyDoNotHearGoesToEachOfThem) {
  constexpr std::size_t kMembers = 200;
  Stage stage({.members = kMembers,
               .net = {.receive_packets = 1000},
               .program = same(2, kPayload),
               .radix = 8});
  for (std::size_t i = 0; i < kMembers; ++i) stage.net().deafen(i);
  EXPECT_TRUE(stage.run_to_end());
  const auto sent = stage.part(0).group().counters().sent;
  EXPECT_LE(sent.group_repairs, 2 * sent.packets) << "two in vain are enough";
  EXPECT_GE(sent.repairs, (kMembers - 1) * sent.packets);
  EXPECT_LT(stage.net().now(), 5 * kSecond);
}

// Somebody has lowered an MTU: long packets do not come any more, short ones do.
TEST(MulticastProtocol, AMemberThatGetsNoLongPacketsSaysSo) {
  Stage stage({.members = 3, .program = same(40, 2 * kPayload)});
  stage.net().lose([](std::size_t, std::size_t to, std::span<const std::byte> bytes) {
    const auto packet = read(bytes);
    return to == 1 && bytes.size() > 400 && packet && packet->sequence >= 20;
  });
  EXPECT_TRUE(stage.run([&] { return stage.part(1).failed(); })) << "it hangs";
  EXPECT_EQ(stage.part(1).failure().code(), Code::kSystem);
  const std::string said(stage.part(1).failure().message());
  EXPECT_EQ(said.find("multicast: packet 20 of member 0 does not reach member 1 (memory), though "),
            0U)
      << said;
  EXPECT_NE(said.find("datagrams of 512 bytes"), std::string::npos) << said;
  EXPECT_LT(stage.net().now(), 10 * kSecond);
}

// A source that computes repairs nothing, but does not ask either; replayed, its asks are old.
TEST(MulticastProtocol, ASourceThatComputesIsWaitedFor) {
  Stage stage({.members = 2, .program = same(4, 1)});
  std::vector<std::byte> ask;
  stage.net().lose([&](std::size_t, std::size_t to, std::span<const std::byte> bytes) {
    const auto packet = read(bytes);
    if (packet && packet->kind == Kind::kAsk) ask.assign(bytes.begin(), bytes.end());
    return to == 1 && packet && packet->kind == Kind::kData;
  });
  EXPECT_FALSE(stage.run([&] { return stage.net().now() > kSecond; }) && ask.empty());
  stage.net().lose({});
  Part& other = stage.part(1);
  for (Nanoseconds end = stage.net().now() + 60 * kSecond; stage.net().now() < end;) {
    stage.net().deliver(1, ask);
    stage.net().advance_to(stage.net().now() + 10 * kMillisecond);
    (void)other.group().progress(stage.net().now());
    other.step();
  }
  EXPECT_FALSE(other.failed()) << other.failure().to_string();
  EXPECT_TRUE(stage.run_to_end());
}

// Nor is it the network's fault if what is expected (Group::expect) was not sent: the source waits
// for a third member.
TEST(MulticastProtocol, ASourceThatIsHeldBackIsWaitedFor) {
  Stage stage({.members = 3,
               .program = same(20, 1),
               .window = 16,
               .depth = 16,
               .begins = {0, 0, 60 * kSecond}});
  EXPECT_TRUE(stage.run([&] { return stage.net().now() >= kSecond; }));
  EXPECT_EQ(stage.part(0).group().counters().sent.packets, 16U);
  stage.part(1).group().expect(0, 1);
  EXPECT_TRUE(stage.run_to_end()) << stage.part(1).failure().to_string();
}

TEST(MulticastProtocol, AcksClimbTheTreeOncePerQuarterOfAWindow) {
  Stage stage({.members = 40,
               .net = {.receive_packets = 1000},
               .program = same(640, 1),
               .window = 64,
               .radix = 3,
               .early_packets = 64,
               .depth = 16});
  std::uint64_t to_root = 0;
  stage.net().lose([&](std::size_t, std::size_t to, std::span<const std::byte> bytes) {
    const auto packet = read(bytes);
    to_root += to == 0 && packet && packet->kind == Kind::kAck ? 1 : 0;
    return false;
  });
  EXPECT_TRUE(stage.run_to_end());
  EXPECT_GE(to_root, 3U * 640 / 64) << "a window needs one of each child";
  EXPECT_LE(to_root, 3U * (640 / 16 + 10)) << "of 39 members";
}

TEST(MulticastProtocol, WhenAMemberDiesAllThatIsUnderWayEnds) {
  Stage stage({.members = 5, .program = same(200, 3 * kPayload), .window = 16});
  EXPECT_TRUE(stage.run([&] { return stage.net().now() >= kMillisecond; }));
  stage.net().cut_off(3);
  EXPECT_TRUE(stage.run([&] { return stage.net().now() >= kSecond; }));
  EXPECT_FALSE(stage.part(0).done());
  for (const std::size_t i : {0, 1, 2, 4}) {
    stage.part(i).group().member_dead(3);
    while (!stage.part(i).failed()) ASSERT_TRUE(stage.part(i).step()) << "member " << i;
    EXPECT_EQ(stage.part(i).failure().code(), Code::kPeerDead);
    EXPECT_EQ(stage.part(i).group().progress(stage.net().now()).code(), Code::kPeerDead);
  }
}

TEST(MulticastProtocol, ASourceThatDiesEndsReceives) {
  Stage stage({.members = 3, .program = same(2, 100 * kPayload), .window = 16});
  EXPECT_TRUE(stage.run([&] { return stage.part(1).group().counters().received.packets > 20; }));
  stage.net().cut_off(0);
  stage.part(1).group().member_dead(0);
  while (!stage.part(1).failed()) ASSERT_TRUE(stage.part(1).step());
  EXPECT_EQ(stage.part(1).failure().code(), Code::kPeerDead);
}

TEST(MulticastProtocol, AMessageThatDoesNotFitIsAnErrorAndTheNextOneArrives) {
  DatagramNet net({});
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<std::unique_ptr<Carrier>> carriers;
  for (Member i = 0; i < 2; ++i) carriers.push_back(net.carrier());
  for (Member i = 0; i < 2; ++i) {
    groups.push_back(std::make_unique<Group>(
        Config{.member = i, .members = 2, .window = 16, .payload_bytes = 400},
        std::move(carriers[i])));
  }
  const std::vector<std::byte> sent(1000, std::byte{7});
  std::vector<std::byte> little(999), enough(1500);
  std::array<wire::Operation, 2> sendings;
  std::array<Receiving, 2> receivings;
  for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(groups[0]->post(sent, sendings[i]).value());
  ASSERT_TRUE(groups[1]->receive(0, little, receivings[0]).value());
  ASSERT_TRUE(groups[1]->receive(0, enough, receivings[1]).value());
  for (int i = 0; i < 100; ++i) {
    net.advance_to(net.now() + 100 * kMicrosecond);
    for (const auto& group : groups) ASSERT_TRUE(group->progress(net.now()).ok());
  }
  ASSERT_TRUE(receivings[0].done() && receivings[1].done());
  EXPECT_EQ(receivings[0].status().code(), Code::kMismatch);
  EXPECT_EQ(little, std::vector<std::byte>(999));
  EXPECT_TRUE(receivings[1].status().ok());
  EXPECT_EQ(receivings[1].received_bytes(), 1000U);
  EXPECT_FALSE(groups[1]->receive(1, enough, receivings[1]).ok()) << "from itself";
  EXPECT_FALSE(groups[1]->receive(2, enough, receivings[1]).ok());
}

// Where nothing has arrived, nothing is read. Asks are sent all the same, and what a layer of
// faults holds back comes.
TEST(MulticastProtocol, OnlyWhatHasArrivedIsRead) {
  DatagramNet net({});
  std::vector<std::unique_ptr<Carrier>> carriers;
  for (int i = 0; i < 2; ++i) carriers.push_back(net.carrier());
  carriers[1] = wrap::with_faults(std::move(carriers[1]), Faults{.delay = 0.9});
  std::vector<std::unique_ptr<Group>> groups;
  for (Member i = 0; i < 2; ++i) {
    groups.push_back(std::make_unique<Group>(
        Config{.member = i, .members = 2, .window = 16, .payload_bytes = 400},
        std::move(carriers[i])));
  }
  const std::vector<std::byte> sent(4000, std::byte{7});
  std::vector<std::byte> data(4000);
  wire::Operation sending;
  Receiving receiving;
  ASSERT_TRUE(groups[0]->post(sent, sending).value());
  ASSERT_TRUE(groups[1]->receive(0, data, receiving).value());

  net.advance_to(net.now() + 100 * kMicrosecond);
  EXPECT_TRUE(net.has_arrivals(1));
  ASSERT_TRUE(groups[1]->progress(net.now(), false).ok());
  EXPECT_EQ(net.reads(1), 0U);
  ASSERT_TRUE(groups[1]->progress(net.now(), true).ok());
  EXPECT_EQ(net.reads(1), 1U);
  EXPECT_FALSE(receiving.done()) << "some are held back";
  for (int i = 0; i < 20 && !receiving.done(); ++i) {
    ASSERT_TRUE(groups[1]->progress(net.now(), false).ok());
  }
  EXPECT_TRUE(receiving.done());
  EXPECT_EQ(data, sent);
  const std::uint64_t reads = net.reads(1);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(groups[1]->progress(net.now(), false).ok());
  EXPECT_EQ(net.reads(1), reads) << "nothing is held back any more";

  net.advance_to(net.now() + 2 * kMillisecond);
  EXPECT_EQ(net.next_arrival(), kNever);
  ASSERT_TRUE(groups[0]->progress(net.now(), false).ok());
  EXPECT_NE(net.next_arrival(), kNever) << "an ask";
  EXPECT_EQ(net.reads(0), 0U);
}

TEST(MulticastProtocol, WhatIsReplayedOrOfAnotherKeyChangesNothing) {
  Stage stage({.members = 3, .program = same(300, 2 * kPayload), .window = 16});
  std::mt19937_64 random(1);
  std::vector<std::vector<std::byte>> seen;
  std::deque<std::pair<std::size_t, std::vector<std::byte>>> again;
  stage.net().lose([&](std::size_t, std::size_t to, std::span<const std::byte> bytes) {
    seen.emplace_back(bytes.begin(), bytes.end());
    auto old = seen[random() % seen.size()];
    if (random() % 2 == 0) {
      const auto packet = read(old);
      if (!packet) return false;
      std::vector<std::byte> forged(old.size());
      Packet other = *packet;
      other.sequence += random() % 3;
      (void)build({2, 17}, other, forged);
      old = forged;
    }
    again.emplace_back(to, old);
    return false;
  });
  EXPECT_TRUE(stage.run([&] {
    while (!again.empty()) {
      stage.net().deliver(again.front().first, again.front().second);
      again.pop_front();
    }
    return stage.part(0).done() && stage.part(1).done() && stage.part(2).done();
  }));
  EXPECT_GT(stage.part(1).group().counters().foreign, 100U);
  EXPECT_GT(stage.part(1).group().counters().received.duplicates, 100U);
}

}  // namespace
}  // namespace carillon::multicast
