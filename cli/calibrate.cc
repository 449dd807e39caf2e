// SPDX-License-Identifier: Apache-2.0
//
// carillon calibrate: measures this machine by ping-pong, copy and reduction, and writes its
// machine file.
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "calibrate_job.h"
#include "command.h"
#include "machine/sheet.h"
#include "predict/predict.h"
#include "support/failure.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string output, title, validate;
  std::string sizes = "8,1K,64K,1M";
  int ranks = 2;
  bool nodes = false, json = false;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  gmtime_r(&now, &day);
  return fmt::format("{}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

std::int64_t cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : 1 << 20;
}

struct Compared {
  Timed timed;
  double predicted_us = 0;
  [[nodiscard]] double error_percent() const {
    return timed.us > 0 ? 100 * (predicted_us / timed.us - 1) : 0;
  }
};

std::vector<Compared> compare(const Options& options, const machine::Machine& machine) {
  std::vector<Compared> rows;
  const Limits limits{.nodes =
                          predict::even_nodes(options.ranks, options.nodes ? 1 : options.ranks)};
  for (Timed& timed :
       measure_collectives(options.ranks, options.nodes, parse_sizes(options.sizes))) {
    const Shared shared =
        predict::example_problem(timed.collective, static_cast<Rank>(options.ranks), timed.bytes);
    const sim::Report report =
        value_or_fail(predict::simulate(timed.choice, shared, limits, machine));
    rows.push_back({timed, static_cast<double>(report.latency_ps) / 1e6});
  }
  return rows;
}

// The absolute error that so many of the rows do not exceed.
double error_at(const std::vector<Compared>& rows, double part) {
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const Compared& row : rows) errors.push_back(std::abs(row.error_percent()));
  std::sort(errors.begin(), errors.end());
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(rows.size())));
  return errors.at(std::clamp<std::size_t>(rank, 1, rows.size()) - 1);
}

int validate(const Options& options) {
  const machine::Machine machine = value_or_fail(machine::load(options.validate));
  const std::vector<Compared> rows = compare(options, machine);
  const double half = error_at(rows, 0.5), most = error_at(rows, 0.9);
  Json list = Json::array();
  Table table({"collective", ">bytes", "algorithm", ">measured us", ">predicted us", ">error"});
  for (const Compared& row : rows) {
    const std::string name(collective_name(row.timed.collective));
    const std::string algorithm = to_text(row.timed.choice);
    list.push_back({{"collective", name},
                    {"bytes", row.timed.bytes},
                    {"algorithm", algorithm},
                    {"measured_us", row.timed.us},
                    {"predicted_us", row.predicted_us},
                    {"error_percent", row.error_percent()}});
    table.add({name, short_bytes(row.timed.bytes), algorithm, short_number(row.timed.us),
               short_number(row.predicted_us), fmt::format("{:+.0f} %", row.error_percent())});
  }
  if (options.json) {
    const Json json{{"machine", machine.name},        {"ranks", options.ranks},
                    {"between_nodes", options.nodes}, {"rows", list},
                    {"median_error_percent", half},   {"p90_error_percent", most}};
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    std::printf("%s\nerror: %.0f %% in the median, %.0f %% at the 90th percentile\n",
                table.text().c_str(), half, most);
  }
  return 0;
}

int run(const Options& options) {
  require_settings();
  if (!options.validate.empty()) return validate(options);
  if (options.title.find_first_of("\"\\\n") != std::string::npos) {
    fail("--title: quotation marks and backslashes cannot be in a title");
  }
  // Before measuring: nobody wants to wait for that.
  if (!options.output.empty() && !std::ofstream(options.output, std::ios::app)) {
    fail("cannot write {}", options.output);
  }
  machine::Measured measured;
  measured.where = (options.title.empty() ? "this machine" : options.title) + ", " + today();
  measured.cores = usable_cores();
  measured.cache_bytes = cache_bytes();
  measured.copy = measure_copy(measured.cache_bytes);
  measured.reduce = measure_reduce(measured.cache_bytes);
  measured.node = measure_ping_pong("", false);
  measured.one_sided = measure_ping_pong("", true);
  measured.two_sided = measure_ping_pong(":transfer=sendrecv", true);
  const std::string text = machine::calibrated_file(measured);
  // What cannot be read again is no use.
  value_or_fail(machine::parse_sheet(text, options.output, "calibrated"));
  if (options.output.empty()) {
    std::printf("%s", text.c_str());
    return 0;
  }
  std::ofstream file(options.output);
  if (!(file << text << std::flush)) fail("cannot write {}", options.output);
  const bool is_path = options.output.find('/') != std::string::npos;
  std::printf("try carillon sim bcast --machine %s%s\n", is_path ? "" : "./",
              options.output.c_str());
  return 0;
}

}  // namespace

Action define_calibrate(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("--output,-o", options->output, "the file to write; default: stdout");
  app.add_option("--title", options->title, "what the machine is");
  app.add_option("--validate", options->validate,
                 "no calibration: compare what this machine file predicts with what bcast, "
                 "allreduce and alltoall take");
  app.add_option("--ranks,-n", options->ranks, "of those collectives")
      ->check(CLI::Range(2, kMaxTimedRanks))
      ->capture_default_str();
  app.add_flag("--nodes", options->nodes, "their ranks count as nodes");
  app.add_option("--sizes", options->sizes, "bytes of a block")->capture_default_str();
  app.add_flag("--json", options->json, "print JSON");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
