// SPDX-License-Identifier: Apache-2.0
#include "predict/predict.h"

#include <numeric>
#include <vector>

#include "sim/sim.h"

namespace carillon::predict {
namespace {

Call call_of(const Question& question) {
  const Collective collective = question.choice.algorithm->collective;
  const std::int32_t element = has_reduction(collective) && question.bytes % 8 == 0 ? 8 : 1;
  return {.shared = {.collective = collective,
                     .ranks = question.ranks,
                     .count = question.bytes / element,
                     .element_bytes = element},
          .params = question.choice.params};
}

}  // namespace

Result<AlgorithmChoice> algorithm_of(const std::string& collective, const std::string& text) {
  const std::string prefix = collective + ".";
  return parse_choice(text.starts_with(prefix) ? text : prefix + text);
}

machine::ModelCall model_call(const Question& question) {
  const Call call = call_of(question);
  const AlgorithmChoice& choice = question.choice;
  return {.algorithm = std::string(choice.algorithm->id),
          .ranks = question.ranks,
          .bytes = question.bytes,
          .element_bytes = call.shared.element_bytes,
          .k = choice.params.k != 0 ? choice.params.k : choice.algorithm->k.fallback,
          .window = call.limits.window,
          .segment_bytes = call.segment_bytes(),
          .two_sided = choice.params.two_sided};
}

Result<std::int64_t> modelled_ps(const machine::Machine& machine, const Question& question) {
  return machine::model_ps(machine, model_call(question));
}

Result<std::int64_t> simulated_ps(const machine::Machine& machine, const Question& question) {
  Call call = call_of(question);
  std::vector<std::int32_t> node_of(static_cast<std::size_t>(std::max(question.ranks, 0)));
  std::iota(node_of.begin(), node_of.end(), 0);
  call.limits.nodes = std::make_shared<Nodes>(node_of);
  const Algorithm& algorithm = *question.choice.algorithm;
  Result<Call> prepared = prepare(algorithm, call);
  if (!prepared.ok()) return prepared.status();
  const sim::Job job{
      .call = std::move(prepared.value()),
      .locals = {},
      .emit = [&](const Call& each, Builder& builder) { emit_prepared(algorithm, each, builder); }};
  Result<sim::Report> report = sim::simulate(job, machine);
  if (!report.ok()) return report.status();
  return report.value().latency_ps;
}

}  // namespace carillon::predict
