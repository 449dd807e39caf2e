// SPDX-License-Identifier: Apache-2.0
#include "support/job.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <string_view>
#include <thread>

#include "transport/fabric/library.h"

namespace carillon::test {
namespace {

constexpr std::size_t kMaxBytes = 512;
constexpr int kMaxMembers = 128;

}  // namespace

// Two rounds' worth of data: a member is at most one round ahead of another.
struct Meeting::Shared {
  int size = 0;
  std::atomic<long> arrived{0};  // over all rounds
  std::array<std::array<std::array<char, kMaxBytes>, kMaxMembers>, 2> data{};
};

struct Meeting::Member {
  Shared* shared = nullptr;
  int rank = 0;
  long round = 0;
  void* out = nullptr;
  std::size_t bytes = 0;
};

namespace {

int post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p) {
  auto& member = *static_cast<Meeting::Member*>(arg);
  if (bytes > kMaxBytes) return 1;
  auto& place = member.shared->data[static_cast<std::size_t>(member.round % 2)];
  std::memcpy(place[static_cast<std::size_t>(member.rank)].data(), in, bytes);
  member.out = out;
  member.bytes = bytes;
  member.shared->arrived.fetch_add(1, std::memory_order_release);  // partner: test()
  *request_p = &member;
  return 0;
}

int test(void* /*arg*/, void* request) {
  auto& member = *static_cast<Meeting::Member*>(request);
  Meeting::Shared& shared = *member.shared;
  // partner: post() of every member
  if (shared.arrived.load(std::memory_order_acquire) < shared.size * (member.round + 1)) return 1;
  const auto& place = shared.data[static_cast<std::size_t>(member.round % 2)];
  for (int i = 0; i < shared.size; ++i) {
    std::memcpy(static_cast<char*>(member.out) + static_cast<std::size_t>(i) * member.bytes,
                place[static_cast<std::size_t>(i)].data(), member.bytes);
  }
  ++member.round;
  return 0;
}

bool count_as_nodes() {
  const char* const nodes = std::getenv("CARILLON_NODE_RANKS");
  return nodes != nullptr && !std::string_view(nodes).empty();
}

}  // namespace

void look_for_networks() {
  // What this process opens of an RDMA device, another may not use.
  std::error_code none;
  if (!std::filesystem::is_empty("/sys/class/infiniband", none) && !none) return;
  static const int kOnce = [] {
    const auto library = fabric::Library::load();
    if (!library.ok()) return 0;  // the ranks say so
    fi_info* found = nullptr;
    const int error = library.value()->getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
                                               nullptr, nullptr, 0, nullptr, &found);
    if (error == 0) library.value()->freeinfo(found);
    return error;
  }();
  static_cast<void>(kOnce);
}

Meeting::Meeting(int size) : members_(static_cast<std::size_t>(size)) {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || size > kMaxMembers) std::abort();
  shared_ = new (memory) Shared();
  shared_->size = size;
  for (int i = 0; i < size; ++i) {
    members_[static_cast<std::size_t>(i)].shared = shared_;
    members_[static_cast<std::size_t>(i)].rank = i;
  }
}

Meeting::~Meeting() { munmap(shared_, sizeof(Shared)); }

crl_oob_t Meeting::oob(int rank) {
  return {.arg = &members_[static_cast<std::size_t>(rank)],
          .rank = rank,
          .size = static_cast<int>(members_.size()),
          .allgather_post = post,
          .allgather_test = test};
}

void Meeting::barrier(int rank) {
  const crl_oob_t own = oob(rank);
  const char nothing = 0;
  std::vector<char> all(members_.size());
  void* request = nullptr;
  post(own.arg, &nothing, all.data(), 1, &request);
  while (test(own.arg, request) == 1) sched_yield();
}

void run_threads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

std::vector<int> run_processes(int ranks, const std::function<void(int)>& body, int timeout_s) {
  std::vector<pid_t> children;
  if (count_as_nodes()) look_for_networks();
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(static_cast<unsigned>(timeout_s));  // ends this child if it hangs
      body(rank);
      std::fflush(nullptr);
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(pid);
  }
  std::vector<int> results;
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    results.push_back(WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
  }
  return results;
}

crl_context_h make_context(Meeting& meeting, int rank, bool threaded, int dead_peer_ms) {
  crl_context_config_t config = {};
  config.struct_bytes = sizeof config;
  config.oob = meeting.oob(rank);
  config.threaded = threaded ? 1 : 0;
  config.dead_peer_ms = dead_peer_ms;
  crl_context_h context = nullptr;
  if (crl_context_create(&config, &context) != CRL_OK) {
    std::fprintf(stderr, "rank %d: %s\n", rank, crl_last_error());
    std::abort();
  }
  return context;
}

crl_team_h make_team(crl_context_h context, const crl_oob_t& oob) {
  crl_team_h team = nullptr;
  if (crl_team_create(context, &oob, &team) != CRL_OK) {
    std::fprintf(stderr, "rank %d: %s\n", oob.rank, crl_last_error());
    std::abort();
  }
  return team;
}

}  // namespace carillon::test
