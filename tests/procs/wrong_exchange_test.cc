// SPDX-License-Identifier: Apache-2.0
//
// Allgathers of the caller (crl_oob_t) that give other bytes than the members gave: in another
// order, before they are there, or damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

using Entries = std::vector<std::vector<std::byte>>;  // of the members

// An allgather that gives what `spoil` makes of what a right one has given.
class Spoiled {
 public:
  Spoiled(const crl_oob_t& right, std::function<void(Entries&)> spoil)
      : right_(right), spoil_(std::move(spoil)) {}
  crl_oob_t oob() {
    return {.arg = this,
            .rank = right_.rank,
            .size = right_.size,
            .allgather_post = post,
            .allgather_test = test};
  }

 private:
  static int post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p) {
    auto& self = *static_cast<Spoiled*>(arg);
    self.out_ = static_cast<std::byte*>(out);
    self.bytes_ = bytes;
    return self.right_.allgather_post(self.right_.arg, in, out, bytes, request_p);
  }
  static int test(void* arg, void* request) {
    auto& self = *static_cast<Spoiled*>(arg);
    const int answer = self.right_.allgather_test(self.right_.arg, request);
    if (answer == 0) self.spoil();
    return answer;
  }
  void spoil() const {
    Entries entries;
    for (int i = 0; i < right_.size; ++i) {
      const std::byte* const entry = out_ + static_cast<std::size_t>(i) * bytes_;
      entries.emplace_back(entry, entry + bytes_);
    }
    spoil_(entries);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::memcpy(out_ + i * bytes_, entries[i].data(), bytes_);
    }
  }

  crl_oob_t right_;
  std::function<void(Entries&)> spoil_;
  std::byte* out_ = nullptr;
  std::size_t bytes_ = 0;
};

void rotate_entries(Entries& entries) {
  std::rotate(entries.begin(), entries.begin() + 1, entries.end());
}

void forget_entries(Entries& entries) {
  for (auto& entry : entries) std::fill(entry.begin(), entry.end(), std::byte{0});
}

void expect_says_order(crl_status_t status, int rank, int ranks) {
  EXPECT_EQ(status, CRL_ERR_INVALID_ARGUMENT);
  const std::string error = crl_last_error();
  const std::string whose = "rank " + std::to_string(rank) + " of " + std::to_string(ranks);
  EXPECT_NE(error.find(whose), std::string::npos) << error;
  EXPECT_NE(error.find("in the order of their ranks"), std::string::npos) << error;
}

class OwnPlace : public testing::TestWithParam<void (*)(Entries&)> {};

TEST_P(OwnPlace, IsLookedAtForContexts) {
  constexpr int kRanks = 3;
  Meeting world(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    Spoiled spoiled(world.oob(rank), GetParam());
    crl_context_config_t config = {};
    config.struct_bytes = sizeof config;
    config.oob = spoiled.oob();
    crl_context_h context = nullptr;
    expect_says_order(crl_context_create(&config, &context), rank, kRanks);
    EXPECT_EQ(context, nullptr);
  });
}

TEST_P(OwnPlace, IsLookedAtForTeams) {
  constexpr int kRanks = 3;
  Meeting world(kRanks), members(kRanks), others(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, 40);
    Spoiled spoiled(members.oob(rank), GetParam());
    crl_team_h team = make_team(context, spoiled.oob());
    expect_says_order(settle(team), rank, kRanks);
    crl_team_destroy(team);
    // What was wrong there is nothing to another team.
    team = make_team(context, others.oob(rank));
    expect_ok(settle(team));
    expect_ok(crl_barrier(team));
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

INSTANTIATE_TEST_SUITE_P(Spoiled, OwnPlace, testing::Values(rotate_entries, forget_entries));

// What rank 0 hears of rank 1 are bytes that rank 1 cannot have given.
class Damaged : public testing::TestWithParam<int> {};

TEST_P(Damaged, MembersAreNotBelieved) {
  constexpr int kRanks = 2;
  Meeting world(kRanks), members(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, 40);
    Spoiled spoiled(members.oob(rank), [&](Entries& entries) {
      if (rank != 0) return;
      // But for the numbers of its node and its job, by which members of others are told.
      constexpr std::size_t kFirst = 2 * sizeof(std::uint64_t);
      std::memset(entries[1].data() + kFirst, GetParam(), entries[1].size() - kFirst);
    });
    crl_team_h team = make_team(context, spoiled.oob());
    const crl_status_t status = settle(team);
    if (rank == 0) {
      EXPECT_EQ(status, CRL_ERR_INVALID_ARGUMENT);
      EXPECT_NE(std::string(crl_last_error()).find("of rank 1 of a team of 2"), std::string::npos)
          << crl_last_error();
    }
    EXPECT_NE(crl_barrier(team), CRL_OK);
    if (rank != 0) {
      EXPECT_NE(std::string(crl_last_error()).find("rank 0 gave up a team"), std::string::npos)
          << crl_last_error();
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

INSTANTIATE_TEST_SUITE_P(Bytes, Damaged, testing::Values(0xFF, 0x7F, 0x40, 0x01, 0x00));

}  // namespace
}  // namespace carillon::test
