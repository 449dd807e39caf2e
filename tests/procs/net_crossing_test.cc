// SPDX-License-Identifier: Apache-2.0
//
// Two processes that connect to each other at once, after another one has ended: libfabric's TCP
// provider may then close the connection that both were to keep, with what has been sent there.
// Here both are ends of one process, so that it is decided who does what when.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/calls.h"
#include "support/wire_end.h"
#include "transport/net/network.h"

namespace carillon::test {
namespace {

constexpr int kCrossing = 2;  // these two,
constexpr int kThird = 2;     // and this one
constexpr std::uint64_t kTeamGeneration = 3;
constexpr std::uint64_t kCrossingSlot = 1024;

std::unique_ptr<net::Network> open_network(const std::string& provider, int process) {
  auto wire = open_wire(provider);
  if (!wire.ok()) return nullptr;
  auto made = net::Network::create(std::move(wire.value()), kCrossing + 1, process, kCrossingSlot);
  return made.ok() ? std::move(made.value()) : nullptr;
}

// One of the two, and its pair with the other.
struct Crosser {
  Crosser(const std::string& provider, int process)
      : network(open_network(provider, process)), self(process) {}
  void add_pair() {
    constexpr int kMembers = kCrossing;
    const std::uint32_t first = network->take_ids(kMembers, kTeamGeneration).value();
    const int other = 1 - self;
    pair = std::make_unique<net::Pair>(
        *network, net::PairPlace{.process = other,
                                 .id = first + static_cast<std::uint32_t>(other),
                                 .peer_id = first + static_cast<std::uint32_t>(self),
                                 .generation = kTeamGeneration,
                                 .peer_generation = kTeamGeneration,
                                 .slot_bytes = kCrossingSlot,
                                 .send_bytes = kCrossingSlot});
    pair->attach(peer);
    network->end_making(first);
  }
  void progress(int times = 1) {
    for (int i = 0; i < times; ++i) ASSERT_TRUE(network->progress().ok());
  }
  [[nodiscard]] std::uint64_t arrived() const { return network->wire().counters().immediates; }

  std::unique_ptr<net::Network> network;
  int self;
  shm::Peer peer;
  std::unique_ptr<net::Pair> pair;
};

class Crossing : public testing::Test {
 protected:
  // All of it in processes that end without a look at what is left: libfabric does not free all.
  void SetUp() override {
    const auto found = [](int) { _exit(provider_here().empty() ? 1 : 0); };
    if (run_processes(1, found).front() != 0) GTEST_SKIP() << "libfabric has none for TCP here";
  }

  static std::string provider_here() {
    std::string provider;
    for (const char* const name : {"net", "tcp"}) {
      if (open_wire(name).ok()) provider = name;
    }
    return provider;
  }

  void meet(const std::array<net::Contact, kCrossing + 1>& contacts) {
    for (Crosser* const side : {a_.get(), b_.get()}) {
      ASSERT_TRUE(side->network->meet(contacts).ok());
      side->add_pair();
    }
  }

  // They have called a third process, which ends.
  void meet_and_lose_the_third() {
    std::array contacts = {a_->network->contact(), b_->network->contact(), net::Contact{}};
    std::array<int, 2> pipe_ends = {};
    ASSERT_EQ(pipe(pipe_ends.data()), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto third = open_network(provider_, kThird);
      const net::Contact mine = contacts[kThird] = third->contact();
      if (write(pipe_ends[1], &mine, sizeof mine) != sizeof mine) _exit(1);
      if (!third->meet(contacts).ok()) _exit(1);
      while (third->progress().ok()) {
      }
      _exit(1);
    }
    EXPECT_EQ(read(pipe_ends[0], &contacts[kThird], sizeof(net::Contact)), sizeof(net::Contact));
    for (const int end : pipe_ends) close(end);
    meet(contacts);
    for (Crosser* const side : {a_.get(), b_.get()}) {
      side->network->ask(kThird, {.kind = net::Note::kGaveUp});
    }
    const Stopwatch watch;
    while (a_->arrived() == 0 || b_->arrived() == 0) {
      if (watch.seconds() > patience_s()) break;
      a_->progress();
      b_->progress();
    }
    EXPECT_GT(a_->arrived(), 0U);
    EXPECT_GT(b_->arrived(), 0U);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    a_->progress(100);
    b_->progress(100);
  }

  // `one` takes the other's call, and does not look for so long that the other has both said what
  // it wants and answered.
  void cross(Crosser& one, Crosser& other, int looks) {
    EXPECT_EQ(one.pair->prepare(0, 8, false), nullptr);
    EXPECT_EQ(other.pair->prepare(0, 8, false), nullptr);
    one.progress();
    other.progress();
    one.progress(looks);
    other.progress(6);
    const Stopwatch watch;
    while (!one.pair->is_open() || !other.pair->is_open()) {
      ASSERT_LT(watch.seconds(), patience_s()) << "what was sent has got lost";
      other.progress();
      one.progress();
      for (Crosser* const side : {&one, &other}) {
        side->network->check_buffers();
        ASSERT_TRUE(side->pair->status().ok()) << side->pair->status().to_string();
      }
    }
  }

  std::string provider_;
  std::unique_ptr<Crosser> a_, b_;
};

TEST_F(Crossing, NobodyIsTakenForDead) {
  expect_processes_ok(1, [&](int) {
    provider_ = provider_here();
    for (const int looks : {1, 2, 3, 4}) {
      for (const bool a_first : {true, false}) {
        SCOPED_TRACE(std::to_string(looks) + (a_first ? " a" : " b"));
        a_ = std::make_unique<Crosser>(provider_, 0);
        b_ = std::make_unique<Crosser>(provider_, 1);
        ASSERT_TRUE(a_->network && b_->network);
        meet_and_lose_the_third();
        if (HasFailure()) return;
        a_first ? cross(*a_, *b_, looks) : cross(*b_, *a_, looks);
        if (HasFatalFailure()) return;
      }
    }
  });
}

// The same among ranks, as often as it happens.
TEST(Survivors, MeetEachOtherAtOnce) {
  constexpr int kRanks = 10, kVictims = 4, kRounds = 4;
  setenv("CARILLON_NODE_RANKS", "1", 1);
  setenv("CARILLON_ALGORITHM", "gather.flat", 1);
  for (int round = 0; round < kRounds; ++round) {
    Meeting world(kRanks), everybody(kRanks), living(kRanks - kVictims), gate(kRanks - kVictims);
    const std::vector<int> exits = run_processes(kRanks, [&](int rank) {
      constexpr int kDeadMs = 200;
      const bool dies = rank < kVictims;
      crl_context_h context = make_context(world, rank, false, kDeadMs);
      crl_team_h team = make_team(context, everybody.oob(rank)), rest = nullptr;
      if (!dies) rest = make_team(context, living.oob(rank - kVictims));
      expect_ok(settle(team));
      if (!dies) expect_ok(settle(rest));
      std::vector<std::int64_t> out(kRanks);
      for (int root = 0; root < kVictims; ++root) {
        const std::int64_t mine = rank;
        expect_ok(crl_gather(team, &mine, out.data(), sizeof mine, root));
      }
      world.barrier(rank);
      if (dies) raise(SIGKILL);
      EXPECT_EQ(crl_barrier(team), CRL_ERR_PEER_DEAD);
      gate.barrier(rank - kVictims);
      const std::vector<std::int64_t> in = values_of(rank, round, kRanks - kVictims);
      expect_ok(crl_alltoall(rest, in.data(), out.data(), sizeof in[0]));
      for (int i = 0; i < kRanks - kVictims; ++i) {
        EXPECT_EQ(out[static_cast<std::size_t>(i)], value_of(i + kVictims, round, rank - kVictims));
      }
      crl_team_destroy(rest);
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(exits[static_cast<std::size_t>(rank)], rank < kVictims ? -SIGKILL : 0) << rank;
    }
  }
  unsetenv("CARILLON_ALGORITHM");
  unsetenv("CARILLON_NODE_RANKS");
}

}  // namespace
}  // namespace carillon::test
