// SPDX-License-Identifier: Apache-2.0
//
// carillon cluster: a virtual cluster on this machine for the time of one MPI program (run) or of
// one command per node (exec).
#include "cluster/cluster.h"

#include <cstdlib>
#include <memory>
#include <sstream>

#include "command.h"
#include "mpi/launcher.h"
#include "support/failure.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/switch_engine.h"
#include "transport/aggregate/key_file.h"

namespace carillon::cli {
namespace {

struct ClusterOptions {
  int nodes = 0;
  int ranks_per_node = 1;
  std::string shape, rate, burst;
  std::string loss, duplicate, reorder;
  bool json = false;
  bool snooping = false;
  bool native = false;
  bool stats = false, check = false, shared_heap = false;
  std::string mpi, trace;
  std::string switch_key, switch_engine = kReferenceEngine;
  int leaves = 0, mtu = kUsualMtu;
  std::string launcher_options;
  std::vector<pid_t> processes;  // of rsh
};

Cluster cluster_of(const ClusterOptions& options) {
  Cluster cluster{.json = options.json};
  if (!options.shape.empty()) {
    cluster.shape = parse_shape(options.shape);
  } else if (options.nodes > 0) {
    cluster.shape.ranks_per_node.assign(static_cast<std::size_t>(options.nodes),
                                        options.ranks_per_node);
  } else {
    throw Failure("how many nodes? Say --nodes 2 (of run also --ppn 2, or --shape 3,1,2)",
                  kWrongUse);
  }
  if (cluster.shape.nodes() > kMaxNodes) {
    fail("{} nodes are too many for one machine; at most {}", cluster.shape.nodes(), kMaxNodes);
  }
  if (cluster.shape.ranks() > kMaxRanksStarted) {
    fail("{} ranks are too many for one machine; at most {}", cluster.shape.ranks(),
         kMaxRanksStarted);
  }
  if (!options.rate.empty()) cluster.wires.bits_per_s = parse_rate(options.rate);
  if (!options.burst.empty()) cluster.wires.burst_bytes = parse_burst(options.burst);
  if (!options.loss.empty()) cluster.wires.loss = parse_share("--loss", options.loss);
  cluster.wires.snooping = options.snooping;
  cluster.wires.mtu = options.mtu;
  constexpr int kFrameBytes = 14;  // Ethernet's header
  if (cluster.wires.bits_per_s > 0 && options.mtu + kFrameBytes > cluster.wires.burst_bytes) {
    fail(
        "a packet of --mtu {} is longer than a wire lets through at once, {} bytes; give more by "
        "--burst",
        options.mtu, cluster.wires.burst_bytes);
  }
  if (options.leaves > cluster.shape.nodes()) {
    fail("--switch-leaves {} are more than the {} nodes", options.leaves, cluster.shape.nodes());
  }
  cluster.wires.leaves = options.leaves;
  require_cluster(cluster);
  return cluster;
}

Arguments words_of(const std::string& text) {
  std::istringstream input(text);
  Arguments words;
  for (std::string word; input >> word;) words.push_back(word);
  return words;
}

// Has the launcher start its daemons on the nodes through kRemoteShell, all of them from the front:
// from a node there is no way to another.
Arguments hosts_options(const Launcher& launcher, const Shape& shape) {
  if (launcher.kind == Launcher::Kind::kHydra) {
    return {"-launcher", "rsh", "-launcher-exec", kRemoteShell, "-f", kMachineFile};
  }
  std::string hosts;
  for (int node = 0; node < shape.nodes(); ++node) {
    hosts += fmt::format("{}{}:{}", node > 0 ? "," : "", node_name(node),
                         shape.ranks_per_node[static_cast<std::size_t>(node)]);
  }
  return {"--host", hosts};
}

// The user's own settings come first. Each of Open MPI's nodes believes it has the whole machine,
// and all of them would bind their first rank to the same core. Its daemons would also make
// sessions of their own (see Spawn::own_group).
Environment launcher_environment(const Shape& shape) {
  Environment environment;
  const auto add = [&](const char* name, const char* value) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (std::getenv(name) == nullptr) environment.emplace_back(name, value);
  };
  add("OMPI_MCA_plm_rsh_agent", kRemoteShell);
  add("OMPI_MCA_plm_rsh_no_tree_spawn", "1");
  add("OMPI_MCA_orte_leave_session_attached", "1");
  add("OMPI_MCA_hwloc_base_binding_policy", "none");
  add("PRTE_MCA_plm_ssh_agent", kRemoteShell);
  add("PRTE_MCA_plm_ssh_no_tree_spawn", "1");
  add("PRTE_MCA_prte_leave_session_attached", "1");
  add("PRTE_MCA_hwloc_default_binding_policy", "none");
  if (shape.ranks() > usable_cores()) add("OMPI_MCA_mpi_yield_when_idle", "1");
  return environment;
}

// What no packet filter can do to TCP: the ranks do it to themselves.
void add_faults(const ClusterOptions& options) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* const given = std::getenv("CARILLON_FAULT");
  std::string faults = given == nullptr ? "" : given;
  const auto add = [&](const char* name, const std::string& text) {
    if (text.empty()) return;
    const double share = parse_share(std::string("--") + name, text);
    faults += fmt::format("{}{}={}", faults.empty() ? "" : ",", name, share);
  };
  add("duplicate", options.duplicate);
  add("reorder", options.reorder);
  if (!faults.empty()) setenv("CARILLON_FAULT", faults.c_str(), 1);
}

// The commands of the switches, on the front and on the leaves, if there are any. The ranks are
// told of the front's; where there are leaves, run_remote_shell tells each node.
std::vector<Beside> switches_of(const ClusterOptions& options) {
  if (options.switch_key.empty()) return {};
  require_engine(options.switch_engine);
  const std::string key = std::filesystem::absolute(options.switch_key).string();
  if (const auto read = aggregate::read_key_file(key, "--switch"); !read.ok()) {
    fail("{}", read.status().message());
  }
  if (options.leaves == 0) {
    setenv("CARILLON_SWITCH", kFrontAddress, 1);
  } else {
    unsetenv("CARILLON_SWITCH");  // some launchers' environment would win over the node's
  }
  setenv("CARILLON_SWITCH_KEY", key.c_str(), 1);
  const auto at = [&](const std::string& address, int number) {
    return Arguments{
        own_path().string(),    "switchd",    "--listen", address,    "--number",
        std::to_string(number), "--key-file", key,        "--engine", options.switch_engine};
  };
  std::vector<Beside> all = {{.command = at(kFrontAddress, 0)}};
  for (int leaf = 0; leaf < options.leaves; ++leaf) {
    all.push_back({.command = at(leaf_address(leaf), leaf + 1), .leaf = leaf});
  }
  return all;
}

int run(const ClusterOptions& options, const Arguments& program) {
  add_faults(options);
  const std::vector<Beside> in_switch = switches_of(options);
  require_settings();
  refuse_inside_launcher("carillon cluster run");
  const Cluster cluster = cluster_of(options);
  require_program(program[0]);
  const Linkage linkage = find_linkage(program, options.mpi);
  Arguments rank;
  if (!options.native) {
    require_interposer(linkage.abi);
    if (options.shared_heap) require_shared_heap();
    rank = {own_path().string(), "exec", "--mpi", std::string(names_of(linkage.abi).name)};
    if (options.stats) rank.emplace_back("--stats");
    if (options.stats && options.json) rank.emplace_back("--json");
    if (options.check) rank.emplace_back("--check");
    if (options.shared_heap) rank.emplace_back("--shared-heap");
    if (!options.trace.empty()) {
      require_trace(options.trace);
      rank.insert(rank.end(), {"--trace", std::filesystem::absolute(options.trace)});
    }
    rank.emplace_back("--");
  }
  rank.insert(rank.end(), program.begin(), program.end());
  const Launcher launcher = require_launcher(linkage);
  Arguments extra = hosts_options(launcher, cluster.shape);
  for (std::string& word : words_of(options.launcher_options)) extra.push_back(std::move(word));
  return run_on_cluster(cluster,
                        {.command = launch_command(launcher, cluster.shape.ranks(), extra, rank),
                         .environment = launcher_environment(cluster.shape),
                         .beside = in_switch});
}

int exec(const ClusterOptions& options, const Arguments& program) {
  const Cluster cluster = cluster_of(options);
  require_program(program[0]);
  return run_on_cluster(cluster, {.command = program, .on_every_node = true});
}

void add_cluster_options(Command command, ClusterOptions* options) {
  command.option("--nodes", options->nodes, "number of nodes").in_range(1, kMaxNodes);
  const Option rate =
      command.option("--rate", options->rate,
                     "of each node's wire, each way, e.g. 200mbit or 1gbit; default: no limit");
  command
      .option("--burst", options->burst,
              "bytes that a wire lets through at once after a pause, e.g. 3K; default: 256K")
      .needs(rate);
  command.option("--loss", options->loss,
                 "share of the packets that get lost on their way to each node, e.g. 1%");
  command.option("--mtu", options->mtu, "longest packet of the wires, without Ethernet's header")
      .in_range(kMinMtu, kMaxMtu)
      .with_default();
  command.flag("--snooping", options->snooping,
               "the switch passes multicasts on to nodes that have joined only (IGMP snooping)");
  command.flag("--json", options->json, "the summary at the end of stderr as JSON");
}

void define_cluster_run(Command command, const std::shared_ptr<ClusterOptions>& options) {
  add_cluster_options(command, options.get());
  const Option ranks =
      command.option("--ppn", options->ranks_per_node, "ranks on each node; default: 1")
          .in_range(1, kMaxRanksStarted);
  command.option("--shape", options->shape, "ranks of each node, e.g. 3,1,2, for --nodes and --ppn")
      .excludes("--nodes")
      .excludes(ranks);
  command.option("--mpi", options->mpi,
                 "the program's MPI: openmpi, mpich or mpiabi; default: looked up in the program");
  const Option native =
      command.flag("--native", options->native, "with the program's own MPI alone");
  command.flag("--stats", options->stats, std::string(kStatsHelp) + "; with --json as JSON, too")
      .excludes(native);
  command.flag("--check", options->check, kCheckHelp).excludes(native);
  command.flag("--shared-heap", options->shared_heap, kSharedHeapHelp).excludes(native);
  command.option("--trace", options->trace, kTraceHelp).excludes(native);
  command
      .option("--duplicate", options->duplicate,
              "share of carillon's messages that are told twice, e.g. 0.1% (CARILLON_FAULT)")
      .excludes(native);
  command
      .option("--reorder", options->reorder,
              "share of carillon's messages that others overtake, e.g. 5% (CARILLON_FAULT)")
      .excludes(native);
  const Option with_switch =
      command
          .option(
              "--switch", options->switch_key,
              "a switch that reduces runs where the wires meet (carillon switchd); the file with "
              "its key, made by carillon switchd --new-key")
          .excludes(native);
  command
      .option("--switch-engine", options->switch_engine,
              "what does its work (carillon switchd --engine)")
      .one_of({kReferenceEngine, kRtlEngine})
      .needs(with_switch)
      .with_default();
  command
      .option("--switch-leaves", options->leaves,
              "a tree: so many switches that reduce are between the nodes and that one")
      .in_range(1, kMaxNodes)
      .needs(with_switch)
      .excludes("--snooping");
  command
      .option("--launcher-options", options->launcher_options,
              "further options for mpirun or mpiexec, e.g. \"--mca pml ob1\"")
      .may_be_empty();
}

}  // namespace

Action define_cluster(Command command) {
  const auto options = std::make_shared<ClusterOptions>();
  command.require_subcommand();
  const Command of_run = command.subcommand("run", "run an MPI program on a virtual cluster");
  define_cluster_run(of_run, options);
  of_run.footer(
      "carillon cluster run [OPTIONS] [--] PROGRAM ARGS...\n\nExample:\n"
      "  carillon cluster run --nodes 2 --ppn 2 --rate 200mbit ./app");
  const Command of_exec = command.subcommand(
      "exec", "run a command on every node, with CARILLON_NODE and CARILLON_NODES set");
  add_cluster_options(of_exec, options.get());
  of_exec.footer(
      "carillon cluster exec [OPTIONS] [--] PROGRAM ARGS...\n\nExample:\n"
      "  carillon cluster exec --nodes 2 -- hostname");
  const Command of_rsh = command.subcommand("rsh", "what launchers start their daemons with");
  of_rsh.hide();  // not for people
  of_rsh.option("--processes", options->processes, "").comma_separated().required();
  of_rsh.option("--leaves", options->leaves, "");
  return [=](const Arguments& program) {
    if (of_run.given()) return run(*options, program);
    if (of_exec.given()) return exec(*options, program);
    return run_remote_shell(options->processes, options->leaves, program);
  };
}

}  // namespace carillon::cli
