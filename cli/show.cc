// SPDX-License-Identifier: Apache-2.0
//
// carillon show: one rank's schedule of one call, as text (docs/schedule.md), or a drawing of who
// sends to whom in the whole team.
#include <cstdio>
#include <memory>

#include "algorithms/registry.h"
#include "base/config.h"
#include "command.h"
#include "predict/predict.h"
#include "schedule/draw.h"
#include "schedule/text.h"
#include "support/calls.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/options.h"

namespace carillon::cli {
namespace {

struct ShowOptions {
  std::string id;
  Rank ranks = 4, rank = 0, root = 0;
  std::int64_t bytes = 8;
  std::int64_t slot_bytes = 0;  // 0: the library's
  std::string nodes;
  bool in_place = false;
  bool draw = false;
  bool json = false;
};

constexpr Rank kMostRanksShown = 1 << 20;
constexpr Rank kMaxDrawn = 256;  // more do not fit on any page

// What all ranks of the call have in common.
struct Example {
  Example(const ShowOptions& options, const AlgorithmChoice& chosen)
      : choice(chosen),
        shared{.collective = chosen.algorithm->collective,
               .ranks = options.ranks,
               .root = options.root,
               .count = options.bytes,
               .element_bytes = 1},
        tables(shared, options.bytes) {
    if (!options.nodes.empty()) {
      limits.nodes = parse_nodes(options.nodes, kMostRanksShown).nodes(options.ranks);
      limits.slot_bytes = predict::slot_bytes(*limits.nodes);
    }
    if (options.slot_bytes > 0) limits.slot_bytes = options.slot_bytes;
    if (has_reduction(shared.collective) && options.bytes % 8 == 0) {
      shared.count = options.bytes / 8;
      shared.element_bytes = 8;
    }
  }
  [[nodiscard]] Local local(const ShowOptions& options, Rank rank) const {
    return {.in_place = options.in_place && in_place_allowed(shared, rank),
            .tables = tables.view()};
  }
  [[nodiscard]] Call call(const ShowOptions& options, Rank rank) const {
    return {.shared = shared,
            .local = local(options, rank),
            .rank = rank,
            .limits = limits,
            .params = choice.params};
  }

  AlgorithmChoice choice;
  Shared shared;
  Limits limits;
  EvenTables tables;
};

// --nodes may say how many ranks there are.
void fix_ranks(bool given, ShowOptions* options) {
  const Rank ranks = parse_nodes(options->nodes, kMostRanksShown).ranks();
  if (ranks > 0 && given && options->ranks != ranks) {
    fail("--nodes {} has {} ranks, --ranks says {}; leave one out", options->nodes, ranks,
         options->ranks);
  }
  if (ranks > 0) options->ranks = ranks;
}

std::string drawing(const ShowOptions& options, const Example& example) {
  if (options.ranks > kMaxDrawn) fail("at most {} ranks can be drawn", kMaxDrawn);
  TeamCall team{.shared = example.shared, .limits = example.limits, .locals = {}};
  for (Rank rank = 0; rank < options.ranks; ++rank) {
    team.locals.push_back(example.local(options, rank));
  }
  return value_or_fail(draw(team, [&](Rank rank, std::int32_t, std::span<const std::int64_t>) {
    return emit(*example.choice.algorithm, example.call(options, rank));
  }));
}

int run(const ShowOptions& options) {
  const Example example(options, value_or_fail(parse_choice(options.id)));
  const Algorithm& algorithm = *example.choice.algorithm;
  if (options.rank >= options.ranks) {
    fail("rank {} is not in 0..{}", options.rank, options.ranks - 1);
  }
  if (options.in_place && !in_place_allowed(example.shared, options.rank)) {
    fail("MPI does not let rank {} ask for {} in place; leave out --in-place", options.rank,
         collective_name(algorithm.collective));
  }
  const Schedule schedule = value_or_fail(emit(algorithm, example.call(options, options.rank)));
  const std::string text = options.draw ? drawing(options, example) : to_text(schedule);
  if (!options.json) {
    std::printf("// %.*s: %.*s\n%s", static_cast<int>(algorithm.id.size()), algorithm.id.data(),
                static_cast<int>(algorithm.description.size()), algorithm.description.data(),
                text.c_str());
    return 0;
  }
  Json json;
  json["algorithm"] = algorithm.id;
  json["ranks"] = options.ranks;
  json["rank"] = options.rank;
  json["root"] = options.root;
  json["bytes"] = options.bytes;
  json["ops"] = schedule.ops.size();
  json["scratch_bytes"] = schedule.scratch_bytes;
  json[options.draw ? "drawing" : "schedule"] = text;
  std::printf("%s\n", json.dump(2).c_str());
  return 0;
}

}  // namespace

Action define_show(Command command) {
  const auto options = std::make_shared<ShowOptions>();
  command.option("ID", options->id, "an algorithm and its parameters, e.g. allreduce.degree_k:k=4")
      .required();
  const Option ranks = command.option("--ranks,-n", options->ranks, "ranks of the team");
  ranks.in_range(1, kMostRanksShown).with_default();
  command.option("--rank,-r", options->rank, "whose part to show")
      .in_range(0, 1 << 20)
      .with_default();
  command.option("--bytes,-b", options->bytes, "bytes of a block")
      .with_unit()
      .in_range(std::int64_t{0}, std::int64_t{1} << 40)
      .with_default();
  command.option("--root", options->root, "the root, where there is one")
      .in_range(0, 1 << 20)
      .with_default();
  command.option(
      "--nodes", options->nodes,
      "which ranks share a node: 3,1,2 (so many on each) or rr:2 (round robin over two); "
      "default: all");
  command
      .option("--slot-bytes", options->slot_bytes,
              "largest piece of a message; default: what teams have")
      .in_range(std::int64_t{1}, std::int64_t{1} << 40);
  command.flag("--in-place", options->in_place, "the call is in place");
  command.flag("--draw", options->draw, "draw who sends to whom, step by step, in the whole team");
  command.flag("--json", options->json, "print JSON");
  return [options, ranks](const Arguments&) {
    if (!options->nodes.empty()) fix_ranks(ranks.given(), options.get());
    return run(*options);
  };
}

}  // namespace carillon::cli
