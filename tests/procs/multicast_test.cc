// SPDX-License-Identifier: Apache-2.0
//
// Multicast among processes, by UDP over the machine's loopback and over an RDMA device if there is
// one (tests/vm): broadcasts, also where much goes wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "support/job.h"
#include "support/multicast_job.h"
#include "support/multicast_play.h"
#include "transport/multicast/ud_carrier.h"
#include "transport/multicast/udp_carrier.h"
#include "transport/wrap/fault_carrier.h"

namespace carillon::multicast {
namespace {

using test::Broadcast;
using test::Meeting;
using test::Part;

constexpr int kPatienceS = 100;

Result<std::unique_ptr<Carrier>> open_carrier(const std::string& kind) {
  if (kind == "ud") return open_ud({});
  return open_udp({.interface = "lo", .datagram_bytes = 1472});
}

// Looked for in a process of its own: one that has found RDMA devices cannot fork others that use
// them.
bool is_there(const std::string& kind) {
  const auto look = [&](int) {
    if (!open_carrier(kind).ok()) _exit(1);
  };
  return test::run_processes(1, look) == std::vector<int>{0};
}

Result<std::unique_ptr<Carrier>> faulty(const std::string& kind, Faults faults, int rank) {
  auto inner = open_carrier(kind);
  if (!inner.ok()) return inner.status();
  faults.seed = static_cast<std::uint64_t>(rank) + 1;
  return wrap::with_faults(std::move(inner.value()), faults);
}

std::vector<Broadcast> mixed_program(std::uint32_t members, std::size_t count) {
  std::mt19937_64 random(members);
  std::vector<Broadcast> program;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t most = i % 16 == 0 ? 100000 : 3000;
    program.push_back({static_cast<Member>(random() % members), random() % most});
  }
  return program;
}

void play(Group& group, Part& part) {
  while (!part.done() && !part.failed()) {
    const Status status = group.progress(test::steady_now());
    if (!part.step()) sched_yield();
    if (!status.ok()) break;
  }
}

void play_and_leave(Meeting& meeting, int rank, Result<std::unique_ptr<Carrier>> carrier,
                    const std::vector<Broadcast>& program) {
  auto group = test::set_up(std::move(carrier), meeting.oob(rank));
  ASSERT_TRUE(group.ok()) << group.status().to_string();
  Part part(std::move(group.value()), program, 4);
  play(part.group(), part);
  EXPECT_TRUE(part.done()) << part.failure().to_string();
  const Status left = test::leave(part.group(), meeting.oob(rank));
  EXPECT_TRUE(left.ok()) << left.to_string();
}

void expect_all_well(const std::vector<int>& statuses) {
  EXPECT_EQ(statuses, std::vector<int>(statuses.size(), 0));
}

class Multicast : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void SetUp() override {
    if (kind() == "ud" && !is_there("ud")) GTEST_SKIP() << "no RDMA device";
  }
  static std::string kind() { return std::get<0>(GetParam()); }
  static int ranks() { return std::get<1>(GetParam()); }
};

TEST_P(Multicast, BroadcastsArrive) {
  Meeting meeting(ranks());
  const auto program = mixed_program(static_cast<std::uint32_t>(ranks()), 300);
  expect_all_well(test::run_processes(
      ranks(), [&](int rank) { play_and_leave(meeting, rank, open_carrier(kind()), program); },
      kPatienceS));
}

TEST_P(Multicast, BroadcastsArriveThoughMuchGoesWrong) {
  Meeting meeting(ranks());
  const auto program = mixed_program(static_cast<std::uint32_t>(ranks()), 300);
  const Faults faults = {
      .refuse = 0.02, .reorder = 0.05, .duplicate = 0.05, .lose = 0.1, .corrupt = 0.02};
  expect_all_well(test::run_processes(
      ranks(),
      [&](int rank) { play_and_leave(meeting, rank, faulty(kind(), faults, rank), program); },
      kPatienceS));
}

// Joins one group whatever its name.
class SameAddress final : public Carrier {
 public:
  explicit SameAddress(std::unique_ptr<Carrier> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] const CarrierLimits& limits() const override { return inner_->limits(); }
  [[nodiscard]] std::span<const std::byte> address() const override { return inner_->address(); }
  Status add_member(std::span<const std::byte> a) override { return inner_->add_member(a); }
  Status join(std::uint64_t /*name*/) override { return inner_->join(getppid()); }
  Result<bool> joined() override { return inner_->joined(); }
  bool send_group(std::span<const std::byte> packet) override { return inner_->send_group(packet); }
  bool send_member(Member member, std::span<const std::byte> packet) override {
    return inner_->send_member(member, packet);
  }
  Status receive(CarrierListener& listener) override { return inner_->receive(listener); }

 private:
  std::unique_ptr<Carrier> inner_;
};

// A barrier in which the group goes on.
void meet(Group& group, const crl_oob_t& oob) {
  std::vector<char> all(static_cast<std::size_t>(oob.size));
  void* request = nullptr;
  ASSERT_EQ(oob.allgather_post(oob.arg, all.data(), all.data(), 1, &request), 0);
  while (oob.allgather_test(oob.arg, request) == 1) {
    EXPECT_TRUE(group.progress(test::steady_now()).ok());
    sched_yield();
  }
}

// Two groups at once, of one address and port: each hears the other's packets, from the probes on,
// and nothing comes of it.
class MulticastNeighbours : public Multicast {};

TEST_P(MulticastNeighbours, OfOneAddressDoNotDisturbEachOther) {
  const int each = ranks();
  Meeting first(each), second(each), all(2 * each);
  const auto program = mixed_program(static_cast<std::uint32_t>(each), 100);
  expect_all_well(test::run_processes(
      2 * each,
      [&](int rank) {
        auto inner = open_carrier(kind());
        ASSERT_TRUE(inner.ok()) << inner.status().to_string();
        const crl_oob_t oob = (rank < each ? first : second).oob(rank % each);
        auto group = test::set_up(
            std::unique_ptr<Carrier>(std::make_unique<SameAddress>(std::move(inner.value()))), oob);
        ASSERT_TRUE(group.ok()) << group.status().to_string();
        Part part(std::move(group.value()), program, 4);
        meet(part.group(), all.oob(rank));
        play(part.group(), part);
        EXPECT_TRUE(part.done()) << part.failure().to_string();
        meet(part.group(), all.oob(rank));
        const GroupCounters counters = part.group().counters();
        EXPECT_GT(counters.foreign, 100U);
        EXPECT_EQ(counters.contradictory, 0U);
        const Status left = test::leave(part.group(), oob);
        EXPECT_TRUE(left.ok()) << left.to_string();
      },
      kPatienceS));
}

std::ptrdiff_t descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// Descriptors are what shows in the process; a queue pair that stays keeps one.
TEST_P(Multicast, LeavesNothing) {
  Meeting meeting(ranks());
  const auto program = mixed_program(static_cast<std::uint32_t>(ranks()), 10);
  expect_all_well(test::run_processes(
      ranks(),
      [&](int rank) {
        // With the first one the libraries open what they keep.
        play_and_leave(meeting, rank, open_carrier(kind()), program);
        const std::ptrdiff_t before = descriptors();
        for (int i = 0; i < 3; ++i) {
          play_and_leave(meeting, rank, open_carrier(kind()), program);
          EXPECT_EQ(descriptors(), before);
        }
        // One that never joins.
        EXPECT_TRUE(open_carrier(kind()).ok());
        EXPECT_EQ(descriptors(), before);
      },
      kPatienceS));
}

INSTANTIATE_TEST_SUITE_P(Udp, Multicast,
                         testing::Combine(testing::Values("udp"), testing::Values(1, 2, 3, 5, 8)));
INSTANTIATE_TEST_SUITE_P(Ud, Multicast,
                         testing::Combine(testing::Values("ud"), testing::Values(2, 3, 5)));
INSTANTIATE_TEST_SUITE_P(Udp, MulticastNeighbours,
                         testing::Combine(testing::Values("udp"), testing::Values(2, 3)));
INSTANTIATE_TEST_SUITE_P(Ud, MulticastNeighbours,
                         testing::Combine(testing::Values("ud"), testing::Values(2)));

}  // namespace
}  // namespace carillon::multicast
