// SPDX-License-Identifier: Apache-2.0
//
// carillon info: version, settings in force, the MPIs found, the machine.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "base/config.h"
#include "carillon/carillon.h"
#include "command.h"
#include "mpi/launcher.h"
#include "predict/predict.h"
#include "select/select.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/settings.h"
#include "support/table.h"
#include "support/topology.h"

namespace carillon::cli {
namespace {

struct InfoOptions {
  bool config = false;
  bool json = false;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

Json settings_json() {
  Json list = Json::array();
  for (const Setting& setting : all_settings()) {
    list.push_back({{"name", setting.name},
                    {"type", setting.type},
                    {"default", setting.fallback},
                    {"value", setting.value},
                    {"description", setting.description}});
  }
  return list;
}

Json mpis_json() {
  Json list = Json::array();
  for (const Installed& mpi : installed_mpis()) {
    Json row;
    row["name"] = names_of(mpi.abi).name;
    row["interposer"] = mpi.has_interposer ? Json(interposer_path(mpi.abi).string()) : Json();
    row["launcher"] = mpi.launcher ? Json(mpi.launcher->path.string()) : Json();
    row["version"] = mpi.launcher ? Json(mpi.launcher->version) : Json();
    list.push_back(std::move(row));
  }
  return list;
}

void print_settings() {
  Table table({"variable", "value", "default", "type", "meaning"});
  for (const Setting& setting : all_settings()) {
    table.add({std::string(setting.name), setting.value, setting.fallback,
               std::string(setting.type), std::string(setting.description)});
  }
  std::printf("%s", table.text().c_str());
}

// What a rank uses for members on other nodes, with the settings in force; null if they cannot be
// read.
Json network_json() {
  constexpr int kRanks = 1024;
  constexpr int kTreeNeighbours = 2 * 10;  // up and down binomial trees of any root
  if (crl_network_bytes(kRanks, kTreeNeighbours) == 0) return nullptr;
  const auto mib = [](int neighbours) {
    return static_cast<double>(crl_network_bytes(kRanks, neighbours)) / (1 << 20);
  };
  return {{"ranks", kRanks},
          {"mib_per_rank_trees", mib(kTreeNeighbours)},
          {"mib_per_rank_all_to_all", mib(kRanks - 1)}};
}

std::string network_text() {
  const Json memory = network_json();
  if (memory.is_null()) return "between nodes: see the settings";
  return fmt::format(
      "between nodes: a team of {} ranks uses at most {:.1f} MiB per rank for trees, {:.1f} MiB if "
      "each rank speaks to all",
      memory["ranks"].integer(), memory["mib_per_rank_trees"].number(),
      memory["mib_per_rank_all_to_all"].number());
}

// From how many ranks on, on nodes of `ppn`, teams with a core for each rank survey the tables of
// their alltoallvs; null: never.
Json least_surveyed(const Rules& rules, Rank ppn) {
  constexpr Rank kMost = 1024;
  for (Rank ranks = 2 * ppn; ranks <= kMost; ranks += ppn) {
    Limits limits;
    limits.nodes = predict::even_nodes(ranks, ppn);
    limits.slot_bytes = predict::slot_bytes(*limits.nodes);
    const Shared shared{.collective = Collective::kAlltoallv, .ranks = ranks};
    if (!why_no_surveys(shared, limits, rules)) return ranks;
  }
  return nullptr;
}

// With the settings in force; null if they cannot be read.
Json surveys_json() {
  const auto settings = read_config();
  if (!settings.ok()) return nullptr;
  auto rules = parse_rules(settings.value().algorithm);
  if (!rules.ok()) return nullptr;
  rules.value().surveys = survey_policy(settings.value().surveys);
  return {{"setting", settings.value().surveys},
          {"from_ranks_one_on_a_node", least_surveyed(rules.value(), 1)},
          {"from_ranks_four_on_a_node", least_surveyed(rules.value(), 4)}};
}

std::string surveys_text() {
  const Json surveys = surveys_json();
  const std::string head = "alltoallv between nodes: ";
  if (surveys.is_null()) return head + "see the settings";
  const std::string tail = fmt::format(" (CARILLON_SURVEYS={})", surveys["setting"].text());
  const Json& one = surveys["from_ranks_one_on_a_node"];
  const Json& four = surveys["from_ranks_four_on_a_node"];
  if (one.is_null() || four.is_null()) return head + "tables are not surveyed" + tail;
  return head +
         fmt::format(
             "tables are surveyed in teams of {} ranks and more, of {} with four on "
             "a node{}",
             one.integer(), four.integer(),
             surveys["setting"] == "auto" ? ", if each has a core" : "") +
         tail;
}

void print_mpis() {
  Table table({"MPI", "interposer", "launcher"});
  for (const Installed& mpi : installed_mpis()) {
    const std::string launcher =
        mpi.launcher ? fmt::format("{} ({})", mpi.launcher->path.string(), mpi.launcher->version)
                     : std::string("none on PATH");
    table.add({std::string(names_of(mpi.abi).name),
               mpi.has_interposer ? interposer_path(mpi.abi).string() : "not built", launcher});
  }
  std::printf("%s", table.text().c_str());
}

// Shown as they are, also those that cannot be.
void warn_of_bad_settings() {
  try {
    require_settings();
  } catch (const Failure& bad) {
    std::fprintf(stderr, "carillon: warning: %s\n", bad.what());
  }
}

int run(const InfoOptions& options) {
  warn_of_bad_settings();
  const long memory_mib = sysconf(_SC_PHYS_PAGES) / 1024 * sysconf(_SC_PAGESIZE) / 1024;
  if (options.json) {
    Json json;
    json["version"] = crl_version();
    json["settings"] = settings_json();
    if (!options.config) {
      json["mpis"] = mpis_json();
      json["machine"] = {{"processor", processor_name()},
                         {"cores", usable_cores()},
                         {"memory_mib", memory_mib},
                         {"topology", to_json(find_topology())}};
      json["network_memory"] = network_json();
      json["surveys"] = surveys_json();
    }
    std::printf("%s\n", json.dump(2).c_str());
    return 0;
  }
  if (options.config) {
    print_settings();
    return 0;
  }
  std::printf("carillon %s\n%s, %d usable cores, %ld MiB\n%s\n\n", crl_version(),
              processor_name().c_str(), usable_cores(), memory_mib,
              to_text(find_topology()).c_str());
  print_mpis();
  std::printf("\n%s\n%s\n\n", network_text().c_str(), surveys_text().c_str());
  print_settings();
  return 0;
}

}  // namespace

Action define_info(Command command) {
  const auto options = std::make_shared<InfoOptions>();
  command.flag("--config", options->config, "only the settings");
  command.flag("--json", options->json, "print JSON");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
