// SPDX-License-Identifier: Apache-2.0
//
// Every algorithm of the registry through the C API on real ranks, against the oracle: the third
// reading beside verify and interpret (tests/schedule/conformance_test.cc). A new algorithm is
// covered by its registry row. Ranks are processes, and, with fewer cases, threads (for the
// thread sanitizer).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "algorithms/registry.h"
#include "support/calls.h"
#include "support/oracle.h"
#include "support/shapes.h"

namespace carillon::test {
namespace {

constexpr std::int32_t kElement = 8;
constexpr std::size_t kGuard = 64;  // bytes behind the output that nobody may touch

void affine_op(void* /*arg*/, const void* left, void* right, std::size_t count) {
  apply_affine(left, right, count);
}

std::string text_of(const Case& problem) {
  const Shared& s = problem.shared;
  return std::string(collective_name(s.collective)) + " ranks=" + std::to_string(s.ranks) +
         " root=" + std::to_string(s.root) + " count=" + std::to_string(s.count) +
         (problem.in_place ? " in place" : "") + (s.commutative ? "" : " non-commutative");
}

// One rank's part of one call, with its memory.
class Trial {
 public:
  Trial(const Case& problem, crl_team_h team, crl_op_t affine)
      : problem_(problem),
        team_(team),
        rank_(crl_team_rank(team)),
        op_(problem.shared.commutative ? crl_op_t{CRL_SUM} : affine),
        dtype_(problem.shared.commutative ? crl_dtype_t{CRL_UINT64} : CRL_OPAQUE(kElement)),
        tables_(problem, rank_),
        in_(input_of(problem, rank_)) {
    const Shared& s = problem.shared;
    const Local local{.in_place = false, .tables = tables_.view()};
    out_bytes_ = static_cast<std::size_t>(output_bytes(s, local, rank_));
    if (s.collective == Collective::kBcast && rank_ == s.root) {
      out_ = in_;  // the one buffer
      out_bytes_ = in_.size();
    } else if (problem.in_place_at(rank_) && s.collective != Collective::kScatter) {
      const auto shift = static_cast<std::size_t>(in_place_shift(s, rank_));
      out_bytes_ = std::max(out_bytes_, shift + in_.size());
      out_.resize(out_bytes_, kUntouched);
      std::copy(in_.begin(), in_.end(), out_.begin() + static_cast<std::ptrdiff_t>(shift));
    } else {
      out_.resize(out_bytes_, kUntouched);
    }
    out_.resize(out_bytes_ + kGuard, kUntouched);
  }

  crl_status_t call() { return run(nullptr); }
  crl_status_t start() { return run(&request_); }
  crl_status_t wait() { return crl_request_wait(&request_); }

  // Empty if all is right.
  [[nodiscard]] std::string complaint() const {
    const Shared& s = problem_.shared;
    const bool in_place = problem_.in_place_at(rank_);
    Bytes expected = expected_output(problem_, rank_);
    if (s.collective == Collective::kBcast && rank_ == s.root) expected = in_;
    // In place, the root's block of scatter stays in the input.
    if (in_place && s.collective == Collective::kScatter) expected.clear();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (out_[i] != expected[i]) return "output byte " + std::to_string(i) + " is wrong";
    }
    for (std::size_t i = out_bytes_; i < out_.size(); ++i) {
      if (out_[i] != kUntouched) return "wrote behind the output";
    }
    return in_ == input_of(problem_, rank_) ? "" : "changed the input";
  }

 private:
  crl_status_t run(crl_request_h* r) {
    const Shared& s = problem_.shared;
    const bool in_place = problem_.in_place_at(rank_);
    const bool scatter = s.collective == Collective::kScatter;
    const void* const in = in_place && !scatter ? CRL_IN_PLACE : in_.data();
    void* const out = in_place && scatter ? CRL_IN_PLACE : out_.data();
    const auto n = static_cast<std::size_t>(s.count);
    const std::size_t bytes = n * kElement;
    const OwnedTables& t = tables_;
    switch (s.collective) {
      case Collective::kBarrier: return r ? crl_ibarrier(team_, r) : crl_barrier(team_);
      case Collective::kBcast:
        return r ? crl_ibcast(team_, out, bytes, s.root, r) : crl_bcast(team_, out, bytes, s.root);
      case Collective::kReduce:
        return r ? crl_ireduce(team_, in, out, n, dtype_, op_, s.root, r)
                 : crl_reduce(team_, in, out, n, dtype_, op_, s.root);
      case Collective::kAllreduce:
        return r ? crl_iallreduce(team_, in, out, n, dtype_, op_, r)
                 : crl_allreduce(team_, in, out, n, dtype_, op_);
      case Collective::kAllgather:
        return r ? crl_iallgather(team_, in, out, bytes, r) : crl_allgather(team_, in, out, bytes);
      case Collective::kGather:
        return r ? crl_igather(team_, in, out, bytes, s.root, r)
                 : crl_gather(team_, in, out, bytes, s.root);
      case Collective::kScatter:
        return r ? crl_iscatter(team_, in, out, bytes, s.root, r)
                 : crl_scatter(team_, in, out, bytes, s.root);
      case Collective::kReduceScatterBlock:
        return r ? crl_ireduce_scatter_block(team_, in, out, n, dtype_, op_, r)
                 : crl_reduce_scatter_block(team_, in, out, n, dtype_, op_);
      case Collective::kAlltoall:
        return r ? crl_ialltoall(team_, in, out, bytes, r) : crl_alltoall(team_, in, out, bytes);
      case Collective::kAlltoallv:
        return r ? crl_ialltoallv(team_, in, t.send_bytes.data(), t.send_offsets.data(), out,
                                  t.recv_bytes.data(), t.recv_offsets.data(), r)
                 : crl_alltoallv(team_, in, t.send_bytes.data(), t.send_offsets.data(), out,
                                 t.recv_bytes.data(), t.recv_offsets.data());
    }
    return CRL_ERR_INTERNAL;
  }

  Case problem_;
  crl_team_h team_;
  int rank_;
  crl_op_t op_;
  crl_dtype_t dtype_;
  OwnedTables tables_;
  Bytes in_, out_;
  std::size_t out_bytes_ = 0;
  crl_request_h request_ = nullptr;
};

// What one job of ranks goes through: one algorithm of each collective.
struct Plan {
  Rank ranks = 1;
  std::vector<const Algorithm*> algorithms;  // at most one per collective
  std::vector<std::int64_t> counts;
  std::string slot_bytes;  // CARILLON_SLOT_BYTES
  bool every_root = true;
  Shape shape = {};               // all ranks on one node unless given
  std::string parameters;         // of all algorithms: ":k=3"
  std::string fetch_bytes = "0";  // CARILLON_FETCH_BYTES

  void set_environment() const {
    setenv("CARILLON_NODE_RANKS", shape.name.c_str(), 1);
    std::string choice;
    for (const Algorithm* algorithm : algorithms)
      choice += std::string(algorithm->id) + parameters + ";";
    setenv("CARILLON_ALGORITHM", choice.c_str(), 1);
    setenv("CARILLON_SLOT_BYTES", slot_bytes.c_str(), 1);
    setenv("CARILLON_FETCH_BYTES", fetch_bytes.c_str(), 1);
  }
  [[nodiscard]] std::vector<Case> cases(const Algorithm& algorithm) const;
};

std::vector<Case> Plan::cases(const Algorithm& algorithm) const {
  std::set<Rank> roots{0};
  if (has_root(algorithm.collective)) {
    roots.insert(ranks - 1);
    for (Rank root = 0; every_root && root < ranks; ++root) roots.insert(root);
  }
  std::vector<Case> all;
  for (const Rank root : roots) {
    for (const bool commutative : {true, false}) {
      const bool reduces = has_reduction(algorithm.collective);
      if (!commutative && (!reduces || algorithm.needs_commutative)) continue;
      for (const std::int64_t count : counts) {
        const Shared shared{algorithm.collective, ranks, root, count, kElement, commutative};
        if (!suits({&algorithm, {}}, shared, {.nodes = shape.nodes})) continue;
        all.push_back({shared, false});
        if (in_place_allowed(shared, root)) all.push_back({shared, true});
        if (algorithm.collective == Collective::kBarrier) break;
      }
    }
  }
  return all;
}

// Each case blocking, then all of them non-blocking, a few at a time, ended in reverse order.
void run_cases(const Algorithm& algorithm, const std::vector<Case>& cases, crl_team_h team,
               crl_op_t affine) {
  for (const Case& problem : cases) {
    Trial trial(problem, team, affine);
    expect_ok(trial.call(), "blocking");
    EXPECT_EQ(trial.complaint(), "") << text_of(problem);
    EXPECT_EQ(crl_team_last_algorithm(team), algorithm.id) << text_of(problem);
    if (testing::Test::HasFailure()) return;
  }
  constexpr std::size_t kAtOnce = 7;
  for (std::size_t first = 0; first < cases.size(); first += kAtOnce) {
    std::vector<Trial> trials;
    for (std::size_t i = first; i < std::min(first + kAtOnce, cases.size()); ++i) {
      trials.emplace_back(cases[i], team, affine);
    }
    for (Trial& trial : trials) expect_ok(trial.start(), "start");
    for (std::size_t i = trials.size(); i-- > 0;) {
      expect_ok(trials[i].wait(), "wait");
      EXPECT_EQ(trials[i].complaint(), "") << "non-blocking " << text_of(cases[first + i]);
    }
    if (testing::Test::HasFailure()) return;
  }
}

void run_rank(const Plan& plan, Meeting& world, Meeting& members, int rank) {
  crl_context_h context = make_context(world, rank);
  crl_team_h team = make_team(context, members.oob(rank));
  crl_op_t affine = 0;
  expect_ok(crl_op_create(affine_op, nullptr, 0, &affine));
  for (const Algorithm* algorithm : plan.algorithms) {
    run_cases(*algorithm, plan.cases(*algorithm), team, affine);
    // A rank that ends early would only make the others wait.
    if (testing::Test::HasFailure()) break;
  }
  crl_op_free(affine);
  crl_team_destroy(team);
  crl_context_destroy(context);
}

// Round i takes the i-th algorithm of every collective (those with fewer start again).
std::vector<std::vector<const Algorithm*>> rounds() {
  std::vector<std::vector<const Algorithm*>> by_collective(kCollectives), all;
  std::size_t most = 0;
  for (const Algorithm& algorithm : algorithms()) {
    auto& group = by_collective[static_cast<std::size_t>(algorithm.collective)];
    group.push_back(&algorithm);
    most = std::max(most, group.size());
  }
  for (std::size_t round = 0; round < most; ++round) {
    all.emplace_back();
    for (const auto& group : by_collective) {
      if (round < group.size()) all.back().push_back(group[round]);
    }
  }
  return all;
}

std::vector<std::int64_t> small_counts(Rank ranks) {
  const std::set<std::int64_t> counts{0, 1, ranks - 1, ranks + 1, 31, 127, 129, 643};
  return {counts.begin(), counts.end()};
}

class ProcessConformance : public testing::TestWithParam<Rank> {
 protected:
  void TearDown() override { clear_environment(); }

 public:
  static void clear_environment() {
    unsetenv("CARILLON_ALGORITHM");
    unsetenv("CARILLON_SLOT_BYTES");
    unsetenv("CARILLON_NODE_RANKS");
    unsetenv("CARILLON_FETCH_BYTES");
  }
};

void run_as_processes(const Plan& plan) {
  Meeting world(plan.ranks), members(plan.ranks);
  plan.set_environment();
  expect_processes_ok(plan.ranks, [&](int rank) { run_rank(plan, world, members, rank); });
}

class ThreadConformance : public ProcessConformance {};

// Slots of 1 KiB: 128 elements less one, and one more; five slots and a bit.
TEST_P(ProcessConformance, SmallSlots) {
  for (const auto& round : rounds()) {
    run_as_processes({.ranks = GetParam(),
                      .algorithms = round,
                      .counts = small_counts(GetParam()),
                      .slot_bytes = "1024"});
    if (testing::Test::HasFailure()) return;
  }
}

// The default slots of 64 KiB: 8192 elements less one, and one more.
TEST_P(ProcessConformance, DefaultSlots) {
  const std::vector<std::int64_t> few{8193};
  const std::vector<std::int64_t> more{1, 8191, 8193};
  for (const auto& round : rounds()) {
    run_as_processes({.ranks = GetParam(),
                      .algorithms = round,
                      .counts = GetParam() > 8 ? few : more,
                      .slot_bytes = "65536",
                      .every_root = false});
    if (testing::Test::HasFailure()) return;
  }
}

// Of those that can be told to send and receive.
std::vector<std::vector<const Algorithm*>> two_sided_rounds() {
  auto all = rounds();
  for (auto& round : all) {
    std::erase_if(round, [](const Algorithm* algorithm) {
      return algorithm->collective == Collective::kAlltoallv;
    });
  }
  return all;
}

// The same messages by send and recv.
TEST_P(ProcessConformance, TwoSided) {
  for (const auto& round : two_sided_rounds()) {
    run_as_processes({.ranks = GetParam(),
                      .algorithms = round,
                      .counts = {0, 1, 129, 643},
                      .slot_bytes = "1024",
                      .every_root = false,
                      .parameters = ":transfer=sendrecv"});
    if (testing::Test::HasFailure()) return;
  }
}

// A part of a schedule that has strands of its own: the operator that does not commute makes
// degree_k pass its result on to the root.
TEST_P(ProcessConformance, StrandsOfAGroup) {
  run_as_processes({.ranks = GetParam(),
                    .algorithms = {find_algorithm("reduce.hierarchical")},
                    .counts = {1, 129, 643},
                    .slot_bytes = "1024",
                    .parameters = ":node=degree_k"});
}

TEST_P(ThreadConformance, SmallSlots) {
  for (const auto& round : rounds()) {
    const Plan plan{.ranks = GetParam(),
                    .algorithms = round,
                    .counts = {1, 129, 643},
                    .slot_bytes = "1024",
                    .every_root = false};
    Meeting world(plan.ranks), members(plan.ranks);
    plan.set_environment();
    run_threads(plan.ranks, [&](int rank) { run_rank(plan, world, members, rank); });
    if (testing::Test::HasFailure()) return;
  }
}

class NodesConformance : public testing::TestWithParam<Shape> {
 protected:
  void TearDown() override { ProcessConformance::clear_environment(); }
};

// Ranks that count as several nodes speak over the machine's network.
TEST_P(NodesConformance, SmallSlots) {
  const Shape& shape = GetParam();
  for (const auto& round : rounds()) {
    run_as_processes({.ranks = shape.ranks(),
                      .algorithms = round,
                      .counts = {0, 1, shape.ranks() + 1, 129, 643},
                      .slot_bytes = "1024",
                      .every_root = shape.ranks() < 5,
                      .shape = shape});
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(NodesConformance, DefaultSlots) {
  const Shape& shape = GetParam();
  for (const auto& round : rounds()) {
    run_as_processes({.ranks = shape.ranks(),
                      .algorithms = round,
                      .counts = {8193},
                      .slot_bytes = "65536",
                      .every_root = false,
                      .shape = shape});
    if (testing::Test::HasFailure()) return;
  }
}

// The rounds with messages of one slot and of many. The larger slots show no more of larger teams.
void run_both_slots(const std::vector<std::vector<const Algorithm*>>& all, Plan plan) {
  plan.ranks = plan.shape.ranks();
  plan.every_root = false;
  for (const auto& round : all) {
    plan.algorithms = round;
    plan.slot_bytes = "1024";
    plan.counts = {0, 9, 129, 643};
    run_as_processes(plan);
    plan.slot_bytes = "65536";
    plan.counts = {8193};
    if (!testing::Test::HasFailure() && plan.ranks <= 3) run_as_processes(plan);
    if (testing::Test::HasFailure()) return;
  }
}

class NodesTwoSided : public NodesConformance {};

TEST_P(NodesTwoSided, BothSlots) {
  run_both_slots(two_sided_rounds(), {.shape = GetParam(), .parameters = ":transfer=sendrecv"});
}

class NodesFetched : public NodesConformance {};

// Messages are got from where they stand, all but the shortest.
TEST_P(NodesFetched, BothSlots) {
  run_both_slots(rounds(), {.shape = GetParam(), .fetch_bytes = "64"});
}

std::string name_of(const testing::TestParamInfo<Shape>& param) {
  std::string name = param.param.name;
  for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, NodesConformance,
                         testing::Values(blocked({1, 1}), blocked({1, 1, 1}), blocked({2, 2}),
                                         blocked({3, 1, 1}), blocked({1, 6}), round_robin(5, 2),
                                         blocked({2, 3, 3}), blocked({4, 4, 4, 1})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, NodesTwoSided,
                         testing::Values(blocked({1, 1}), blocked({3, 1, 1}), round_robin(5, 2)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, NodesFetched,
                         testing::Values(blocked({1, 1, 1}), round_robin(5, 2)), name_of);
INSTANTIATE_TEST_SUITE_P(Ranks, ProcessConformance, testing::Values(1, 2, 3, 4, 5, 7, 8, 13, 16));
INSTANTIATE_TEST_SUITE_P(Ranks, ThreadConformance, testing::Values(1, 2, 3, 4, 5));

}  // namespace
}  // namespace carillon::test
