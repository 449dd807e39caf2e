// SPDX-License-Identifier: Apache-2.0
//
// carillon bench: options, and the forms of the answer (table, OSU, JSON). What is measured, and
// how, stands in docs/performance.md.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "bench_breakdown.h"
#include "bench_job.h"
#include "bench_nodes.h"
#include "bench_overlap.h"
#include "bench_surveys.h"
#include "cluster/shape.h"
#include "command.h"
#include "schedule/problem.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

constexpr const char* kSizes = "8,4K,64K,1M";
constexpr const char* kBreakdownSizes = "8,64,512,4K";
constexpr const char* kSurveysSizes = "8,64,256";
constexpr int kRounds = 15;
constexpr const char* kNodesSizes = "4,64,1K,4K,16K,64K";

struct BenchOptions {
  BenchJob job;
  NodesBench between_nodes;
  bool breakdown = false;
  bool overlap = false;
  bool surveys = false;
  int rounds = 0;
  int tests = 0;
  std::string rate;
  std::vector<std::string> algorithms;
  std::string sizes = kSizes;
  bool sizes_given = false;
  std::string mpi, program;
  std::string vs = "native";
  std::string format = "table";
  std::string clock = "wtime";
  std::string start = "barrier";
  bool json = false;
};

OwnProgram choose_program(const BenchOptions& options) {
  if (!options.program.empty()) return own_program_at(options.program);
  if (!options.mpi.empty())
    return require_own_program("carillon-bench", abi_from_name(options.mpi));
  return own_programs("carillon-bench").front();
}

// Of MPI only: to carillon itself these are alltoallvs.
constexpr std::array<std::string_view, 6> kOfMpi = {"alltoallw",           "neighbor_allgather",
                                                    "neighbor_allgatherv", "neighbor_alltoall",
                                                    "neighbor_alltoallv",  "neighbor_alltoallw"};

bool is_of_mpi(std::string_view name) {
  return std::find(kOfMpi.begin(), kOfMpi.end(), name) != kOfMpi.end();
}

// All that have non-blocking forms; of the blocking ones those of MPI are measured only if asked
// for.
std::vector<std::string> all_collectives(bool overlap) {
  std::vector<std::string> names;
  names.reserve(kCollectives + kOfMpi.size());
  for (int i = 0; i < kCollectives; ++i) {
    names.emplace_back(collective_name(static_cast<Collective>(i)));
  }
  if (overlap) names.insert(names.end(), kOfMpi.begin(), kOfMpi.end());
  return names;
}

void show_progress(const Json& row) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K%s, %lld B\r", row["collective"].text().c_str(),
               static_cast<long long>(row["bytes"].integer()));
}

void print_table(const BenchOptions& options, const OwnProgram& program,
                 const std::vector<BenchRow>& rows) {
  std::vector<std::string> headings = {"collective", ">bytes",     ">carillon us", ">native us",
                                       ">speed-up",  ">quartiles", "algorithm"};
  if (options.job.bare) headings.insert(headings.end(), {">bare us", ">native / bare"});
  if (options.job.native_best) {
    headings.insert(headings.end(), {">native default us", "best native setting"});
  }
  Table table(headings);
  for (const BenchRow& row : rows) {
    std::vector<std::string> cells = {row["collective"].text(),
                                      short_bytes(row["bytes"].integer()),
                                      short_number(row["latency_us"].number()),
                                      short_number(row["native_us"].number()),
                                      short_number(row["speedup"].number()),
                                      short_number(row["speedup_quartiles"][0].number()) + ".." +
                                          short_number(row["speedup_quartiles"][1].number()),
                                      row["algorithm"].text()};
    if (options.job.bare) {
      for (const char* const figure : {"bare_us", "room"}) {
        cells.push_back(row.contains(figure) ? short_number(row[figure].number()) : "-");
      }
    }
    if (options.job.native_best) {
      cells.push_back(short_number(row["native_default_us"].number()));
      cells.push_back(row["native_settings"].text());
    }
    table.add(cells);
  }
  std::printf("%d rank%s, %s, %s buffers%s; time of a call%s on the slowest rank, medians\n%s",
              options.job.ranks, options.job.ranks == 1 ? "" : "s",
              program.launcher.version.c_str(), options.job.buffer.c_str(),
              options.job.fresh ? " written anew before each call" : "",
              options.job.together ? " from an agreed beginning" : "", table.text().c_str());
}

// "Allreduce", "Reduce_scatter_block".
std::string osu_name(std::string name) {
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

// As their osu_util_mpi.c prints: 10 and 20 columns; a barrier has no sizes, and 17 columns.
void print_osu(const std::vector<BenchRow>& rows) {
  for (const auto& [column, side] :
       {std::pair{"latency_us", "carillon"}, std::pair{"native_us", "native"}}) {
    std::string last;
    for (const BenchRow& row : rows) {
      const std::string name = row["collective"].text();
      const bool has_sizes = name != "barrier";
      if (name != last) {
        std::printf("\n# %s MPI %s Latency Test (slowest rank)\n", side, osu_name(name).c_str());
        std::printf(has_sizes ? "# Size         Avg Latency(us)\n" : "# Avg Latency(us)\n");
      }
      last = name;
      if (has_sizes) std::printf("%-10lld", static_cast<long long>(row["bytes"].integer()));
      std::printf("%*.2f\n", has_sizes ? 20 : 17, row[column].number());
    }
  }
}

// A virtual machine's cores may move under it; neighbours may come and go.
bool differ(const Floor& before, const Floor& after) {
  constexpr double kFactor = 1.5;
  const double a = before.cache_line_ns.value_or(1), b = after.cache_line_ns.value_or(1);
  return a > kFactor * b || b > kFactor * a;
}

// What else than calls of an MPI is measured has buffers and a clock of its own.
void require_default_measuring(const BenchOptions& options, const char* what) {
  const BenchOptions by_default;
  const char* given = options.job.buffer != by_default.job.buffer ? "--buffer"
                      : options.job.fresh                         ? "--fresh"
                      : options.job.bare                          ? "--bare"
                      : options.job.native_best                   ? "--native-best"
                      : options.start != by_default.start         ? "--start"
                      : options.clock != by_default.clock         ? "--clock"
                                                                  : nullptr;
  if (given == nullptr) return;
  throw Failure(
      fmt::format("{} measures carillon alone, in its own way: leave {} out", what, given),
      kWrongUse);
}

int run_between_nodes(const BenchOptions& options) {
  require_default_measuring(options, "--compare");
  NodesBench job = options.between_nodes;
  job.collectives = options.job.collectives;
  job.sizes = parse_sizes(options.sizes_given ? options.sizes : kNodesSizes);
  job.iterations = options.job.iterations;
  job.json = options.json;
  return run_nodes_bench(std::move(job));
}

int run_of_breakdown(const BenchOptions& options) {
  require_default_measuring(options, "--breakdown");
  NodesBench job = options.between_nodes;
  job.collectives = options.job.collectives;
  if (job.collectives.size() != 1 || !job.collectives.front().starts_with("alltoall")) {
    throw Failure(
        "--breakdown measures alltoall or alltoallv: say carillon bench alltoall --breakdown",
        kWrongUse);
  }
  if (job.nodes == 0) {
    job.nodes = 1;
    job.ranks_per_node = options.job.ranks;
  }
  job.sizes = parse_sizes(options.sizes_given ? options.sizes : kBreakdownSizes);
  job.iterations = options.job.iterations;
  job.json = options.json;
  return run_breakdown(std::move(job), options.algorithms);
}

int run_of_surveys(const BenchOptions& options) {
  require_default_measuring(options, "--surveys");
  if (options.job.collectives != std::vector<std::string>{"alltoallv"}) {
    throw Failure("--surveys measures alltoallv: say carillon bench alltoallv --surveys",
                  kWrongUse);
  }
  NodesBench job = options.between_nodes;
  job.sizes = parse_sizes(options.sizes_given ? options.sizes : kSurveysSizes);
  job.iterations = options.job.iterations;
  job.json = options.json;
  return run_surveys_bench(std::move(job), options.rounds > 0 ? options.rounds : kRounds);
}

void complete(BenchJob& job, const BenchOptions& options) {
  job.sizes = parse_sizes(options.sizes);
  job.counter = options.clock == "tsc";
  job.together = options.start == "together";
  for (const std::string& name : job.collectives) {
    Collective collective{};
    if (!is_of_mpi(name) && !collective_from_name(name, &collective)) {
      fail("there is no collective \"{}\"; carillon list shows all", name);
    }
  }
  if (job.collectives.empty()) job.collectives = all_collectives(options.overlap);
}

int run_of_overlap(BenchOptions options) {
  const NodesBench& between_nodes = options.between_nodes;
  if (!between_nodes.compare.empty() || between_nodes.one_machine ||
      !between_nodes.network.empty()) {
    throw Failure("--overlap goes with --nodes, --ppn and --rate only", kWrongUse);
  }
  if (options.start != "barrier") {
    throw Failure("--start says how blocking calls begin, --overlap measures others", kWrongUse);
  }
  if (options.job.bare) throw Failure("--bare goes with blocking calls only", kWrongUse);
  if (!options.rate.empty()) parse_rate(options.rate);
  if (between_nodes.nodes > 0) require_nodes(between_nodes);
  complete(options.job, options);
  const OverlapBench bench{.job = options.job,
                           .nodes = between_nodes.nodes,
                           .ranks_per_node = between_nodes.ranks_per_node,
                           .rate = options.rate,
                           .tests = options.tests,
                           .json = options.json};
  const int status = run_overlap(bench, choose_program(options), show_progress);
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  return status;
}

int run(BenchOptions options) {
  if (!options.between_nodes.network.empty()) {  // what it may be is the setting's affair
    setenv("CARILLON_NETWORK", options.between_nodes.network.c_str(), 1);
  }
  require_settings();
  const bool of_blocking_calls = !options.surveys && !options.breakdown && !options.overlap &&
                                 options.between_nodes.compare.empty();
  if (options.format == "osu" && (options.json || !of_blocking_calls)) {
    throw Failure("--format osu is for blocking calls on one node, and without --json", kWrongUse);
  }
  if (options.rounds > 0 && !options.surveys) {
    throw Failure("--rounds goes with --surveys", kWrongUse);
  }
  if (options.surveys) return run_of_surveys(options);
  if (options.breakdown) return run_of_breakdown(options);
  if (options.overlap) return run_of_overlap(std::move(options));
  if (!options.rate.empty() || options.tests > 0) {
    throw Failure("--rate and --tests go with --overlap", kWrongUse);
  }
  if (!options.algorithms.empty()) {
    throw Failure("-a says which algorithms --breakdown measures; else set CARILLON_ALGORITHM",
                  kWrongUse);
  }
  const NodesBench& between_nodes = options.between_nodes;
  if (!between_nodes.compare.empty()) return run_between_nodes(options);
  if (between_nodes.nodes > 0 || between_nodes.one_machine || !between_nodes.network.empty()) {
    throw Failure("what to compare between nodes? Say --compare sendrecv,rdma", kWrongUse);
  }
  if (options.job.bare && options.job.ranks != 2) {
    throw Failure("--bare is a loop of two ranks: leave it out, or take -n 2", kWrongUse);
  }
  complete(options.job, options);
  const OwnProgram program = choose_program(options);
  const Floor before = measure_floor();
  if (options.job.together && options.job.ranks > before.cores) {
    fail(
        "{} ranks cannot begin together on {} cores: who waits for the time takes another's core; "
        "leave --start out, or take -n {}",
        options.job.ranks, before.cores, before.cores);
  }
  const std::vector<BenchRow> rows = run_bench(options.job, program, show_progress);
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  const Floor after = measure_floor();
  const bool oversubscribed = options.job.ranks > before.cores;
  if (options.json) {
    Json machine = to_json(before);
    machine["oversubscribed"] = oversubscribed;
    machine["afterwards"] = to_json(after);
    const Json answer = {
        {"results", rows},
        {"start", options.start},
        {"machine", machine},
        {"mpi", {{"name", names_of(program.abi).name}, {"version", program.launcher.version}}}};
    std::printf("%s\n", answer.dump(2).c_str());
    return 0;
  }
  const bool osu = options.format == "osu";
  const char* const mark = osu ? "# " : "";
  std::printf("%sfloor: %s%s\n", mark, to_text(before).c_str(),
              oversubscribed ? "; oversubscribed: more ranks than cores" : "");
  if (differ(before, after)) {
    std::printf("%safterwards: %s; the machine changed meanwhile, measure again\n", mark,
                to_text(after).c_str());
  }
  if (osu) {
    print_osu(rows);
  } else {
    print_table(options, program, rows);
  }
  return 0;
}

void define_between_nodes(Command command, NodesBench& job) {
  command
      .option("--compare", job.compare,
              "sendrecv,rdma: the same trees by both, between --nodes nodes")
      .comma_separated();
  command
      .option("--nodes", job.nodes,
              "with --compare, --breakdown, --overlap or --surveys: nodes of a virtual cluster")
      .in_range(1, kMaxRanksStarted);
  command.option("--ppn", job.ranks_per_node, "with --nodes: ranks on each node")
      .in_range(1, kMaxRanksStarted)
      .with_default();
  command.option("--degrees", job.degrees, "with --compare: k of the trees; 1: binomial")
      .comma_separated()
      .in_range(1, 64)
      .with_default();
  command.option("--network", job.network,
                 "with --nodes: as CARILLON_NETWORK; verbs: between ranks of this machine");
  command.flag("--one-machine", job.one_machine,
               "with --nodes: no cluster, ranks of this machine count as nodes");
}

// How calls are made and timed.
void define_measuring(Command command, BenchOptions& options) {
  command
      .option("--buffer", options.job.buffer,
              "private: malloc; heap: malloc under run --shared-heap, and shared: MPI_Alloc_mem, "
              "which the ranks of a node can all read")
      .one_of({"private", "heap", "shared"})
      .with_default();
  command.flag("--fresh", options.job.fresh,
               "write the input anew before every call, as programs do and benchmarks do not");
  command
      .option("--clock", options.clock,
              "wtime: MPI_Wtime, as the public suites; tsc: the processor's counter")
      .one_of({"wtime", "tsc"})
      .with_default();
  command
      .option("--start", options.start,
              "barrier: a call begins when a barrier lets its rank go, as in the public suites; "
              "together: at a time agreed on, on all ranks")
      .one_of({"barrier", "together"})
      .with_default();
  command.flag(
      "--bare", options.job.bare,
      "beside each row a loop of two ranks that moves the same bytes without a library: about "
      "the most that there is to gain");
  command.option("--seconds", options.job.seconds, "to spend on each row, about")
      .in_range(0.001, 3600.0)
      .with_default();
  command
      .option("--iterations", options.job.iterations,
              "calls per side instead of as many as fit into --seconds")
      .in_range(1, 1000000);
}

}  // namespace

Action define_bench(Command command) {
  const auto options = std::make_shared<BenchOptions>();
  command.option("COLLECTIVE", options->job.collectives, "e.g. allreduce bcast; default: all")
      .comma_separated();
  command.option("-n,--ranks", options->job.ranks, "number of ranks")
      .in_range(1, kMaxRanksStarted)
      .with_default();
  const Option sizes =
      command
          .option("--sizes", options->sizes,
                  "bytes: of the vector for bcast, reduce and allreduce, else of one rank's share")
          .with_default();
  define_between_nodes(command, options->between_nodes);
  command.flag(
      "--breakdown", options->breakdown,
      "of alltoall or alltoallv: where the time goes (pack, unpack, rotate, reduce, post, wait)");
  command.flag("--overlap", options->overlap,
               "of the non-blocking forms: how much of their time a computation hides");
  command.flag(
      "--surveys", options->surveys,
      "of alltoallv, between --nodes nodes: pairwise exchange, two phases, and what surveys "
      "of the tables choose and cost");
  command.option("--rounds", options->rounds, "with --surveys: how often each is measured, in turn")
      .in_range(1, 10000);
  command.option("--rate", options->rate,
                 "with --overlap --nodes: of each node's wire, e.g. 500mbit; default: no limit");
  command
      .option("--tests", options->tests,
              "with --overlap: calls of MPI_Test within each computation")
      .in_range(0, 1000000)
      .with_default();
  command.option(
      "-a,--algorithm", options->algorithms,
      "with --breakdown: which, e.g. alltoall.bruck_resident:transfer=sendrecv; default: all");
  command.option("--vs", options->vs, "what to compare with: the program's own MPI")
      .one_of({"native"})
      .with_default();
  command.flag("--native-best", options->job.native_best,
               "measure the MPI also with settings that suit this case, and compare with its best");
  command.option("--mpi", options->mpi, "openmpi, mpich or mpiabi; default: the first found");
  command.option("--program", options->program,
                 "a carillon-bench built with another installation of an MPI");
  define_measuring(command, *options);
  command.option("--format", options->format, "table, or osu as the OSU micro-benchmarks print")
      .one_of({"table", "osu"})
      .with_default();
  command.flag("--json", options->json, "print JSON");
  return [options, sizes](const Arguments&) {
    options->sizes_given = sizes.given();
    return run(*options);
  };
}

}  // namespace carillon::cli
