// SPDX-License-Identifier: Apache-2.0
//
// One thread ends the collectives of all, at the very moment when another begins to wait for one of
// them. Nothing may be asked of the MPI then that only that other thread could let it do: this
// program stands between the interposer and the MPI, holds one of the two up in the middle of it,
// and sees what the other one asks for.
#include <dlfcn.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <thread>

#include "support.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Bcast_init MPIX_Bcast_init
#endif

namespace mpi_test {
namespace {

constexpr int kCalls = 200;  // enough for a thread to have come by

enum class Step { kNone, kStarting, kCompleting };
std::atomic<Step> g_armed = Step::kNone;  // the next such call of the interposer's is held up
std::atomic<bool> g_held_up = false;      // and is now
std::atomic<int> g_calls = 0;             // of the other thread meanwhile
std::atomic<bool> g_sent = false;         // a message before its receive
std::atomic<bool> g_waited = false;       // by the MPI, for what the interposer has yet to complete

template <typename Function>
Function next(const char* symbol) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, symbol));
}

// Holds the call up until the other thread has come by often enough, or has done what it should
// not; then lets it go on, and says so when it is over.
template <typename Call>
int hold_up(Step step, const std::atomic<bool>& wrong, Call call) {
  if (g_armed.load() != step) return call();
  g_armed = Step::kNone;
  g_calls = 0;
  g_held_up = true;
  while (g_calls.load() < kCalls && !wrong.load()) sched_yield();
  const int status = call();
  g_held_up = false;
  return status;
}

}  // namespace
}  // namespace mpi_test

extern "C" {

int PMPI_Start(MPI_Request* request) {
  using namespace mpi_test;
  return hold_up(Step::kStarting, g_sent,
                 [&] { return next<int (*)(MPI_Request*)>("PMPI_Start")(request); });
}

int PMPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  using namespace mpi_test;
  if (g_held_up.load()) g_sent = true;
  return next<int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm)>("PMPI_Send")(
      buffer, count, type, to, tag, comm);
}

int PMPI_Grequest_complete(MPI_Request request) {
  using namespace mpi_test;
  return hold_up(Step::kCompleting, g_waited,
                 [&] { return next<int (*)(MPI_Request)>("PMPI_Grequest_complete")(request); });
}

int PMPI_Testall(int count, MPI_Request* requests, int* done, MPI_Status* statuses) {
  ++mpi_test::g_calls;
  return mpi_test::next<int (*)(int, MPI_Request*, int*, MPI_Status*)>("PMPI_Testall")(
      count, requests, done, statuses);
}

// Some do not take a generalized request here that is not complete: that it is waited for.
int PMPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  using namespace mpi_test;
  if (g_held_up.load()) g_waited = true;
  while (g_held_up.load()) sched_yield();
  return next<int (*)(int, MPI_Request*, MPI_Status*)>("PMPI_Waitall")(count, requests, statuses);
}

}  // extern "C"

namespace mpi_test {
namespace {

// Ends everybody's collectives while `held` says so, by asking for a message that never comes.
template <typename Held>
std::thread sweeper(MPI_Request* never, const std::atomic<bool>& over, Held held) {
  return std::thread([never, &over, held] {
    while (!over.load()) {
      int done = 0;
      if (held()) MPI_Test(never, &done, MPI_STATUS_IGNORE);
      if (held()) ++g_calls;
      sched_yield();
    }
  });
}

// A persistent collective ends while the MPI is being told that the program waits for it.
void show_while_it_lands(MPI_Comm comm, MPI_Request* never) {
  std::atomic<bool> over = false;
  std::thread other = sweeper(never, over, [] { return g_held_up.load(); });
  for (int round = 0; round < 3; ++round) {
    int data = round + 7, sum = 0, given = 10 * round + 1, index = 0;
    std::array<MPI_Request, 2> requests;
    MPI_Bcast_init(&data, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &requests[0]);
    MPI_Start(&requests[0]);
    MPI_Iallreduce(&given, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
    g_armed = Step::kStarting;
    for (int i = 0; i < 2; ++i) {
      MPI_Waitany(2, requests.data(), &index, MPI_STATUS_IGNORE);
    }
    check(g_armed.load() == Step::kNone, "the MPI was not told that a collective is waited for");
    check(sum == given * world_size() && data == round + 7, "wrong results");
    MPI_Request_free(&requests[0]);
  }
  check(!g_sent.load(), "a message to the process itself was sent before its receive had begun");
  over = true;
  other.join();
}

// A collective ends while the program begins to wait for it, and there is no other.
void wait_while_it_completes(MPI_Comm comm, MPI_Request* never) {
  std::atomic<bool> over = false, sweeps = false;
  std::thread other = sweeper(never, over, [&] { return sweeps.load(); });
  for (int round = 0; round < 3; ++round) {
    int sum = 0, given = 10 * round + 3;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(&given, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    g_armed = Step::kCompleting;
    sweeps = true;
    while (!g_held_up.load()) sched_yield();
    sweeps = false;
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    check(sum == given * world_size(), "wrong results");
  }
  check(!g_waited.load(), "the MPI waited for a collective of carillon's");
  over = true;
  other.join();
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv, MPI_THREAD_MULTIPLE);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Request never = MPI_REQUEST_NULL;
  int nothing = 0;
  constexpr int kTag = 4321;
  MPI_Irecv(&nothing, 1, MPI_INT, world_rank(), kTag, MPI_COMM_WORLD, &never);
  int sum = 0, one = 1;  // the team is made
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  show_while_it_lands(comm, &never);
  wait_while_it_completes(comm, &never);
  MPI_Send(&one, 1, MPI_INT, world_rank(), kTag, MPI_COMM_WORLD);
  MPI_Wait(&never, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
  return end();
}
