// SPDX-License-Identifier: Apache-2.0
#include "cluster/supervisor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "base/boot_id.h"
#include "cluster/busy.h"
#include "cluster/network.h"
#include "cluster/view.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/machine.h"

namespace carillon::cli {
namespace {

void write_launcher_files(const Shape& shape, const std::vector<pid_t>& nodes, int leaves) {
  Arguments shell = {own_path().string(), "cluster", "rsh", "--processes"};
  std::string processes;
  for (const pid_t process : nodes) processes += fmt::format("{},", process);
  processes.pop_back();
  shell.push_back(processes);
  if (leaves > 0) shell.insert(shell.end(), {"--leaves", std::to_string(leaves)});
  shell.emplace_back("--");
  write_script(kRemoteShell, "exec " + shell_words(shell) + " \"$@\"");
  std::ofstream machines(kMachineFile);
  for (int node = 0; node < shape.nodes(); ++node) {
    machines << node_name(node) << ':' << shape.ranks_per_node[static_cast<std::size_t>(node)]
             << '\n';
  }
}

std::vector<pid_t> start_job(const Job& job, const std::vector<pid_t>& nodes) {
  Spawn what{.command = job.command, .environment = job.environment};
  what.environment.emplace_back("TMPDIR", kNodeTemporary);
  // Each node has a boot id of its own and takes itself for a machine; the front's stands for the
  // one whose cores they share.
  what.environment.emplace_back("CARILLON_MACHINE", boot_id());
  if (!job.on_every_node) {
    what.environment.emplace_back(kNodeProcesses, fmt::format("{}", fmt::join(nodes, ",")));
    return {spawn(what)};
  }
  what.environment.emplace_back("CARILLON_NODES", std::to_string(nodes.size()));
  what.environment.emplace_back("CARILLON_NODE", "");
  std::vector<pid_t> commands;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    what.node = nodes[i];
    what.environment.back().second = std::to_string(i);
    if (i == 1) what.input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    commands.push_back(spawn(what));
  }
  return commands;
}

Arguments silent(const Arguments& command) {
  Arguments words = {"/bin/sh", "-c", R"(exec "$0" "$@" > /dev/null)"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// Until all have ended, or one has failed, as with MPI: the others might wait for it for ever.
int await_job(std::vector<pid_t> running, const std::vector<pid_t>& nodes) {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&awaited, signal);
  int result = 0;
  while (!running.empty()) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&awaited, &info);
    if (signal < 0) continue;
    if (signal != SIGCHLD) {
      if (info.si_code == SI_KERNEL) continue;  // from a terminal the job has it already
      for (const pid_t process : running) kill(process, signal);
      continue;
    }
    int status = 0;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto node = std::find(nodes.begin(), nodes.end(), ended);
      if (node != nodes.end()) {
        fail("{} was ended from outside", node_name(static_cast<int>(node - nodes.begin())));
      }
      if (std::erase(running, ended) == 0) continue;  // an orphan of the launcher
      result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (result != 0) return result;
    }
  }
  return result;
}

void tell(const Cluster& cluster, const WireBytes& bytes, const Busy& busy, int status) {
  const int cores = usable_cores();
  if (cluster.json) {
    Json summary = {{"nodes", cluster.shape.nodes()},
                    {"ranks_per_node", cluster.shape.ranks_per_node},
                    {"rate_bits_per_s", cluster.wires.bits_per_s},
                    {"mtu", cluster.wires.mtu},
                    {"loss_percent", 100 * cluster.wires.loss},
                    {"seconds", busy.seconds()},
                    {"cores", cores},
                    {"busy_percent", busy.percent()},
                    {"wire_bytes", bytes.sent},
                    {"wire_bytes_down", bytes.received},
                    {"status", status}};
    if (cluster.wires.leaves > 0) {
      summary["leaf_bytes"] = bytes.leaves_sent;
      summary["leaf_bytes_down"] = bytes.leaves_received;
    }
    std::fprintf(stderr, "%s\n", summary.dump().c_str());
    return;
  }
  std::fprintf(stderr,
               "carillon: %d nodes, %.2f s, %.3g MB over the wires; the machine's %d cores were "
               "%.0f %% busy\n",
               cluster.shape.nodes(), busy.seconds(), static_cast<double>(bytes.sent) * 1e-6, cores,
               busy.percent());
}

}  // namespace

int supervise(const Cluster& cluster, const Job& job) {
  detach_mounts();
  const std::string hosts = hosts_file(cluster.shape.nodes());
  take_own_view(kFrontName, hosts);
  std::vector<pid_t> nodes;
  nodes.reserve(cluster.shape.ranks_per_node.size());
  for (int node = 0; node < cluster.shape.nodes(); ++node) {
    nodes.push_back(start_node(node_name(node), hosts));
  }
  std::vector<pid_t> leaves, beside;
  for (int leaf = 0; leaf < cluster.wires.leaves; ++leaf) {
    leaves.push_back(start_node(leaf_name(leaf), hosts));
  }
  connect_nodes(nodes, leaves, cluster.wires);
  write_launcher_files(cluster.shape, nodes, cluster.wires.leaves);
  for (const Beside& one : job.beside) {
    const pid_t at = one.leaf < 0 ? 0 : leaves[static_cast<std::size_t>(one.leaf)];
    beside.push_back(spawn({.command = silent(one.command), .node = at}));
  }
  const Busy busy;
  const int status = await_job(start_job(job, nodes), nodes);
  for (const pid_t one : beside) kill(one, SIGTERM);
  tell(cluster, wire_bytes(leaves), busy, status);
  return status;
}

int run_remote_shell(const std::vector<pid_t>& nodes, int leaves,
                     const Arguments& node_and_command) {
  const auto named = [&](std::size_t i) {
    return node_and_command[0] == node_name(static_cast<int>(i));
  };
  std::size_t node = 0;
  while (node < nodes.size() && !named(node)) ++node;
  if (node == nodes.size()) fail("the virtual cluster has no node {}", node_and_command[0]);
  std::string words;
  for (std::size_t i = 1; i < node_and_command.size(); ++i) words += node_and_command[i] + " ";
  Spawn what{.command = {"/bin/sh", "-c", words}, .node = nodes[node], .own_group = true};
  if (leaves > 0) {
    const int leaf = leaf_of(static_cast<int>(node), static_cast<int>(nodes.size()), leaves);
    what.environment.emplace_back("CARILLON_SWITCH", leaf_address(leaf) + "," + kFrontAddress);
  }
  const pid_t child = spawn(what);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace carillon::cli
