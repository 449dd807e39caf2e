// SPDX-License-Identifier: Apache-2.0
#include "cluster/node.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cluster/cluster.h"
#include "cluster/view.h"
#include "support/failure.h"

namespace carillon::cli {
namespace {

// What the first process of a node does for ever. It starts nothing itself, so ignoring its
// children's ends only has the kernel reap those that it inherits.
[[noreturn]] void hold_node() {
  std::signal(SIGCHLD, SIG_IGN);
  for (;;) pause();
}

[[noreturn]] void be_node(const std::string& name, const std::string& hosts, int report) {
  std::string problem;
  try {
    take_own_view(name, hosts);
    // Open MPI's daemons will not start where the program that started them is missing.
    write_script(kRemoteShell, "echo 'from a node there is no way to another' >&2; exit 1");
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const bool told = write(report, problem.c_str(), problem.size() + 1) > 0;
  close(report);
  if (!told || !problem.empty()) _exit(1);
  hold_node();
}

// As a remote shell would: in the same folder, if the node has it.
void enter(const Spawn& what, int node) {
  std::error_code unknown;
  const Path folder = std::filesystem::current_path(unknown);
  // The PID namespace is the one for children, which was set before this process was made.
  if (setns(node, what.namespaces & ~CLONE_NEWPID) != 0) {
    fail("cannot enter a node of the virtual cluster: {}", std::strerror(errno));
  }
  if (!unknown && chdir(folder.c_str()) == 0) return;
  if (chdir("/") != 0) fail("cannot go to /: {}", std::strerror(errno));
}

[[noreturn]] void run_spawned(const Spawn& what, int node) {
  try {
    if (node >= 0) enter(what, node);
    if (what.own_group) setpgid(0, 0);
    if (what.input != STDIN_FILENO) dup2(what.input, STDIN_FILENO);
    for (const auto& [name, value] : what.environment) {
      if (value) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    become(what.command);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "carillon: %s\n", failure.what());
    _exit(failure.exit_status);
  }
}

int open_process(pid_t process) {
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (handle < 0) fail("a node of the virtual cluster has ended: {}", std::strerror(errno));
  return handle;
}

}  // namespace

pid_t fork_into(int new_namespaces) {
  std::fflush(nullptr);
  // NOLINTNEXTLINE(clang-analyzer-optin.*): clone() of the library wants a stack
  return static_cast<pid_t>(
      syscall(SYS_clone, static_cast<unsigned long>(new_namespaces | SIGCHLD), 0, 0, 0, 0));
}

pid_t start_node(const std::string& name, const std::string& hosts) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot make a pipe: {}", std::strerror(errno));
  const pid_t process = fork_into(kNodeNamespaces);
  if (process < 0) fail("cannot make the namespaces of a node: {}", std::strerror(errno));
  if (process == 0) {
    close(ends[0]);
    be_node(name, hosts, ends[1]);
  }
  close(ends[1]);
  std::array<char, 512> report{};
  const ssize_t bytes = read(ends[0], report.data(), report.size() - 1);
  close(ends[0]);
  if (bytes <= 0) fail("{} ended before it was ready", name);
  if (report[0] != '\0') throw Failure(report.data());
  return process;
}

pid_t spawn(const Spawn& what) {
  const int node = what.node > 0 ? open_process(what.node) : -1;
  const bool other_pids = node >= 0 && (what.namespaces & CLONE_NEWPID) != 0;
  const int own = other_pids ? open_process(getpid()) : -1;
  // Of this process only where its next children go to, and only for this one.
  if (other_pids && setns(node, CLONE_NEWPID) != 0) {
    fail("cannot enter a node of the virtual cluster: {}", std::strerror(errno));
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  const int error = errno;
  if (child == 0) run_spawned(what, node);
  if (other_pids) {
    setns(own, CLONE_NEWPID);
    close(own);
  }
  if (node >= 0) close(node);
  if (child < 0) fail("cannot start {}: {}", what.command[0], std::strerror(error));
  return child;
}

}  // namespace carillon::cli
