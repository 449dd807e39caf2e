// SPDX-License-Identifier: Apache-2.0
//
// carillon show: one rank's schedule of one call, as text (docs/schedule.md).
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "algorithms/registry.h"
#include "base/config.h"
#include "command.h"
#include "schedule/text.h"
#include "support/calls.h"
#include "support/failure.h"

namespace carillon::cli {
namespace {

struct Options {
  std::string id;
  Rank ranks = 4, rank = 0, root = 0;
  std::int64_t bytes = 8;
  std::int64_t slot_bytes = Limits{}.slot_bytes;
  bool in_place = false;
  bool json = false;
};

int run(const Options& options) {
  const AlgorithmChoice choice = value_or_fail(parse_choice(options.id));
  const Algorithm& algorithm = *choice.algorithm;
  const bool reduces = has_reduction(algorithm.collective);
  const std::int32_t element = reduces && options.bytes % 8 == 0 ? 8 : 1;
  const Shared shared{algorithm.collective, options.ranks, options.root, options.bytes / element,
                      element};
  if (options.in_place && !in_place_allowed(shared, options.rank)) {
    fail("MPI does not let rank {} ask for {} in place; leave out --in-place", options.rank,
         collective_name(algorithm.collective));
  }
  if (options.rank >= options.ranks) {
    fail("rank {} is not in 0..{}", options.rank, options.ranks - 1);
  }
  const EvenTables tables(shared, options.bytes);
  const Call call{.shared = shared,
                  .local = {.in_place = options.in_place, .tables = tables.view()},
                  .rank = options.rank,
                  .limits = {.slot_bytes = options.slot_bytes},
                  .params = choice.params};
  const Schedule schedule = value_or_fail(emit(algorithm, call));
  const std::string text = to_text(schedule);
  if (options.json) {
    nlohmann::ordered_json json;
    json["algorithm"] = algorithm.id;
    json["ranks"] = options.ranks;
    json["rank"] = options.rank;
    json["root"] = options.root;
    json["bytes"] = options.bytes;
    json["ops"] = schedule.ops.size();
    json["scratch_bytes"] = schedule.scratch_bytes;
    json["schedule"] = text;
    std::printf("%s\n", json.dump(2).c_str());
    return 0;
  }
  std::printf("# %s: %.*s\n%s", std::string(algorithm.id).c_str(),
              static_cast<int>(algorithm.description.size()), algorithm.description.data(),
              text.c_str());
  return 0;
}

}  // namespace

Action define_show(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("ID", options->id, "an algorithm and its parameters, e.g. allreduce.degree_k:k=4")
      ->required();
  app.add_option("--ranks,-n", options->ranks, "ranks of the team")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--rank,-r", options->rank, "whose part to show")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--bytes,-b", options->bytes, "bytes of a block")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--root", options->root, "the root, where there is one")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--slot-bytes", options->slot_bytes, "largest piece of a message")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  app.add_flag("--in-place", options->in_place, "the call is in place");
  app.add_flag("--json", options->json, "print JSON");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
