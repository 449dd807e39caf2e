// SPDX-License-Identifier: Apache-2.0
//
// Who calls a lifeline without belonging there, and where calls lead nowhere. (The ranks of a test
// are objects of one process: what matters comes over the sockets.)
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>
#include <random>
#include <string>

#include "support/lines.h"

namespace carillon::test {
namespace {

using Kind = lifeline::Verdict::Kind;

// Rank 0 of 3 with a good connection to rank 1. Whatever comes besides, nothing becomes of it.
class Strangers : public testing::Test {
 protected:
  void SetUp() override {
    line_->watch(1, friend_->address());
    ASSERT_TRUE(within(kPatience, both(), [&] { return line_->state(1) == State::kAlive; }));
    ASSERT_TRUE(within(kPatience, both(), [&] { return friend_->state(0) == State::kAlive; }));
  }
  // Nobody has come or gone, and the port is open to those who belong there.
  void TearDown() override {
    EXPECT_EQ(line_->state(1), State::kAlive);
    EXPECT_EQ(line_->state(2), State::kUnknown);
    auto third = make_line(2, 3);
    third->watch(0, line_->address());
    EXPECT_TRUE(within(kPatience, {line_.get(), friend_.get(), third.get()}, [&] {
      return third->state(0) == State::kAlive && line_->state(2) == State::kAlive;
    }));
  }
  std::vector<Lifeline*> both() { return {line_.get(), friend_.get()}; }
  UniqueFd call() { return connect_to(line_->address().port); }
  bool closed(const UniqueFd& fd, std::string* said = nullptr, double seconds = kSeen) {
    return within(seconds, both(), [&] { return is_closed(fd, said); });
  }
  void expect_refused(const lifeline::Hello& hello) {
    const UniqueFd fd = call();
    const auto bytes = lifeline::encode(hello);
    send_bytes(fd, bytes.data(), bytes.size());
    std::string said;
    EXPECT_TRUE(closed(fd, &said));
    EXPECT_EQ(said, "");
  }
  std::unique_ptr<Lifeline> line_ = make_line(0, 3), friend_ = make_line(1, 3);
};

TEST_F(Strangers, Garbage) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) {
    const UniqueFd fd = call();
    send_bytes(fd, "GET / HTTP/1.1\r\n\r\n", 18);
    EXPECT_TRUE(closed(fd));
  }
  const std::string logged = testing::internal::GetCapturedStderr();
  const std::size_t first = logged.find("does not speak carillon");
  EXPECT_NE(first, std::string::npos) << logged;
  EXPECT_EQ(logged.find("does not speak carillon", first + 1), std::string::npos) << "said twice";
}

TEST_F(Strangers, AnotherJob) { expect_refused({.world = kWorld + 1, .from = 2, .to = 0}); }

TEST_F(Strangers, RanksThatCannotBe) {
  expect_refused({.world = kWorld, .from = 2, .to = 1});
  expect_refused({.world = kWorld, .from = 3, .to = 0});
  expect_refused({.world = kWorld, .from = -1, .to = 0});
  expect_refused({.world = kWorld, .from = 0, .to = 0});
}

// Who is there already cannot come again.
TEST_F(Strangers, OneWhoGivesTheNameOfAnother) {
  auto third = make_line(2, 3);
  third->watch(0, line_->address());
  ASSERT_TRUE(within(kPatience, {line_.get(), third.get()},
                     [&] { return third->state(0) == State::kAlive; }));
  {
    auto second = make_line(2, 3);
    second->watch(0, line_->address());
    EXPECT_FALSE(within(0.5, {line_.get(), second.get()},
                        [&] { return second->state(0) == State::kAlive; }));
  }
  EXPECT_FALSE(within(0.2, both(), [&] { return line_->state(2) != State::kAlive; }));
  line_ = make_line(0, 3);
  friend_ = make_line(1, 3);
  SetUp();
}

// It is told the version that runs here, and nothing else.
TEST_F(Strangers, AnotherVersion) {
  testing::internal::CaptureStderr();
  const UniqueFd fd = call();
  const auto bytes = lifeline::encode({.version = 7, .world = kWorld, .from = 2, .to = 0});
  send_bytes(fd, bytes.data(), bytes.size());
  std::string said;
  EXPECT_TRUE(closed(fd, &said));
  const auto expected = lifeline::encode({});
  EXPECT_EQ(said, std::string(reinterpret_cast<const char*>(expected.data()), expected.size()));
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_NE(logged.find("runs version 7"), std::string::npos) << logged;
  EXPECT_NE(logged.find("this is version 1"), std::string::npos) << logged;
}

TEST_F(Strangers, SilentOnesAreDroppedInTime) {
  const UniqueFd silent = call(), slow = call();
  const auto bytes = lifeline::encode({.world = kWorld, .from = 2, .to = 0});
  const Stopwatch watch;
  std::size_t sent = 0;  // a byte now and then does not make it last longer
  const bool gone = within(6, both(), [&] {
    if (sent < 12 && watch.seconds() > 0.3 * static_cast<double>(sent)) {
      send_bytes(slow, &bytes[sent++], 1);
    }
    return is_closed(slow);
  });
  EXPECT_TRUE(gone);
  EXPECT_TRUE(closed(silent));
}

// Pieces of nonsense and of sense, in any lengths.
TEST_F(Strangers, RandomBytesOverSockets) {
  std::mt19937 random(20);
  const auto good = lifeline::encode({.world = kWorld + 1, .from = 2, .to = 0});
  for (int round = 0; round < 300; ++round) {
    const UniqueFd fd = call();
    std::vector<unsigned char> bytes(random() % 60);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    const std::size_t right = std::min<std::size_t>(bytes.size(), random() % 20);
    std::transform(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(right), bytes.begin(),
                   [](std::byte byte) { return std::to_integer<unsigned char>(byte); });
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t piece = std::min<std::size_t>(bytes.size() - at, 1 + random() % 30);
      send_bytes(fd, bytes.data() + at, piece);
      at += piece;
      line_->progress();
    }
    line_->progress();
  }
}

// More than are borne at once; those who belong there get in all the same, and at once.
TEST(Lifeline, ManySilentOnes) {
  auto line = make_line(0, 2), other = make_line(1, 2);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(connect_to(line->address().port));
  other->watch(0, line->address());
  EXPECT_TRUE(within(kSeen, {line.get(), other.get()}, [&] {
    return other->state(0) == State::kAlive && line->state(1) == State::kAlive;
  }));
  int open = 0;
  for (const UniqueFd& fd : silent) open += is_closed(fd) ? 0 : 1;
  EXPECT_LE(open, 2 + 64);
  EXPECT_GT(open, 0);
}

// Bytes after the hello mean nothing, or goodbye.
TEST(Lifeline, WhatALiveOneSaysBesidesIsIgnored) {
  auto line = make_line(0, 2);
  const UniqueFd fd = connect_to(line->address().port);
  const auto bytes = lifeline::encode({.world = kWorld, .from = 1, .to = 0});
  send_bytes(fd, bytes.data(), bytes.size());
  EXPECT_TRUE(within(kPatience, {line.get()}, [&] { return line->state(1) == State::kAlive; }));
  send_bytes(fd, "\x01\x02nothing", 9);
  within(0.1, {line.get()}, [] { return false; });
  EXPECT_EQ(line->state(1), State::kAlive);
  send_bytes(fd, &lifeline::kBye, 1);
  EXPECT_TRUE(within(kPatience, {line.get()}, [&] { return line->state(1) == State::kLeft; }));
}

// Who has been called dead, or has said goodbye, does not come back: others have acted upon it.
TEST(Lifeline, EndsAreFinal) {
  for (const State end : {State::kDead, State::kLeft}) {
    auto line = make_line(0, 2);
    const auto hello = lifeline::encode({.world = kWorld, .from = 1, .to = 0});
    UniqueFd fd = connect_to(line->address().port);
    send_bytes(fd, hello.data(), hello.size());
    EXPECT_TRUE(within(kSeen, {line.get()}, [&] { return line->state(1) == State::kAlive; }));
    if (end == State::kLeft) send_bytes(fd, &lifeline::kBye, 1);
    fd = UniqueFd();
    EXPECT_TRUE(within(kSeen, {line.get()}, [&] { return line->state(1) == end; }));
    fd = connect_to(line->address().port);
    send_bytes(fd, hello.data(), hello.size());
    std::string said;
    EXPECT_TRUE(within(kSeen, {line.get()}, [&] { return is_closed(fd, &said); }));
    EXPECT_EQ(said, "");
    EXPECT_EQ(line->state(1), end);
    EXPECT_FALSE(line->reason(1).ok());
  }
}

// Of two connections one may break; the other is proof enough.
TEST(Lifeline, OneOfTwoConnectionsSuffices) {
  for (const bool ours_ends_first : {false, true}) {
    auto line = make_line(0, 2);
    LifelineAddress address = line->address();
    const UniqueFd listener = listen_on_loopback(16, address);
    line->watch(1, address);
    UniqueFd called, calls = connect_to(line->address().port);
    const auto answer = lifeline::encode({.world = kWorld, .from = 1, .to = 0});
    send_bytes(calls, answer.data(), answer.size());
    ASSERT_TRUE(within(kPatience, {line.get()}, [&] {
      called = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      return called.valid();
    }));
    send_bytes(called, answer.data(), answer.size());
    std::string said;
    within(0.1, {line.get()}, [&] { return is_closed(calls, &said) || is_closed(called, &said); });
    EXPECT_EQ(said.size(), 2 * lifeline::kHelloBytes);
    EXPECT_EQ(line->state(1), State::kAlive);
    (ours_ends_first ? called : calls) = UniqueFd();
    within(0.1, {line.get()}, [] { return false; });
    EXPECT_EQ(line->state(1), State::kAlive);
    (ours_ends_first ? calls : called) = UniqueFd();
    EXPECT_TRUE(within(kSeen, {line.get()}, [&] { return line->state(1) == State::kDead; }));
  }
}

// The same bytes at once or one by one give the same verdict, and only the one right hello is good.
TEST(LifelineMessage, RandomBytesAreNeverGood) {
  std::mt19937_64 random(10);
  const lifeline::Expected expected{.world = kWorld, .to = 2, .ranks = 5};
  int good = 0;
  for (int round = 0; round < 200000; ++round) {
    const int from = static_cast<int>(random() % 5);
    auto bytes = lifeline::encode({.world = kWorld, .from = from, .to = 2});
    const auto right = bytes;
    for (std::uint64_t change = random() % 4; change > 0; --change) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    if (round % 4 == 0) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    }
    const auto verdict = lifeline::judge(bytes, expected);
    lifeline::Verdict grown;
    for (std::size_t n = 0; n <= bytes.size() && grown.kind == Kind::kIncomplete; ++n) {
      grown = lifeline::judge(std::span(bytes).first(n), expected);
    }
    EXPECT_NE(verdict.kind, Kind::kIncomplete);
    EXPECT_EQ(grown.kind, verdict.kind);
    if (verdict.kind == Kind::kGood) {
      ++good;
      EXPECT_EQ(lifeline::encode({.world = kWorld, .from = verdict.from, .to = 2}), bytes);
      EXPECT_NE(verdict.from, 2);
    } else {
      EXPECT_TRUE(bytes != right || from == 2);
    }
  }
  EXPECT_GT(good, 1000);
}

TEST(LifelineMessage, KnowsTheRanksThatThereAre) {
  const auto kind = [](int from, int to) {
    return lifeline::judge(lifeline::encode({.world = kWorld, .from = from, .to = to}),
                           {.world = kWorld, .to = 2, .ranks = 5})
        .kind;
  };
  for (const int from : {0, 1, 3, 4}) EXPECT_EQ(kind(from, 2), Kind::kGood) << from;
  for (const int from : {-1, 2, 5, 6, INT_MIN, INT_MAX}) {
    EXPECT_EQ(kind(from, 2), Kind::kWrongRank) << from;
  }
  EXPECT_EQ(kind(0, 1), Kind::kWrongRank);
}

TEST(LifelineMessage, HasItsBytesInOneOrder) {
  const auto bytes =
      lifeline::encode({.version = 1, .world = 0x0102030405060708, .from = 9, .to = 258});
  const std::array<unsigned char, 24> expected = {'C', 'R', 'L', 'L', 0, 0, 0, 1, 1, 2, 3, 4,
                                                  5,   6,   7,   8,   0, 0, 0, 9, 0, 0, 1, 2};
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
}

// The other half: what answers is not who was called.
class Answers : public testing::Test {
 protected:
  // Calls a listener that answers each call with these bytes, until the state is no more that of
  // one who calls.
  State answered_with(const void* bytes, std::size_t count) {
    LifelineAddress address = line_->address();
    const UniqueFd listener = listen_on_loopback(16, address);
    line_->watch(1, address);
    std::vector<UniqueFd> accepted;
    within(kPatience, {line_.get()}, [&] {
      UniqueFd one(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (one.valid()) {
        send_bytes(one, bytes, count);
        if (count > 0) accepted.push_back(std::move(one));
      }
      return line_->state(1) != State::kConnecting;
    });
    return line_->state(1);
  }
  bool says(const std::string& word) {
    return line_->reason(1).to_string().find(word) != std::string::npos;
  }
  std::unique_ptr<Lifeline> line_ = make_line(0, 3);
};

TEST_F(Answers, AnotherVersion) {
  const auto bytes = lifeline::encode({.version = 9});
  EXPECT_EQ(answered_with(bytes.data(), bytes.size()), State::kUnreachable);
  EXPECT_TRUE(says("rank 1 runs version 9") && says("this is version 1"))
      << line_->reason(1).message();
}
TEST_F(Answers, AnotherJob) {
  const auto bytes = lifeline::encode({.world = kWorld + 1, .from = 1, .to = 0});
  EXPECT_EQ(answered_with(bytes.data(), bytes.size()), State::kUnreachable);
}
TEST_F(Answers, AnotherRank) {
  const auto bytes = lifeline::encode({.world = kWorld, .from = 2, .to = 0});
  EXPECT_EQ(answered_with(bytes.data(), bytes.size()), State::kUnreachable);
}
TEST_F(Answers, Garbage) {
  EXPECT_EQ(answered_with("SSH-2.0-OpenSSH\r\n", 17), State::kUnreachable);
}
TEST_F(Answers, HangsUp) {
  EXPECT_EQ(answered_with("", 0), State::kUnreachable);
  EXPECT_TRUE(says("hangs up")) << line_->reason(1).message();
}

TEST(Lifeline, AddressesThatCannotBe) {
  auto line = make_line(0, 6);
  const LifelineAddress good = make_line(1, 6)->address();
  LifelineAddress version = good, port = good, many = good, none = good, elsewhere = good;
  version.version = 3;
  port.port = 0;
  many.count = 5;
  none.count = 0;
  elsewhere.node += 1;  // another node with only the addresses of this one
  const std::vector<LifelineAddress> bad = {version, port, many, none, elsewhere};
  for (int i = 0; i < 5; ++i) {
    line->watch(1 + i, bad[static_cast<std::size_t>(i)]);
    EXPECT_EQ(line->state(1 + i), State::kUnreachable) << i;
    EXPECT_FALSE(line->reason(1 + i).ok());
  }
  line->watch(-1, good);
  line->watch(6, good);
  line->watch(0, good);
  EXPECT_EQ(line->state(-1), State::kUnknown);
  EXPECT_EQ(line->state(6), State::kUnknown);
  EXPECT_EQ(line->state(0), State::kAlive);
}

// A listener that takes nobody in: calls to it get no answer, as behind a firewall.
TEST(Lifeline, ABlockedPortIsUnreachableNotDead) {
  auto line = make_line(0, 2), other = make_line(1, 2);
  LifelineAddress address = other->address();
  const UniqueFd listener = listen_on_loopback(0, address);
  const UniqueFd fills = connect_to(address.port);
  line->watch(1, address);
  EXPECT_EQ(line->state(1), State::kConnecting);
  EXPECT_TRUE(within(5, {line.get()}, [&] { return line->state(1) == State::kUnreachable; }));
  EXPECT_NE(line->reason(1).message().find("firewall"), std::string_view::npos);
  // The other way is open.
  other->watch(0, line->address());
  EXPECT_TRUE(within(kSeen, {line.get(), other.get()}, [&] {
    return line->state(1) == State::kAlive && other->state(0) == State::kAlive;
  }));
  EXPECT_TRUE(line->reason(1).ok());
}

// A process that ends after its node has taken a call in, and before it has, resets it: it has
// ended.
TEST(Lifeline, WhoEndsUnderACallIsDeadSoon) {
  auto line = make_line(0, 2);
  LifelineAddress address = line->address();
  UniqueFd listener = listen_on_loopback(16, address);
  address.ips[1] = address.ips[0];
  address.count = 2;
  line->watch(1, address);
  listener = UniqueFd();
  EXPECT_TRUE(within(kSeen, {line.get()}, [&] { return line->state(1) == State::kDead; }))
      << line->reason(1).to_string();
}

// An address that leads nowhere does not keep from trying the next.
TEST(Lifeline, AddressesAreTriedInTurn) {
  auto line = make_line(0, 2), other = make_line(1, 2);
  LifelineAddress address = other->address();
  const lifeline::Ip home = address.ips[0];
  address.ips = {};
  address.ips[0] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 240, 0, 0, 1};  // of no network
  address.ips[1] = home;
  address.count = 2;
  line->watch(1, address);
  EXPECT_TRUE(
      within(5, {line.get(), other.get()}, [&] { return line->state(1) == State::kAlive; }));
}

// In a process of its own: so many ranks that the soft limit is too low.
int watch_with_limits(rlim_t soft, rlim_t hard, State expected) {
  const auto exits = run_processes(1, [&](int) {
    constexpr int kRanks = 60;  // four descriptors each
    rlimit limit{.rlim_cur = soft, .rlim_max = hard};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    std::vector<std::unique_ptr<Lifeline>> others;
    std::vector<Lifeline*> all;
    auto hub = make_line(0, kRanks);
    all.push_back(hub.get());
    const int possible = expected == State::kAlive ? kRanks : kRanks / 3;
    for (int rank = 1; rank < possible; ++rank) {
      others.push_back(make_line(rank, kRanks));
      all.push_back(others.back().get());
    }
    // Where there is no room, none is left at all.
    std::vector<UniqueFd> rest;
    while (expected != State::kAlive && (rest.empty() || rest.back().valid())) {
      rest.emplace_back(dup(2));
    }
    for (std::size_t i = 0; i < others.size(); ++i) {
      hub->watch(static_cast<int>(i) + 1, others[i]->address());
    }
    for (std::size_t i = 0; i < others.size(); ++i) {
      const int rank = static_cast<int>(i) + 1;
      EXPECT_TRUE(within(kPatience, all, [&] { return hub->state(rank) == expected; })) << rank;
    }
    if (expected != State::kAlive) {
      EXPECT_NE(hub->reason(1).message().find("ulimit"), std::string_view::npos);
    }
  });
  return exits[0];
}

TEST(Lifeline, TheSoftLimitOfDescriptorsIsRaised) {
  EXPECT_EQ(watch_with_limits(50, 1000, State::kAlive), 0);
}
TEST(Lifeline, WithoutDescriptorsItSaysSo) {
  EXPECT_EQ(watch_with_limits(100, 100, State::kUnreachable), 0);
}

}  // namespace
}  // namespace carillon::test
