// SPDX-License-Identifier: Apache-2.0
#include "sim_program.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>

#include "algorithms/registry.h"
#include "predict/predict.h"
#include "program/text.h"
#include "select/select.h"
#include "sim/replay.h"
#include "sim_output.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/table.h"
#include "support/units.h"

namespace carillon::cli {
namespace {

using sim::ReplayReport;

constexpr std::size_t kRanksShown = 32;

// The program's calls, by algorithms that -a or the built-in rules choose.
class Chooser {
 public:
  Chooser(std::vector<AlgorithmChoice> forced, Limits limits, const ProgramRequest& request)
      : forced_(std::move(forced)),
        limits_(std::move(limits)),
        machine_(request.machine),
        slot_bytes_(request.slot_bytes) {}

  Result<sim::Job> job_of(const Shared& shared, const std::shared_ptr<const Nodes>& nodes) {
    Limits limits = limits_;
    limits.nodes = nodes;
    limits.slot_bytes = slot_bytes_ > 0 ? slot_bytes_ : predict::slot_bytes(*nodes);
    std::optional<Status> refused;
    for (const AlgorithmChoice& choice : forced_) {
      if (choice.algorithm->collective != shared.collective) continue;
      Result<sim::Job> job = job_by(choice, shared, limits);
      if (job.ok()) return job;
      if (!refused) refused = job.status();
    }
    if (refused) return *refused;
    return job_by(select(shared, limits, default_rules()), shared, limits);
  }
  [[nodiscard]] const std::set<std::string>& used(std::size_t collective) const {
    return used_.at(collective);
  }

 private:
  Result<sim::Job> job_by(const AlgorithmChoice& choice, const Shared& shared,
                          const Limits& limits) {
    Result<sim::Job> job = predict::job_of(choice, shared, limits, machine_);
    if (job.ok()) used_.at(static_cast<std::size_t>(shared.collective)).insert(to_text(choice));
    return job;
  }

  // Of one collective the last one given first; the others are for what it cannot do.
  std::vector<AlgorithmChoice> forced_;
  Limits limits_;
  const machine::Machine& machine_;
  std::int64_t slot_bytes_;  // 0: the library's
  std::array<std::set<std::string>, kCollectives> used_;
};

std::vector<AlgorithmChoice> forced_of(const std::vector<std::string>& algorithms) {
  std::string overrides;
  for (const std::string& algorithm : algorithms) {
    if (algorithm.find('=') == std::string::npos && algorithm.find('.') == std::string::npos) {
      fail("-a {}: of a program, name the collective, too, as in -a allreduce=ring", algorithm);
    }
    overrides += (overrides.empty() ? "" : ";") + algorithm;
  }
  return value_or_fail(parse_rules(overrides)).overrides;
}

// All ranks' times together.
struct Sums {
  sim::SumPs compute_ps = 0, other_ps = 0, call_ps = 0;
};

Sums sum_of(const ReplayReport& report) {
  Sums sum;
  for (const ReplayReport::RankTimes& times : report.ranks) {
    sum.compute_ps += times.compute_ps;
    sum.other_ps += times.other_ps;
    sum.call_ps += times.call_ps;
  }
  return sum;
}

struct Done {
  const ProgramRequest& request;
  const program::Program& program;
  const Chooser& chooser;
  const ReplayReport& report;
  std::int32_t nodes = 1;
  double wall_s = 0;

  [[nodiscard]] double mean_us(sim::SumPs sum_ps) const {
    return us(static_cast<double>(sum_ps)) / program.ranks;
  }
  [[nodiscard]] double share(sim::SumPs sum_ps) const {
    const double all = static_cast<double>(report.total_ps) * program.ranks;
    return all > 0 ? static_cast<double>(sum_ps) / all : 0;
  }
};

Json json_of(const ReplayReport::RankTimes& times) {
  return {{"compute_us", us(times.compute_ps)},
          {"other_us", us(times.other_ps)},
          {"call_us", us(times.call_ps)},
          {"end_us", us(times.end_ps)}};
}

Json json_of(const Done& done) {
  const ReplayReport& report = done.report;
  const Sums sum = sum_of(report);
  Json json{
      {"program", done.program.source},
      {"machine", done.request.machine.name},
      {"ranks", done.program.ranks},
      {"nodes", done.nodes},
      {"skew_us", done.request.skew_us},
      {"seed", done.request.seed},
      {"progress", done.request.program.progress},
      {"compute_scale", done.request.program.compute_scale},
      {"interrupted", report.interrupted},
      {"total_us", us(report.total_ps)},
      {"total_ps", report.total_ps},
      {"compute_share", done.share(sum.compute_ps)},
      {"other_share", done.share(sum.other_ps)},
      {"call_share", done.share(sum.call_ps)},
      {"other_calls", report.others},
      {"messages", report.messages},
      {"message_bytes", report.bytes},
      {"messages_per_s", done.wall_s > 0 ? static_cast<double>(report.messages) / done.wall_s : 0},
      {"wall_s", done.wall_s},
      {"peak_rss_mb", static_cast<double>(peak_rss_bytes()) / (1024 * 1024)},
      {"collectives", Json::object()},
      {"rank_times", Json::array()}};
  for (std::size_t i = 0; i < report.kinds.size(); ++i) {
    const ReplayReport::KindTimes& kind = report.kinds.at(i);
    if (kind.starts == 0) continue;
    const std::set<std::string>& used = done.chooser.used(i);
    json["collectives"][collective_name(static_cast<Collective>(i))] = {
        {"calls", kind.calls},
        {"starts", kind.starts},
        {"rank_mean_us", done.mean_us(kind.call_ps)},
        {"share", done.share(kind.call_ps)},
        {"algorithms", std::vector<std::string>(used.begin(), used.end())}};
  }
  for (const ReplayReport::RankTimes& times : report.ranks) {
    json["rank_times"].push_back(json_of(times));
  }
  if (!report.critical_path.empty()) json["critical_path"] = path_json(report.critical_path);
  return json;
}

void print_csv_head() {
  std::printf(
      "program,machine,ranks,nodes,total_us,compute_share,call_share,other_share,messages,"
      "message_bytes,wall_s\n");
}

std::string in_csv(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

void print_csv(const Done& done) {
  const ReplayReport& report = done.report;
  const Sums sum = sum_of(report);
  std::printf(
      "%s\n",
      fmt::format("{},{},{},{},{},{:.6f},{:.6f},{:.6f},{},{},{:.3f}", in_csv(done.program.source),
                  done.request.machine.name, done.program.ranks, done.nodes, us(report.total_ps),
                  done.share(sum.compute_ps), done.share(sum.call_ps), done.share(sum.other_ps),
                  report.messages, report.bytes, done.wall_s)
          .c_str());
  std::fflush(stdout);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void print_text(const Done& done) {
  const ReplayReport& report = done.report;
  const Sums sum = sum_of(report);
  std::printf("%s on machine %s: %d ranks, %d nodes\n", done.program.source.c_str(),
              done.request.machine.name.c_str(), done.program.ranks, done.nodes);
  std::printf("%s %.3f us; of all ranks' time: %s compute, %s collectives%s\n",
              report.interrupted ? "interrupted after" : "total", us(report.total_ps),
              percent(done.share(sum.compute_ps)).c_str(), percent(done.share(sum.call_ps)).c_str(),
              report.others == 0 ? ""
                                 : fmt::format(", {} in {} calls that take as long as recorded",
                                               percent(done.share(sum.other_ps)), report.others)
                                       .c_str());
  Table kinds({"collective", ">calls", ">us per rank", ">share", "algorithms"});
  for (std::size_t i = 0; i < report.kinds.size(); ++i) {
    const ReplayReport::KindTimes& kind = report.kinds.at(i);
    if (kind.starts == 0) continue;
    kinds.add({std::string(collective_name(static_cast<Collective>(i))), std::to_string(kind.calls),
               fmt::format("{:.3f}", done.mean_us(kind.call_ps)), percent(done.share(kind.call_ps)),
               fmt::format("{}", fmt::join(done.chooser.used(i), " "))});
  }
  std::printf("\n%s\n", kinds.text().c_str());
  Table ranks({">rank", ">compute us", ">collectives us", ">other us", ">ends at us"});
  for (std::size_t i = 0; i < std::min(report.ranks.size(), kRanksShown); ++i) {
    const ReplayReport::RankTimes& times = report.ranks[i];
    ranks.add({std::to_string(i), fmt::format("{:.3f}", us(times.compute_ps)),
               fmt::format("{:.3f}", us(times.call_ps)), fmt::format("{:.3f}", us(times.other_ps)),
               fmt::format("{:.3f}", us(times.end_ps))});
  }
  std::printf("%s", ranks.text().c_str());
  if (report.ranks.size() > kRanksShown) {
    std::printf("... %zu more ranks; --json prints all\n", report.ranks.size() - kRanksShown);
  }
  if (!report.critical_path.empty()) print_path(report.critical_path);
}

sim::Progress progress_of(const std::string& name) {
  if (name == "servlet") return sim::Progress::kServlet;
  return name == "thread" ? sim::Progress::kThread : sim::Progress::kCaller;
}

// Simulates the program and hands what came of it to `take`; false: it was interrupted.
template <typename Take>
bool simulate_one(const ProgramRequest& request, const program::Program& program,
                  Timeline* timeline, Take take) {
  const auto begin = std::chrono::steady_clock::now();
  const Limits limits = request.limits(program.ranks);
  Chooser chooser(forced_of(request.algorithms), limits, request);
  sim::Replay replay{.program = program,
                     .nodes = limits.nodes,
                     .job_of =
                         [&](const Shared& shared, const std::shared_ptr<const Nodes>& nodes) {
                           return chooser.job_of(shared, nodes);
                         },
                     .progress = progress_of(request.program.progress),
                     .compute_scale = request.program.compute_scale,
                     .gather_entries = limits.gather_entries};
  sim::Options options{.skew_ps = static_cast<std::int64_t>(request.skew_us * kPsPerUs),
                       .seed = request.seed,
                       .starts_ps = request.starts(program.ranks),
                       .critical_path = request.path,
                       .on_progress = request.on_progress,
                       .stops = request.stops};
  if (timeline != nullptr) {
    options.on_span = [timeline](const sim::Span& span) { timeline->add(span); };
    replay.on_step = [timeline](const sim::StepSpan& span) { timeline->add(span); };
  }
  const ReplayReport report = value_or_fail(sim::replay(replay, request.machine, options));
  take(Done{
      .request = request,
      .program = program,
      .chooser = chooser,
      .report = report,
      .nodes = limits.nodes ? limits.nodes->count() : 1,
      .wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()});
  if (report.interrupted) {
    std::fprintf(stderr, "carillon: interrupted after %.3f us of the program\n",
                 us(report.total_ps));
  }
  return !report.interrupted;
}

}  // namespace

bool simulate_program(const ProgramRequest& request) {
  using Form = ProgramRequest::Form;
  const program::Program recorded = value_or_fail(program::load(request.program.file));
  const bool sweeps = !request.sweep.empty();
  const std::vector<Rank> sizes = sweeps ? request.sweep : std::vector{request.program.ranks};
  if (sizes.size() > 1 && !request.timeline.empty()) fail("--timeline is of one size of a program");
  std::unique_ptr<Timeline> timeline;
  if (!request.timeline.empty()) timeline = std::make_unique<Timeline>(request.timeline);
  Json rows = Json::array();
  std::size_t done = 0;
  const auto take = [&](const Done& one) {
    switch (request.form) {
      case Form::kText: print_text(one); break;
      case Form::kCsv:
        if (done == 0) print_csv_head();
        if (!one.report.interrupted) print_csv(one);
        break;
      case Form::kJson: rows.push_back(json_of(one)); break;
    }
  };
  bool complete = true;
  std::optional<Failure> failure;
  for (auto ranks = sizes.begin(); ranks != sizes.end() && complete && !failure; ++ranks) {
    failure = failure_of([&] {
      complete = simulate_one(
          request, *ranks > 0 ? value_or_fail(program::resized(recorded, *ranks)) : recorded,
          timeline.get(), take);
      ++done;
    });
    if (failure && sizes.size() > 1) {
      failure = failed_row(fmt::format("{} ranks", *ranks), *failure, done, sizes.size());
    }
  }
  if (request.form == Form::kJson && !rows.empty()) {
    std::printf("%s\n", (sweeps ? Json{{"rows", rows}} : rows.front()).dump(2).c_str());
  }
  if (timeline) timeline->end();
  if (failure) throw Failure(*failure);
  return complete;
}

}  // namespace carillon::cli
