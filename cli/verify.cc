// SPDX-License-Identifier: Apache-2.0
//
// carillon verify: proves algorithms correct for ranges of ranks, over counts, roots, operators,
// parameters and in-place. Exit status 1 if one is not.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>

#include "algorithms/emitter.h"
#include "algorithms/registry.h"
#include "command.h"
#include "schedule/proofs.h"
#include "support/calls.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/options.h"

namespace carillon::cli {
namespace {

constexpr int kMostRanksProven = 1024;  // the proof looks at all ranks at once
constexpr int kMaxJobs = 1024;
constexpr Rank kAllRootsUpTo = 16;
constexpr std::int32_t kElementBytes = 8;
// Slots this small make the verifier see many segments at small counts.
const Limits kSmallSlots{.slot_bytes = 64, .inline_bytes = 16};
const Limits kRealSlots{};

struct VerifyOptions {
  std::vector<std::string> ids;
  std::string ranks = "1-16";
  bool ranks_given = false;
  std::string nodes;
  std::string roots = "some";
  int jobs = 1;
  bool json = false;
};

// One thing to prove.
struct Case {
  AlgorithmChoice choice;
  Shared shared;
  bool in_place = false;
  Limits limits;
  std::string nodes;  ///< as --nodes says it; empty: all ranks on one
};

std::string text_of(const Case& c) {
  std::string text = to_text(c.choice);
  text += fmt::format(" --ranks {} --bytes {}", c.shared.ranks, c.shared.block_bytes());
  if (has_root(c.shared.collective)) text += fmt::format(" --root {}", c.shared.root);
  if (c.in_place) text += " --in-place";
  if (!c.nodes.empty()) text += " --nodes " + c.nodes;
  if (!c.nodes.empty() || c.limits.slot_bytes != kRealSlots.slot_bytes) {  // show has shorter ones
    text += fmt::format(" --slot-bytes {}", c.limits.slot_bytes);
  }
  return text;
}

// What the proofs of many cases have in common.
struct Prover {
  Emitter emitter;
  Proofs proofs;
};

Status prove(const Case& c, Prover& prover) {
  TeamCall team{.shared = c.shared, .limits = c.limits};
  std::vector<UnevenTables> tables;
  tables.reserve(static_cast<std::size_t>(c.shared.ranks));
  for (Rank rank = 0; rank < c.shared.ranks; ++rank) {
    tables.emplace_back(c.shared, c.shared.block_bytes(), rank);
  }
  for (Rank rank = 0; rank < c.shared.ranks; ++rank) {
    team.locals.push_back({.in_place = c.in_place && in_place_allowed(c.shared, rank),
                           .tables = tables[static_cast<std::size_t>(rank)].view()});
  }
  const EmitInto emitter = [&](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned,
                               Schedule* schedule) {
    const Call call{.shared = c.shared,
                    .local = team.local(rank),
                    .rank = rank,
                    .limits = c.limits,
                    .params = c.choice.params,
                    .stage = stage,
                    .learned = learned};
    return prover.emitter.emit(*c.choice.algorithm, call, schedule);
  };
  return prover.proofs.verify(team, emitter).status;
}

std::set<Rank> roots_of(const Algorithm& algorithm, Rank ranks, bool all) {
  if (!has_root(algorithm.collective)) return {0};
  std::set<Rank> roots = {0, 1 % ranks, ranks / 2, ranks - 1};
  for (Rank root = 0; (all || ranks <= kAllRootsUpTo) && root < ranks; ++root) roots.insert(root);
  return roots;
}

std::set<std::int64_t> counts_of(const Algorithm& algorithm, Rank ranks, bool real_slots) {
  if (algorithm.collective == Collective::kBarrier) return {0};
  if (real_slots) return {7, 1000};
  const std::int64_t segment = kSmallSlots.slot_bytes / kElementBytes;
  return {0, 1, ranks - 1, ranks + 1, segment, 5 * segment + 3};
}

std::vector<Params> params_of(const AlgorithmChoice& choice) {
  const Algorithm& algorithm = *choice.algorithm;
  if (choice.params != Params{} || algorithm.k.max == 0) return {choice.params};
  return {Params{}, Params{.k = algorithm.k.min}, Params{.k = 6}};
}

// Where the ranks are: all on one node (no text), or such nodes.
struct Place {
  std::string text;
  std::shared_ptr<const Nodes> nodes;
};

// What --nodes says or, if nothing: one node, and some deals of the ranks to several.
std::vector<Place> places_of(const VerifyOptions& options, Rank ranks) {
  std::vector<NodesOption> deals;
  if (!options.nodes.empty()) deals.push_back(parse_nodes(options.nodes, kMostRanksProven));
  if (options.nodes.empty() && ranks >= 2) deals.push_back({.sizes = {1, ranks - 1}});
  if (options.nodes.empty() && ranks >= 3) {
    deals.push_back({.round_robin = 2});
    deals.push_back({.round_robin = ranks});
    deals.push_back({.sizes = {1, ranks / 2, ranks - 1 - ranks / 2}});
  }
  std::vector<Place> places(options.nodes.empty() ? 1 : 0);
  for (const NodesOption& deal : deals) places.push_back({deal.text(), deal.nodes(ranks)});
  return places;
}

// Calls body for everything that varies at this number of ranks, last what often comes to the same
// schedules: the places and the operator.
template <typename Body>
void for_each_case(const AlgorithmChoice& choice, Rank ranks, const std::vector<Place>& places,
                   bool all_roots, Body body) {
  const Algorithm& algorithm = *choice.algorithm;
  const bool orders = has_reduction(algorithm.collective) && !algorithm.needs_commutative;
  const bool moves = in_place_allowed(Shared{.collective = algorithm.collective}, 0);
  const auto one = [&](const Limits& base, const Params& params, const Shared& shared,
                       bool in_place) {
    for (const Place& place : places) {
      Limits limits = base;
      limits.nodes = place.nodes;
      if (!suits({choice.algorithm, params}, shared, limits)) continue;
      body(Case{{choice.algorithm, params}, shared, in_place, limits, place.text});
    }
  };
  for (const Limits& limits : {kSmallSlots, kRealSlots}) {
    for (const Params& params : params_of(choice)) {
      for (const Rank root : roots_of(algorithm, ranks, all_roots)) {
        for (const std::int64_t count : counts_of(algorithm, ranks, limits == kRealSlots)) {
          for (int variant = 0; variant < 4; ++variant) {
            const bool in_place = (variant & 2) != 0, commutative = (variant & 1) == 0;
            if ((in_place && !moves) || (!commutative && !orders)) continue;
            const Shared shared{algorithm.collective, ranks,      root, count,
                                kElementBytes,        commutative};
            one(limits, params, shared, in_place);
          }
        }
      }
    }
  }
}

// What is named, or all of a collective that is named; all, if nothing is.
std::vector<AlgorithmChoice> choices_of(const VerifyOptions& options) {
  std::vector<AlgorithmChoice> choices;
  const auto add_all = [&](std::optional<Collective> of) {
    for (const Algorithm& algorithm : algorithms()) {
      if (!of || algorithm.collective == *of) choices.push_back({&algorithm, {}});
    }
  };
  for (const std::string& id : options.ids) {
    Collective collective = Collective::kBarrier;
    if (collective_from_name(id, &collective)) {
      add_all(collective);
    } else {
      choices.push_back(value_or_fail(parse_choice(id)));
    }
  }
  if (options.ids.empty()) add_all(std::nullopt);
  return choices;
}

// Where we are, on a terminal only.
void show_progress(std::string_view id, Rank ranks) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K%.*s, %d ranks", static_cast<int>(id.size()), id.data(), ranks);
  if (id.empty()) std::fputs("\r\033[K", stderr);
}

// An algorithm with so many ranks, and what has been found of it.
struct Part {
  const AlgorithmChoice* choice;
  Rank ranks;
  std::int64_t verified = 0;
  std::vector<Json> failed;
};

void prove_part(const VerifyOptions& options, Part& part, Prover& prover) {
  show_progress(part.choice->algorithm->id, part.ranks);
  const auto one = [&](const Case& c) {
    const Status status = prove(c, prover);
    if (status.ok()) {
      ++part.verified;
      return;
    }
    part.failed.push_back({{"id", c.choice.algorithm->id},
                           {"case", text_of(c)},
                           {"reason", std::string(status.message())}});
  };
  for_each_case(*part.choice, part.ranks, places_of(options, part.ranks), options.roots == "all",
                one);
}

// Each of --jobs threads takes the next part that nobody has taken; of several threads the longest
// parts first, so that none is left with one at the end.
void prove_all(const VerifyOptions& options, std::vector<Part>& parts) {
  std::vector<Part*> order;
  order.reserve(parts.size());
  for (Part& part : parts) order.push_back(&part);
  const std::size_t jobs = std::min(static_cast<std::size_t>(options.jobs), parts.size());
  if (jobs > 1) std::ranges::stable_sort(order, std::greater(), &Part::ranks);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    Prover prover;
    for (std::size_t i = next++; i < order.size(); i = next++) {
      prove_part(options, *order[i], prover);
    }
  };
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < jobs; ++i) others.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& other : others) other.get();
  show_progress("", 0);
}

int run(const VerifyOptions& options) {
  const std::vector<AlgorithmChoice> choices = choices_of(options);
  RankRange range = parse_ranks(options.ranks, kMostRanksProven);
  if (!options.nodes.empty()) {
    const Rank ranks = parse_nodes(options.nodes, kMostRanksProven).ranks();
    if (ranks > 0 && options.ranks_given && (range.first != ranks || range.last != ranks)) {
      fail("--nodes {} has {} ranks, --ranks says {}; leave one out", options.nodes, ranks,
           options.ranks);
    }
    if (ranks > 0) range = {ranks, ranks};
  }
  std::vector<Part> parts;
  for (const AlgorithmChoice& choice : choices) {
    for (Rank ranks = range.first; ranks <= range.last; ++ranks) parts.push_back({&choice, ranks});
  }
  prove_all(options, parts);
  std::int64_t verified = 0;
  std::vector<Json> failed;
  for (const Part& part : parts) {
    verified += part.verified;
    failed.insert(failed.end(), part.failed.begin(), part.failed.end());
  }
  if (options.json) {
    std::printf("%s\n", Json{{"verified", verified}, {"failed", failed}}.dump(2).c_str());
    return failed.empty() ? 0 : 1;
  }
  for (const Json& row : failed) {
    std::printf("FAILED %s\n  %s\n", row["case"].text().c_str(), row["reason"].text().c_str());
  }
  const std::string ranks =
      range.first == range.last ? fmt::format("{}", range.first) : options.ranks;
  std::printf("%lld proofs of %zu algorithms for %s ranks, %zu failed\n",
              static_cast<long long>(verified), choices.size(), ranks.c_str(), failed.size());
  return failed.empty() ? 0 : 1;
}

}  // namespace

Action define_verify(Command command) {
  const auto options = std::make_shared<VerifyOptions>();
  command.option(
      "ID", options->ids,
      "algorithms, e.g. bcast.chain allreduce.degree_k:k=4, or collectives; default: all");
  const Option ranks =
      command.option("--ranks", options->ranks, "sizes of the team, e.g. 1-24 or 100");
  ranks.with_default();
  command.option(
      "--nodes", options->nodes,
      "which ranks share a node: 3,1,2 (so many on each) or rr:2 (round robin over two); "
      "default: all one node, and several deals");
  command
      .option("--roots", options->roots,
              "some: all roots of up to 16 ranks, of more ranks the first two, the middle one and "
              "the last; all: all of any number")
      .one_of({"some", "all"})
      .with_default();
  command.option("--jobs", options->jobs, "proofs at a time, each on a core")
      .in_range(1, kMaxJobs)
      .with_default();
  command.flag("--json", options->json, "print JSON");
  return [options, ranks](const Arguments&) {
    options->ranks_given = ranks.given();
    return run(*options);
  };
}

}  // namespace carillon::cli
