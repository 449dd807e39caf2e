// SPDX-License-Identifier: Apache-2.0
#include "bench_breakdown.h"

#include <algorithm>
#include <cstdio>

#include "algorithms/registry.h"
#include "cluster/busy.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

constexpr int kBreakdownIterations = 200;

// Those of the collective, and of each that can handle memory in several ways all of these.
std::vector<std::string> all_ways(std::string_view collective) {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (collective_name(algorithm.collective) != collective) continue;
    if (!algorithm.traits.lists) {
      names.emplace_back(algorithm.id);
      continue;
    }
    for (const char* const memory : {"pack", "gather", "selective"}) {
      names.push_back(std::string(algorithm.id) + ":memory=" + memory);
    }
  }
  return names;
}

// "alltoall.bruck_resident:transfer=sendrecv;...", if there are such algorithms.
std::string names_for_program(const std::string& collective,
                              const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) {
    const std::string id = name.substr(0, name.find(':'));
    const Algorithm* const known = find_algorithm(id);
    if (known == nullptr || collective_name(known->collective) != collective) {
      fail("--breakdown measures {}, which has no algorithm \"{}\"; carillon list shows all",
           collective, id);
    }
    value_or_fail(parse_choice(name));  // its parameters
    all += (all.empty() ? "" : ";") + name;
  }
  return all;
}

std::vector<Json> measure(const NodesBench& job, const std::vector<std::string>& names) {
  std::vector<Json> rows;
  RunOptions options;
  options.environment = environment_of(job);
  options.line = [&](std::string_view line) {
    Json row = Json::parse(line);
    if (row.is_object()) rows.push_back(std::move(row));
  };
  std::string sizes;
  for (const std::int64_t bytes : job.sizes) {
    sizes += (sizes.empty() ? "" : ",") + std::to_string(bytes);
  }
  const Arguments command = on_nodes(
      job, "carillon-breakdown",
      {sizes, names_for_program(job.collectives.front(), names), std::to_string(job.iterations)});
  const int status = run_program(command, options).status;
  if (status != 0 || rows.size() != names.size() * job.sizes.size()) {
    fail(
        "the measurement ended with status {} and {} of {} rows; its reason stands above. The "
        "command was: {}",
        status, rows.size(), names.size() * job.sizes.size(), shell_words(command));
  }
  return rows;
}

// What an algorithm does not suit is done by another one: such rows would say nothing.
bool is_of_another(const Json& row) {
  const std::string asked = row["asked"].text();
  return asked.substr(0, asked.find(':')) != row["algorithm"].text();
}

// The memory handling that gainaru2016 is about: everything that moves bytes within the rank.
void add_shares(Json& row) {
  double total = 0;
  for (const auto& [work, us] : row["us"].members()) total += us.number();
  const Json& us = row["us"];
  const double memory = us["pack"].number() + us["unpack"].number() + us["rotate"].number();
  row["total_us"] = total;
  row["memory_us"] = memory;
  row["memory_share"] = total > 0 ? memory / total : 0;
}

std::string text_of(const std::vector<Json>& rows) {
  std::vector<std::string> headings = {"algorithm", ">bytes", ">us", ">lists"};
  for (const auto& [work, us] : rows.front()["us"].members()) headings.push_back(">" + work + " %");
  headings.emplace_back(">memory %");
  Table table(headings);
  for (const Json& row : rows) {
    const double total = row["total_us"].number();
    std::vector<std::string> cells = {row["asked"].text(), short_bytes(row["bytes"].integer()),
                                      short_number(total),
                                      fmt::format("{:.1f}", row["gathered"].number())};
    for (const auto& [work, us] : row["us"].members()) {
      cells.push_back(fmt::format("{:.1f}", total > 0 ? 100 * us.number() / total : 0));
    }
    cells.push_back(fmt::format("{:.1f}", 100 * row["memory_share"].number()));
    table.add(cells);
  }
  return table.text();
}

void print(const NodesBench& job, const std::vector<Json>& rows, const Json& left_out,
           double busy_percent) {
  const std::string network = rows.empty() ? "" : rows.front()["network"].text();
  if (job.json) {
    const Json answer = {{"results", rows},
                         {"not_suited", left_out},
                         {"nodes", job.nodes},
                         {"ranks_per_node", job.ranks_per_node},
                         {"network", network},
                         {"virtual_cluster", !job.one_machine},
                         {"machine", {{"cores", usable_cores()}, {"busy_percent", busy_percent}}}};
    std::printf("%s\n", answer.dump(2).c_str());
    return;
  }
  std::printf(
      "%d node%s of %d rank%s%s, %s; %d cores, %.0f %% busy, all programs together\n"
      "%s, time per call, mean of the ranks; lists: messages sent from where they stood\n",
      job.nodes, job.nodes == 1 ? "" : "s", job.ranks_per_node, job.ranks_per_node == 1 ? "" : "s",
      job.one_machine ? " on this machine" : " of a virtual cluster",
      network.empty() ? "shared memory" : ("network " + network).c_str(), usable_cores(),
      busy_percent, job.collectives.front().c_str());
  if (!rows.empty()) std::printf("%s", text_of(rows).c_str());
  for (const Json& name : left_out) {
    std::printf("%s does not suit this team\n", name.text().c_str());
  }
}

}  // namespace

int run_breakdown(NodesBench job, std::vector<std::string> names) {
  job.one_machine = job.one_machine || job.nodes == 1 || job.network.starts_with("verbs");
  if (job.iterations == 0) job.iterations = kBreakdownIterations;
  if (names.empty()) names = all_ways(job.collectives.front());
  require_nodes(job);
  const Busy busy;
  std::vector<Json> rows;
  Json left_out = Json::array();
  for (Json& row : measure(job, names)) {
    if (is_of_another(row)) {
      const Json& name = row["asked"];
      if (std::find(left_out.begin(), left_out.end(), name) == left_out.end()) {
        left_out.push_back(name);
      }
      continue;
    }
    add_shares(row);
    rows.push_back(std::move(row));
  }
  print(job, rows, left_out, busy.percent());
  return 0;
}

}  // namespace carillon::cli
