// SPDX-License-Identifier: Apache-2.0
//
// carillon list: the registry, for people and programs.
#include <cstdio>
#include <memory>

#include "algorithms/registry.h"
#include "command.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

struct ListOptions {
  std::vector<std::string> collectives;
  bool json = false;
};

bool wanted(const ListOptions& options, const Algorithm& algorithm) {
  if (options.collectives.empty()) return true;
  for (const std::string& name : options.collectives) {
    if (name == collective_name(algorithm.collective)) return true;
  }
  return false;
}

std::string parameters(const Algorithm& algorithm) {
  std::string text;
  if (algorithm.k.max > 0) {
    const std::string most = algorithm.traits.radix ? "P" : fmt::format("{}", algorithm.k.max);
    text = fmt::format("k={}..{} ({})", algorithm.k.min, most, algorithm.k.fallback);
  }
  if (algorithm.has_segment) text += text.empty() ? "segment" : ", segment";
  if (algorithm.traits.lists) text += ", memory (selective), copies (runs)";
  if (algorithm.has_levels()) text += text.empty() ? "node, leaders" : ", node, leaders";
  return text;
}

// {"node": {"default": ["reduce.flat", "bcast.flat"]}, "leaders": ...}
Json levels(const Algorithm& algorithm) {
  Json node = Json::array();
  for (const std::size_t level : {Algorithm::kBefore, Algorithm::kAfter}) {
    if (!algorithm.levels.at(level).empty()) node.push_back(algorithm.levels.at(level));
  }
  return {{"node", {{"default", node}}},
          {"leaders", {{"default", algorithm.levels[Algorithm::kLeaders]}}}};
}

Json lists() {
  return {{"memory", {{"values", {"pack", "gather", "selective"}}, {"default", "selective"}}},
          {"copies", {{"values", {"runs", "blocks"}}, {"default", "runs"}}}};
}

void print_json(const ListOptions& options) {
  Json list = Json::array();
  for (const Algorithm& algorithm : algorithms()) {
    if (!wanted(options, algorithm)) continue;
    Json row;
    row["id"] = algorithm.id;
    row["collective"] = collective_name(algorithm.collective);
    row["description"] = algorithm.description;
    row["needs_commutative"] = algorithm.needs_commutative;
    row["parameters"] = Json::object();
    if (algorithm.k.max > 0) {
      row["parameters"]["k"] = {
          {"min", algorithm.k.min}, {"max", algorithm.k.max}, {"default", algorithm.k.fallback}};
      if (algorithm.traits.radix) row["parameters"]["k"]["max"] = "ranks";
    }
    if (algorithm.has_segment) row["parameters"]["segment"] = {{"unit", "bytes"}};
    if (algorithm.traits.lists) row["parameters"].update(lists());
    if (algorithm.has_levels()) row["parameters"].update(levels(algorithm));
    list.push_back(std::move(row));
  }
  std::printf("%s\n", Json{{"algorithms", list}}.dump(2).c_str());
}

int run(const ListOptions& options) {
  for (const std::string& name : options.collectives) {
    Collective collective{};
    if (collective_from_name(name, &collective)) continue;
    std::string known;
    for (int i = 0; i < kCollectives; ++i) {
      known += (i > 0 ? ", " : "") + std::string(collective_name(static_cast<Collective>(i)));
    }
    fail("there is no collective \"{}\"; there are {}", name, known);
  }
  if (options.json) {
    print_json(options);
    return 0;
  }
  Table table({"algorithm", "parameters (default)", "description"});
  for (const Algorithm& algorithm : algorithms()) {
    if (!wanted(options, algorithm)) continue;
    std::string description(algorithm.description);
    if (algorithm.needs_commutative) description += "; commutative operators only";
    table.add({std::string(algorithm.id), parameters(algorithm), description});
  }
  std::printf("%s\nTo use one: CARILLON_ALGORITHM=allreduce=degree_k:k=4 carillon run ...\n",
              table.text().c_str());
  return 0;
}

}  // namespace

Action define_list(Command command) {
  const auto options = std::make_shared<ListOptions>();
  command.option("COLLECTIVE", options->collectives, "only those of these collectives");
  command.flag("--json", options->json, "print JSON");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
