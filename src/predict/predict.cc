// SPDX-License-Identifier: Apache-2.0
#include "predict/predict.h"

#include <algorithm>
#include <vector>

#include "predict/symmetry.h"

namespace carillon::predict {
namespace {

Shared problem_of(const Question& question) {
  return example_problem(question.choice.algorithm->collective, question.ranks, question.bytes);
}

}  // namespace

Result<AlgorithmChoice> algorithm_of(const std::string& collective, const std::string& text) {
  const std::string prefix = collective + ".";
  return parse_choice(text.starts_with(prefix) ? text : prefix + text);
}

Shared example_problem(Collective collective, Rank ranks, std::int64_t bytes) {
  const std::int32_t element = has_reduction(collective) && bytes % 8 == 0 ? 8 : 1;
  return {
      .collective = collective, .ranks = ranks, .count = bytes / element, .element_bytes = element};
}

std::shared_ptr<const Nodes> even_nodes(Rank ranks, Rank ppn) {
  std::vector<std::int32_t> node_of;
  node_of.reserve(static_cast<std::size_t>(std::max(ranks, 0)));
  for (Rank rank = 0; rank < ranks; ++rank) node_of.push_back(rank / ppn);
  return std::make_shared<Nodes>(node_of);
}

ListCosts list_costs(const machine::Machine& machine) {
  const machine::Memory& memory = machine.memory;
  return {.entry_ps = machine.network.gather_ps,
          .copy_ps = memory.copy_ps,
          .run_ps = memory.copy_block_ps + memory.copy_run_ps,
          .byte_fs = memory.copy_cached_fs};
}

Result<sim::Report> simulate(const AlgorithmChoice& choice, const Shared& shared,
                             const Limits& limits, const machine::Machine& machine,
                             const sim::Options& options, const Local& local) {
  const Algorithm& algorithm = *choice.algorithm;
  if (algorithm.traits.in_switch && machine.in_switch.ports == 0) {
    return Status(Code::kUnsupported, std::string(algorithm.id) + " cannot be simulated: machine " +
                                          machine.name +
                                          " has no switches that reduce (section [switch])");
  }
  Result<Call> call = prepare(
      algorithm, {.shared = shared, .local = local, .limits = limits, .params = choice.params});
  if (!call.ok()) return call.status();
  const auto emit = [&](const Call& part, Builder& builder) {
    emit_prepared(algorithm, part, builder);
  };
  return sim::simulate({.call = call.value(),
                        .locals = {},
                        .emit = emit,
                        .symmetry = symmetry_of(algorithm, call.value())},
                       machine, options);
}

Result<sim::Report> simulate_repeated(std::int32_t times, const AlgorithmChoice& choice,
                                      const Shared& shared, const Limits& limits,
                                      const machine::Machine& machine) {
  const Algorithm& algorithm = *choice.algorithm;
  Result<Call> call =
      prepare(algorithm, {.shared = shared, .limits = limits, .params = choice.params});
  if (!call.ok()) return call.status();
  const auto emit = [&](const Call& part, Builder& builder) {
    Call each = part;
    for (std::int32_t i = 0; i < times; ++i) {
      if (has_root(shared.collective)) each.shared.root = i % shared.ranks;
      emit_prepared(algorithm, each, builder);
    }
  };
  return sim::simulate({.call = call.value(), .locals = {}, .emit = emit}, machine);
}

machine::ModelCall model_call(const Question& question) {
  const AlgorithmChoice& choice = question.choice;
  const Call call{.shared = problem_of(question), .params = choice.params};
  return {.algorithm = std::string(choice.algorithm->id),
          .ranks = question.ranks,
          .bytes = question.bytes,
          .element_bytes = call.shared.element_bytes,
          .k = choice.params.k != 0 ? choice.params.k : choice.algorithm->k.fallback,
          .window = call.limits.window,
          .segment_bytes = call.segment_bytes(),
          .inline_bytes = call.limits.inline_bytes,
          .two_sided = choice.params.two_sided};
}

Result<std::int64_t> modelled_ps(const machine::Machine& machine, const Question& question) {
  return machine::model_ps(machine, model_call(question));
}

Result<sim::Report> simulated(const machine::Machine& machine, const Question& question) {
  const Limits limits{.gather_entries = question.gather_entries,
                      .list_costs = list_costs(machine),
                      .nodes = even_nodes(question.ranks, question.ppn)};
  return simulate(question.choice, problem_of(question), limits, machine);
}

Result<std::int64_t> simulated_ps(const machine::Machine& machine, const Question& question) {
  Result<sim::Report> report = simulated(machine, question);
  if (!report.ok()) return report.status();
  return report.value().latency_ps;
}

}  // namespace carillon::predict
