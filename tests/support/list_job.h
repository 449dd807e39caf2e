// SPDX-License-Identifier: Apache-2.0
//
// Jobs of which every rank counts as a node, and that put lists of bytes to each other: what their
// networks are made to do is counted behind the API (net::Counters).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/objects.h"
#include "schedule/text.h"
#include "support/calls.h"

namespace carillon::test {

/// What is counted of messages that are sent, and copied.
inline net::Counters operator-(const net::Counters& a, const net::Counters& b) {
  return {.copied_bytes = a.copied_bytes - b.copied_bytes,
          .sent_copied_bytes = a.sent_copied_bytes - b.sent_copied_bytes,
          .gathered = a.gathered - b.gathered,
          .gathered_posts = a.gathered_posts - b.gathered_posts,
          .gathered_entries = a.gathered_entries - b.gathered_entries,
          .lists_made = a.lists_made - b.lists_made};
}

/// A rank's context and team, and what its network has done.
struct Member {
  crl_context_h context;
  crl_team_h team;
  int rank;

  [[nodiscard]] net::Network& network() const { return *context->engine->network(); }
  [[nodiscard]] net::Counters counters() const { return network().counters(); }
  [[nodiscard]] const wire::Counters& wire_counters() const { return network().wire().counters(); }
  [[nodiscard]] crl_traffic_t traffic() const {
    crl_traffic_t traffic{};
    crl_context_traffic(context, &traffic);
    return traffic;
  }
  [[nodiscard]] std::uint64_t registrations() const { return wire_counters().registrations; }
  [[nodiscard]] std::uint64_t most_entries() const {
    return network().wire().capabilities().max_pieces - 1;
  }
  [[nodiscard]] const Limits& limits() const { return team->team->limits(); }
};

/// With CARILLON_TEST_DEVICES=N the ranks share out so many soft-RoCE devices.
inline void use_device(int rank) {
  const char* const count = std::getenv("CARILLON_TEST_DEVICES");
  if (count == nullptr) return;
  const std::string device = "verbs:rxe" + std::to_string(rank % std::atoi(count));
  setenv("CARILLON_NETWORK", device.c_str(), 1);
}

inline std::uint8_t byte_of(int from, int to, int round, std::int64_t index) {
  return static_cast<std::uint8_t>(value_of(from * 64 + to, round, index) % 251);
}

/// The plan of a rank's ops in text form, as of an allgather of `bytes` from each rank.
inline std::shared_ptr<const Plan> plan_by_hand(const Member& member, std::int64_t bytes,
                                                const std::string& ops, bool two_sided = false) {
  const int ranks = crl_team_size(member.team);
  const auto schedule = parse_schedule("schedule ranks " + std::to_string(ranks) + " rank " +
                                       std::to_string(member.rank) + " scratch 256\n" + ops);
  EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
  carillon::Call call;
  call.shared = {Collective::kAllgather, ranks, 0, bytes, 1, true};
  call.rank = member.rank;
  call.limits = member.limits();
  call.params.two_sided = two_sided;
  if (two_sided) call.limits.slot_bytes = std::min(call.limits.slot_bytes, call.limits.send_bytes);
  auto plan = lower(schedule.value(), call);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return std::make_shared<const Plan>(std::move(plan.value()));
}

/// Every rank is a node; lists go as they are, of three entries a post.
class ListJob : public testing::Test {
 protected:
  void SetUp() override {
    set("CARILLON_NODE_RANKS", "1");
    set("CARILLON_GATHER_ENTRIES", "3");
    set("CARILLON_GATHER_BYTES", "1");
    set("CARILLON_FETCH_BYTES", "0");
  }
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void set(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
    set_.emplace_back(name);
  }
  using Body = std::function<void(const Member& member)>;
  void run(int ranks, const char* algorithm, const Body& body) {
    set("CARILLON_ALGORITHM", algorithm);
    Meeting world(ranks), members(ranks);
    expect_processes_ok(ranks, [&](int rank) {
      use_device(rank);
      crl_context_h context = make_context(world, rank);
      ASSERT_NE(context->engine->network(), nullptr);  // a warning says why
      crl_team_h team = make_team(context, members.oob(rank));
      expect_ok(settle(team));
      body({context, team, rank});
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }

 private:
  std::vector<std::string> set_;
};

}  // namespace carillon::test
