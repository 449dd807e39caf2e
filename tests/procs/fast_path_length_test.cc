// SPDX-License-Identifier: Apache-2.0
//
// How many instructions a repeated small collective takes: the processor's trap flag hands over
// each of them. Between two near cores a fast collective is as long as its instructions are many,
// and a few for every feature are soon a third of it.
//
// The bounds are a tenth above what GCC 12 makes of it (`-O2`, files of a folder compiled
// together); the test prints what it counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "engine/patience.h"
#include "support/calls.h"

#if defined(__x86_64__)

namespace carillon::test {
namespace {

constexpr int kWarmUp = 20;
// Of which the least holds: in others a rank may have been woken, or waited before it looked, as it
// has learned in the warm-up and unlearns here.
constexpr int kCounts = Patience::kMostTurns / 2 + 50;

volatile long g_instructions = 0;

void count_one(int /*signal*/) { g_instructions = g_instructions + 1; }

// From the end of begin_counting to that of end_counting; what these take themselves counts, too.
// The red zone below the stack's pointer may be in use.
inline void begin_counting() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp"
      :
      :
      : "memory", "cc");
}
inline void end_counting() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp"
      :
      :
      : "memory", "cc");
}

struct Call {
  std::string name;
  long most;  // instructions
  std::function<crl_status_t()> run;
  std::function<crl_status_t(crl_request_h*)> start;
};

// By crl_repeat, from its second time on.
std::function<crl_status_t()> again(crl_team_h team, double* in, double* out,
                                    std::function<crl_status_t()> call) {
  return [=, repeatable = crl_repeatable_t{}]() mutable {
    crl_status_t status = CRL_OK;
    if (crl_repeat(team, repeatable, in, out, &status) == 1) return status;
    status = call();
    repeatable = crl_team_last_call(team);
    return status;
  };
}

std::vector<Call> calls_of(crl_team_h team, double* in, double* out) {
  using Request = crl_request_h*;
  std::vector<Call> calls = {
      {"barrier", 560, [=] { return crl_barrier(team); },
       [=](Request request) { return crl_ibarrier(team, request); }},
      {"allreduce", 590, [=] { return crl_allreduce(team, in, out, 1, CRL_FLOAT64, CRL_SUM); },
       [=](Request request) {
         return crl_iallreduce(team, in, out, 1, CRL_FLOAT64, CRL_SUM, request);
       }},
      {"allgather", 590, [=] { return crl_allgather(team, in, out, 8); },
       [=](Request request) { return crl_iallgather(team, in, out, 8, request); }},
      {"alltoall", 590, [=] { return crl_alltoall(team, in, out, 8); },
       [=](Request request) { return crl_ialltoall(team, in, out, 8, request); }},
      {"bcast", 445, [=] { return crl_bcast(team, out, 8, 0); },
       [=](Request request) { return crl_ibcast(team, out, 8, 0, request); }},
  };
  calls.push_back({"allreduce again", 465, again(team, in, out, calls[1].run), calls[1].start});
  calls.push_back({"bcast again", 330, again(team, out, out, calls[4].run), calls[4].start});
  return calls;
}

void count(const Call& call) {
  for (int i = 0; i < kWarmUp; ++i) expect_ok(call.run());
  long least = LONG_MAX;
  for (int i = 0; i < kCounts; ++i) {
    g_instructions = 0;
    begin_counting();
    const crl_status_t status = call.run();
    end_counting();
    expect_ok(status);
    const long counted = g_instructions;
    least = std::min(least, counted);
  }
  std::printf("%-16s %5ld instructions\n", call.name.c_str(), least);
  EXPECT_LE(least, call.most) << call.name;
}

// The other rank: it never sleeps, so that nobody has to wake it, and is always there first.
void go_along(const Call& call) {
  for (int i = 0; i < kWarmUp + kCounts; ++i) {
    crl_request_h request = nullptr;
    expect_ok(call.start(&request));
    crl_status_t status = CRL_IN_PROGRESS;
    while (status == CRL_IN_PROGRESS) status = crl_request_test(&request);
    expect_ok(status);
  }
}

TEST(FastPathLength, IsBounded) {
#if defined(__clang__) || !defined(CARILLON_TOGETHER) || !defined(__OPTIMIZE__) || \
    defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "of what users have";
#endif
  struct sigaction action = {};
  action.sa_handler = count_one;
  ASSERT_EQ(sigaction(SIGTRAP, &action, nullptr), 0);
  Meeting world(2), meeting(2);
  expect_processes_ok(2, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    std::vector<double> in(16, rank), out(16);
    for (const Call& call : calls_of(team, in.data(), out.data())) {
      rank == 0 ? count(call) : go_along(call);
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

}  // namespace
}  // namespace carillon::test

#endif
