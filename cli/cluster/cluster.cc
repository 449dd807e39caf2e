// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "cluster/network.h"
#include "cluster/supervisor.h"
#include "support/failure.h"
#include "support/output.h"

namespace carillon::cli {
namespace {

// How long a job that was told to end may take to do so.
constexpr timespec kGrace = {.tv_sec = 5, .tv_nsec = 0};

std::uint64_t effective_capabilities() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word == "CapEff:" && file >> word) return std::stoull(word, nullptr, 16);
  }
  return 0;
}

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int reap(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_status(status);
}

// Waits for the end of the supervisor, and passes on what asks for it. With the supervisor, the
// first process of its PID namespace, the kernel ends all others there.
int guard(pid_t supervisor) {
  const sigset_t awaited = awaited_signals();
  int asked = 0;
  for (;;) {
    siginfo_t info{};
    const int signal =
        asked != 0 ? sigtimedwait(&awaited, &info, &kGrace) : sigwaitinfo(&awaited, &info);
    if (signal < 0 && errno == EINTR) continue;
    if (signal == SIGCHLD) {
      int status = 0;
      if (waitpid(supervisor, &status, WNOHANG) != supervisor) continue;
      return asked != 0 ? 128 + asked : exit_status(status);
    }
    if (asked != 0) {  // a second time, or the grace is over
      kill(supervisor, SIGKILL);
      reap(supervisor);
      return 128 + asked;
    }
    asked = signal;
    // From a terminal the job has it already.
    if (info.si_code != SI_KERNEL) kill(supervisor, signal);
  }
}

[[noreturn]] void be_supervisor(const Cluster& cluster, const Job& job, int go) {
  int status = 1;
  try {
    // A parent that ended before this call sends no signal, and no word to go on either.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char word = 0;
    if (read(go, &word, 1) != 1) _exit(1);
    close(go);
    status = supervise(cluster, job);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "carillon: %s\n", failure.what());
    status = failure.exit_status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon: %s\n", error.what());
  }
  status = end_output(status);
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

void require_cluster(const Cluster& cluster) {
  const std::uint64_t have = effective_capabilities();
  const bool network = (have >> CAP_NET_ADMIN & 1) != 0;
  const bool system = (have >> CAP_SYS_ADMIN & 1) != 0;
  if (!network || !system) {
    fail(
        "a virtual cluster needs {}{}{}, which this process does not have; run it as root, or, "
        "where users may make namespaces, as unshare -Ur carillon cluster ...",
        network ? "" : "CAP_NET_ADMIN", !network && !system ? " and " : "",
        system ? "" : "CAP_SYS_ADMIN");
  }
  require_network_tools(cluster.wires);
  const std::string folder = std::filesystem::current_path();
  if (folder == "/dev/shm" || folder.starts_with("/dev/shm/")) {
    fail(
        "every node has a /dev/shm of its own, so this folder, {}, would be on none of them; "
        "start from another",
        folder);
  }
}

int run_on_cluster(const Cluster& cluster, const Job& job) {
  const sigset_t awaited = awaited_signals();
  std::signal(SIGCHLD, SIG_DFL);  // whatever it was, ignored it would not be awaited
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  std::array<int, 2> go{};
  if (pipe2(go.data(), O_CLOEXEC) != 0) fail("cannot make a pipe: {}", std::strerror(errno));
  const pid_t supervisor = fork_into(kNodeNamespaces);
  if (supervisor < 0) {
    fail(
        "cannot make the namespaces of a virtual cluster: {}; see docs/cluster.md for what it "
        "needs",
        std::strerror(errno));
  }
  if (supervisor == 0) {
    close(go[1]);
    be_supervisor(cluster, job, go[0]);
  }
  close(go[0]);
  if (write(go[1], "g", 1) != 1) kill(supervisor, SIGKILL);
  close(go[1]);
  return guard(supervisor);
}

}  // namespace carillon::cli
