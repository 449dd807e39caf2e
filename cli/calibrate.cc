// SPDX-License-Identifier: Apache-2.0
//
// carillon calibrate: measures this machine by ping-pong, copy and reduction, and writes its
// machine file.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>

#include "calibrate/measure.h"
#include "calibrate/on_cluster.h"
#include "command.h"
#include "machine/sheet.h"
#include "support/failure.h"
#include "support/options.h"
#include "support/sheet_json.h"

namespace carillon::cli {
namespace {

struct CalibrateOptions {
  std::string output, title;
  bool cluster = false, json = false;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  gmtime_r(&now, &day);
  return fmt::format("{}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

int measure(const CalibrateOptions& options, const std::vector<pid_t>& cluster) {
  if (options.title.find_first_of("\"\\\n") != std::string::npos) {
    fail("--title: quotation marks and backslashes cannot be in a title");
  }
  // Before measuring: nobody wants to wait for that.
  if (!options.output.empty() && !std::ofstream(options.output, std::ios::app)) {
    fail("cannot write {}: {}; choose another file", options.output, std::strerror(errno));
  }
  machine::Measured measured = measure_machine(cluster);
  measured.where = (options.title.empty() ? "this machine" : options.title) + ", " + today();
  const std::string text = machine::calibrated_file(measured);
  // What cannot be read again is no use.
  const machine::Sheet sheet =
      value_or_fail(machine::parse_sheet(text, options.output, "calibrated"));
  if (options.json) {
    std::printf("%s\n", sheet_json(sheet).dump(2).c_str());
  } else if (options.output.empty()) {
    std::printf("%s", text.c_str());
  }
  if (options.output.empty()) return 0;
  std::ofstream file(options.output);
  if (!(file << text << std::flush)) fail("cannot write {}", options.output);
  if (options.json) return 0;
  const bool is_path = options.output.find('/') != std::string::npos;
  std::printf("try carillon sim bcast --machine %s%s\n", is_path ? "" : "./",
              options.output.c_str());
  return 0;
}

int run(const CalibrateOptions& options) {
  require_settings();
  const auto body = [&](const std::vector<pid_t>& cluster) { return measure(options, cluster); };
  return options.cluster ? on_cluster(2, body) : body({});
}

}  // namespace

Action define_calibrate(Command command) {
  const auto options = std::make_shared<CalibrateOptions>();
  command.option("--output,-o", options->output, "the file to write; default: stdout");
  command.option("--title", options->title, "what the machine is");
  command.flag("--cluster", options->cluster,
               "ping-pongs between nodes are those of a virtual cluster");
  command.flag("--json", options->json,
               "print JSON, as carillon model --numbers does; the file is written where --output "
               "asks for it");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
