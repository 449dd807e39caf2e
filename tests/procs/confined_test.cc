// SPDX-License-Identifier: Apache-2.0
//
// Ranks with less than a machine usually gives: one core, no rights over each other's memory, next
// to nothing in /dev/shm, no folder to write in.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr int kRanks = 4;
constexpr int kSkipped = 77;

// Collectives that need lines, chunks and the heap.
void use_everything(Meeting& world, Meeting& meeting, int rank) {
  crl_context_h context = make_context(world, rank);
  crl_team_h team = make_team(context, meeting.oob(rank));
  for (const std::size_t count : {1, 1000, 1000000}) {
    const auto in = values_of(rank, 5, count);
    std::vector<std::int64_t> out(count), all(count * kRanks);
    expect_ok(crl_allreduce(team, in.data(), out.data(), count, CRL_INT64, CRL_SUM));
    EXPECT_EQ(out, sums_of(kRanks, 5, count));
    expect_ok(crl_allgather(team, in.data(), all.data(), count * 8));
    EXPECT_EQ(all.back(), value_of(kRanks - 1, 5, static_cast<std::int64_t>(count) - 1));
    auto* const shared = static_cast<std::int64_t*>(crl_alloc(context, count * 8));
    ASSERT_NE(shared, nullptr);
    for (std::size_t i = 0; i < count; ++i) shared[i] = rank;
    expect_ok(crl_bcast(team, shared, count * 8, 2));
    EXPECT_EQ(shared[count - 1], 2);
    crl_free(context, shared);
  }
  crl_team_destroy(team);
  crl_context_destroy(context);
}

TEST(Confined, OneCore) {
  Meeting world(kRanks), meeting(kRanks);
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  expect_processes_ok(kRanks, [&](int rank) {
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    use_everything(world, meeting, rank);
  });
}

// Nobody may read this process's memory, nor look at what it has open; and nobody has the right to
// do so all the same.
void forbid_tracing() {
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct none[2] = {};
  ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
}

TEST(Confined, NoRightsOverOtherProcesses) {
  Meeting world(kRanks), meeting(kRanks);
  auto* const pid = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  expect_processes_ok(kRanks, [&](int rank) {
    forbid_tracing();
    setenv("CARILLON_LEND_BYTES", "64", 1);  // in vain
    if (rank == 0) pid->store(getpid());
    world.barrier(rank);
    if (rank != 0) {
      int value = 0;
      const iovec mine = {&value, sizeof value}, other = {pid, sizeof value};
      EXPECT_EQ(process_vm_readv(pid->load(), &mine, 1, &other, 1, 0), -1);
      EXPECT_EQ(errno, EPERM);
    }
    use_everything(world, meeting, rank);
  });
  munmap(pid, 4096);
}

struct Telling {
  const char* lend_bytes;
  const char* log;
  const char* level;  // of the line; null: there is none
};

class NoReading : public testing::TestWithParam<Telling> {};

// With the kernel's reason, by one of the node's ranks, at the level of what was asked for.
TEST_P(NoReading, IsSaidOnce) {
  Meeting world(kRanks), meeting(kRanks);
  auto* const lines = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  expect_processes_ok(kRanks, [&](int rank) {
    forbid_tracing();
    setenv("CARILLON_LEND_BYTES", GetParam().lend_bytes, 1);
    setenv("CARILLON_LOG", GetParam().log, 1);
    testing::internal::CaptureStderr();
    use_everything(world, meeting, rank);
    std::istringstream said(testing::internal::GetCapturedStderr());
    for (std::string line; std::getline(said, line);) {
      if (line.find("other ranks' memory cannot be read here") == line.npos) continue;
      lines->fetch_add(1);
      ASSERT_NE(GetParam().level, nullptr) << line;
      EXPECT_NE(line.find(GetParam().level), line.npos) << line;
      EXPECT_NE(line.find("Operation not permitted"), line.npos) << line;
    }
  });
  EXPECT_EQ(lines->load(), GetParam().level == nullptr ? 0 : 1);
  munmap(lines, 4096);
}

INSTANTIATE_TEST_SUITE_P(Confined, NoReading,
                         testing::Values(Telling{"64", "warning", "warning"},
                                         Telling{"-1", "info", "info"},
                                         Telling{"-1", "warning", nullptr},
                                         Telling{"0", "debug", nullptr}));

// Less than the node's memory (ulimit -f): the kernel would end a process that asks for more.
TEST(Confined, FilesMayNotBeLarge) {
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    const rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    crl_context_h context = make_context(world, rank);
    EXPECT_EQ(crl_alloc(context, 8), nullptr);
    const crl_oob_t oob = meeting.oob(rank);
    crl_team_h team = nullptr;
    crl_status_t status = crl_team_create(context, &oob, &team);
    if (status == CRL_OK) status = settle(team);
    EXPECT_EQ(status, CRL_ERR_UNSUPPORTED) << crl_last_error();
    if (team != nullptr) crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

bool write_text(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return static_cast<bool>(file.flush());
}

// A file system of this process and its children alone, in which they are root.
bool enter_own_file_system() {
  const std::string user = std::to_string(getuid()), group = std::to_string(getgid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return write_text("/proc/self/setgroups", "deny") &&
         write_text("/proc/self/uid_map", "0 " + user + " 1") &&
         write_text("/proc/self/gid_map", "0 " + group + " 1") &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

TEST(Confined, NoRoomInSharedMemoryFileSystem) {
  Meeting world(kRanks), meeting(kRanks);
  const pid_t pid = fork();
  if (pid == 0) {
    const bool confined = enter_own_file_system() &&
                          mount("none", "/dev/shm", "tmpfs", MS_RDONLY, "size=4096") == 0 &&
                          mount("none", "/tmp", "tmpfs", MS_RDONLY, "size=4096") == 0;
    if (!confined) _exit(kSkipped);
    EXPECT_EQ(open("/dev/shm/a_file", O_CREAT | O_WRONLY, 0600), -1);
    expect_processes_ok(kRanks, [&](int rank) { use_everything(world, meeting, rank); });
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << "no file system of its own to be had here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace carillon::test
