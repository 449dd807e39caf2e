// SPDX-License-Identifier: Apache-2.0
//
// What calibrate would measure on a simulated machine becomes a file on which the same ping-pongs
// take as long.
#include "machine/calibrated.h"

#include <gtest/gtest.h>

#include "machine/costs.h"
#include "machine/sheet.h"
#include "predict/predict.h"

namespace carillon::machine {
namespace {

double one_way_ns(const Machine& machine, std::int64_t bytes, Rank ppn, bool two_sided = false) {
  const AlgorithmChoice choice{find_algorithm("bcast.binomial"), {.two_sided = two_sided}};
  const Limits limits{.nodes = predict::even_nodes(2, ppn)};
  Result<sim::Report> report = predict::simulate(
      choice, predict::example_problem(Collective::kBcast, 2, bytes), limits, machine);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return static_cast<double>(report.value().latency_ps) / 1e3;
}

PingPong played_on(const Machine& m, Rank ppn, bool two_sided) {
  PingPong pings;
  for (std::size_t i = 0; i < PingPong::kBytes.size(); ++i) {
    const Transfer message{.bytes = PingPong::kBytes[i]};
    const std::int64_t root = ppn == 2    ? local_put_ps(m, message)
                              : two_sided ? send_ps(m, message)
                                          : put_ps(m, message);
    pings.points[i] = {one_way_ns(m, message.bytes, ppn, two_sided),
                       static_cast<double>(root) / 1e3};
  }
  return pings;
}

Measured measured_on(const Machine& m) {
  const auto ns = [](std::int64_t fs) { return static_cast<double>(fs) / 1e6; };
  return {.where = "a simulated machine",
          .cores = 4,
          .cache_bytes = m.memory.cache_bytes,
          .copy = {static_cast<double>(m.memory.copy_ps + m.memory.copy_run_ps) / 1e3,
                   ns(m.memory.copy_cached_fs), ns(m.memory.copy_byte_fs)},
          .reduce = {static_cast<double>(m.memory.reduce_ps) / 1e3, ns(m.memory.reduce_cached_fs),
                     ns(m.memory.reduce_byte_fs)},
          .copy_run_ns = static_cast<double>(m.memory.copy_run_ps) / 1e3,
          .node = played_on(m, 2, false),
          .one_sided = played_on(m, 1, false),
          .two_sided = played_on(m, 1, true)};
}

TEST(Calibrated, PingPongsTakeAsLong) {
  for (const char* const name : {"edr", "hdr", "clan_via"}) {
    Machine truth = load(name).value();
    truth.two_sided.eager_bytes = 65536;
    truth.one_sided.inline_bytes = 0;
    truth.memory.node_byte_fs = 0;
    const std::string text = calibrated_file(measured_on(truth));
    const Result<Sheet> sheet = parse_sheet(text, "calibrated.toml", "calibrated");
    ASSERT_TRUE(sheet.ok()) << sheet.status().message() << "\n" << text;
    const Machine& ours = sheet.value().machine;
    EXPECT_EQ(ours.memory.copy_ps, truth.memory.copy_ps) << name;
    EXPECT_EQ(ours.memory.copy_run_ps, truth.memory.copy_run_ps) << name;
    for (const std::int64_t bytes : PingPong::kBytes) {
      for (const Rank ppn : {1, 2}) {
        for (const bool two_sided : {false, true}) {
          if (ppn == 2 && two_sided) continue;
          const double expected = one_way_ns(truth, bytes, ppn, two_sided);
          EXPECT_NEAR(one_way_ns(ours, bytes, ppn, two_sided), expected, 0.03 * expected)
              << name << ", " << bytes << " bytes, " << ppn << " per node"
              << (two_sided ? ", two-sided" : "");
        }
      }
    }
  }
}

// What two ranks of one core take longer is the switch; what a root's call takes longer for more
// bytes, the CPU's time per byte.
TEST(Calibrated, SwitchesAndSockets) {
  Machine truth = load("edr").value();
  truth.node = {.cores = 2, .switch_ps = 700'000, .nodes_per_host = 2};
  truth.one_sided.inline_bytes = 0;
  truth.network.latency_ps = 1;
  truth.network.send_byte_fs = 300'000;
  Machine one_core = truth;
  one_core.node.cores = 1;
  Measured measured = measured_on(truth);
  measured.cores = 2;
  measured.nodes_per_host = 2;
  measured.node_one_core = played_on(one_core, 2, false);
  measured.one_sided_one_core = played_on(one_core, 1, false);
  // Bursts: 900 ns more than the ping-pongs' 8 bytes without their switches. Long messages: as much
  // per byte as shorter ones up to 150,000 bytes, and then 0.4 ns more.
  const auto& pings = measured.one_sided_one_core.points;
  measured.burst_one_core_ns = pings[0].one_way_ns - 700 + 700.0 / Measured::kBurst + 900;
  const double per_byte = (pings[2].one_way_ns - pings[1].one_way_ns) / (65536 - 4096);
  for (std::size_t i = 0; i < Measured::kLongBytes.size(); ++i) {
    const auto bytes = static_cast<double>(Measured::kLongBytes[i]);
    measured.long_one_core_ns[i] =
        pings[2].one_way_ns + (bytes - 65536) * per_byte + (bytes - 150'000) * 0.4;
  }
  const std::string text = calibrated_file(measured);
  const Result<Sheet> sheet = parse_sheet(text, "calibrated.toml", "calibrated");
  ASSERT_TRUE(sheet.ok()) << sheet.status().message() << "\n" << text;
  Machine ours = sheet.value().machine;
  EXPECT_NEAR(static_cast<double>(ours.network.send_byte_fs), 300'000, 3'000);
  EXPECT_NEAR(static_cast<double>(ours.node.shared_ps), 900'000, 1'000);
  EXPECT_NEAR(static_cast<double>(ours.node.backlog_bytes), 150'000, 100);
  EXPECT_NEAR(static_cast<double>(ours.node.backlog_byte_fs), 400'000, 1'000);
  ours.node.shared_ps = ours.node.shared_byte_fs = ours.node.backlog_byte_fs = 0;
  ours.node.cores = 1;
  for (const Rank ppn : {1, 2}) {
    const double expected = one_way_ns(one_core, 8, ppn);
    EXPECT_NEAR(one_way_ns(ours, 8, ppn), expected, 0.1 * expected) << ppn;
  }
}

// Messages that are lent tell what a read costs, per call and per byte. Half of there and back ends
// with the reader; the simulated call ends when its writer knows.
TEST(Calibrated, LentMessages) {
  Machine truth = load("edr").value();
  truth.memory.node_byte_fs = 0;
  Measured measured = measured_on(truth);
  truth.shared_memory.lent_ps = 700'000;
  truth.shared_memory.lent_byte_fs = 45'000;
  for (std::size_t i = 0; i < Measured::kLentBytes.size(); ++i) {
    const double told = static_cast<double>(truth.shared_memory.latency_ps) / 1e3;
    measured.lent_ns[i] = one_way_ns(truth, Measured::kLentBytes[i], 2) - told;
  }
  const std::string text = calibrated_file(measured);
  const Result<Sheet> sheet = parse_sheet(text, "calibrated.toml", "calibrated");
  ASSERT_TRUE(sheet.ok()) << sheet.status().message() << "\n" << text;
  const Machine& ours = sheet.value().machine;
  EXPECT_NEAR(static_cast<double>(ours.shared_memory.lent_ps), 700'000, 1000);
  EXPECT_NEAR(static_cast<double>(ours.shared_memory.lent_byte_fs), 45'000, 10);
  measured.lent_ns = {};
  const Result<Sheet> without = parse_sheet(calibrated_file(measured), "calibrated.toml", "one");
  ASSERT_TRUE(without.ok()) << without.status().message();
  EXPECT_FALSE(lends(without.value().machine)) << "nothing was measured";
}

// Times that contradict one another, as on a busy machine, still give a file that can be read.
TEST(Calibrated, NonsenseIsBounded) {
  Measured measured{.where = "a busy machine"};
  for (PingPong* const pings : {&measured.node, &measured.one_sided, &measured.two_sided}) {
    pings->points = {{{100, 5000}, {50, 1}, {10, 70000}}};
  }
  measured.lent_ns = {1, 2e15};
  for (const Measured& each : {measured, Measured{.where = "nothing"}}) {
    const Result<Sheet> sheet = parse_sheet(calibrated_file(each), "calibrated.toml", "calibrated");
    EXPECT_TRUE(sheet.ok()) << sheet.status().message();
  }
}

}  // namespace
}  // namespace carillon::machine
