// SPDX-License-Identifier: Apache-2.0
//
// One thread finds that carillon cannot serve a communicator, and gives the MPI what was started on
// it, while another is in the middle of starting one more: that goes to the MPI as well. This
// program stands between the interposer and the MPI, and holds the start up. Its ranks are on nodes
// without a network.
#include <dlfcn.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support.h"

namespace mpi_test {
namespace {

constexpr int kCalls = 2000;  // enough for the other thread to have left the team
constexpr auto kPatience = std::chrono::seconds(20);

std::atomic<bool> g_armed = false;    // the next start is held up
std::atomic<bool> g_held_up = false;  // and has been
std::atomic<int> g_calls = 0;         // of the other thread since then

// Until what was started before is the MPI's, and a while longer.
void hold_up() {
  g_held_up = true;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (left("iallreduce") == 0) {
    if (std::chrono::steady_clock::now() > end) return fail("the team is not left");
    sched_yield();
  }
  g_calls = 0;
  while (g_calls.load() < kCalls) sched_yield();
}

}  // namespace
}  // namespace mpi_test

extern "C" int PMPI_Grequest_start(MPI_Grequest_query_function* query,
                                   MPI_Grequest_free_function* release,
                                   MPI_Grequest_cancel_function* cancel, void* state,
                                   MPI_Request* request) {
  if (mpi_test::g_armed.exchange(false)) mpi_test::hold_up();
  using Function = decltype(&PMPI_Grequest_start);
  const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "PMPI_Grequest_start"));
  return next(query, release, cancel, state, request);
}

namespace mpi_test {
namespace {

constexpr int kStarts = 4, kHeldUp = 1, kTag = 5, kLastTag = 6;

// Moves all on, once the other thread is held up; the other rank begins no earlier.
void move_on() {
  while (!g_held_up.load()) sched_yield();
  MPI_Send(nullptr, 0, MPI_INT, 1, kTag, MPI_COMM_WORLD);
  MPI_Request last = MPI_REQUEST_NULL;
  MPI_Irecv(nullptr, 0, MPI_INT, 1, kLastTag, MPI_COMM_WORLD, &last);
  for (int done = 0; done == 0; ++g_calls) {
    MPI_Test(&last, &done, MPI_STATUS_IGNORE);
    sched_yield();
  }
}

void start_and_wait(MPI_Comm comm) {
  const int rank = world_rank(), size = world_size();
  int in[kStarts], out[kStarts];
  MPI_Request requests[kStarts];
  for (int i = 0; i < kStarts; ++i) {
    in[i] = rank + i;
    out[i] = -1;
    g_armed = rank == 0 && i == kHeldUp;
    const int status = MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
    check(status == MPI_SUCCESS, "start " + std::to_string(i) + " is refused");
  }
  for (int i = 0; i < kStarts; ++i) {
    const int status = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    check(status == MPI_SUCCESS, "the end of " + std::to_string(i) + " is an error");
    check(out[i] == size * (size - 1) / 2 + size * i, "sum " + std::to_string(i) + " is wrong");
  }
  check(left("iallreduce") == kStarts, "all are the MPI's");
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv, MPI_THREAD_MULTIPLE);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (world_rank() == 0) {
    std::thread mover(move_on);
    start_and_wait(comm);
    mover.join();
    check(g_held_up, "no start was held up");
  } else {
    MPI_Recv(nullptr, 0, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    start_and_wait(comm);
    MPI_Send(nullptr, 0, MPI_INT, 0, kLastTag, MPI_COMM_WORLD);
  }
  MPI_Comm_free(&comm);
  return end();
}
