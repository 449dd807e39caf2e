// SPDX-License-Identifier: Apache-2.0
//
// A process on the network that does as it pleases: immediates, notes, messages and statuses full
// of random bytes. The other end goes on, and reads nothing outside of what is its own (the
// sanitizers would tell).
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "support/hostile.h"
#include "transport/net/exposure.h"

namespace carillon::test {
namespace {

void be_victim(net::Network& network, Meeting& meeting) {
  network.take_ids(kIds, kGeneration);
  Target target(network);
  network.end_making(0);
  meeting.barrier(kVictim);
  const Stopwatch watch;
  // Until the hostile process says, out of band, that it is done.
  const crl_oob_t oob = meeting.oob(kVictim);
  std::array<char, 2> all{};
  const char mine = 0;
  void* request = nullptr;
  ASSERT_EQ(oob.allgather_post(oob.arg, &mine, all.data(), 1, &request), 0);
  while (oob.allgather_test(oob.arg, request) == 1 && watch.seconds() < 40) {
    const Status status = network.progress();
    ASSERT_TRUE(status.ok()) << status.to_string();
    // What a team would do with what came.
    std::byte* const to = target.pair.prepare(0, 8, false);
    if (to != nullptr) std::memset(to, 0, 8);
    sched_yield();
  }
  meeting.barrier(kVictim);
}

class Attack {
 public:
  Attack(net::Network& network, const net::Contact& victim) : network_(network), victim_(victim) {
    block_ = network.memory().allocate(kSlotBytes * 64).value();
  }

  void run(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      fill();
      switch (random() % 4) {
        case 0: put(random() % 200, victim_.lobby.at(random() % 192), random()); break;
        case 1: note(); break;
        case 2: note_that_fits(); break;
        default: message(); break;
      }
    }
  }

 private:
  void fill() {
    for (std::size_t i = 0; i < 512; ++i) block_.data[i] = static_cast<std::byte>(random());
  }
  void note() {
    put(sizeof(net::Note), victim_.lobby.at(kHostile * 2 * sizeof(net::Note)),
        net::Network::immediate(net::Network::Kind::kNote, random() % 64, kHostile));
  }
  // Names the pair, with a block that is anywhere.
  void note_that_fits() {
    net::Note note;
    std::memcpy(&note, block_.data, sizeof note);
    note.kind = random() % 7;
    note.id = kHostile;
    note.generation = kGeneration;
    std::memcpy(block_.data, &note, sizeof note);
    this->note();
  }
  void message() {
    const auto kind = static_cast<net::Network::Kind>(random() % 3);
    put(0, victim_.lobby, net::Network::immediate(kind, random() % 64, random() % (kIds + 1)));
  }
  void put(std::size_t bytes, wire::RemoteMemory to, std::uint32_t immediate) {
    const std::array piece = {block_.piece(0, bytes)};
    const auto peer = network_.peer_of(kVictim);
    ASSERT_TRUE(peer.ok());
    const Stopwatch watch;
    for (;;) {
      const auto posted = network_.wire().put(peer.value(), piece, to, immediate, operation_);
      ASSERT_TRUE(posted.ok()) << posted.status().to_string();
      if (posted.value()) break;
      (void)network_.progress();
      sched_yield();
      ASSERT_LT(watch.seconds(), 20);
    }
    while (!operation_.done()) {
      (void)network_.progress();
      sched_yield();
    }
  }

  std::uint32_t random() { return static_cast<std::uint32_t>(generator_()); }

  net::Network& network_;
  const net::Contact victim_;
  net::Block block_;
  wire::Operation operation_;
  std::mt19937 generator_{12345};
};

TEST(Hostile, RandomBytesOnTheNetwork) {
  Meeting contacts(2), meeting(2);
  const auto exits = run_both([&](int rank) {
    std::vector<net::Contact> all;
    auto network = open(contacts, rank);
    const auto told = exchange(contacts.oob(rank), network->contact(), 20);
    ASSERT_TRUE(told.ok());
    if (rank == kVictim) {
      be_victim(*network, meeting);
      return;
    }
    meeting.barrier(kHostile);
    Attack(*network, told.value()->all()[kVictim]).run(20000);
    const crl_oob_t oob = meeting.oob(kHostile);
    std::array<char, 2> done{};
    const char mine = 1;
    void* request = nullptr;
    ASSERT_EQ(oob.allgather_post(oob.arg, &mine, done.data(), 1, &request), 0);
    while (oob.allgather_test(oob.arg, request) == 1) {
    }
    meeting.barrier(kHostile);
  });
  if (exits[0] == kNoNetwork) GTEST_SKIP() << "there is no network here";
  expect_all_ok(exits);
}

// Messages that say where their bytes are.
struct Exposed {
  Message message;
  net::Exposure payload;
  bool accepted;
};

TEST(Hostile, PlacesOfBytesAreChecked) {
  const auto exposed = [](std::uint64_t length, std::uint64_t bytes, bool is_long, bool accepted) {
    return Exposed{{length, shm::kExposed, is_long}, {.at = {}, .bytes = bytes}, accepted};
  };
  constexpr std::uint64_t kLength = sizeof(net::Exposure);
  expect_judged(std::array{
      exposed(kLength, kSlotBytes, false, true),
      exposed(kLength, kSlotBytes + 1, false, false),
      exposed(kLength - 1, 8, false, false),
      exposed(kLength, 8, true, false),
  });
}

}  // namespace
}  // namespace carillon::test
