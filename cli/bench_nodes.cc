// SPDX-License-Identifier: Apache-2.0
#include "bench_nodes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench_job.h"
#include "cluster/busy.h"
#include "cluster/cluster.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

constexpr int kNodesIterations = 300;
constexpr const char* kPort = "7711";  // of the cluster's own node 0: nobody else is there

struct Rows {
  Json head = Json::object();
  std::vector<Json> results, floor;
};

void check(const NodesBench& job) {
  std::vector<std::string> ways = job.compare;
  std::sort(ways.begin(), ways.end());
  if (ways != std::vector<std::string>{"rdma", "sendrecv"}) {
    throw Failure("--compare compares sendrecv with rdma: say --compare sendrecv,rdma", kWrongUse);
  }
  if (job.nodes < 2) {
    throw Failure("between how many nodes? Say --nodes 16, at least 2", kWrongUse);
  }
  for (const std::string& name : job.collectives) {
    if (name != "bcast" && name != "allreduce") {
      throw Failure(fmt::format("--compare measures bcast and allreduce, not {}", name), kWrongUse);
    }
  }
  for (const std::int64_t bytes : job.sizes) {
    if (bytes == 0 || bytes % 4 != 0) {
      throw Failure(fmt::format("--compare sums floats of 4 bytes: {} bytes are none", bytes),
                    kWrongUse);
    }
  }
  require_nodes(job);
}

Arguments command_of(const NodesBench& job) {
  return on_nodes(job, "carillon-nodes-bench",
                  {comma_list(job.collectives), comma_list(job.sizes), comma_list(job.degrees),
                   std::to_string(job.iterations)});
}

Rows measure(const NodesBench& job) {
  Rows rows;
  RunOptions options;
  options.environment = environment_of(job);
  options.line = [&](std::string_view line) {
    Json row = Json::parse(line);
    if (!row.is_object()) return;
    if (row.contains("network"))
      rows.head = std::move(row);
    else if (row.contains("floor"))
      rows.floor.push_back(std::move(row));
    else
      rows.results.push_back(std::move(row));
  };
  const Arguments command = command_of(job);
  const int status = run_program(command, options).status;
  const std::size_t expected = job.collectives.size() * job.sizes.size() * job.degrees.size();
  if (status != 0 || rows.results.size() != expected) {
    fail(
        "the measurement ended with status {} and {} of {} rows; its reason stands above. The "
        "command was: {}",
        status, rows.results.size(), expected, shell_words(command));
  }
  for (Json& row : rows.results) {
    row["ratio"] = row["rdma_us"].number() / row["sendrecv_us"].number();
  }
  for (Json& row : rows.floor) row.erase("floor");
  return rows;
}

std::string number(const Json& work, const char* name) {
  return fmt::format("{:.1f}", work[name].number());
}

std::string times_text(const Rows& rows) {
  Table table({"collective", ">bytes", ">k", ">send/recv us", ">remote write us", ">difference"});
  for (const Json& row : rows.results) {
    table.add({row["collective"].text(), short_bytes(row["bytes"].integer()),
               std::to_string(row["k"].integer()), short_number(row["sendrecv_us"].number()),
               short_number(row["rdma_us"].number()),
               fmt::format("{:+.0f} %", 100 * (row["ratio"].number() - 1))});
  }
  return table.text();
}

std::string work_text(const Rows& rows) {
  Table table({"collective", ">bytes", ">k", "by", ">sends", ">puts", ">gets", ">receives posted",
               ">completions", ">immediates", ">bytes copied"});
  for (const Json& row : rows.results) {
    for (const char* const way : {"sendrecv", "rdma"}) {
      const Json& work = row[way];
      table.add({row["collective"].text(), short_bytes(row["bytes"].integer()),
                 std::to_string(row["k"].integer()), way, number(work, "sends"),
                 number(work, "puts"), number(work, "gets"), number(work, "receives_posted"),
                 number(work, "completions"), number(work, "immediates"),
                 fmt::format("{:.0f}", work["copied_bytes"].number())});
    }
  }
  return table.text();
}

std::string floor_text(const Rows& rows) {
  Table table({">bytes", ">bare sockets us", ">remote write us"});
  for (const Json& row : rows.floor) {
    table.add({short_bytes(row["bytes"].integer()), short_number(row["socket_us"].number()),
               short_number(row["rdma_us"].number())});
  }
  return table.text();
}

void print(const NodesBench& job, const Rows& rows, const Busy& busy) {
  const int cores = usable_cores();
  const bool crowded = rows.head.contains("crowded") && rows.head["crowded"].truth();
  const std::string network = rows.head.contains("network") ? rows.head["network"].text() : "";
  if (job.json) {
    const Json answer = {{"results", rows.results},
                         {"floor", rows.floor},
                         {"nodes", job.nodes},
                         {"ranks_per_node", job.ranks_per_node},
                         {"network", network},
                         {"virtual_cluster", !job.one_machine},
                         {"machine",
                          {{"cores", cores},
                           {"crowded", crowded},
                           {"busy_percent", busy.percent()},
                           {"seconds", busy.seconds()}}}};
    std::printf("%s\n", answer.dump(2).c_str());
    return;
  }
  std::printf(
      "%d nodes of %d rank%s %s, network %s; %d cores%s, %.0f %% busy, all programs together\n"
      "k 1: binomial tree; k: degree-k tree. Time of a call on the slowest rank, medians\n%s",
      job.nodes, job.ranks_per_node, job.ranks_per_node == 1 ? "" : "s",
      job.one_machine ? "on this machine" : "of a virtual cluster", network.c_str(), cores,
      crowded ? ", fewer than ranks" : "", busy.percent(), times_text(rows).c_str());
  std::printf("\nWork per call, all ranks together\n%s", work_text(rows).c_str());
  if (rows.floor.empty()) return;
  std::printf("\nFloor: binomial allreduce on bare TCP sockets, and beside it by remote write\n%s",
              floor_text(rows).c_str());
}

}  // namespace

Arguments on_nodes(const NodesBench& job, const char* program, const Arguments& words) {
  const Path path = own_path().parent_path() / program;
  if (!std::filesystem::exists(path)) {
    fail("{} is missing; build or install carillon again", path.string());
  }
  Arguments command;
  if (!job.one_machine) {
    command = {own_path().string(), "cluster", "exec", "--nodes", std::to_string(job.nodes), "--"};
  }
  const Arguments ranks = {path.string(),
                           std::to_string(job.nodes),
                           std::to_string(job.ranks_per_node),
                           job.one_machine ? "-1" : "0",
                           job.one_machine ? "127.0.0.1" : "10.0.0.1",
                           job.one_machine ? "0" : kPort};
  command.insert(command.end(), ranks.begin(), ranks.end());
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

Environment environment_of(const NodesBench& job) {
  Environment environment;
  if (!job.network.empty()) environment.emplace_back("CARILLON_NETWORK", job.network);
  if (job.one_machine) {
    environment.emplace_back("CARILLON_NODE_RANKS", std::to_string(job.ranks_per_node));
  }
  return environment;
}

void require_nodes(const NodesBench& job) {
  if (!job.one_machine) {
    Cluster cluster;
    cluster.shape.ranks_per_node.assign(static_cast<std::size_t>(job.nodes), job.ranks_per_node);
    if (job.nodes > kMaxNodes) {
      fail("{} nodes are too many for one machine; at most {}", job.nodes, kMaxNodes);
    }
    require_cluster(cluster);
  }
  if (job.nodes * job.ranks_per_node > kMaxRanksStarted) {
    fail("{} ranks are too many for one machine; at most {}", job.nodes * job.ranks_per_node,
         kMaxRanksStarted);
  }
}

int run_nodes_bench(NodesBench job) {
  // The virtual cluster's wires are of Ethernet.
  job.one_machine = job.one_machine || job.network.starts_with("verbs");
  if (job.iterations == 0) job.iterations = kNodesIterations;
  if (job.collectives.empty()) job.collectives = {"bcast", "allreduce"};
  check(job);
  const Busy busy;
  print(job, measure(job), busy);
  return 0;
}

}  // namespace carillon::cli
