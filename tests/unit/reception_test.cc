// SPDX-License-Identifier: Apache-2.0
//
// What nodes receive of multicasts to nodes, on a simulated network and a simulated clock: the
// processes of a node share memory, take over from each other, and look when it suits them.
#include "engine/reception.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "support/datagram_net.h"
#include "support/multicast_play.h"

namespace carillon {
namespace {

using multicast::kMicrosecond;
using multicast::kMillisecond;
using multicast::Nanoseconds;
using test::Broadcast;
using test::DatagramNet;

constexpr Nanoseconds kPatience = 600'000 * kMillisecond;  // of the tests
Nanoseconds clock_ns = 0;

struct Play {
  std::vector<std::uint32_t> node_of;  // by rank
  DatagramNet::Options net;
  std::vector<Broadcast> program;
  std::uint32_t window = 64;
  std::uint32_t early_packets = 32;
  Nanoseconds patience = Reception::kPatience;
};

// A rank's part: it sends its own broadcasts, and receives those of other nodes.
class Rank {
 public:
  Rank(const Play& play, std::uint32_t rank, const ReceptionPlace& place, std::uint32_t nodes,
       std::unique_ptr<multicast::Carrier> carrier)
      : play_(play), rank_(rank) {
    std::vector<carillon::Rank> all;
    for (std::size_t i = 0; i < play.node_of.size(); ++i) {
      all.push_back(static_cast<carillon::Rank>(i));
    }
    auto places = std::make_shared<multicast::Places>();
    *places = {.of = play.node_of, .count = nodes};
    const multicast::Config config = {.member = rank,
                                      .members = static_cast<std::uint32_t>(play.node_of.size()),
                                      .window = play.window,
                                      .payload_bytes = static_cast<std::uint32_t>(
                                          play.net.datagram_bytes - multicast::kHeadBytes),
                                      .early_packets = play.early_packets,
                                      .seed = play.net.seed * 64 + rank,
                                      .key = {play.net.seed, 17},
                                      .places = places};
    streams_ = std::make_unique<GroupStreams>(
        std::make_unique<multicast::Group>(config, std::move(carrier)), all);
    reception_ = std::make_unique<Reception>(
        place, *streams_, play.patience, +[] { return clock_ns; });
  }
  ~Rank() { streams_.reset(); }  // which ends what is under way, before that goes
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // Whether it got on.
  bool look() {
    const std::size_t before = at_;
    while (at_ < play_.program.size() && step()) ++at_;
    const Status status = reception_->progress(clock_ns);
    EXPECT_TRUE(status.ok()) << status.to_string();
    if (at_ == play_.program.size()) reception_->look();
    return at_ > before;
  }
  [[nodiscard]] bool done() const { return at_ == play_.program.size(); }
  [[nodiscard]] bool settled() const { return done() && streams_->group().settled(); }

 private:
  bool step() {
    const Broadcast& now = play_.program[at_];
    if (now.root == rank_) {
      if (!sending_) mine_ = test::message_of(at_, now);
      sending_ = true;
      const auto sent = streams_->send(sent_, mine_);
      EXPECT_TRUE(sent.ok()) << sent.status().to_string();
      if (!sent.ok() || !sent.value()) return false;
      sending_ = false;
      ++sent_;
      return true;
    }
    if (play_.node_of[now.root] == play_.node_of[rank_]) return true;
    const auto root = static_cast<carillon::Rank>(now.root);
    const auto message = reception_->message(root, received_, now.bytes);
    EXPECT_TRUE(message.ok()) << message.status().to_string();
    if (!message.ok() || message.value() == nullptr) return false;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < now.bytes; ++i) {
      wrong += message.value()[i] != test::byte_of(at_, now.root, i) ? 1U : 0U;
    }
    EXPECT_EQ(wrong, 0U) << "rank " << rank_ << ", broadcast " << at_;
    reception_->release(received_++);
    return true;
  }

  const Play& play_;
  std::uint32_t rank_;
  std::unique_ptr<Reception> reception_;
  std::unique_ptr<GroupStreams> streams_;
  std::vector<std::byte> mine_;  // what it sends, until that is done
  bool sending_ = false;
  std::size_t at_ = 0;
  std::uint64_t sent_ = 0, received_ = 0;
};

// The ranks of one play, with the memory of their nodes.
class Stage {
 public:
  explicit Stage(const Play& play) : play_(play), net_(play_.net) {
    clock_ns = net_.now();
    const auto nodes = static_cast<std::uint32_t>(
        *std::max_element(play_.node_of.begin(), play_.node_of.end()) + 1);
    std::vector<std::size_t> ranks_of(nodes);
    for (const std::uint32_t node : play_.node_of) ++ranks_of[node];
    memory_.resize(nodes);
    for (Memory& one : memory_) one = Memory(new (kPage) std::byte[bytes()]());
    std::vector<std::unique_ptr<multicast::Carrier>> carriers;
    for (std::size_t i = 0; i < play_.node_of.size(); ++i) carriers.push_back(net_.carrier());
    std::vector<std::size_t> own(nodes);
    for (std::uint32_t i = 0; i < play_.node_of.size(); ++i) {
      const std::uint32_t node = play_.node_of[i];
      const ReceptionPlace place = {.memory = memory_[node].get(),
                                    .members = play_.node_of.size(),
                                    .processes = ranks_of[node],
                                    .own = own[node]++};
      ranks_.push_back(std::make_unique<Rank>(play_, i, place, nodes, std::move(carriers[i])));
    }
  }

  // Until nobody needs anybody. `awake`: whether a rank looks now.
  template <typename Awake>
  bool run(Awake awake) {
    while (clock_ns < kPatience && !testing::Test::HasFailure()) {
      bool moved = false, all = true;
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (awake(i, ranks_[i]->done())) moved = ranks_[i]->look() || moved;
        all = all && ranks_[i]->settled();
      }
      if (all) return true;
      constexpr Nanoseconds kLook = 50 * kMicrosecond;
      const Nanoseconds next = std::min(net_.next_arrival(), clock_ns + kLook);
      clock_ns = moved ? clock_ns + 1 : std::max(next, clock_ns + 1);
      net_.advance_to(clock_ns);
    }
    return false;
  }

 private:
  static constexpr std::align_val_t kPage{4096};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, kPage); }
  };
  using Memory = std::unique_ptr<std::byte[], Free>;
  [[nodiscard]] std::size_t bytes() const { return Reception::bytes(play_.node_of.size()); }

  Play play_;
  DatagramNet net_;
  std::vector<Memory> memory_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// A play of everything, drawn from a seed.
Play drawn_play(std::mt19937_64& random, std::uint64_t seed) {
  const auto one_of = [&](std::initializer_list<std::uint32_t> list) {
    return *(list.begin() + static_cast<std::ptrdiff_t>(random() % list.size()));
  };
  const auto share = [&](double most) {
    return random() % 2 == 0 ? 0 : most * static_cast<double>(random() % 1000) / 1000;
  };
  Play play;
  const std::uint32_t nodes = one_of({2, 3, 4});
  for (std::uint32_t node = 0; node < nodes; ++node) {
    play.node_of.insert(play.node_of.end(), one_of({1, 2, 3}), node);
  }
  play.window = one_of({4, 16, 64, 256});
  play.early_packets = one_of({1, 4, 32, 512});
  play.patience = one_of({1, 200, 4000}) * kMicrosecond;
  play.net = {.shares = {.lose = share(0.3),
                         .duplicate = share(0.3),
                         .reorder = share(0.5),
                         .corrupt = share(0.1),
                         .refuse = share(0.2)},
              .seed = seed,
              .datagram_bytes = one_of({multicast::kMinDatagramBytes, 512, 1000, 8972}),
              .receive_packets = one_of({4, 64, 1000}),
              .loops_back = random() % 2 == 0};
  // As the setup has it.
  play.window = std::min(play.window, std::max(4U, play.net.receive_packets / 2));
  const std::size_t most =
      std::min<std::size_t>(Reception::kMessageBytes,
                            (play.net.datagram_bytes - multicast::kHeadBytes) * play.window / 4);
  const std::size_t count = 1 + random() % 60;
  const auto ranks = static_cast<std::uint32_t>(play.node_of.size());
  const bool one_root = random() % 2 == 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto root = static_cast<multicast::Member>((one_root ? seed : random()) % ranks);
    play.program.push_back({root, random() % 5 == 0 ? 0 : random() % (most + 1)});
  }
  return play;
}

TEST(ReceptionProtocol, EveryByteIsRightWhoeverComesWhen) {
  // CARILLON_TEST_SEEDS: more of them.
  const char* const given = std::getenv("CARILLON_TEST_SEEDS");
  const long seeds = given != nullptr ? std::atol(given) : 300;
  for (long seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    Stage stage(drawn_play(random, static_cast<std::uint64_t>(seed)));
    std::vector<Nanoseconds> sleeps(16);
    const std::uint64_t restless = random() % 2 == 0 ? 20 : 200;
    ASSERT_TRUE(stage.run([&](std::size_t rank, bool done) {
      if (sleeps[rank] > clock_ns) return false;
      if (!done && random() % restless == 0) {
        sleeps[rank] = clock_ns + random() % (50 * kMillisecond);
      }
      return true;
    }));
  }
}

// Each of two ranks looks for 1 ms, and computes for 20 ms; a message takes longer than 1 ms, as
// packets get lost.
TEST(ReceptionProtocol, RanksThatLookInTurnDoNotTakeItFromEachOtherForEver) {
  Play play{.node_of = {0, 1, 1},
            .net = {.shares = {.lose = 0.2}, .datagram_bytes = 512, .receive_packets = 1000},
            .window = 256};
  for (std::size_t i = 0; i < 10; ++i) play.program.push_back({0, 29'000 + i});
  Stage stage(play);
  ASSERT_TRUE(stage.run([&](std::size_t rank, bool) {
    constexpr Nanoseconds kTurn = 21 * kMillisecond;
    return rank == 0 || (clock_ns + rank * kTurn / 2) % kTurn < kMillisecond;
  }));
  EXPECT_LT(clock_ns, 20'000 * kMillisecond);
}

}  // namespace
}  // namespace carillon
