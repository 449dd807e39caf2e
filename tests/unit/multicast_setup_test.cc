// SPDX-License-Identifier: Apache-2.0
//
// Setting up a multicast group, or finding out that it does not work, on a simulated network and
// clock: all members come to the same answer.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/datagram_net.h"
#include "support/job.h"
#include "transport/multicast/setup.h"
#include "transport/multicast/udp_carrier.h"

namespace carillon::multicast {
namespace {

using test::DatagramNet;
using test::Meeting;

using Opened = Result<std::unique_ptr<Carrier>>;
using Open = std::function<Opened(Member, std::unique_ptr<Carrier>)>;

// A carrier that takes shorter packets than the network, or loses what it is given.
class Lame final : public Carrier {
 public:
  struct Faults {
    std::size_t datagram_bytes = SIZE_MAX;  // what it says
    std::size_t group_most = SIZE_MAX;      // longer multicasts are lost
    std::size_t member_most = SIZE_MAX;
    bool joins = true;
    bool fails_to_join = false, fails_to_listen = false, knows_nobody = false;
    std::size_t* multicast_bytes = nullptr;  // counted there
  };
  Lame(std::unique_ptr<Carrier> inner, const Faults& faults)
      : inner_(std::move(inner)), faults_(faults), limits_(inner_->limits()) {
    limits_.datagram_bytes = std::min(limits_.datagram_bytes, faults.datagram_bytes);
  }
  [[nodiscard]] const CarrierLimits& limits() const override { return limits_; }
  [[nodiscard]] std::span<const std::byte> address() const override { return inner_->address(); }
  Status add_member(std::span<const std::byte> a) override {
    if (faults_.knows_nobody) return {Code::kInvalidArgument, "what is this?"};
    return inner_->add_member(a);
  }
  Status join(std::uint64_t name) override {
    if (faults_.fails_to_join) return {Code::kSystem, "too many groups"};
    return inner_->join(name);
  }
  Result<bool> joined() override {
    if (faults_.fails_to_listen) return Status(Code::kSystem, "no memory to join");
    return faults_.joins;
  }
  bool send_group(std::span<const std::byte> packet) override {
    if (faults_.multicast_bytes != nullptr) *faults_.multicast_bytes += packet.size();
    return packet.size() > faults_.group_most || inner_->send_group(packet);
  }
  bool send_member(Member member, std::span<const std::byte> packet) override {
    return packet.size() > faults_.member_most || inner_->send_member(member, packet);
  }
  Status receive(CarrierListener& listener) override { return inner_->receive(listener); }

 private:
  std::unique_ptr<Carrier> inner_;
  Faults faults_;
  CarrierLimits limits_;
};

// The answers of all members.
std::vector<Result<std::unique_ptr<Group>>> set_up(std::uint32_t members,
                                                   const DatagramNet::Options& options,
                                                   const Open& open,
                                                   const SetupOptions& wish = {}) {
  DatagramNet net(options);
  Meeting meeting(static_cast<int>(members));
  std::vector<std::unique_ptr<Carrier>> carriers;
  for (Member i = 0; i < members; ++i) carriers.push_back(net.carrier());
  std::vector<std::unique_ptr<Setup>> setups;
  for (Member i = 0; i < members; ++i) {
    setups.push_back(std::make_unique<Setup>(open(i, std::move(carriers[i])),
                                             meeting.oob(static_cast<int>(i)), wish));
  }
  std::size_t over = 0;
  for (int round = 0; over < members && round < 100000; ++round) {
    over = 0;
    for (const auto& setup : setups) {
      const auto answer = setup->progress(net.now());
      EXPECT_TRUE(answer.ok());
      over += answer.value() ? 1 : 0;
    }
    net.advance_to(net.now() + 50 * kMicrosecond);
  }
  EXPECT_EQ(over, members) << "it hangs";
  std::vector<Result<std::unique_ptr<Group>>> results;
  for (const auto& setup : setups) results.push_back(setup->result());
  return results;
}

Opened as_it_is(Member /*member*/, std::unique_ptr<Carrier> carrier) { return carrier; }

// What one member's carrier lacks.
Open lame_member(Member which, const Lame::Faults& faults) {
  return [=](Member member, std::unique_ptr<Carrier> carrier) -> Opened {
    if (member != which) return carrier;
    return std::unique_ptr<Carrier>(std::make_unique<Lame>(std::move(carrier), faults));
  };
}

void expect_refusals(std::uint32_t members, const Open& open, const std::string& reason) {
  for (const auto& result : set_up(members, {.datagram_bytes = 1472}, open)) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), Code::kUnsupported);
    EXPECT_NE(result.status().message().find(reason), std::string::npos)
        << result.status().to_string();
  }
}

TEST(MulticastSetup, AllAgree) {
  for (const std::uint32_t members : {1, 2, 3, 5, 7, 8, 13}) {
    for (const double lose : {0.0, 0.1, 0.5}) {
      const DatagramNet::Options net = {
          .shares = {.lose = lose, .duplicate = lose, .reorder = lose, .corrupt = lose / 2},
          .seed = members,
          .datagram_bytes = 1472,
          .receive_packets = 200};
      auto groups = set_up(members, net, as_it_is);
      Key key;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        ASSERT_TRUE(groups[i].ok()) << groups[i].status().to_string();
        const Config& config = groups[i].value()->config();
        if (i == 0) key = config.key;
        EXPECT_EQ(config.member, i);
        EXPECT_EQ(config.window, 100U);
        EXPECT_EQ(config.payload_bytes, 1472 - kHeadBytes);
        EXPECT_EQ(config.key.low, key.low);
        EXPECT_EQ(config.key.high, key.high);
      }
      EXPECT_NE(key.low, key.high);
    }
  }
}

TEST(MulticastSetup, OneWithoutInterfaceRefusesForAll) {
  expect_refusals(
      3,
      [](Member member, std::unique_ptr<Carrier> carrier) -> Opened {
        if (member != 1) return carrier;
        return open_udp({.interface = "nosuch0"});
      },
      "no interface 'nosuch0' is up; with IPv4 addresses there are: ");
}

TEST(MulticastSetup, OneThatIsNotHeardRefusesForAll) {
  expect_refusals(5, lame_member(2, {.group_most = 0}),
                  "member 0 does not hear member 2 (memory, 2000 ms); does the network pass");
}

TEST(MulticastSetup, UnicastIsTriedToo) {
  expect_refusals(5, lame_member(2, {.member_most = 0}),
                  "member 3 does not hear member 2 when it sends to one only");
}

TEST(MulticastSetup, OneThatNeverJoinsRefusesForAll) {
  expect_refusals(3, lame_member(1, {.joins = false}), "does not hear member 1");
}

// Others do not hear it either; all say why.
TEST(MulticastSetup, OneThatFailsSaysWhyToAll) {
  expect_refusals(3, lame_member(1, {.fails_to_join = true}), "too many groups (member 1)");
  expect_refusals(3, lame_member(2, {.fails_to_listen = true}), "no memory to join (member 2)");
  expect_refusals(3, lame_member(0, {.knows_nobody = true}), "what is this? (member 0)");
}

// A wire takes the probes of all: as one is not heard they come for 2 s, on a fourth of 20 Mbit/s.
TEST(MulticastSetup, ProbesLeaveSlowWiresRoom) {
  constexpr std::uint32_t kMembers = 16;
  std::size_t bytes = 0;
  expect_refusals(
      kMembers,
      [&](Member member, std::unique_ptr<Carrier> carrier) -> Opened {
        return std::unique_ptr<Carrier>(std::make_unique<Lame>(
            std::move(carrier),
            Lame::Faults{.group_most = member == 1 ? 0 : SIZE_MAX, .multicast_bytes = &bytes}));
      },
      "does not hear member 1");
  EXPECT_LT(bytes, 2 * 20'000'000 / 8 / 4);
  EXPECT_GT(bytes, 10 * kMembers * 1472);
}

// Many send seldom, but each length more than once.
TEST(MulticastSetup, ManyFindTheLengthInShortTime) {
  const Open shorter = [](Member /*member*/, std::unique_ptr<Carrier> carrier) -> Opened {
    return std::unique_ptr<Carrier>(std::make_unique<Lame>(
        std::move(carrier), Lame::Faults{.group_most = 1500, .member_most = 1500}));
  };
  for (const std::uint32_t members : {3, 13, 64, 128}) {
    auto groups = set_up(members, {.datagram_bytes = 8972, .receive_packets = 4096}, shorter,
                         {.patience = 80 * kMillisecond});
    for (auto& group : groups) {
      ASSERT_TRUE(group.ok()) << group.status().to_string();
      EXPECT_EQ(group.value()->config().payload_bytes, 1472 - kHeadBytes);
    }
  }
}

TEST(MulticastSetup, PacketsAreAsLongAsComeThrough) {
  const struct {
    Lame::Faults faults;
    std::size_t bytes;
  } cases[] = {{{.datagram_bytes = 6000}, 6000},
               {{.group_most = 7000}, 4096},
               {{.group_most = 1500}, 1472},
               {{.group_most = 600}, 552}};
  for (const auto& one : cases) {
    auto groups = set_up(3, {.datagram_bytes = 8972}, lame_member(1, one.faults));
    for (auto& group : groups) {
      ASSERT_TRUE(group.ok()) << group.status().to_string();
      const Config& config = group.value()->config();
      EXPECT_EQ(config.payload_bytes, one.bytes - kHeadBytes);
    }
  }
}

}  // namespace
}  // namespace carillon::multicast
