// SPDX-License-Identifier: Apache-2.0
//
// carillon calibrate: measures this machine by ping-pong, copy and reduction, and writes its
// machine file.
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>

#include "calibrate_job.h"
#include "command.h"
#include "machine/sheet.h"
#include "support/failure.h"
#include "support/machine.h"
#include "support/options.h"

namespace carillon::cli {
namespace {

struct Options {
  std::string output, title;
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

int run(const Options& options) {
  require_settings();
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
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
