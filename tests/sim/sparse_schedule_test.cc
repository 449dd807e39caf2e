// SPDX-License-Identifier: Apache-2.0
//
// Alltoallvs in which most ranks have nothing for one another, by every algorithm: proven, read on
// real bytes and simulated, with as many messages as there are blocks that are not empty, cut into
// slots. (Real ranks: tests/procs/sparse_test.cc.)
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "machine/sheet.h"
#include "schedule/interpret.h"
#include "schedule/verify.h"
#include "support/sim_job.h"
#include "support/sparse.h"

namespace carillon::test {
namespace {

constexpr std::int64_t kSlot = 1024;

// A call of all ranks, with their memory.
struct Team {
  Team(const SparsePattern& pattern, Rank ranks, Rank ppn) : name(pattern.name) {
    call.shared = {.collective = Collective::kAlltoallv, .ranks = ranks};
    call.limits.slot_bytes = kSlot;
    call.limits.nodes = predict::even_nodes(ranks, ppn);
    for (Rank rank = 0; rank < ranks; ++rank) tables.emplace_back(pattern, rank, ranks);
    for (const SparseTables& own : tables) call.locals.push_back({.tables = own.view()});
    for (Rank rank = 0; rank < ranks; ++rank) add_memory(pattern, rank);
  }
  void add_memory(const SparsePattern& pattern, Rank rank) {
    const Shared& shared = call.shared;
    const Local local = call.local(rank);
    inputs.emplace_back(static_cast<std::size_t>(input_bytes(shared, local, rank)));
    outputs.emplace_back(static_cast<std::size_t>(output_bytes(shared, local, rank)), kFill);
    for (Rank peer = 0; peer < shared.ranks; ++peer) {
      const auto at = static_cast<std::size_t>(peer);
      const std::int64_t sent = pattern.bytes(rank, peer, shared.ranks);
      for (std::int64_t i = 0; i < sent; ++i) {
        inputs.back()[static_cast<std::size_t>(local.tables.send_offsets[at] + i)] =
            sparse_value(rank, peer, 0, i);
      }
      for (std::int64_t i = 0; i < pattern.bytes(peer, rank, shared.ranks); ++i) {
        outputs.back()[static_cast<std::size_t>(local.tables.recv_offsets[at] + i)] =
            sparse_value(peer, rank, 0, i);
      }
      if (peer == rank || sent == 0) continue;
      ++blocks;
      slots += (sent + kSlot - 1) / kSlot;
    }
  }
  [[nodiscard]] Emit emitter(const Algorithm& algorithm) const {
    return [&](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
      return emit(algorithm, Call{.shared = call.shared,
                                  .local = call.local(rank),
                                  .rank = rank,
                                  .limits = call.limits,
                                  .params = {},
                                  .stage = stage,
                                  .learned = learned});
    };
  }
  [[nodiscard]] std::string text(const Algorithm& algorithm) const {
    return std::string(algorithm.id) + ", " + std::to_string(call.shared.ranks) + " ranks, " + name;
  }

  static constexpr std::byte kFill{0xEE};
  std::string name;
  TeamCall call;
  std::vector<SparseTables> tables;
  std::vector<Bytes> inputs, outputs;
  std::int64_t blocks = 0, slots = 0;  // that go from one rank to another
};

void expect_right(const Team& team, const Algorithm& algorithm) {
  const Emit emitter = team.emitter(algorithm);
  const Report report = verify(team.call, emitter, team.inputs);
  EXPECT_TRUE(report.ok()) << team.text(algorithm) << "\n" << report.status.to_string();
  const auto run = interpret(team.call, emitter, team.inputs, {}, {.run = {}, .fill = Team::kFill});
  ASSERT_TRUE(run.ok()) << team.text(algorithm) << "\n" << run.status().to_string();
  EXPECT_TRUE(run.value().outputs == team.outputs) << team.text(algorithm);
  if (algorithm.id == "alltoallv.pairwise") {
    EXPECT_EQ(report.stats.messages, team.slots) << team.text(algorithm);
  }
}

void expect_simulated(const Team& team, const machine::Machine& machine) {
  const Algorithm& algorithm = *find_algorithm("alltoallv.pairwise");
  Call call{.shared = team.call.shared, .limits = team.call.limits};
  const sim::Job job{.call = prepare(algorithm, call).value(),
                     .locals = team.call.locals,
                     .emit = [&](const Call& c, Builder& b) { emit_prepared(algorithm, c, b); }};
  const sim::Report whole = simulated(job, machine);
  EXPECT_EQ(whole.messages, team.blocks) << team.text(algorithm);
  // Emitted a step at a time, of which most have nothing.
  const sim::Report windows =
      simulated(job, machine, {.whole_positions = 1, .window_positions = 1});
  EXPECT_EQ(windows.messages, team.blocks) << team.text(algorithm);
  EXPECT_EQ(windows.latency_ps, whole.latency_ps) << team.text(algorithm);
}

TEST(SparseSchedules, HaveNoMessagesOfNothing) {
  const machine::Machine machine = machine::load("edr").value();
  for (const Rank ranks : {1, 2, 3, 5, 7, 8, 13}) {
    for (const Rank ppn : {1, 3}) {
      for (const SparsePattern& pattern : sparse_patterns()) {
        const Team team(pattern, ranks, ppn);
        for (const Algorithm& algorithm : algorithms()) {
          if (algorithm.collective != Collective::kAlltoallv) continue;
          if (!suits({&algorithm, {}}, team.call.shared, team.call.limits)) continue;
          expect_right(team, algorithm);
        }
        expect_simulated(team, machine);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace carillon::test
