// SPDX-License-Identifier: Apache-2.0
//
// Closed forms and the simulator are two ways to the same number: where there is a closed form they
// agree to the picosecond, on every machine there is and on machines that there are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "machine/fields.h"
#include "machine/model.h"
#include "machine/sheet.h"
#include "predict/predict.h"

namespace carillon::machine {
namespace {

std::int64_t simulated_ps(const Machine& machine, const ModelCall& model) {
  AlgorithmChoice choice{.algorithm = find_algorithm(model.algorithm),
                         .params = {.k = model.k, .two_sided = model.two_sided}};
  if (choice.algorithm->has_segment) choice.params.segment_bytes = model.segment_bytes;
  const Shared shared{.collective = choice.algorithm->collective,
                      .ranks = model.ranks,
                      .count = model.bytes / model.element_bytes,
                      .element_bytes = model.element_bytes};
  const Limits limits{.nodes = predict::even_nodes(model.ranks, 1)};
  Result<sim::Report> report = predict::simulate(choice, shared, limits, machine);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? report.value().latency_ps : -1;
}

std::string text_of(const ModelCall& c) {
  return c.algorithm + " k=" + std::to_string(c.k) + " ranks=" + std::to_string(c.ranks) +
         " bytes=" + std::to_string(c.bytes) + " segment=" + std::to_string(c.segment_bytes) +
         (c.two_sided ? " two-sided" : "");
}

// 1 if there is a closed form for it and both agree.
int compare(const Machine& machine, const ModelCall& call) {
  const Result<std::int64_t> model = model_ps(machine, call);
  if (!model.ok()) return 0;
  const std::int64_t simulated = simulated_ps(machine, call);
  EXPECT_EQ(model.value(), simulated) << text_of(call) << " on " << machine.name;
  return model.value() == simulated ? 1 : 0;
}

// All that has a closed form, for that many ranks.
std::vector<ModelCall> calls_of(Rank ranks, std::int64_t bytes) {
  std::vector<ModelCall> calls;
  for (const ModelRow& row : models()) {
    for (const bool two_sided : {false, true}) {
      ModelCall call{.algorithm = std::string(row.id),
                     .ranks = ranks,
                     .bytes = bytes,
                     .element_bytes = bytes % 4 == 0 ? 4 : 1,
                     .two_sided = two_sided};
      if (row.least_k == 0) calls.push_back(call);
      for (const std::int32_t k : {1, 2, 3, 4, 7, 15}) {
        if (row.least_k == 0 || k < row.least_k) continue;
        call.k = k;
        calls.push_back(call);
      }
    }
  }
  return calls;
}

// For machines that have none.
InSwitch switches() {
  return {.ports = 5,
          .window = 3,
          .operand_bytes = 1000,
          .header_bytes = 83,
          .send_ps = 211'000,
          .receive_ps = 307'000,
          .nic_ps = 401'000,
          .link_ps = 203'000,
          .cycle_ps = 6'400,
          .beat_bytes = 8,
          .up_cycles = 13,
          .level_cycles = 8,
          .beat_cycles = 2,
          .down_cycles = 7};
}

TEST(ModelAndSimulator, AgreeOnEveryMachine) {
  std::map<std::string, int> agreed, two_sided;
  for (const std::string& name : machine_names()) {
    Machine machine = load(name).value();
    if (machine.in_switch.ports == 0) machine.in_switch = switches();
    for (const Rank ranks : {1, 2, 3, 5, 7, 8, 12, 16, 17, 64, 100}) {
      for (const std::int64_t bytes : {0, 1, 4, 65, 4096, 6720, 50'000}) {
        for (const ModelCall& call : calls_of(ranks, bytes)) {
          (call.two_sided ? two_sided : agreed)[call.algorithm] += compare(machine, call);
        }
        if (HasFailure()) return;
      }
    }
  }
  for (const ModelRow& row : models()) {
    const std::string id(row.id);
    EXPECT_GT(agreed[id], 150) << id;
    if (id.ends_with(".switch")) continue;
    EXPECT_GT(two_sided[id], 150) << id << " by send and receive";
  }
}

TEST(ModelAndSimulator, AgreeOnPipelinedChains) {
  int agreed = 0;
  for (const char* const name : {"edr", "clan_via"}) {
    const Machine machine = load(name).value();
    for (const Rank ranks : {2, 3, 9, 20}) {
      for (const std::int64_t bytes : {1000, 3000, 4096, 5000, 12'345}) {
        ModelCall call{.algorithm = "bcast.chain", .ranks = ranks, .bytes = bytes};
        for (const std::int64_t segment : {64, 256, 1024}) {
          call.segment_bytes = segment;
          for (const bool two_sided : {false, true}) {
            call.two_sided = two_sided;
            agreed += compare(machine, call);
          }
        }
      }
    }
  }
  EXPECT_EQ(agreed, 240);
}

TEST(ModelAndSimulator, AgreeOnManyRanks) {
  const Machine machine = load("edr").value();
  int compared = 0, agreed = 0;
  for (const Rank ranks : {256, 500}) {
    for (const ModelCall& call : calls_of(ranks, 4096)) {
      ++compared;
      agreed += compare(machine, call);
    }
  }
  EXPECT_GT(agreed, compared / 2);
}

// Any machine: each of its numbers at random.
Machine any_machine() {
  Machine m;
  const auto ps = [] { return *rc::gen::inRange<std::int64_t>(0, 3'000'000); };
  const auto fs = [] { return *rc::gen::inRange<std::int64_t>(0, 3'000'000); };
  const auto flag = [] { return *rc::gen::arbitrary<bool>(); };
  m.network = {.latency_ps = ps() + 1,
               .send_overhead_ps = ps(),
               .send_byte_fs = fs(),
               .recv_overhead_ps = ps(),
               .gap_ps = ps(),
               .per_byte_fs = fs(),
               .gather_ps = ps(),
               .max_entries = *rc::gen::inRange(1, 40),
               .send_queue = *rc::gen::inRange(1, 20)};
  if (flag()) {
    m.network.fragment_bytes = *rc::gen::inRange<std::int64_t>(100, 5000);
    m.network.fragment_ps = ps();
  }
  if (flag()) m.bus = {ps(), fs(), flag(), flag()};
  m.one_sided = {.post_ps = ps(),
                 .doorbell_ps = ps(),
                 .poll_ps = ps(),
                 .inline_bytes = *rc::gen::inRange<std::int64_t>(0, 200),
                 .inline_byte_fs = fs(),
                 .stage_puts = flag(),
                 .stage_input = flag(),
                 .stage_output = flag()};
  m.two_sided = {.post_ps = ps(),
                 .match_ps = ps(),
                 .eager_bytes = *rc::gen::inRange<std::int64_t>(0, 100'000),
                 .copy_in = flag(),
                 .copy_out = flag(),
                 .rendezvous_ps = ps()};
  m.memory = {.copy_ps = ps(),
              .copy_block_ps = ps(),
              .copy_run_ps = ps(),
              .copy_cached_fs = fs(),
              .copy_byte_fs = fs(),
              .cache_bytes = *rc::gen::inRange<std::int64_t>(0, 20'000),
              .reduce_ps = ps(),
              .reduce_cached_fs = fs(),
              .reduce_byte_fs = fs(),
              .node_byte_fs = flag() ? fs() : 0};
  const auto count = [] { return *rc::gen::inRange(1, 40); };
  m.in_switch = {.ports = count() + 1,
                 .window = count(),
                 .operand_bytes = *rc::gen::inRange<std::int64_t>(40, 3000),
                 .header_bytes = *rc::gen::inRange<std::int64_t>(0, 200),
                 .send_ps = ps(),
                 .receive_ps = ps(),
                 .nic_ps = ps(),
                 .link_ps = ps() + 1,
                 .cycle_ps = *rc::gen::inRange<std::int64_t>(0, 20'000),
                 .beat_bytes = count(),
                 .up_cycles = count(),
                 .level_cycles = count(),
                 .beat_cycles = count(),
                 .down_cycles = count()};
  m.node = {.cores = count(),
            .switch_ps = flag() ? ps() : 0,
            .nodes_per_host = count(),
            .shared_ps = ps(),
            .shared_byte_fs = fs(),
            .backlog_bytes = *rc::gen::inRange<std::int64_t>(0, 20'000),
            .backlog_byte_fs = fs()};
  return m;
}

TEST(ModelAndSimulator, AgreeOnAnyMachine) {
  std::map<std::string, int> agreed;
  EXPECT_TRUE(rc::check("model and simulator agree", [&] {
    const Machine machine = any_machine();
    const Rank ranks =
        *rc::gen::oneOf(rc::gen::inRange<Rank>(2, 70), rc::gen::element<Rank>(2, 4, 8, 16, 32, 64));
    const std::int64_t bytes = *rc::gen::element<std::int64_t>(1, 4, 60, 3840, 4096, 20'000);
    std::vector<ModelCall> calls = calls_of(ranks, bytes);
    ModelCall chain{.algorithm = "bcast.chain", .ranks = ranks, .bytes = bytes};
    chain.segment_bytes = *rc::gen::inRange<std::int64_t>(bytes / 20 + 1, bytes + 1);
    calls.push_back(chain);
    for (ModelCall call : calls) {
      Result<std::int64_t> model = model_ps(machine, call);
      if (!model.ok()) {  // some closed forms ask for blocks of one length, or for short ones
        call.bytes = 4 * ranks;
        call.element_bytes = 4;
        model = model_ps(machine, call);
      }
      if (!model.ok()) continue;
      ++agreed[call.algorithm];
      if (model.value() != simulated_ps(machine, call)) {
        RC_FAIL(text_of(call) + ": model " + std::to_string(model.value()) + ", simulator " +
                std::to_string(simulated_ps(machine, call)));
      }
    }
  }));
  for (const ModelRow& row : models()) EXPECT_GT(agreed[std::string(row.id)], 20) << row.id;
}

// Trees of one level to four, packets that are and are not as many as the window, whole and not.
TEST(ModelAndSimulator, AgreeOnSwitches) {
  Machine machine = load("edr").value();
  machine.in_switch = switches();
  int agreed = 0;
  for (const Rank ranks : {2, 3, 5, 7, 8, 13, 16, 26, 64, 126, 4096}) {
    for (const std::int64_t bytes : {1, 8, 999, 1000, 1001, 3000, 4001, 65'536}) {
      for (const char* const algorithm :
           {"allreduce.switch", "bcast.switch", "reduce.switch", "barrier.switch"}) {
        const bool is_barrier = std::string_view(algorithm) == "barrier.switch";
        agreed += compare(
            machine, {.algorithm = algorithm, .ranks = ranks, .bytes = is_barrier ? 0 : bytes});
      }
    }
  }
  EXPECT_EQ(agreed, 4 * 11 * 8);
}

// All of a switch's numbers as large as a file may have them: what is told is no overflow.
TEST(ModelAndSimulator, AgreeOnTheSlowestSwitches) {
  Machine machine = load("hu2013").value();
  for (const Field& field : fields()) {
    if (field.section == "switch") field.set_value(machine, field.most());
  }
  machine.in_switch.beat_bytes = 1;
  for (const std::int32_t ports : {2, 64}) {
    machine.in_switch.ports = ports;
    const ModelCall call{.algorithm = "allreduce.switch", .ranks = 4096, .bytes = 8192};
    EXPECT_EQ(compare(machine, call), 1);
    const std::int64_t per_level = 100'000'000 * (std::int64_t{8192} * 65536);
    EXPECT_GT(model_ps(machine, call).value(), (ports == 2 ? 12 : 2) * per_level);
    const ModelCall longer{.algorithm = "allreduce.switch", .ranks = 2, .bytes = 1LL << 40};
    machine.in_switch.window = 1;
    EXPECT_THAT(std::string(model_ps(machine, longer).status().message()),
                testing::HasSubstr("takes longer than can be told"));
    machine.in_switch.window = 1024;
  }
}

// A byte as slow as a file may have it: what is told is no overflow, and the rest is refused.
TEST(ModelAndSimulator, RefuseWhatTakesLongerThanCanBeTold) {
  Machine machine = load("edr").value();
  machine.network.per_byte_fs = 1'000'000'000'000;
  machine.two_sided.eager_bytes = std::int64_t{1} << 40;
  for (const bool two_sided : {false, true}) {
    const std::int64_t slot = std::int64_t{1} << 40;
    ModelCall call{.algorithm = "bcast.binomial", .bytes = std::int64_t{1} << 29};
    call.ranks = 2;
    call.segment_bytes = slot;
    call.two_sided = two_sided;
    const AlgorithmChoice choice{.algorithm = find_algorithm(call.algorithm),
                                 .params = {.two_sided = two_sided}};
    const auto simulated = [&](bool whole) {
      const Shared shared{.collective = Collective::kBcast, .ranks = 2, .count = call.bytes};
      return predict::simulate(choice, shared,
                               {.slot_bytes = slot, .nodes = predict::even_nodes(2, 1)}, machine,
                               {.critical_path = whole});
    };
    const Result<std::int64_t> told = model_ps(machine, call);
    ASSERT_TRUE(told.ok()) << told.status().message();
    EXPECT_GT(told.value(), call.bytes * 1'000'000'000);
    EXPECT_EQ(told.value(), simulated(false).value().latency_ps);
    call.bytes = std::int64_t{1} << 31;
    EXPECT_GT(simulated(false).value().latency_ps, call.bytes * 1'000'000'000);
    for (const std::int64_t gib : {3, 8, 10, 100, 1000}) {
      call.bytes = gib << 30;
      const auto refused = testing::HasSubstr("takes longer than can be told");
      EXPECT_THAT(std::string(model_ps(machine, call).status().message()), refused) << gib;
      EXPECT_THAT(std::string(simulated(false).status().message()), refused) << gib;
      EXPECT_THAT(std::string(simulated(true).status().message()), refused) << gib;
    }
  }
}

TEST(Model, SaysWhyNot) {
  const Machine machine = load("hdr").value();
  const auto why = [&](const ModelCall& call) {
    const Result<std::int64_t> time = model_ps(machine, call);
    return time.ok() ? "no error" : std::string(time.status().message());
  };
  using testing::HasSubstr;
  EXPECT_THAT(why({.algorithm = "bcast.multicast"}),
              HasSubstr("there are bcast.flat, bcast.binomial"));
  EXPECT_THAT(why({.algorithm = "bcast.binomial", .ranks = 0}), HasSubstr("0 ranks"));
  EXPECT_THAT(why({.algorithm = "bcast.binomial", .bytes = -1}), HasSubstr("-1 bytes"));
  EXPECT_THAT(why({.algorithm = "bcast.binomial", .bytes = 100'000}), HasSubstr("in segments"));
  EXPECT_THAT(why({.algorithm = "bcast.binomial", .ranks = 21}), HasSubstr("switches"));
  EXPECT_THAT(why({.algorithm = "bcast.binomial", .k = 2}), HasSubstr("k = 2"));
  EXPECT_THAT(why({.algorithm = "bcast.knomial", .k = 1}), HasSubstr("k = 1"));
  EXPECT_THAT(why({.algorithm = "bcast.binomial", .bytes = 10'000, .two_sided = true}),
              HasSubstr("not eager"));
  EXPECT_THAT(why({.algorithm = "allreduce.ring", .ranks = 3, .bytes = 16}), HasSubstr("equal"));
  EXPECT_THAT(why({.algorithm = "alltoall.pairwise", .bytes = 57}), HasSubstr("take turns"));
  EXPECT_THAT(why({.algorithm = "allgather.flat", .ranks = 3, .bytes = 57}),
              HasSubstr("take turns"));
  EXPECT_THAT(why({.algorithm = "gather.knomial", .ranks = 3, .k = 3, .two_sided = true}),
              HasSubstr("go on as one"));
  EXPECT_THAT(why({.algorithm = "allreduce.flat_blocks", .ranks = 3, .bytes = 57}),
              HasSubstr("strands of a rank share its CPU where the vector has 57 bytes"));
  EXPECT_THAT(why({.algorithm = "bcast.scatter_direct", .ranks = 4, .bytes = 3 * 56 + 1}),
              HasSubstr("strands of a rank share its CPU where a block has 57 bytes"));
  EXPECT_THAT(why({.algorithm = "allreduce.switch"}), HasSubstr("no switches that reduce"));
  Machine shared = load("edr").value();
  shared.node.cores = 2;
  shared.node.nodes_per_host = 3;
  EXPECT_TRUE(model_ps(shared, {.algorithm = "bcast.binomial", .ranks = 4}).ok());
  shared.node.switch_ps = 1;
  EXPECT_TRUE(model_ps(shared, {.algorithm = "bcast.binomial", .ranks = 2}).ok());
  EXPECT_THAT(
      std::string(model_ps(shared, {.algorithm = "bcast.binomial", .ranks = 4}).status().message()),
      HasSubstr("3 nodes of a host share its 2 cores"));
  Machine reducing = load("hu2013").value();
  reducing.in_switch.operand_bytes = 8;
  const ModelCall many{.algorithm = "allreduce.switch", .bytes = (1LL << 30) + 4};
  const Result<std::int64_t> refused = model_ps(reducing, many);
  EXPECT_EQ(refused.status().code(), Code::kUnsupported);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("134217729 packets of machine hu2013's switches: more than 134217728"));
  EXPECT_THAT(why({.algorithm = "allreduce.ring", .bytes = 6, .element_bytes = 4}),
              HasSubstr("whole number of elements"));
}

TEST(BestK, OfRanksOneByOne) {
  const Machine machine = load("edr").value();
  ModelCall call{.algorithm = "allreduce.recursive_multiplying", .ranks = 200, .bytes = 8};
  const BestK best = best_k(machine, call).value();
  for (call.k = 2; call.k <= 64; ++call.k) {
    EXPECT_LE(best.time_ps, model_ps(machine, call).value()) << call.k;
  }
  EXPECT_GT(best.k, 2);
  EXPECT_LE(best.k, 64);
}

TEST(BestK, IsTheBest) {
  const Machine machine = load("clan_via").value();
  ModelCall call{.algorithm = "allreduce.degree_k", .ranks = 16, .bytes = 4};
  const BestK best = best_k(machine, call).value();
  for (call.k = 1; call.k < 16; ++call.k) {
    const std::int64_t time = model_ps(machine, call).value();
    EXPECT_LE(best.time_ps, time);
    EXPECT_TRUE(call.k != best.k || best.time_ps == time);
  }
  EXPECT_GT(best.k, 1);
  call.bytes = 4096;
  EXPECT_EQ(best_k(machine, call).value().k, 1) << "long vectors cross each level k times";
  EXPECT_EQ(best_k(machine, {.algorithm = "bcast.binomial"}).value().k, 0);
}

}  // namespace
}  // namespace carillon::machine
