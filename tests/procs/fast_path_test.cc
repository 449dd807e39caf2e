// SPDX-License-Identifier: Apache-2.0
//
// A repeated small collective makes no system call and takes no lock, but for those by which a rank
// waits for another that is late. (That it allocates nothing: allocation_test.) The kernel hands
// this binary each of its system calls; locks are counted on their way to the library.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/calls.h"

namespace {

thread_local long g_locks = 0;

}  // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Lock = int (*)(pthread_mutex_t*);
  static constinit std::atomic<Lock> known = nullptr;  // relaxed: all threads find the same
  Lock lock = known.load(std::memory_order_relaxed);
  if (lock == nullptr) {
    lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    known.store(lock, std::memory_order_relaxed);
  }
  ++g_locks;
  return lock(mutex);
}

#if defined(__x86_64__)

// What a signal's handler returns by; it must not be handed to the handler itself. The kernel looks
// at the address behind the call.
asm(R"(
  .text
  .type carillon_test_return, @function
carillon_test_return:
  mov $15, %eax
  syscall
  ud2
carillon_test_return_end:
  .size carillon_test_return, . - carillon_test_return
)");
extern "C" {
extern const char carillon_test_return[], carillon_test_return_end[];
}

namespace {

constexpr int kUserDispatch = 59;  // PR_SET_SYSCALL_USER_DISPATCH, Linux 5.11

volatile char g_dispatch = 0;  // 1: the handler has each system call
long g_counted = 0, g_last = -1;

// Those by which who waits for long leaves the core to others, or is woken.
bool waits(long number) {
  constexpr std::array kWaits = {SYS_sched_yield, SYS_futex, SYS_membarrier};
  return std::find(kWaits.begin(), kWaits.end(), number) != kWaits.end();
}

void handle(int /*signal*/, siginfo_t* info, void* context) {
  g_dispatch = 0;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (!waits(info->si_syscall)) {
    ++g_counted;
    g_last = info->si_syscall;
  }
  long result = info->si_syscall;
  register long r10 asm("r10") = registers[REG_R10];
  register long r8 asm("r8") = registers[REG_R8];
  register long r9 asm("r9") = registers[REG_R9];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(registers[REG_RDI]), "S"(registers[REG_RSI]), "d"(registers[REG_RDX]),
                 "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  registers[REG_RAX] = result;
  g_dispatch = 1;
}

// As the kernel has it: the C library would put a return of its own there.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  const char* restorer;
  std::uint64_t mask;
};

bool count_system_calls() {
  constexpr unsigned long kRestorer = 0x04000000;
  const KernelAction action = {handle, SA_SIGINFO | SA_NODEFER | kRestorer, carillon_test_return,
                               0};
  if (syscall(SYS_rt_sigaction, SIGSYS, &action, nullptr, sizeof action.mask) != 0) return false;
  return prctl(kUserDispatch, 1, carillon_test_return,
               carillon_test_return_end - carillon_test_return, &g_dispatch) == 0;
}

}  // namespace

namespace carillon::test {
namespace {

constexpr int kWarmUp = 20, kRounds = 50;
// Of which one has none: on a busy machine a rank may wait so long that it looks whether the others
// live.
constexpr int kSeries = 24;

struct Call {
  std::string name;
  std::function<crl_status_t()> run;
};

std::vector<Call> calls_of(crl_team_h team, double* in, double* out) {
  return {
      {"barrier", [=] { return crl_barrier(team); }},
      {"bcast", [=] { return crl_bcast(team, out, 8, 0); }},
      {"reduce", [=] { return crl_reduce(team, in, out, 1, CRL_FLOAT64, CRL_SUM, 0); }},
      {"allreduce", [=] { return crl_allreduce(team, in, out, 1, CRL_FLOAT64, CRL_SUM); }},
      {"allreduce of 2 KiB",
       [=] { return crl_allreduce(team, in, out, 256, CRL_FLOAT64, CRL_SUM); }},
      {"allgather", [=] { return crl_allgather(team, in, out, 8); }},
      {"gather", [=] { return crl_gather(team, in, out, 8, 1); }},
      {"scatter", [=] { return crl_scatter(team, in, out, 8, 1); }},
      {"alltoall", [=] { return crl_alltoall(team, in, out, 8); }},
      {"scan", [=] { return crl_scan(team, in, out, 1, CRL_FLOAT64, CRL_SUM); }},
  };
}

void expect_nothing(const Call& call) {
  for (int i = 0; i < kWarmUp; ++i) expect_ok(call.run());
  long calls = LONG_MAX, locks = LONG_MAX;
  for (int series = 0; series < kSeries; ++series) {
    const long locks_before = g_locks;
    crl_status_t status = CRL_OK;
    g_counted = 0;
    g_dispatch = 1;
    for (int round = 0; round < kRounds && status == CRL_OK; ++round) status = call.run();
    g_dispatch = 0;
    expect_ok(status);
    calls = std::min(calls, g_counted);
    locks = std::min(locks, g_locks - locks_before);
  }
  EXPECT_EQ(calls, 0) << call.name << ": the last one is number " << g_last;
  EXPECT_EQ(locks, 0) << call.name;
}

TEST(FastPath, TheCountsCount) {
  if (!count_system_calls()) GTEST_SKIP() << "this kernel does not hand over system calls";
  g_counted = 0;
  g_dispatch = 1;
  const long parent = syscall(SYS_getppid);
  g_dispatch = 0;
  EXPECT_EQ(parent, getppid());
  EXPECT_EQ(g_counted, 1);
  EXPECT_EQ(g_last, SYS_getppid);
  const long before = g_locks;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  EXPECT_EQ(g_locks, before + 1);
}

TEST(FastPath, HasNoSystemCallAndNoLock) {
  if (!count_system_calls()) GTEST_SKIP() << "this kernel does not hand over system calls";
  for (const int ranks : {2, 3}) {
    Meeting world(ranks), meeting(ranks);
    expect_processes_ok(ranks, [&](int rank) {
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      ASSERT_TRUE(count_system_calls());
      std::vector<double> in(1024, rank), out(1024);
      for (const Call& call : calls_of(team, in.data(), out.data())) expect_nothing(call);
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
}

}  // namespace
}  // namespace carillon::test

#endif
