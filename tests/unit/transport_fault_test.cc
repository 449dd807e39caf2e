// SPDX-License-Identifier: Apache-2.0
//
// The faulty network keeps to the contract of networks: what it does, in which order, and that the
// seed alone decides.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "support/memory_wire.h"
#include "transport/wrap/fault.h"

namespace carillon::test {
namespace {

constexpr std::uint32_t kPuts = 500;

struct Arrivals final : wire::Listener {
  std::vector<std::uint32_t> told;
  void on_put(std::uint32_t immediate) override { told.push_back(immediate); }
};

// One end that sends, with faults, and two that receive.
class Ends {
 public:
  explicit Ends(const std::string& faults, const std::string& receiver_faults = "") {
    const auto open = [&](const std::string& text) {
      return wrap::with_faults(net.open_end(), parse_faults(text).value());
    };
    sender = open(faults);
    for (std::size_t i = 0; i < 2; ++i) {
      receivers[i] = open(receiver_faults);
      EXPECT_EQ(sender->add_peer(receivers[i]->address()).value(), static_cast<int>(i));
      EXPECT_EQ(receivers[i]->add_peer(sender->address()).value(), 0);
    }
  }
  void progress() {
    EXPECT_TRUE(sender->progress(nobody).ok());
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(receivers[i]->progress(arrivals[i]).ok());
  }
  // Puts of one peer number 0, 1, 2 ...: places and immediates alike.
  void put_all(wire::Peer peer) {
    operations = std::vector<wire::Operation>(kPuts);
    bytes.assign(kPuts, std::byte{0});
    numbers.resize(kPuts);
    std::iota(numbers.begin(), numbers.end(), std::uint8_t{0});
    for (std::uint32_t i = 0; i < kPuts; ++i) {
      const std::array piece = {wire::Piece{reinterpret_cast<std::byte*>(&numbers[i]), 1, nullptr}};
      const wire::RemoteMemory to{reinterpret_cast<std::uint64_t>(&bytes[i]), 1};
      for (;;) {
        const auto posted = sender->put(peer, piece, to, i, operations[i]);
        ASSERT_TRUE(posted.ok());
        if (posted.value()) break;
        ++refused;
        progress();
      }
    }
    const auto all_done = [&] {
      return std::all_of(operations.begin(), operations.end(),
                         [](const wire::Operation& one) { return one.done(); });
    };
    while (!all_done() || !receivers[static_cast<std::size_t>(peer)]->ready_to_wait()) progress();
    for (std::uint32_t i = 0; i < kPuts; ++i) EXPECT_EQ(bytes[i], std::byte{numbers[i]});
  }

  MemoryNet net;
  std::unique_ptr<wire::Wire> sender;
  std::array<std::unique_ptr<wire::Wire>, 2> receivers;
  std::array<Arrivals, 2> arrivals;
  Arrivals nobody;
  std::vector<wire::Operation> operations;
  std::vector<std::byte> bytes;
  std::vector<std::uint8_t> numbers;
  int refused = 0;
};

std::vector<std::uint32_t> counted() {
  std::vector<std::uint32_t> all(kPuts);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

TEST(Fault, RefusalsAreDrawnAndNothingIsLost) {
  Ends ends("refuse=0.5");
  ends.put_all(0);
  EXPECT_GT(ends.refused, 300);
  EXPECT_EQ(ends.arrivals[0].told, counted());
}

TEST(Fault, DelaysAndLossesKeepTheOrderOfAPair) {
  Ends ends("delay=0.2,lose=0.01", "delay=0.2");
  EXPECT_TRUE(ends.sender->capabilities().ordered);
  ends.put_all(1);
  EXPECT_EQ(ends.arrivals[1].told, counted());
}

TEST(Fault, OtherPeersDoNotWait) {
  Ends ends("delay=0.5");
  wire::Operation to_first, to_second;
  const std::array piece = {wire::Piece{nullptr, 0, nullptr}};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(ends.sender->put(0, piece, {}, 1, to_first).value());
    ASSERT_TRUE(ends.sender->put(1, piece, {}, 2, to_second).value());
    if (!to_first.done() && to_second.done()) return;
    while (!to_first.done() || !to_second.done()) ends.progress();
  }
  FAIL() << "of 100 pairs of puts, no second one went first";
}

TEST(Fault, ReorderingLosesNothingAndSaysThatItIsNotOrdered) {
  Ends ends("reorder=0.3");
  EXPECT_FALSE(ends.sender->capabilities().ordered);
  ends.put_all(0);
  std::vector<std::uint32_t> told = ends.arrivals[0].told;
  EXPECT_NE(told, counted());
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, counted());
}

// One that is posted after another was done lands after it.
TEST(Fault, WhatIsPostedAfterTheEndOfAnotherComesAfterIt) {
  Ends ends("reorder=0.5,delay=0.3,lose=0.02", "delay=0.3");
  wire::Operation operation;
  const std::array piece = {wire::Piece{nullptr, 0, nullptr}};
  for (std::uint32_t i = 0; i < kPuts; ++i) {
    ASSERT_TRUE(ends.sender->put(0, piece, {}, i, operation).value());
    while (!operation.done()) ends.progress();
  }
  while (ends.arrivals[0].told.size() < kPuts) ends.progress();
  EXPECT_EQ(ends.arrivals[0].told, counted());
}

TEST(Fault, SendsOfOneTagKeepTheirOrder) {
  Ends ends("reorder=0.5");
  std::vector<wire::Operation> operations(200);
  const std::array piece = {wire::Piece{nullptr, 0, nullptr}};
  for (std::size_t i = 0; i < operations.size(); ++i) {
    ASSERT_TRUE(ends.sender->send(0, piece, i % 2 == 0 ? 7 : 100 + i, operations[i]).value());
  }
  const auto open = [](const wire::Operation& one) { return !one.done(); };
  while (std::any_of(operations.begin(), operations.end(), open)) {
    bool earlier_open = false;
    for (std::size_t i = 0; i < operations.size(); i += 2) {
      ASSERT_FALSE(earlier_open && operations[i].done()) << i;
      earlier_open = earlier_open || !operations[i].done();
    }
    ends.progress();
  }
  std::vector<std::uint64_t> others = ends.net.posted();
  std::erase(others, 7U);
  EXPECT_FALSE(std::is_sorted(others.begin(), others.end()));
}

TEST(Fault, DuplicatesComeLaterThanTheirFirst) {
  Ends ends("seed=3", "duplicate=0.1");
  ends.put_all(0);
  const auto& told = ends.arrivals[0].told;
  EXPECT_GT(told.size(), kPuts + 10);
  std::vector<std::uint32_t> firsts;
  for (const std::uint32_t one : told) {
    if (std::find(firsts.begin(), firsts.end(), one) == firsts.end()) firsts.push_back(one);
  }
  EXPECT_EQ(firsts, counted());
}

TEST(Fault, ABrokenConnectionStaysBrokenAndOthersDoNot) {
  Ends ends("break=3,delay=0.9");
  std::array<wire::Operation, 4> operations;
  const std::array piece = {wire::Piece{nullptr, 0, nullptr}};
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(ends.sender->put(0, piece, {}, 1, operations[i]).value());
  }
  EXPECT_TRUE(operations[2].done());
  EXPECT_EQ(operations[2].status().code(), Code::kPeerDead);
  EXPECT_TRUE(operations[0].done() && operations[1].done());
  const auto later = ends.sender->put(0, piece, {}, 1, operations[3]);
  ASSERT_FALSE(later.ok());
  EXPECT_EQ(later.status().code(), Code::kPeerDead);
  EXPECT_NE(later.status().message().find("CARILLON_FAULT"), std::string::npos);
  EXPECT_TRUE(ends.sender->put(1, piece, {}, 1, operations[3]).value());
}

TEST(Fault, WhatCannotBePostedIsRefusedAtOnce) {
  Ends ends("delay=0.9,lose=0.9");
  wire::Operation operation;
  const std::vector<wire::Piece> many(5);
  EXPECT_FALSE(ends.sender->put(9, std::span(many).first(1), {}, 1, operation).ok());
  EXPECT_FALSE(ends.sender->put(-1, std::span(many).first(1), {}, 1, operation).ok());
  EXPECT_TRUE(operation.done());
}

TEST(Fault, TheSeedDecides) {
  const auto order = [](const std::string& seed) {
    Ends ends("reorder=0.3,delay=0.1,refuse=0.1,seed=" + seed);
    ends.put_all(0);
    return ends.net.posted();
  };
  EXPECT_EQ(order("1"), order("1"));
  EXPECT_NE(order("1"), order("2"));
}

TEST(Faults, AreReadAndRefused) {
  const Faults all =
      parse_faults("refuse=0.1,delay=0.2,reorder=0.3,duplicate=1e-3,lose=0.5,break=1000,seed=7")
          .value();
  EXPECT_EQ(all.refuse, 0.1);
  EXPECT_EQ(all.delay, 0.2);
  EXPECT_EQ(all.reorder, 0.3);
  EXPECT_EQ(all.duplicate, 0.001);
  EXPECT_EQ(all.lose, 0.5);
  EXPECT_EQ(all.break_post, 1000U);
  EXPECT_EQ(all.seed, 7U);
  EXPECT_FALSE(parse_faults("").value().any());
  EXPECT_FALSE(parse_faults("seed=9").value().any());
  for (const char* const wrong :
       {"refuse", "refuse=", "refuse=x", "refuse=1", "refuse=-0.1", "refuse=nan", "delay=0.1,",
        ",delay=0.1", "loose=0.1", "break=0", "break=-1", "break=1.5", "seed=", "delay=0.1 ",
        "delay=0.1;seed=2"}) {
    const auto faults = parse_faults(wrong);
    ASSERT_FALSE(faults.ok()) << wrong;
    EXPECT_EQ(faults.status().code(), Code::kInvalidArgument);
    const std::string text(faults.status().message());
    EXPECT_EQ(text.find(std::string("CARILLON_FAULT=") + wrong), 0U) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace carillon::test
