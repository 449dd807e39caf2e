// SPDX-License-Identifier: Apache-2.0
#include "bench_surveys.h"

#include <algorithm>
#include <cstdio>
#include <functional>

#include "cluster/busy.h"
#include "support/failure.h"
#include "support/interval.h"
#include "support/json.h"
#include "support/machine.h"
#include "support/median.h"
#include "support/options.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

using Values = std::vector<double>;

constexpr int kCallsOfRound = 64;  // of which one surveys
constexpr std::size_t kWays = 5, kTables = 2;

std::vector<Json> measure(const NodesBench& job, int rounds) {
  std::vector<Json> rows;
  RunOptions options;
  options.environment = environment_of(job);
  options.line = [&](std::string_view line) {
    Json row = Json::parse(line);
    if (row.is_object()) rows.push_back(std::move(row));
  };
  const Arguments command = on_nodes(job, "carillon-surveys-bench",
                                     {fmt::format("{}", fmt::join(job.sizes, ",")),
                                      std::to_string(rounds), std::to_string(job.iterations)});
  const int status = run_program(command, options).status;
  const std::size_t expected = kWays * kTables * job.sizes.size();
  if (status != 0 || rows.size() != expected) {
    fail(
        "the measurement ended with status {} and {} of {} rows; its reason stands above. The "
        "command was: {}",
        status, rows.size(), expected, shell_words(command));
  }
  return rows;
}

template <typename Combine>
Values with_neighbours(const Values& us, const Values& base, Combine combine) {
  Values all;
  for (std::size_t i = 0; i < std::min(us.size(), base.size()); ++i) {
    all.push_back(combine(us[i], base[i]));
  }
  return all;
}

Json estimate(const Values& values) {
  const auto [low, high] = median_interval(values);
  return {{"median", median(values)}, {"interval", {low, high}}};
}

// Each row is compared with the pairwise exchange of the same tables and bytes, round by round.
void compare(std::vector<Json>& rows) {
  for (Json& row : rows) {
    for (const Json& base : rows) {
      if (base["way"] != "pairwise" || base["tables"] != row["tables"] ||
          base["bytes"] != row["bytes"]) {
        continue;
      }
      const Values us = row["us"].numbers(), pairwise = base["us"].numbers();
      row["median_us"] = median(us);
      row["over_pairwise"] = estimate(with_neighbours(us, pairwise, std::divides<>()));
      row["more_us"] = estimate(with_neighbours(us, pairwise, std::minus<>()));
    }
  }
}

std::string text_of(const Json& estimate, int digits) {
  return fmt::format("{:.{}f} [{:.{}f} {:.{}f}]", estimate["median"].number(), digits,
                     estimate["interval"][0].number(), digits, estimate["interval"][1].number(),
                     digits);
}

std::string times_text(const std::vector<Json>& rows) {
  Table table({"tables", ">bytes", "way", ">us", ">/ pairwise", ">us more than pairwise"});
  for (const Json& row : rows) {
    table.add({row["tables"].text(), short_bytes(row["bytes"].integer()), row["way"].text(),
               short_number(row["median_us"].number()), text_of(row["over_pairwise"], 2),
               text_of(row["more_us"], 1)});
  }
  return table.text();
}

std::string decisions_text(const std::vector<Json>& rows) {
  Table table({"tables", ">bytes", ">calls", "algorithm", "why"});
  for (const Json& row : rows) {
    if (row["way"] != "surveyed") continue;
    for (const Json& each : row["decisions"]) {
      table.add({row["tables"].text(), short_bytes(row["bytes"].integer()),
                 std::to_string(each["calls"].integer()), each["algorithm"].text(),
                 each["reason"].text()});
    }
  }
  return table.text();
}

void print(const NodesBench& job, int rounds, const std::vector<Json>& rows, double busy_percent) {
  const std::string network = rows.front()["network"].text();
  if (job.json) {
    const Json answer = {{"results", rows},
                         {"rounds", rounds},
                         {"calls", job.iterations},
                         {"nodes", job.nodes},
                         {"ranks_per_node", job.ranks_per_node},
                         {"network", network},
                         {"virtual_cluster", !job.one_machine},
                         {"machine", {{"cores", usable_cores()}, {"busy_percent", busy_percent}}}};
    std::printf("%s\n", answer.dump(2).c_str());
    return;
  }
  std::printf(
      "%d nodes of %d rank%s %s, network %s; %d cores, %.0f %% busy, all programs together\n"
      "alltoallv with blocks of 0 to twice the bytes, %d rounds of %d calls by each way in turn; "
      "time "
      "of a call on the slowest rank: medians, and their intervals with a confidence of 95 %%\n"
      "survey: each call surveys; surveyed: as surveys say, one call of 64\n%s",
      job.nodes, job.ranks_per_node, job.ranks_per_node == 1 ? "" : "s",
      job.one_machine ? "on this machine" : "of a virtual cluster", network.c_str(), usable_cores(),
      busy_percent, rounds, job.iterations, times_text(rows).c_str());
  std::printf("\nHow the surveyed calls were done, those before the measurement among them\n%s",
              decisions_text(rows).c_str());
}

}  // namespace

int run_surveys_bench(NodesBench job, int rounds) {
  if (job.nodes < 2) {
    throw Failure("between how many nodes? Say --nodes 4, at least 2", kWrongUse);
  }
  job.one_machine = job.one_machine || job.network.starts_with("verbs");
  if (job.iterations == 0) job.iterations = kCallsOfRound;
  require_nodes(job);
  const Busy busy;
  std::vector<Json> rows = measure(job, rounds);
  compare(rows);
  print(job, rounds, rows, busy.percent());
  return 0;
}

}  // namespace carillon::cli
