// SPDX-License-Identifier: Apache-2.0
//
// carillon sim: what a collective, or a program, would cost on a machine, simulated from the
// schedules that run.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "base/whole_file.h"
#include "calibrate/validate.h"
#include "command.h"
#include "machine/sheet.h"
#include "select/select.h"
#include "sim_output.h"
#include "sim_program.h"
#include "support/failure.h"
#include "support/options.h"
#include "support/sim_call.h"
#include "support/units.h"
#include "transport/aggregate/one_switch.h"

namespace carillon::cli {
namespace {

constexpr Rank kMostRanksSimulated = 1 << 20;

struct SimOptions {
  std::string collective, nodes, timeline;
  std::string machine = "edr";
  bool validate = false;
  ValidateOptions validation;
  std::vector<std::string> algorithms, sweep;
  ProgramOptions program;
  Rank ranks = 16, ppn = 0, root = 0;
  std::int32_t domains = 1;
  std::int64_t bytes = 8;
  std::int32_t gather_entries = 1;
  std::int64_t slot_bytes = 0;  // 0: the library's
  double skew_us = 0;
  std::string starts;
  std::uint64_t seed = 1;
  bool json = false, csv = false, path = false;
};

// The signal that has told it to stop, or 0; looked at while schedules are emitted and simulated.
volatile std::sig_atomic_t g_interrupted = 0;

// The second time it ends the process: where nobody looks, or not for long.
void on_interrupt(int signal) {
  if (g_interrupted != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  g_interrupted = signal;
}

void stop_by_signals() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, on_interrupt);
}

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// One line on a terminal's stderr that says how far it is.
class Progress {
 public:
  explicit Progress(std::size_t rows) : rows_(rows), shown_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (shown_ && told_) std::fprintf(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void row(std::size_t done, const std::string& what) {
    done_ = done;
    what_ = what;
    show(0);
  }
  void show(std::int64_t messages) {
    constexpr double kEverySeconds = 0.2;
    if (!shown_ || since_.seconds() < kEverySeconds) return;
    since_ = {};
    told_ = true;
    std::fprintf(stderr, "\r\033[K%s%zu of %zu: %s, %.1f million messages", bar().c_str(),
                 done_ + 1, rows_, what_.c_str(), static_cast<double>(messages) / 1e6);
    std::fflush(stderr);
  }

 private:
  // Of the rows that are done; of one there is none.
  [[nodiscard]] std::string bar() const {
    constexpr std::size_t kWidth = 20;
    if (rows_ < 2) return {};
    const std::size_t full = kWidth * done_ / rows_;
    return "[" + std::string(full, '#') + std::string(kWidth - full, '.') + "] ";
  }

  std::size_t rows_;
  std::size_t done_ = 0;
  bool shown_, told_ = false;
  Stopwatch since_;
  std::string what_;
};

rusage usage_so_far() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

double cpu_seconds(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Limits limits_of(const SimOptions& options, const machine::Machine& machine, Rank ranks) {
  Limits limits;
  limits.aggregates = machine.in_switch.ports > 0;
  if (!options.nodes.empty()) {
    const NodesOption nodes = parse_nodes(options.nodes, kMostRanksSimulated);
    if (nodes.ranks() > 0 && nodes.ranks() != ranks) {
      fail("--nodes {} has {} ranks, not {}", options.nodes, nodes.ranks(), ranks);
    }
    limits.nodes = nodes.nodes(ranks);
  } else {
    const Rank ppn = options.ppn > 0 ? options.ppn : machine.node.ranks;
    if (ppn > machine.node.cores) {
      fail("{} ranks on a node of machine {}, which has {} cores", ppn, machine.name,
           machine.node.cores);
    }
    limits.nodes = even_nodes(ranks, ppn);
  }
  limits.slot_bytes =
      options.slot_bytes > 0 ? options.slot_bytes : predict::slot_bytes(*limits.nodes);
  limits.domains = predict::even_domains(*limits.nodes, options.domains);
  // A tree of switches is simulated where -a asks for it; the library joins one where it is told
  // to.
  limits.aggregation_pays =
      limits.aggregates &&
      aggregate::one_switch_joins(limits.nodes->count(), machine.in_switch.ports);
  limits.gather_entries = options.gather_entries;
  limits.list_costs = predict::list_costs(machine);
  limits.domain_costs = predict::domain_costs(machine);
  return limits;
}

AlgorithmChoice choose(const SimOptions& options, const Shared& shared, const Limits& limits) {
  if (options.algorithms.empty()) return select(shared, limits, default_rules());
  if (options.algorithms.size() > 1) fail("-a is given more than once: a call has one algorithm");
  return value_or_fail(predict::algorithm_of(options.collective, options.algorithms.front()));
}

std::vector<std::int64_t> parse_numbers(const std::string& word, const std::string& text) {
  try {
    return parse_sizes(text);
  } catch (const Failure&) {
    fail("--sweep {}: \"{}\" is no list of numbers up to 1G, as in ranks=2..4096 bytes=8,64K", word,
         text);
  }
}

// The numbers of a sweep: "2,3,5", or "2..4096", which doubles.
std::vector<std::int64_t> parse_steps(const std::string& word, const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return parse_numbers(word, text);
  if (text.find(',') != std::string::npos) {
    fail("--sweep {}: \"{}\" is a list of numbers or a range, not both", word, text);
  }
  const std::int64_t first = parse_numbers(word, text.substr(0, dots)).front();
  const std::int64_t last = parse_numbers(word, text.substr(dots + 2)).front();
  if (last < first) fail("--sweep {}: {} is less than {}", word, last, first);
  std::vector<std::int64_t> steps;
  for (std::int64_t step = first; step < last; step = std::max<std::int64_t>(1, step * 2)) {
    steps.push_back(step);
  }
  steps.push_back(last);
  return steps;
}

std::vector<SimRow> rows_of(const SimOptions& options) {
  std::vector<std::int64_t> ranks{options.ranks};
  std::vector<std::int64_t> bytes{options.bytes};
  for (const std::string& word : options.sweep) {
    const std::string what = word.substr(0, word.find('=') + 1);
    if (std::count_if(options.sweep.begin(), options.sweep.end(),
                      [&](const std::string& other) { return other.starts_with(what); }) > 1) {
      fail("--sweep {}: {} is given twice; a list has several: bytes=8,64K", word, what);
    }
    if (word.starts_with("ranks=")) {
      ranks = parse_steps(word, word.substr(6));
    } else if (word.starts_with("bytes=")) {
      bytes = parse_steps(word, word.substr(6));
    } else {
      fail("--sweep {}: sweep ranks or bytes, as in --sweep ranks=2..4096 bytes=8,64K", word);
    }
  }
  std::vector<SimRow> rows;
  for (const std::int64_t p : ranks) {
    if (p < 1 || p > kMostRanksSimulated)
      fail("--sweep: {} ranks; from 1 to {} can be simulated", p, kMostRanksSimulated);
    for (const std::int64_t n : bytes) {
      rows.push_back({.ranks = static_cast<Rank>(p), .bytes = n});
    }
  }
  return rows;
}

// When each rank begins: a file of so many microseconds for each.
std::vector<std::int64_t> starts_of(const SimOptions& options, Rank ranks) {
  constexpr double kMostUs = 1e9;
  std::vector<std::int64_t> starts_ps;
  if (options.starts.empty()) return starts_ps;
  std::istringstream text(value_or_fail(read_whole_file(options.starts)));
  std::string word;
  while (text >> word) {
    double us = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), us);
    if (error != std::errc() || end != word.data() + word.size() || !(us >= 0 && us <= kMostUs)) {
      fail("{}: {} is no number of microseconds from 0 to 1e9", options.starts, word);
    }
    starts_ps.push_back(static_cast<std::int64_t>(us * kPsPerUs));
  }
  if (std::cmp_not_equal(starts_ps.size(), ranks)) {
    fail("{} says when {} ranks begin; there are {}", options.starts, starts_ps.size(), ranks);
  }
  return starts_ps;
}

// False: interrupted.
bool fill(const SimOptions& options, const machine::Machine& machine, Collective collective,
          Progress* progress, Timeline* timeline, SimRow* row) {
  const double cpu_before = cpu_seconds(usage_so_far());
  const Stopwatch watch;
  Shared shared = predict::example_problem(collective, row->ranks, row->bytes);
  shared.root = options.root;
  const Limits limits = limits_of(options, machine, row->ranks);
  const AlgorithmChoice choice = choose(options, shared, limits);
  row->algorithm = to_text(choice);
  row->nodes = limits.nodes->count();
  sim::Options how{.skew_ps = static_cast<std::int64_t>(options.skew_us * 1e6),
                   .seed = options.seed,
                   .starts_ps = starts_of(options, row->ranks),
                   .critical_path = options.path,
                   .stops = [] { return g_interrupted != 0; }};
  if (timeline != nullptr) how.on_span = [timeline](const sim::Span& span) { timeline->add(span); };
  how.on_progress = [progress](std::int64_t messages) {
    progress->show(messages);
    return g_interrupted == 0;
  };
  Result<sim::Report> report = simulate(choice, shared, limits, machine, how);
  if (!report.ok() && report.status().code() == Code::kTimeout) return false;
  row->report = value_or_fail(std::move(report));
  row->wall_s = watch.seconds();
  const rusage usage = usage_so_far();
  row->cpu_s = cpu_seconds(usage) - cpu_before;
  row->peak_rss_bytes = peak_rss_bytes();
  return true;
}

std::vector<Rank> program_sizes(const SimOptions& options) {
  std::vector<Rank> sizes;
  if (options.sweep.empty()) return sizes;
  if (options.sweep.size() > 1 || !options.sweep.front().starts_with("ranks=")) {
    fail("--sweep of a program: ranks only, as in --sweep ranks=16..4096");
  }
  for (const SimRow& row : rows_of(options)) sizes.push_back(row.ranks);
  return sizes;
}

int run_program(const SimOptions& options) {
  using Form = ProgramRequest::Form;
  const machine::Machine machine = value_or_fail(machine::load(options.machine));
  Progress progress(1);
  progress.row(0, options.program.file);
  stop_by_signals();
  const bool complete =
      simulate_program({.program = options.program,
                        .machine = machine,
                        .algorithms = options.algorithms,
                        .limits = [&](Rank ranks) { return limits_of(options, machine, ranks); },
                        .slot_bytes = options.slot_bytes,
                        .skew_us = options.skew_us,
                        .seed = options.seed,
                        .starts = [&](Rank ranks) { return starts_of(options, ranks); },
                        .timeline = options.timeline,
                        .path = options.path,
                        .sweep = program_sizes(options),
                        .form = options.json  ? Form::kJson
                                : options.csv ? Form::kCsv
                                              : Form::kText,
                        .on_progress =
                            [&](std::int64_t messages) {
                              progress.show(messages);
                              return g_interrupted == 0;
                            },
                        .stops = [] { return g_interrupted != 0; }});
  return complete ? 0 : 128 + g_interrupted;
}

int run(const SimOptions& options) {
  if (!options.program.file.empty()) return run_program(options);
  if (options.validate) return validate(options.validation);
  if (options.collective.empty()) throw Failure("which collective, or program?", kWrongUse);
  Collective collective{};
  if (!collective_from_name(options.collective, &collective)) {
    fail("there is no collective \"{}\"; carillon list names them", options.collective);
  }
  const machine::Machine machine = value_or_fail(machine::load(options.machine));
  const std::vector<SimRow> rows = rows_of(options);
  if (rows.size() > 1 && !options.timeline.empty())
    fail("--timeline is of one call, not of a sweep");
  if (rows.size() > 1 && options.path) fail("--path is of one call, not of a sweep");
  std::unique_ptr<Timeline> timeline;
  if (!options.timeline.empty()) timeline = std::make_unique<Timeline>(options.timeline);
  stop_by_signals();
  SimOutput output(
      options.json  ? SimOutput::Form::kJson
      : options.csv ? SimOutput::Form::kCsv
                    : SimOutput::Form::kText,
      {options.collective, machine.name, options.skew_us, options.seed, !options.sweep.empty()});
  std::size_t done = 0;
  std::optional<Failure> failure;
  {
    Progress progress(rows.size());
    for (SimRow row : rows) {
      const std::string name = fmt::format("{} ranks, {} bytes", row.ranks, row.bytes);
      progress.row(done, name);
      bool complete = false;
      failure = failure_of([&] {
        complete = g_interrupted == 0 &&
                   fill(options, machine, collective, &progress, timeline.get(), &row);
      });
      if (failure && rows.size() > 1) failure = failed_row(name, *failure, done, rows.size());
      if (!complete) break;
      output.add(row);
      ++done;
    }
  }
  if (!failure || done > 0) output.end();
  if (timeline) timeline->end();
  if (failure) throw Failure(*failure);
  if (done == rows.size()) return 0;
  std::fprintf(stderr, "carillon: interrupted; %zu of %zu rows are done\n", done, rows.size());
  return 128 + g_interrupted;
}

void define_validation(Command command, Option collective,
                       const std::shared_ptr<SimOptions>& options) {
  ValidateOptions* const validation = &options->validation;
  const Option validate =
      command.flag("--validate", options->validate,
                   "no simulation of its own: bcast, allreduce and alltoall are measured here, on "
                   "-n ranks, beside what -m (default: this machine, calibrated anew) predicts");
  validate.excludes(collective);
  command.option("--sizes", validation->sizes, "bytes of their blocks")
      .needs(validate)
      .with_default();
  command.option("--rounds", validation->rounds, "of calibrating and measuring")
      .needs(validate)
      .in_range(1, 99)
      .with_default();
  const Option apart = command.flag("--apart", validation->nodes, "each rank counts as a node");
  apart.needs(validate);
  command.flag("--cluster", validation->cluster, "each rank is a node of a virtual cluster")
      .needs(validate)
      .excludes(apart);
  command.when_parsed([command, options, validation] {
    validation->ranks = command.given("--ranks") ? options->ranks : 2;
    if (command.given("--machine")) validation->machine = options->machine;
    validation->json = options->json;
  });
}

void define_placement(Command command, Option program, const std::shared_ptr<SimOptions>& options) {
  const Option ppn =
      command.option("--ppn", options->ppn, "ranks per node; default: the machine's");
  ppn.in_range(1, kMostRanksSimulated);
  command
      .option("--nodes", options->nodes,
              "which ranks share a node: 3,1,2 (so many on each) or rr:2 (round robin)")
      .excludes(ppn);
  command
      .option("--domains", options->domains,
              "NUMA domains of each node, which its ranks are in one after another")
      .in_range(1, kMostRanksSimulated)
      .excludes(program)
      .with_default();
}

}  // namespace

Action define_sim(Command command) {
  const auto options = std::make_shared<SimOptions>();
  const Option collective = command.option("COLLECTIVE", options->collective, "e.g. allreduce");
  const Option file = command.option("--program", options->program.file,
                                     "simulate a whole program: one that carillon run --record has "
                                     "written, or that is written by hand (docs/simulator.md)");
  file.excludes(collective);
  command
      .option("--algorithm,-a", options->algorithms,
              "one with its parameters, e.g. degree_k:k=4,transfer=sendrecv; of a program one "
              "for each collective, e.g. -a allreduce=ring -a bcast=binomial; default: what "
              "selection chooses")
      .value_each_time();
  command
      .integer(
          "--ranks,-n", [options](Rank ranks) { options->ranks = options->program.ranks = ranks; },
          "ranks of the team; default: 16, or the program's")
      .in_range(1, kMostRanksSimulated);
  command
      .option("--compute-scale", options->program.compute_scale,
              "computations of the program take so many times as long")
      .in_range(0.0, 1e6)
      .needs(file);
  command
      .option("--progress", options->program.progress,
              "who progresses what is in flight: caller (in start and wait only), thread (one "
              "with a core of its own, for each rank) or servlet (one with a core of its own, "
              "for each node)")
      .one_of({"caller", "thread", "servlet"})
      .needs(file)
      .with_default();
  const Option bytes =
      command.option("--bytes,-b", options->bytes, "bytes of a block (carillon show --help)")
          .with_unit()
          .in_range(std::int64_t{0}, std::int64_t{1} << 40)
          .with_default();
  command
      .option("--machine,-m", options->machine,
              "a machine by its name (carillon model --list) or its file's path")
      .with_default();
  define_placement(command, file, options);
  const Option root = command.option("--root", options->root, "the root, where there is one");
  root.in_range(0, kMostRanksSimulated);
  command
      .option("--gather-entries", options->gather_entries,
              "longest list that a put to another node takes without a copy; 1: none")
      .in_range(1, 1 << 20)
      .with_default();
  command
      .option("--slot-bytes", options->slot_bytes,
              "largest piece of a message; default: what teams have")
      .in_range(std::int64_t{1}, std::int64_t{1} << 40);
  command
      .option("--sweep", options->sweep,
              "ranks=2..4096 (doubling) or ranks=3,5,7, and, of a call, the same with bytes=")
      .values(1, 2);
  command.option("--skew", options->skew_us, "ranks begin at random within so many microseconds")
      .in_range(0.0, 1e9);
  command.option("--seed", options->seed, "of those times").with_default();
  const Option starts = command.option(
      "--starts", options->starts, "ranks begin as this file says: so many microseconds for each");
  starts.excludes("--skew");
  command.option("--timeline", options->timeline,
                 "write what each rank did when to this file, for chrome://tracing or Perfetto");
  const Option path = command.flag("--path", options->path, "print the critical path");
  const Option json = command.flag("--json", options->json, "print JSON");
  command.flag("--csv", options->csv, "print comma-separated values").excludes(path).excludes(json);
  define_validation(command, collective, options);
  for (Option of_calls : {bytes, root}) of_calls.excludes(file);
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
