// SPDX-License-Identifier: Apache-2.0
//
// A process on the network that does as it pleases: immediates, notes, messages and statuses full
// of random bytes. The other end goes on, and reads nothing outside of what is its own (the
// sanitizers would tell).
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <random>

#include "support/calls.h"
#include "team/bootstrap.h"
#include "transport/fabric/fabric.h"
#include "transport/net/exposure.h"
#include "transport/net/network.h"

namespace carillon::test {
namespace {

constexpr int kVictim = 0;
constexpr int kHostile = 1;
constexpr int kIds = 4;  // of the victim's team; the hostile process has the one of its number
constexpr int kNoNetwork = 77;
constexpr std::uint64_t kGeneration = 7;
constexpr std::uint64_t kSlotBytes = 4096;

std::unique_ptr<net::Network> open(Meeting& meeting, int rank) {
  auto wire = fabric::open_wire({});
  if (!wire.ok()) {
    std::printf("%s\n", wire.status().to_string().c_str());
    std::fflush(stdout);
    _exit(kNoNetwork);
  }
  auto network = net::Network::create(std::move(wire.value()), 2, rank, kSlotBytes);
  EXPECT_TRUE(network.ok()) << network.status().to_string();
  auto contacts = exchange(meeting.oob(rank), network.value()->contact(), 20);
  EXPECT_TRUE(contacts.ok());
  EXPECT_TRUE(network.value()->meet(contacts.value()->all()).ok());
  return std::move(network.value());
}

// What the victim has of the hostile process: a pair, as a team would have it.
struct Target {
  shm::Peer peer;
  net::Pair pair;
  explicit Target(net::Network& network, std::uint32_t id = kHostile)
      : pair(network, {.process = kHostile,
                       .id = id,
                       .peer_id = 0,
                       .generation = kGeneration,
                       .peer_generation = kGeneration,
                       .slot_bytes = kSlotBytes}) {
    pair.attach(peer);
  }
};

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
      ASSERT_LT(watch.seconds(), 20);
    }
    while (!operation_.done()) (void)network_.progress();
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
  const auto exits = run_processes(2, [&](int rank) {
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

// Messages that say where their bytes are. The last word of an exposure is its length.
struct Claim {
  std::uint64_t length;  // of the message
  std::uint64_t bytes;   // it says there are
  bool is_long;
  bool accepted;
};
constexpr std::array kClaims = {
    Claim{sizeof(net::Exposure), kSlotBytes, false, true},
    Claim{sizeof(net::Exposure), kSlotBytes + 1, false, false},
    Claim{sizeof(net::Exposure) - 1, 8, false, false},
    Claim{sizeof(net::Exposure), 8, true, false},
};

void send_claim(net::Network& network, const Claim& claim, std::uint32_t id,
                wire::RemoteMemory to) {
  const net::Block block = network.memory().allocate(128).value();
  const std::uint64_t header = shm::make_header(0, 0, shm::kExposed, 0);
  const net::Exposure exposure{.at = {}, .bytes = claim.bytes};
  std::memcpy(block.data, &claim.length, sizeof claim.length);
  std::memcpy(block.data + 8, &header, sizeof header);
  std::memcpy(block.data + net::Pair::kHeadBytes, &exposure, sizeof exposure);
  const std::array piece = {block.piece(0, net::Pair::kHeadBytes + sizeof exposure)};
  const auto kind = claim.is_long ? net::Network::Kind::kLong : net::Network::Kind::kShort;
  const net::BlockLayout layout{kSlotBytes};
  wire::Operation operation;
  for (;;) {
    const auto posted = network.wire().put(network.peer_of(kVictim).value(), piece,
                                           to.at(layout.message(0, claim.is_long)),
                                           net::Network::immediate(kind, 0, id), operation);
    ASSERT_TRUE(posted.ok()) << posted.status().to_string();
    if (posted.value()) break;
    (void)network.progress();
  }
  while (!operation.done()) (void)network.progress();
}

TEST(Hostile, PlacesOfBytesAreChecked) {
  Meeting contacts(2), meeting(2);
  const auto exits = run_processes(2, [&](int rank) {
    auto network = open(contacts, rank);
    std::vector<std::unique_ptr<Target>> targets;
    std::array<wire::RemoteMemory, kClaims.size()> blocks{};
    network->take_ids(kClaims.size(), kGeneration);
    for (std::uint32_t id = 0; id < kClaims.size(); ++id) {
      targets.push_back(std::make_unique<Target>(*network, id));
      ASSERT_TRUE(targets.back()->pair.allocate_block());
      blocks[id] = targets.back()->pair.block();
    }
    const auto told = exchange(meeting.oob(rank), blocks, 20);
    ASSERT_TRUE(told.ok());
    for (std::uint32_t id = 0; id < kClaims.size(); ++id) {
      if (rank == kHostile) {
        send_claim(*network, kClaims[id], id, told.value()->all()[kVictim][id]);
        continue;
      }
      const Target& target = *targets[id];
      const Stopwatch watch;
      const auto arrived = [&] { return target.peer.in_lines[0].header.load(); };
      while (arrived() == 0 && target.pair.status().ok() && watch.seconds() < 20) {
        ASSERT_TRUE(network->progress().ok());
      }
      EXPECT_EQ(target.pair.status().ok(), kClaims[id].accepted) << id;
      EXPECT_EQ(arrived() != 0, kClaims[id].accepted) << id;
    }
    meeting.barrier(rank);
  });
  if (exits[0] == kNoNetwork) GTEST_SKIP() << "there is no network here";
  expect_all_ok(exits);
}

}  // namespace
}  // namespace carillon::test
