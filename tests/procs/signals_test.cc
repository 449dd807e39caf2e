// SPDX-License-Identifier: Apache-2.0
//
// The program's signals stay the program's, whatever libraries a network brings with it.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr std::array kSignals = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGABRT,
                                 SIGBUS,  SIGFPE,  SIGUSR1, SIGSEGV, SIGUSR2,
                                 SIGPIPE, SIGALRM, SIGTERM, SIGCHLD, SIGXCPU};

void of_the_program(int /*signal*/, siginfo_t* /*info*/, void* /*context*/) { std::_Exit(1); }

// Every second one has a handler, the others do as the system does.
bool has_handler(std::size_t i) { return i % 2 == 0; }

void expect_untouched() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now = {};
    ASSERT_EQ(sigaction(kSignals[i], nullptr, &now), 0);
    const char* const name = strsignal(kSignals[i]);
    if (has_handler(i)) {
      EXPECT_EQ(now.sa_sigaction, &of_the_program) << name;
      EXPECT_NE(now.sa_flags & SA_SIGINFO, 0) << name;
    } else {
      EXPECT_EQ(now.sa_handler, SIG_DFL) << name;
    }
  }
}

void set_them() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action = {};
    action.sa_flags = has_handler(i) ? SA_SIGINFO : 0;
    if (has_handler(i)) {
      action.sa_sigaction = of_the_program;
    } else {
      action.sa_handler = SIG_DFL;
    }
    ASSERT_EQ(sigaction(kSignals[i], &action, nullptr), 0);
  }
}

TEST(Signals, StayTheProgramsWithANetwork) {
  ASSERT_EQ(setenv("CARILLON_NODE_RANKS", "1", 1), 0);
  set_them();
  Meeting world(2), meeting(2);
  expect_processes_ok(2, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(crl_barrier(team));
    expect_untouched();
    crl_team_destroy(team);
    crl_context_destroy(context);
    expect_untouched();
  });
}

}  // namespace
}  // namespace carillon::test
