// SPDX-License-Identifier: Apache-2.0
//
// Two processes on the network, a victim and one that sends it what no carillon sends.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "support/calls.h"
#include "team/bootstrap.h"
#include "transport/fabric/fabric.h"
#include "transport/net/network.h"

namespace carillon::test {

inline constexpr int kVictim = 0;
inline constexpr int kHostile = 1;
inline constexpr int kIds =
    4;  // of the victim's team; the hostile process has the one of its number
inline constexpr int kNoNetwork = 77;
inline constexpr std::uint64_t kGeneration = 7;
inline constexpr std::uint64_t kSlotBytes = 4096;
inline constexpr std::size_t kEntries = 2;  // of a list in one post

inline std::unique_ptr<net::Network> open(Meeting& meeting, int rank) {
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
  explicit Target(net::Network& network, std::uint32_t id = kHostile, std::uint32_t peer_id = 0,
                  int process = kHostile)
      : pair(network, {.process = process,
                       .id = id,
                       .peer_id = peer_id,
                       .generation = kGeneration,
                       .peer_generation = kGeneration,
                       .slot_bytes = kSlotBytes,
                       .gather_entries = kEntries}) {
    pair.attach(peer);
  }
};

// Puts the bytes to the victim, and is done with them.
inline void put_to_victim(net::Network& network, std::span<const std::byte> bytes,
                          wire::RemoteMemory to, std::uint32_t immediate) {
  const net::Block block = network.memory().allocate(bytes.size()).value();
  std::memcpy(block.data, bytes.data(), bytes.size());
  const std::array piece = {block.piece(0, bytes.size())};
  wire::Operation operation;
  for (;;) {
    const auto peer = network.peer_of(kVictim);
    ASSERT_TRUE(peer.ok());
    const auto posted = network.wire().put(peer.value(), piece, to, immediate, operation);
    ASSERT_TRUE(posted.ok()) << posted.status().to_string();
    if (posted.value()) break;
    (void)network.progress();
    sched_yield();
  }
  while (!operation.done()) {
    (void)network.progress();
    sched_yield();
  }
  network.memory().release(block);
}

// A message of this length and kind to line 0 of a pair.
struct Message {
  std::uint64_t length = 0;
  std::uint8_t kind = 0;
  bool is_long = false;
};
template <typename Payload>
void send_message(net::Network& network, const Message& message, const Payload& payload,
                  std::uint32_t id, wire::RemoteMemory block) {
  std::array<std::byte, net::Pair::kHeadBytes + sizeof payload> bytes;
  const std::uint64_t header = shm::make_header(0, 0, message.kind, 0);
  std::memcpy(bytes.data(), &message.length, sizeof message.length);
  std::memcpy(bytes.data() + 8, &header, sizeof header);
  std::memcpy(bytes.data() + net::Pair::kHeadBytes, &payload, sizeof payload);
  const auto kind = message.is_long ? net::Network::Kind::kLong : net::Network::Kind::kShort;
  const net::BlockLayout layout{kSlotBytes};
  put_to_victim(network, bytes, block.at(layout.message(0, message.is_long)),
                net::Network::immediate(kind, 0, id));
}

/// As run_processes, of the victim and the hostile process.
inline std::vector<int> run_both(const std::function<void(int)>& body) {
  look_for_networks();
  return run_processes(2, body);
}

// Messages that the hostile process sends to a pair each, and whether the victim may take them.
template <typename Claim, std::size_t kCount>
void expect_judged(const std::array<Claim, kCount>& claims) {
  Meeting contacts(2), meeting(2);
  const auto exits = run_both([&](int rank) {
    auto network = open(contacts, rank);
    std::vector<std::unique_ptr<Target>> targets;
    std::array<wire::RemoteMemory, kCount> blocks{};
    network->take_ids(kCount, kGeneration);
    for (std::uint32_t id = 0; id < kCount; ++id) {
      targets.push_back(std::make_unique<Target>(*network, id));
      ASSERT_TRUE(targets.back()->pair.allocate_block());
      blocks[id] = targets.back()->pair.block();
    }
    const auto told = exchange(meeting.oob(rank), blocks, 20);
    ASSERT_TRUE(told.ok());
    for (std::uint32_t id = 0; id < kCount; ++id) {
      if (rank == kHostile) {
        send_message(*network, claims[id].message, claims[id].payload, id,
                     told.value()->all()[kVictim][id]);
        continue;
      }
      const Target& target = *targets[id];
      const Stopwatch watch;
      const auto arrived = [&] { return target.peer.in_lines[0].header.load(); };
      while (arrived() == 0 && target.pair.status().ok() && watch.seconds() < 20) {
        ASSERT_TRUE(network->progress().ok());
        sched_yield();
      }
      EXPECT_EQ(target.pair.status().ok(), claims[id].accepted) << id;
      EXPECT_EQ(arrived() != 0, claims[id].accepted) << id;
    }
    meeting.barrier(rank);
  });
  if (exits[0] == kNoNetwork) GTEST_SKIP() << "there is no network here";
  expect_all_ok(exits);
}

}  // namespace carillon::test
