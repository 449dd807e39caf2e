// SPDX-License-Identifier: Apache-2.0
//
// A process of the node that is damaged: it writes into the node's shared memory what no carillon
// writes. The others' calls end with an error, and read nothing outside of what is theirs.
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "api/objects.h"
#include "support/calls.h"
#include "transport/net/exposure.h"
#include "transport/net/placed.h"

namespace carillon::test {
namespace {

constexpr int kVictim = 0, kDamaged = 1;
constexpr std::uint64_t kBytes = 4096;
constexpr std::uint64_t kHuge = UINT64_C(1) << 40, kHugest = UINT64_MAX;
constexpr std::uint64_t kNowhere = 64;  // no memory of any process; the segment's own header

using Payload = std::array<std::byte, shm::kInlineBytes>;

struct Claim {
  std::uint8_t kind = 0;
  Payload payload = {};
};

template <typename T>
Claim claim(std::uint8_t kind, const T& what) {
  static_assert(sizeof what <= shm::kInlineBytes);
  Claim made{.kind = kind};
  std::memcpy(made.payload.data(), &what, sizeof what);
  return made;
}

std::vector<Claim> claims() {
  std::vector<Claim> all;
  // What only a network brings,
  all.push_back(claim(shm::kRemote, shm::ChunkRef{.offset = kNowhere, .length = kBytes}));
  for (const std::uint64_t bytes : {kBytes, kHuge}) {
    all.push_back(claim(shm::kExposed, net::Exposure{.at = {}, .bytes = bytes, .behind = kHuge}));
    all.push_back(claim(shm::kAnnounced, net::Announcement{.bytes = bytes, .count = 99}));
  }
  // or nothing does,
  for (const std::uint8_t kind : {std::uint8_t{shm::kInlineBytes + 1}, std::uint8_t{0xF6}}) {
    all.push_back(claim(kind, shm::ChunkRef{.offset = kNowhere, .length = kBytes}));
  }
  // bytes that are in no memory,
  for (const std::uint8_t kind :
       {shm::kChunk, shm::kUncachedChunk, shm::kHandedChunk, shm::kReference}) {
    for (const std::uint64_t offset : {kHuge, kHugest, kHugest / 2 - kBytes + 1}) {
      all.push_back(claim(
          kind,
          shm::ChunkRef{.offset = offset, .length = kBytes, .chunk_bytes = kHugest - offset}));
    }
    for (const std::uint64_t length : {kHuge, kHugest - kNowhere + 1}) {
      all.push_back(
          claim(kind, shm::ChunkRef{.offset = kNowhere, .length = length, .chunk_bytes = length}));
    }
  }
  // and more or fewer of them than can be.
  for (const std::uint64_t bytes : {kBytes, std::uint64_t{0}, kHuge, kHugest / 2, kHugest}) {
    all.push_back(claim(shm::kLent, shm::LentRef{kNowhere, bytes, kHugest}));
  }
  for (const int bytes : {0, 1, static_cast<int>(shm::kInlineBytes)}) {
    all.push_back({.kind = static_cast<std::uint8_t>(bytes)});
  }
  all.push_back({.kind = shm::kWithdrawn});
  return all;
}

// As the first message to the victim and to all, of the call that the victim waits in.
void write(Team& team, const Claim& claim) {
  shm::Endpoint& endpoint = team.endpoint();
  shm::Peer& victim = endpoint.peer(kVictim);
  std::uint64_t call = 0;
  while (call >> 16 != 1) {
    sched_yield();
    call = victim.progress->call.load(std::memory_order_relaxed);
  }
  for (shm::Line* const line : {endpoint.shared_lines(shm::Audience::kNode), victim.out_lines}) {
    std::memcpy(line->payload, claim.payload.data(), claim.payload.size());
    line->header.store(shm::make_header(0, 255, claim.kind, static_cast<std::uint16_t>(call)),
                       std::memory_order_release);
  }
}

struct Call {
  const char* name;
  const char* algorithm;
  crl_status_t (*make)(crl_team_h team, std::int64_t* in, std::int64_t* out);
};

class Damaged : public testing::TestWithParam<Call> {};

// The victim makes a call on a team each.
TEST_P(Damaged, IsNotBelieved) {
  setenv("CARILLON_ALGORITHM", GetParam().algorithm, 1);
  const std::vector<Claim> all = claims();
  Meeting world(2), meeting(2);
  expect_processes_ok(
      2,
      [&](int rank) {
        crl_context_h context = make_context(world, rank, false, 20);
        for (const Claim& one : all) {
          SCOPED_TRACE("kind " + std::to_string(one.kind) + ", claim " +
                       std::to_string(&one - &all[0]));
          crl_team_h team = make_team(context, meeting.oob(rank));
          expect_ok(settle(team));
          if (rank == kDamaged) {
            write(*team->team, one);
          } else {
            std::vector<std::int64_t> in(2 * kBytes / 8), out(in);
            EXPECT_NE(GetParam().make(team, in.data(), out.data()), CRL_OK);
            const std::string error = crl_last_error();
            EXPECT_NE(error.find("rank 1"), std::string::npos) << error;
          }
          meet(context, meeting, rank);
          crl_team_destroy(team);
        }
        crl_context_destroy(context);
      },
      240);
  unsetenv("CARILLON_ALGORITHM");
}

// What is where in the node's memory each process knows by itself from when it joined.
TEST(DamagedProcess, ChangesNothingOfWhereThingsAre) {
  constexpr std::size_t kCount = 1 << 16;
  Meeting world(2), meeting(2);
  expect_processes_ok(2, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, 20);
    shm::SegmentShape& shape = context->engine->segment().header().shape;
    for (const int byte : {0x00, 0xFF, 0x11}) {
      meet(context, meeting, rank);
      if (rank == kDamaged) std::memset(static_cast<void*>(&shape), byte, sizeof shape);
      meet(context, meeting, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      expect_ok(settle(team));
      for (int round = 0; round < 50; ++round) {
        const auto in = values_of(rank, round, kCount);
        std::vector<std::int64_t> out(kCount);
        expect_ok(crl_allreduce(team, in.data(), out.data(), kCount, CRL_INT64, CRL_SUM));
        EXPECT_EQ(out, sums_of(2, round, kCount));
      }
      crl_team_destroy(team);
    }
    crl_context_destroy(context);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Calls, Damaged,
    testing::Values(Call{"scatter", "scatter=linear",
                         [](crl_team_h team, std::int64_t* in, std::int64_t* out) {
                           return crl_scatter(team, in, out, kBytes, kDamaged);
                         }},
                    Call{"bcast", "",
                         [](crl_team_h team, std::int64_t*, std::int64_t* out) {
                           return crl_bcast(team, out, kBytes, kDamaged);
                         }},
                    Call{"reduce", "",
                         [](crl_team_h team, std::int64_t* in, std::int64_t* out) {
                           return crl_reduce(team, in, out, kBytes / 8, CRL_INT64, CRL_SUM,
                                             kVictim);
                         }}),
    [](const auto& call) { return std::string(call.param.name); });

}  // namespace
}  // namespace carillon::test
