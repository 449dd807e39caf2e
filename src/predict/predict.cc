// SPDX-License-Identifier: Apache-2.0
#include "predict/predict.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/message_room.h"
#include "predict/symmetry.h"
#include "program/text.h"
#include "schedule/even_tables.h"
#include "sim/replay.h"

namespace carillon::predict {
namespace {

Shared problem_of(const Question& question) {
  return example_problem(question.choice.algorithm->collective, question.ranks, question.bytes);
}

// Whether the machine says what the algorithm's switches, or multicasts, cost.
Status check_machine(const Algorithm& algorithm, const machine::Machine& machine) {
  const std::string id(algorithm.id);
  if (algorithm.traits.in_switch && machine.in_switch.ports == 0) {
    return {Code::kUnsupported, id + " cannot be simulated: machine " + machine.name +
                                    " has no switches that reduce; it needs section [switch]"};
  }
  const bool datagram = machine.datagram.known, multicast = machine.multicast.known;
  if (!algorithm.traits.multicast || (datagram && multicast)) return {};
  return {Code::kUnsupported, id + " cannot be simulated: the file of machine " + machine.name +
                                  " does not say what multicasts cost; it needs section" +
                                  (datagram    ? " [multicast]"
                                   : multicast ? " [datagram]"
                                               : "s [datagram] and [multicast]")};
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

std::int64_t slot_bytes(const Nodes& nodes) {
  const std::int64_t wanted = Limits{}.slot_bytes;
  return nodes.count() > 1 ? longest_message(wanted, nodes.ranks()) : wanted;
}

std::shared_ptr<const Nodes> even_domains(const Nodes& nodes, std::int32_t domains) {
  if (domains <= 1) return nullptr;
  std::vector<std::int32_t> names(static_cast<std::size_t>(nodes.ranks()));
  std::int32_t next = 0;
  for (std::int32_t node = 0; node < nodes.count(); ++node) {
    const std::span<const Rank> members = nodes.members(node);
    const auto size = static_cast<std::int32_t>(members.size());
    const std::int32_t used = std::min(domains, size);
    for (std::int32_t place = 0; place < size; ++place) {
      const auto part = static_cast<std::int32_t>(std::int64_t{place} * used / size);
      names[static_cast<std::size_t>(members[static_cast<std::size_t>(place)])] = next + part;
    }
    next += used;
  }
  return std::make_shared<const Nodes>(names);
}

DomainCosts domain_costs(const machine::Machine& machine) {
  const machine::SharedMemory& memory = machine.shared_memory;
  return {.cross_fs = memory.cross_byte_fs,
          .write_fs = memory.per_byte_fs,
          .hop_ps = 2 * memory.overhead_ps + memory.write_ps + memory.latency_ps};
}

ListCosts list_costs(const machine::Machine& machine) {
  const machine::Memory& memory = machine.memory;
  const machine::OneSided& put = machine.one_sided;
  return {.entry_ps = machine.network.gather_ps,
          .part_ps = machine.network.send_overhead_ps + put.post_ps + put.doorbell_ps +
                     machine.network.gap_ps,
          .copy_ps = memory.copy_ps,
          .run_ps = memory.copy_block_ps + memory.copy_run_ps,
          .byte_fs = memory.copy_cached_fs};
}

Result<sim::Job> job_of(const AlgorithmChoice& choice, const Shared& shared, const Limits& limits,
                        const machine::Machine& machine, const Local& local) {
  const Algorithm& algorithm = *choice.algorithm;
  if (Status status = check_machine(algorithm, machine); !status.ok()) return status;
  Result<Call> call = prepare(
      algorithm, {.shared = shared, .local = local, .limits = limits, .params = choice.params});
  if (!call.ok()) return call.status();
  return sim::Job{
      .call = call.value(), .locals = {}, .emit = [&algorithm](const Call& part, Builder& builder) {
        emit_prepared(algorithm, part, builder);
      }};
}

Result<sim::Report> simulate(const AlgorithmChoice& choice, const Shared& shared,
                             const Limits& limits, const machine::Machine& machine,
                             const sim::Options& options, const Local& local) {
  Result<sim::Job> job = job_of(choice, shared, limits, machine, local);
  if (!job.ok()) return job.status();
  job.value().symmetry = symmetry_of(*choice.algorithm, job.value().call);
  return sim::simulate(job.value(), machine, options);
}

Result<std::int64_t> simulate_repeated(std::int32_t times, const AlgorithmChoice& choice,
                                       const Shared& shared, const Limits& limits,
                                       const machine::Machine& machine) {
  const std::int32_t roots = has_root(shared.collective) ? shared.ranks : 1;
  const auto name = [](std::int32_t root) { return "call" + std::to_string(root); };
  std::string calls, steps;
  for (std::int32_t root = 0; root < std::min(roots, times); ++root) {
    const program::Call call{.name = name(root),
                             .collective = shared.collective,
                             .root = root,
                             .count = shared.count,
                             .element_bytes = shared.element_bytes};
    calls += program::call_line(call, "world") + "\n";
  }
  for (std::int32_t i = 0; i < times; ++i) steps += program::do_line(name(i % roots)) + "\n";
  const std::string text = std::string(program::kFirstLine) + "\nranks " +
                           std::to_string(shared.ranks) + "\n" + calls + "rank all\n" + steps;
  const Result<program::Program> parsed = program::parse(text, "repeated calls");
  if (!parsed.ok()) return parsed.status();
  const sim::Replay replay{
      .program = parsed.value(),
      .nodes = limits.nodes,
      .job_of = [&](const Shared& call, const std::shared_ptr<const Nodes>& nodes) {
        Limits here = limits;
        here.nodes = nodes;
        return job_of(choice, call, here, machine);
      }};
  const Result<sim::ReplayReport> report = sim::replay(replay, machine);
  if (!report.ok()) return report.status();
  return report.value().total_ps;
}

machine::ModelCall model_call(const Question& question) {
  const AlgorithmChoice& choice = question.choice;
  const Call call{.shared = problem_of(question),
                  .limits = {.slot_bytes = question.slot_bytes},
                  .params = choice.params};
  return {.algorithm = std::string(choice.algorithm->id),
          .ranks = question.ranks,
          .bytes = question.bytes,
          .element_bytes = call.shared.element_bytes,
          .k = choice.params.k != 0 ? choice.params.k : choice.algorithm->k.fallback,
          .window = call.limits.window,
          .segment_bytes = call.segment_bytes(),
          .inline_bytes = call.limits.inline_bytes,
          .large_slots = call.limits.large_slots,
          .two_sided = choice.params.two_sided};
}

Result<std::int64_t> modelled_ps(const machine::Machine& machine, const Question& question) {
  return machine::model_ps(machine, model_call(question));
}

namespace {

// Of the ranks that begin in time.
std::int64_t mean_of_punctual_ps(const sim::Report& report, Rank late) {
  const sim::SumPs sum = report.rank_sum_ps - report.rank_ps[static_cast<std::size_t>(late)];
  return static_cast<std::int64_t>(sum / (report.rank_ps.size() - 1));
}

}  // namespace

Result<sim::Report> simulated(const machine::Machine& machine, const Question& question) {
  Limits limits{.slot_bytes = question.slot_bytes,
                .gather_entries = question.gather_entries,
                .list_costs = list_costs(machine),
                .domain_costs = domain_costs(machine),
                .nodes = even_nodes(question.ranks, question.ppn)};
  if (question.whole_lists) limits.list_costs.part_ps = 0;
  limits.domains = even_domains(*limits.nodes, question.domains);
  sim::Options options;
  if (question.late_ps > 0) {
    if (limits.nodes->count() < 2) {
      return Status(Code::kInvalidArgument, "nobody can be late on a second node: there is one");
    }
    options.starts_ps.assign(static_cast<std::size_t>(question.ranks), 0);
    options.starts_ps[static_cast<std::size_t>(question.ppn)] = question.late_ps;
    options.rank_times = true;
  }
  const Shared shared = problem_of(question);
  const EvenTables tables(shared, shared.block_bytes());
  return simulate(question.choice, shared, limits, machine, options, {.tables = tables.view()});
}

Result<std::int64_t> simulated_ps(const machine::Machine& machine, const Question& question) {
  Result<sim::Report> report = simulated(machine, question);
  if (!report.ok()) return report.status();
  if (question.late_ps > 0) return mean_of_punctual_ps(report.value(), question.ppn);
  return report.value().latency_ps;
}

}  // namespace carillon::predict
