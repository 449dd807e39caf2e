// SPDX-License-Identifier: Apache-2.0
#include "predict/programs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fft3d/program_text.h"
#include "predict/vary.h"
#include "program/text.h"

namespace carillon::predict {
namespace {

using machine::Machine;
using program::Program;
using sim::ReplayReport;

// The calls of a program as a way has them: all-to-alls, and barriers.
Result<sim::Job> job_of_way(const Way& way, const Limits& limits, const Shared& shared,
                            const Machine& machine) {
  AlgorithmChoice choice = way.alltoallv;
  if (shared.collective != Collective::kAlltoallv) {
    Result<AlgorithmChoice> other = parse_choice("barrier.dissemination");
    if (!other.ok()) return other.status();
    choice = other.value();
  }
  return job_of(choice, shared, limits, machine);
}

Result<ReplayReport> run(const Way& way, const Machine& machine, const Program& program) {
  const auto limits_of = [&](const std::shared_ptr<const Nodes>& nodes) {
    return Limits{
        .gather_entries = way.gather_entries, .list_costs = list_costs(machine), .nodes = nodes};
  };
  return sim::replay({.program = program,
                      .nodes = even_nodes(program.ranks, way.ppn),
                      .job_of =
                          [&](const Shared& shared, const std::shared_ptr<const Nodes>& nodes) {
                            return job_of_way(way, limits_of(nodes), shared, machine);
                          },
                      .progress = way.progress,
                      .gather_entries = way.gather_entries},
                     machine);
}

// One all-to-all of so many bytes to each, started before a computation and waited for after it.
Result<Program> exchange_program(Rank ranks, std::int64_t bytes, std::int64_t compute_ns) {
  const std::string table = std::to_string(bytes) + "x" + std::to_string(ranks);
  return program::parse("carillon-program 1\nranks " + std::to_string(ranks) +
                            "\ncall a alltoallv send=" + table + " recv=" + table +
                            "\nrank all\nstart a\ncompute " + std::to_string(compute_ns) +
                            "\nwait a\n",
                        "an all-to-all");
}

// A figure on variants of the machine. The first failure is kept.
class Runs {
 public:
  Runs(const Paper& paper, const Figure& figure, const std::function<void()>& on_progress)
      : paper_(paper), figure_(figure), on_progress_(on_progress) {}

  // What is known of the machine as it is; null: it is varied.
  void know(KnownPrograms* known) { known_ = known; }

  [[nodiscard]] const Status& status() const { return status_; }

  double value(const Machine& machine, const Fft3d& fft3d, std::int64_t length) {
    if (figure_.quantity == Quantity::kOverlap) {
      return overlap(machine, paper_.ways[figure_.way], length);
    }
    const double after = transform_ps(machine, fft3d, figure_.way, length);
    if (figure_.quantity == Quantity::kLatency) return after / 1e6;
    const double before = transform_ps(machine, fft3d, figure_.base_way, length);
    if (figure_.quantity == Quantity::kSpeedup) return after > 0 ? before / after : 0;
    return before > 0 ? 100 * (1 - after / before) : 0;
  }

 private:
  double total_ps(const Machine& machine, const Way& way, const Result<Program>& program) {
    if (!status_.ok()) return 0;
    if (!program.ok()) {
      status_ = program.status();
      return 0;
    }
    const Result<ReplayReport> report = run(way, machine, program.value());
    if (on_progress_) on_progress_();
    if (report.ok()) return static_cast<double>(report.value().total_ps);
    status_ = report.status();
    return 0;
  }

  double transform_ps(const Machine& machine, const Fft3d& fft3d, std::size_t which,
                      std::int64_t grid) {
    const Way& way = paper_.ways[which];
    const auto simulate = [&] {
      return total_ps(machine, way, fft3d_program(fft3d, way, machine, figure_.ranks, grid));
    };
    if (known_ == nullptr) return simulate();
    const std::tuple key{which, figure_.ranks, grid};
    if (const auto found = known_->find(key); found != known_->end()) return found->second;
    return (*known_)[key] = simulate();
  }

  // As the OSU micro-benchmarks define it: of the time of the call alone, what a computation of
  // that length hides.
  double overlap(const Machine& machine, const Way& way, std::int64_t bytes) {
    constexpr double kPsPerNs = 1000;
    const double alone_ps = total_ps(machine, way, exchange_program(figure_.ranks, bytes, 0));
    const auto compute_ns = static_cast<std::int64_t>(std::ceil(alone_ps / kPsPerNs));
    const double both_ps =
        total_ps(machine, way, exchange_program(figure_.ranks, bytes, compute_ns));
    const double more_ps = both_ps - static_cast<double>(compute_ns) * kPsPerNs;
    return alone_ps > 0 ? std::max(0.0, 100 * (1 - more_ps / alone_ps)) : 0;
  }

  const Paper& paper_;
  const Figure& figure_;
  const std::function<void()>& on_progress_;
  KnownPrograms* known_ = nullptr;
  Status status_;
};

// What least and most are looked for over.
struct Variant {
  Machine machine;
  Fft3d fft3d;
};

// The paper's numbers of the machine, and one of the program's own.
Result<std::vector<Varied<Variant>>> varied_of(const Paper& paper, const machine::Sheet& sheet) {
  const Result<std::vector<machine::Number>> numbers = varied_numbers(paper.varied, sheet);
  if (!numbers.ok()) return numbers.status();
  const auto set_rate = [](double value, Variant* variant) { variant->fft3d.line_mflops = value; };
  std::vector<Varied<Variant>> list{
      {paper.fft3d->line_mflops_min, paper.fft3d->line_mflops_max, set_rate}};
  for (const machine::Number& each : numbers.value()) {
    const auto set = [field = each.field](double value, Variant* variant) {
      field->set_value(variant->machine, value);
    };
    list.push_back({each.min, each.max, set});
  }
  return list;
}

}  // namespace

Result<Program> fft3d_program(const Fft3d& fft3d, const Way& way, const Machine& machine,
                              Rank ranks, std::int64_t grid) {
  constexpr double kMostFs = 1e9;  // per byte, of 1e9 MB/s
  fft3d::Options options;
  const auto edge = static_cast<long>(grid);
  options.points = {edge, edge, edge};
  options.pencil = true;
  options.backward = false;
  options.overlap = way.overlap;
  options.slices = fft3d.slices;
  options.window = fft3d.window;
  options.warmups = 0;
  options.iterations = 1;
  options.program_of = ranks;
  options.line_mflops = static_cast<int>(std::lround(fft3d.line_mflops));
  const auto byte_fs = static_cast<double>(std::max<std::int64_t>(machine.memory.copy_byte_fs, 1));
  options.copy_mbps = static_cast<int>(std::max(1L, std::lround(kMostFs / byte_fs)));
  const std::string problem = fft3d::fit_options(ranks, options);
  if (!problem.empty()) return Status(Code::kInvalidArgument, "fft3d: " + problem);
  return program::parse(fft3d::program_text(options), "fft3d");
}

Result<Reproduced> reproduce_program(const Paper& paper, const machine::Sheet& sheet,
                                     const Figure& figure, KnownPrograms* known,
                                     const std::function<void()>& on_progress) {
  Runs runs(paper, figure, on_progress);
  runs.know(known);
  Reproduced row;
  for (const std::int64_t length : figure.lengths) {
    const double value = runs.value(sheet.machine, *paper.fft3d, length);
    if (length != figure.lengths.front() && value <= row.ours) continue;
    row.ours = value;
    row.bytes = length;
  }
  row.ours_min = row.ours_max = row.ours;
  runs.know(nullptr);
  if (!figure.unpublished) {
    const Result<std::vector<Varied<Variant>>> varied = varied_of(paper, sheet);
    if (!varied.ok()) return varied.status();
    const auto value = [&](const Variant& variant) {
      return runs.value(variant.machine, variant.fft3d, row.bytes);
    };
    const Extremes found =
        extremes(Variant{sheet.machine, *paper.fft3d}, row.ours, varied.value(), value);
    row.ours_min = found.least;
    row.ours_max = found.most;
  }
  if (!runs.status().ok()) return runs.status();
  return row;
}

}  // namespace carillon::predict
