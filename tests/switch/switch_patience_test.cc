// SPDX-License-Identifier: Apache-2.0
//
// How long a host waits for switches, and for other hosts: by what it has asked, and not by a clock
// that went on while it slept. Time is a number here.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "transport/aggregate/control.h"
#include "transport/aggregate/member.h"

namespace carillon::aggregate {
namespace {

using Bytes = std::vector<std::byte>;
constexpr SipKey kKey = {3, 4};
constexpr Endpoint kNear = {0x0a000002, 1}, kRoot = {0x0a000002, 2};
constexpr std::int64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
constexpr std::int64_t kGiveUp = 4 * kSecond, kKeep = 30 * kSecond;
constexpr std::int64_t kApart = kGiveUp / StreamTimes::kQuestions;

class Sent final : public Output {
 public:
  struct One {
    Endpoint to;
    Bytes datagram;
  };
  void send(std::span<const Endpoint> to, std::span<const std::byte> datagram) override {
    for (const Endpoint& one : to) all.push_back({one, {datagram.begin(), datagram.end()}});
  }
  [[nodiscard]] std::ptrdiff_t questions(const Endpoint& to) const {
    return std::count_if(all.begin(), all.end(), [&](const One& one) {
      return one.to == to && load_header(one.datagram.data()).kind == Kind::kAskLimits;
    });
  }
  std::vector<One> all;
};

class Host {
 public:
  Host()
      : stream({.job = 1,
                .group = 2,
                .key = kKey,
                .child = 5,
                .window = 4,
                .operand_bytes = 64,
                .path = {kNear, kRoot},
                .times = {.give_up_ns = kGiveUp, .keep_ns = kKeep}}) {}

  void post() {
    ASSERT_TRUE(stream.post({.op = Op::kSum,
                             .type = Type::kInt64,
                             .input = value.data(),
                             .output = value.data(),
                             .count = 1}));
  }
  void progress(std::int64_t by_ns) {
    now_ns += by_ns;
    stream.progress(now_ns, sent);
  }
  void hear_limits(const Endpoint& from) {
    Bytes bytes(kHeaderBytes + kLimitsBytes);
    seal(kKey, {.version = kVersion, .kind = Kind::kLimits, .job = 1, .group = 2}, bytes);
    ASSERT_TRUE(stream.take(from, bytes, now_ns));
  }
  // Of the last packet that was sent to the near one.
  void hear_result() {
    const auto last = std::find_if(sent.all.rbegin(), sent.all.rend(), [](const Sent::One& one) {
      return load_header(one.datagram.data()).kind == Kind::kContribute;
    });
    ASSERT_NE(last, sent.all.rend());
    Bytes bytes = last->datagram;
    Header header = load_header(bytes.data());
    header.kind = Kind::kResult;
    header.flags &= static_cast<std::uint8_t>(~kAgainFlag);
    header.child = static_cast<std::uint16_t>(kAllChildren);
    seal(kKey, header, bytes);
    ASSERT_TRUE(stream.take(kNear, bytes, now_ns));
  }

  std::array<std::byte, 8> value{};
  Stream stream;
  Sent sent;
  std::int64_t now_ns = 1000 * kSecond;
};

TEST(SwitchPatience, AHostThatSleptAsksBeforeItGivesUp) {
  Host host;
  host.post();
  host.progress(0);
  for (std::ptrdiff_t nap = 1; nap <= 20; ++nap) {
    host.progress(100 * kSecond);
    ASSERT_TRUE(host.stream.status().ok()) << host.stream.status().to_string();
    EXPECT_EQ(host.sent.questions(kNear), nap);
    EXPECT_EQ(host.sent.questions(kRoot), nap);
    host.hear_limits(kNear);
    host.hear_limits(kRoot);
  }
}

TEST(SwitchPatience, ASwitchThatLeavesEightQuestionsOpenIsDead) {
  for (const Endpoint& silent : {kNear, kRoot}) {
    const Endpoint& other = silent == kNear ? kRoot : kNear;
    Host host;
    host.post();
    host.progress(0);
    for (int i = 0; i < 5; ++i) host.progress(kApart);
    host.hear_limits(silent);  // any word counts: from here on anew
    host.sent.all.clear();
    const std::int64_t heard_ns = host.now_ns;
    while (host.stream.status().ok() && host.now_ns < heard_ns + 2 * kGiveUp) {
      host.progress(kMillisecond);
      host.hear_limits(other);
    }
    EXPECT_EQ(host.stream.status().code(), Code::kPeerDead);
    EXPECT_EQ(host.sent.questions(silent), StreamTimes::kQuestions);
    EXPECT_EQ(host.now_ns - heard_ns, kApart * (StreamTimes::kQuestions + 1));
    EXPECT_FALSE(host.stream.due_ns());
  }
}

TEST(SwitchPatience, QuestionsOfAnEarlierWaitDoNotCount) {
  Host host;
  for (int wait = 0; wait < 5; ++wait) {  // the root's answers are lost each time
    host.post();
    host.progress(kApart);
    for (int i = 0; i < 5; ++i) host.progress(kApart);
    host.hear_result();
    ASSERT_TRUE(host.stream.status().ok()) << host.stream.status().to_string();
  }
  EXPECT_EQ(host.sent.questions(kRoot), 25);
}

// Who sleeps until due_ns() has something to do each time, and does not come for nothing.
TEST(SwitchPatience, DueIsAheadAndNotForNothing) {
  Host host;
  for (const bool waits : {false, true}) {
    if (waits) host.post();
    host.progress(0);
    for (int i = 0; i < 200; ++i) {
      const auto due_ns = host.stream.due_ns();
      ASSERT_TRUE(due_ns);
      ASSERT_GT(*due_ns, host.now_ns) << i;
      host.sent.all.clear();
      host.progress(*due_ns - host.now_ns - 1);
      EXPECT_TRUE(host.sent.all.empty()) << i;
      host.progress(1);
      EXPECT_FALSE(host.sent.all.empty()) << i;
      host.hear_limits(kNear);
      host.hear_limits(kRoot);
      ASSERT_TRUE(host.stream.status().ok()) << host.stream.status().to_string();
    }
  }
  while (host.stream.due_ns()) host.progress(*host.stream.due_ns() - host.now_ns);
  EXPECT_EQ(host.stream.status().code(), Code::kPeerDead);
}

TEST(SwitchPatience, AnIdleHostKeepsItsGroupAndNeedsNoAnswer) {
  Host host;
  host.progress(0);
  host.sent.all.clear();
  for (int i = 0; i < 20; ++i) host.progress(kKeep);
  for (const Endpoint& one : {kNear, kRoot}) EXPECT_EQ(host.sent.questions(one), 20);
  for (const Sent::One& one : host.sent.all) {
    EXPECT_EQ(load_header(one.datagram.data()).group, 2U);
  }
  EXPECT_TRUE(host.stream.status().ok()) << host.stream.status().to_string();
}

// Without the switch: one of the others answers, one is silent.
TEST(SwitchPatience, HostsAreGivenUpByTheNumberOfQuestions) {
  constexpr Endpoint kOwn = {0x0a000001, 1}, kHears = {0x0a000001, 2}, kMute = {0x0a000001, 3};
  Member member({.job = 1,
                 .group = 2,
                 .key = kKey,
                 .child = 0,
                 .window = 4,
                 .operand_bytes = 64,
                 .path = {kNear},
                 .times = {}},
                {.at = {kOwn, kHears, kMute}, .places = {}, .own = 0});
  Sent sent;
  Bytes told(kHeaderBytes);
  seal(kKey, {.version = kVersion, .kind = Kind::kFallBack, .job = 1, .group = 2, .child = 1},
       told);
  ASSERT_TRUE(member.take(kHears, told, 0, sent));
  std::int64_t now_ns = 1000 * kSecond;
  for (int nap = 1; nap <= 20; ++nap, now_ns += 100 * kSecond) {
    member.progress(now_ns, sent);
    ASSERT_TRUE(member.status().ok()) << nap << ": " << member.status().to_string();
    EXPECT_EQ(std::count_if(sent.all.begin(), sent.all.end(),
                            [&](const Sent::One& one) { return one.to == kMute; }),
              nap);
  }
  const std::int64_t from_ns = now_ns;
  while (member.status().ok() && now_ns < from_ns + 60 * kSecond) {
    now_ns += kMillisecond;
    member.progress(now_ns, sent);
  }
  EXPECT_EQ(member.status().code(), Code::kTimeout);
  EXPECT_NEAR(static_cast<double>(now_ns - from_ns), 30e9, 1e9);
}

TEST(SwitchPatience, RequestsAreGivenUpByTheirNumber) {
  Requests requests(kKey, 1, {.retry_ns = 10 * kMillisecond, .give_up_ns = 100 * kMillisecond});
  Sent sent;
  requests.start({ask_limits(kNear, 1)}, 0);
  std::int64_t now_ns = 0;
  for (std::ptrdiff_t asked = 1; asked <= 10; ++asked, now_ns += kSecond) {
    requests.progress(now_ns, sent);
    requests.progress(now_ns + 10 * kMillisecond - 1, sent);
    EXPECT_EQ(sent.questions(kNear), asked);
    EXPECT_FALSE(requests.done());
  }
  requests.progress(now_ns, sent);
  EXPECT_EQ(sent.questions(kNear), 10);
  EXPECT_EQ(requests.status().code(), Code::kTimeout) << requests.status().to_string();
}

}  // namespace
}  // namespace carillon::aggregate
