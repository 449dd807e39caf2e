// SPDX-License-Identifier: Apache-2.0
//
// Two ends of net::Network and a pair between them, over a network in memory: what happens if posts
// are refused, overtake each other, are told twice or fail, is decided here.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/calls.h"
#include "support/memory_wire.h"
#include "transport/net/network.h"
#include "transport/wrap/fault.h"

namespace carillon::test {
namespace {

constexpr std::uint64_t kGeneration = 7;
constexpr std::uint64_t kSlotBytes = 1024;
constexpr std::uint32_t kIds = 2;  // of each team: one per member
constexpr double kLongS = 30;      // no test takes as long

std::uint64_t done_word(std::uint64_t count) { return kGeneration << shm::kDoneBits | count; }

// One process, and its pair with the other in each of some teams.
struct Side {
  Side(MemoryNet& net, int self, const std::string& faults)
      : network(std::move(
            net::Network::create(wrap::with_faults(net.open_end(), parse_faults(faults).value()), 2,
                                 self, kSlotBytes)
                .value())),
        other(1 - self) {}
  void add_team() {
    const std::uint32_t first = *network->take_ids(kIds, kGeneration);
    peers.push_back(std::make_unique<shm::Peer>());
    const auto me = static_cast<std::uint32_t>(1 - other);
    pairs.push_back(std::make_unique<net::Pair>(
        *network, net::PairPlace{.process = other,
                                 .id = first + static_cast<std::uint32_t>(other),
                                 .peer_id = first + me,
                                 .generation = kGeneration,
                                 .peer_generation = kGeneration,
                                 .slot_bytes = kSlotBytes,
                                 .send_bytes = kSlotBytes}));
    pairs.back()->attach(*peers.back());
    network->end_making(first);
  }
  [[nodiscard]] net::Pair& pair() { return *pairs.front(); }
  [[nodiscard]] shm::Peer& peer() { return *peers.front(); }
  // Does the pair show message `number`?
  [[nodiscard]] bool shows(std::uint64_t number) {
    const shm::Line& line = peer().in_lines[number % shm::kWindow];
    return shm::header_tag(line.header.load()) == static_cast<std::uint32_t>(number + 1);
  }

  std::unique_ptr<net::Network> network;
  int other;
  std::vector<std::unique_ptr<shm::Peer>> peers;
  std::vector<std::unique_ptr<net::Pair>> pairs;
};

class Net : public testing::Test {
 protected:
  void open(const std::string& faults, int teams = 1) {
    for (int i = 0; i < 2; ++i) sides_[static_cast<std::size_t>(i)].emplace(net_, i, faults);
    const std::array contacts = {a().network->contact(), b().network->contact()};
    for (auto& side : sides_) {
      ASSERT_TRUE(side->network->meet(contacts).ok());
      for (int i = 0; i < teams; ++i) side->add_team();
    }
  }
  Side& a() { return *sides_[0]; }
  Side& b() { return *sides_[1]; }
  void progress() {
    for (auto& side : sides_) ASSERT_TRUE(side->network->progress().ok());
  }
  void until(const std::function<bool()>& done) {
    for (int i = 0; i < 100000; ++i) {
      if (done()) return;
      progress();
    }
    FAIL() << "it never came to that";
  }
  void connect() {
    until([&] { return a().pair().prepare(0, 8, false) != nullptr; });
  }
  // A writes message `number`, eight bytes that say so.
  bool write(std::uint64_t number, bool two_sided = false) {
    std::byte* const to = a().pair().prepare(number, sizeof number, two_sided);
    if (to == nullptr) return false;
    if (!a().pair().is_filled()) {
      std::memcpy(to, &number, sizeof number);
      ++filled_;
    }
    net::Buffer* buffer = nullptr;
    const std::uint64_t header = shm::make_header(static_cast<std::uint32_t>(number), 0, 0, 0);
    return two_sided ? a().pair().send(number, header, &buffer)
                     : a().pair().post(number, header, &buffer);
  }
  // What B reads of it.
  std::uint64_t read(std::uint64_t number) {
    std::uint64_t value = 0;
    std::memcpy(&value, b().peer().in_lines[number % shm::kWindow].payload, sizeof value);
    return value;
  }

  MemoryNet net_;
  std::array<std::optional<Side>, 2> sides_;
  int filled_ = 0;
};

// Of several statuses that have landed before the other side looks, the last counts.
TEST_F(Net, AnOlderStatusDoesNotUndoANewerOne) {
  for (const char* const faults : {"reorder=0.5", "reorder=0.5,refuse=0.3", "delay=0.3"}) {
    open(faults);
    connect();
    until([&] { return a().network->idle() && b().network->idle(); });
    std::uint64_t done = 0;
    for (int round = 0; round < 100; ++round) {
      for (int i = 0; i < 4; ++i) b().pair().tell(done_word(++done), 0, true);
      for (int i = 0; i < 1000 && !b().network->idle(); ++i) {
        ASSERT_TRUE(b().network->progress().ok());
      }
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(a().network->progress().ok());
      ASSERT_EQ(a().peer().progress->done.load(), done_word(done)) << faults;
    }
    sides_ = {};
  }
}

// It says how many messages are on their way: who waits for one of these does not wait in vain.
TEST_F(Net, AStatusMayBeReadBeforeTheMessagesBeforeIt) {
  open("");
  connect();
  ASSERT_TRUE(write(0));
  ASSERT_TRUE(write(1));
  a().pair().tell(done_word(1), 0, true);
  b().network->on_put(net::Network::immediate(net::Network::Kind::kStatus, 0, 0));
  EXPECT_EQ(b().peer().progress->done.load(), done_word(1));
  EXPECT_FALSE(b().shows(1));
  EXPECT_TRUE(b().pair().was_sent(1));
  EXPECT_FALSE(b().pair().was_sent(2));
}

// A status that has landed in part says nothing.
TEST_F(Net, AStatusThatHasLandedInPartIsNotRead) {
  open("");
  connect();
  b().pair().tell(done_word(255), 0, true);
  until([&] { return a().peer().progress->done.load() == done_word(255); });
  // As the first byte of 256 would be there, and the second not yet.
  std::byte* const status = reinterpret_cast<std::byte*>(a().pair().block().address);
  const auto torn = done_word(256 + 255);
  std::memcpy(status, &torn, 2);
  a().network->on_put(net::Network::immediate(net::Network::Kind::kStatus, 0, 1));
  EXPECT_EQ(a().peer().progress->done.load(), done_word(255));
}

TEST_F(Net, AMessageToldAgainIsNotTheNextOneOfItsLine) {
  open("");
  connect();
  ASSERT_TRUE(write(0));
  until([&] { return b().shows(0); });
  EXPECT_EQ(read(0), 0U);
  const std::uint32_t told = net::Network::immediate(net::Network::Kind::kShort, 0, 0);
  b().network->on_put(told);
  EXPECT_TRUE(b().shows(0));
  ASSERT_TRUE(write(shm::kWindow));  // has landed; in part, for all that is known before it is told
  b().network->on_put(told);
  EXPECT_TRUE(b().shows(0));
  progress();
  EXPECT_TRUE(b().shows(shm::kWindow));
  EXPECT_EQ(read(shm::kWindow), shm::kWindow);
  EXPECT_TRUE(b().pair().status().ok());
}

TEST_F(Net, MessagesToldTwiceAreReadOnce) {
  open("duplicate=0.5,delay=0.2");
  connect();
  for (std::uint64_t number = 0; number < 500; ++number) {
    until([&] { return write(number); });
    until([&] { return b().shows(number); });
    ASSERT_EQ(read(number), number);
  }
  EXPECT_TRUE(a().pair().status().ok());
  EXPECT_TRUE(b().pair().status().ok());
}

TEST_F(Net, NotesToldTwiceOpenPairsOnce) {
  constexpr int kTeams = 60;
  open("duplicate=0.9,reorder=0.3", kTeams);
  for (std::size_t i = 0; i < kTeams; ++i) {
    until([&] { return a().pairs[i]->prepare(0, 8, i % 2 == 0) != nullptr; });
  }
  for (auto& side : sides_) {
    for (const auto& pair : side->pairs) EXPECT_TRUE(pair->status().ok());
  }
}

TEST_F(Net, ARefusedMessageIsNotCopiedAgain) {
  open("");
  connect();
  net_.refuse(5);
  int posts = 0;
  until([&] { return ++posts, write(0); });
  EXPECT_EQ(posts, 6);
  EXPECT_EQ(filled_, 1);
  until([&] { return b().shows(0); });
  // Another message between the tries of one: each is what it is.
  filled_ = 0;
  net_.refuse(1);
  EXPECT_FALSE(write(1));
  EXPECT_TRUE(write(2));
  EXPECT_TRUE(write(1));
  EXPECT_EQ(filled_, 3);
  until([&] { return b().shows(1) && b().shows(2); });
  EXPECT_EQ(read(1), 1U);
  EXPECT_EQ(read(2), 2U);
}

// Of pairs with any names, and placed or not. Networks cut off what is too long, or refuse it.
TEST_F(Net, TagsAreNotLongerThanNetworksTakeThem) {
  constexpr std::uint32_t kLastId = (1U << net::Network::kIdBits) - 1;
  std::set<std::uint64_t> tags;
  for (const std::uint32_t id : {0U, 255U, 256U, kLastId}) {
    for (const std::uint64_t generation : {std::uint64_t{1}, shm::kGenerations - 1}) {
      for (unsigned line = 0; line < shm::kWindow; ++line) {
        tags.insert(net::placed_tag(id, generation, line));
      }
    }
  }
  EXPECT_EQ(tags.size(), 4U * 2 * shm::kWindow);
  EXPECT_EQ(*tags.rbegin() >> wire::kTagBits, 0U);
  open("", 200);  // the last has the names 398 and 399
  until([&] { return a().pairs.back()->prepare(0, 8, true) != nullptr; });
  net::Buffer* buffer = nullptr;
  EXPECT_TRUE(a().pairs.back()->send(0, shm::make_header(0, 0, 0, 0), &buffer));
  EXPECT_TRUE(a().pairs.back()->status().ok()) << a().pairs.back()->status().to_string();
}

// Each receive that was posted for what will not come gets its end, though posts are refused.
TEST_F(Net, AllReceivesEnd) {
  open("");
  until([&] { return write(0, true); });
  until([&] { return b().pair().show(0) && b().shows(0); });
  b().pair().free_received(0);
  EXPECT_EQ(net_.waiting_recvs(), shm::kWindow);
  // As a team does: until it says that all is done, and not again.
  bool a_closed = false, b_closed = false;
  until([&] {
    if (!b_closed) b_closed = b().pair().close(done_word(1));
    if (!a_closed && a().pair().peer_closed() && net_.refused() == 0) net_.refuse(3);
    if (!a_closed) a_closed = a().pair().close(done_word(1));
    return a_closed && b_closed;
  });
  EXPECT_EQ(net_.refused(), 3);
  EXPECT_EQ(net_.waiting_recvs(), 0U);
}

TEST_F(Net, NamesThatAreUsedUpAreRefused) {
  open("");
  constexpr int kAll = 1 << net::Network::kIdBits;
  EXPECT_FALSE(a().network->take_ids(kAll, kGeneration).has_value());
  EXPECT_TRUE(a().network->take_ids(10, kGeneration).has_value());
}

// A note that was lost with its connection opens nothing: that must be told.
TEST_F(Net, ABrokenConnectionFailsWhatIsBeingOpened) {
  open("break=1");
  EXPECT_EQ(a().pair().prepare(0, 8, false), nullptr);
  until([&] {
    a().network->check_buffers();
    return !a().pair().status().ok();
  });
  EXPECT_EQ(a().pair().status().code(), Code::kPeerDead);
}

// Both ask each other at once. Who gives the team up before it is answered, and forgets it, can say
// so only when it has been: what it answers itself comes first, and says it, too.
TEST_F(Net, WhoIsGoneHasSaidWhy) {
  open("");
  EXPECT_EQ(a().pair().prepare(0, 8, false), nullptr);
  EXPECT_EQ(b().pair().prepare(0, 8, false), nullptr);
  ASSERT_TRUE(b().network->progress().ok());
  const std::uint64_t word = done_word(shm::kDoneMask + static_cast<int>(Code::kNoMemory));
  a().pair().give_up(word);
  a().pairs.clear();
  until([&] { return !b().pair().status().ok(); });
  EXPECT_EQ(b().peer().progress->done.load(), word);
}

// As those of two processes of libfabric's tcp that connect to each other at once.
class FirstRequests : public Net {
 protected:
  void SetUp() override { net_.say_that_crossing_loses(); }
  void both_begin(int teams = 1) {
    open("", teams);
    EXPECT_EQ(a().pair().prepare(0, 8, false), nullptr);
    EXPECT_EQ(b().pair().prepare(0, 8, false), nullptr);
  }
  void both_open() {
    const Stopwatch watch;
    while (!a().pair().is_open() || !b().pair().is_open()) {
      ASSERT_LT(watch.seconds(), kLongS);
      progress();
      for (auto& side : sides_) side->network->check_buffers();
    }
    until([&] { return write(0) && b().shows(0); });
  }
  [[nodiscard]] std::uint64_t asked_again() {
    return a().network->counters().asked_again + b().network->counters().asked_again;
  }
};

TEST_F(FirstRequests, AreSentAgainIfTheyGetLost) {
  both_begin();
  net_.lose(2);
  both_open();
  EXPECT_GE(asked_again(), 2U);
}

TEST_F(FirstRequests, AreSentAgainIfTheyFail) {
  both_begin();
  net_.fail(2);
  both_open();
  EXPECT_GE(asked_again(), 2U);
}

TEST_F(FirstRequests, AreSentAgainThoughTheirConnectionIsNotBackAtOnce) {
  both_begin();
  net_.fail(2);
  progress();
  net_.refuse(5);
  both_open();
}

// What says how a request went may come after the answer to it.
TEST_F(FirstRequests, MayFailThoughTheyAreAnswered) {
  both_begin();
  net_.fail_later(1);
  both_open();
  EXPECT_EQ(asked_again(), 0U);
}

// What comes from the other side is no proof that it has got what was sent before: and it would be
// waited for, and other pairs with it.
TEST_F(FirstRequests, OneThatGotLostIsSentAgainThoughTheOtherSideWasHeard) {
  both_begin(2);
  net_.lose(1);
  both_open();
  EXPECT_EQ(a().pairs[1]->prepare(0, 8, false), nullptr);
  const Stopwatch watch;
  while (!a().pairs[1]->is_open()) {
    ASSERT_LT(watch.seconds(), kLongS);
    progress();
  }
  EXPECT_GE(asked_again(), 1U);
}

TEST_F(FirstRequests, FailForGoodIfTheyFailAgainAndAgain) {
  both_begin();
  net_.fail(1000);
  until([&] { return !a().pair().status().ok() && !b().pair().status().ok(); });
  EXPECT_EQ(a().pair().status().code(), Code::kPeerDead);
  EXPECT_EQ(b().pair().status().code(), Code::kPeerDead);
}

TEST_F(FirstRequests, AreTheOnlyOnesToBeSentAgain) {
  open("", 2);
  connect();
  const std::uint64_t before = asked_again();
  net_.fail(1);
  until([&] {
    a().network->check_buffers();
    return a().pairs[1]->prepare(0, 8, false) != nullptr || !a().pairs[1]->status().ok();
  });
  EXPECT_EQ(a().pairs[1]->status().code(), Code::kPeerDead);
  EXPECT_EQ(asked_again(), before);
}

// Whoever gets a buffer has nothing to do with how its last use ended.
TEST(Buffers, AnErrorBelongsToItsUse) {
  MemoryNet net;
  Side side(net, 0, "");
  side.add_team();
  net::Buffers& buffers = side.network->buffers();
  net::Buffer* const first = buffers.take(8).value();
  first->operation.begin();
  first->operation.finish({Code::kPeerDead, "gone"});
  net::Buffer* again = nullptr;
  for (int i = 0; i < 100000 && again != first; ++i) again = buffers.take(8).value();
  ASSERT_EQ(again, first);
  again->owner = &side.pair();  // as one that is refused
  again->held = true;
  side.network->check_buffers();
  EXPECT_TRUE(side.pair().status().ok()) << side.pair().status().to_string();
}

}  // namespace
}  // namespace carillon::test
