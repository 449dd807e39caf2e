// SPDX-License-Identifier: Apache-2.0
//
// Refusals of a switch that does not know the job, and so has no key: a host believes who has seen
// its packet, and nobody who only knows how packets look.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "switch/model/switch.h"
#include "transport/aggregate/control.h"
#include "transport/aggregate/stream.h"

namespace carillon::aggregate {
namespace {

using Bytes = std::vector<std::byte>;
constexpr SipKey kKey = {3, 4};
constexpr Endpoint kHost = {0x0a000001, 1000}, kSwitch = {0x0a000002, 1};

class Last final : public Output {
 public:
  void send(std::span<const Endpoint>, std::span<const std::byte> datagram) override {
    bytes.assign(datagram.begin(), datagram.end());
  }
  Bytes bytes;
};

// What a switch without jobs says to it.
Bytes refused(const Bytes& sent) {
  Switch stranger({});
  Last answer;
  stranger.receive(kHost, sent, answer);
  EXPECT_EQ(answer.bytes.size(), kHeaderBytes);
  EXPECT_EQ(load_header(answer.bytes.data()).reason, Reason::kUnknownJob);
  return answer.bytes;
}

// Refusals that a stranger can make of it, who does not know the tag.
std::vector<Bytes> guesses(const Bytes& refusal) {
  const Header right = load_header(refusal.data());
  std::vector<Bytes> all;
  for (const std::uint64_t tag :
       {std::uint64_t{0}, right.tag ^ 1, right.tag ^ std::uint64_t{1} << 63}) {
    Header header = right;
    header.tag = tag;
    all.emplace_back(kHeaderBytes);
    store(all.back().data(), header);
  }
  all.emplace_back(kHeaderBytes);
  seal({1, 2}, right, all.back());
  Header other = right;  // the tag is no key to other refusals
  other.reason = Reason::kQuota;
  all.emplace_back(kHeaderBytes);
  store(all.back().data(), other);
  return all;
}

TEST(SwitchRefusals, AHostBelievesWhoHasSeenItsPacket) {
  for (const bool again : {false, true}) {
    Stream stream({.job = 1,
                   .group = 2,
                   .key = kKey,
                   .child = 5,
                   .window = 4,
                   .operand_bytes = 64,
                   .path = {kSwitch},
                   .times = {.give_up_ns = 1'000'000'000'000}});  // no question comes between
    std::array<std::byte, 8> value{};
    ASSERT_TRUE(stream.post({.op = Op::kSum,
                             .type = Type::kInt64,
                             .input = value.data(),
                             .output = value.data(),
                             .count = 1}));
    Last sent;
    stream.progress(1, sent);
    std::uint64_t ignored = 0;
    if (again) {  // sealed anew: the refusal of the first one comes too late
      const Bytes late = refused(sent.bytes);
      stream.progress(1'000'000'000, sent);
      (void)stream.take(kSwitch, late, 1'000'000'001);
      EXPECT_EQ(stream.counts().ignored, ++ignored);
    }
    const Bytes right = refused(sent.bytes);
    for (const Bytes& guess : guesses(right)) {
      EXPECT_TRUE(stream.take(kSwitch, guess, 1'000'000'002));
      EXPECT_EQ(stream.counts().ignored, ++ignored);
      EXPECT_TRUE(stream.status().ok()) << stream.status().to_string();
    }
    EXPECT_TRUE(stream.take(kSwitch, right, 1'000'000'003));
    EXPECT_EQ(stream.status().code(), Code::kPeerDead) << stream.status().to_string();
    EXPECT_EQ(stream.counts().ignored, ignored);
  }
}

TEST(SwitchRefusals, SoDoesWhoAsks) {
  Requests requests(kKey, 1, {});
  requests.start({ask_limits(kSwitch, 1)}, 0);
  Last sent;
  requests.progress(0, sent);
  const Bytes right = refused(sent.bytes);
  for (const Bytes& guess : guesses(right)) {
    EXPECT_FALSE(requests.take(kSwitch, guess));
    EXPECT_FALSE(requests.done());
  }
  EXPECT_TRUE(requests.take(kSwitch, right));
  EXPECT_FALSE(requests.status().ok());
}

}  // namespace
}  // namespace carillon::aggregate
