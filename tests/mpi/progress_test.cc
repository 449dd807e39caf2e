// SPDX-License-Identifier: Apache-2.0
//
// Programs that mix point-to-point messages with collectives. Rank 0 starts a message and enters a
// collective; the other rank completes the message first. Correct MPI, but it deadlocks if the
// collective's wait gives the MPI no progress. Hangs are found by the test's time limit.
#include <initializer_list>

#include "support.h"

namespace mpi_test {
namespace {

struct Collective {
  const char* name;
  void (*run)();
};

int g_number = 0;
std::vector<double> g_in(20000), g_out(20000);

const Collective kCollectives[] = {
    {"barrier", [] { MPI_Barrier(MPI_COMM_WORLD); }},
    {"bcast", [] { MPI_Bcast(&g_number, 1, MPI_INT, world_size() - 1, MPI_COMM_WORLD); }},
    {"allreduce",
     [] {
       MPI_Allreduce(g_in.data(), g_out.data(), static_cast<int>(g_in.size()), MPI_DOUBLE, MPI_SUM,
                     MPI_COMM_WORLD);
     }},
};

constexpr int kTag = 3;

// Rank 0 isends, collects; the last rank receives, collects.
void isend_and_recv(const Collective& collective, int bytes) {
  const int last = world_size() - 1;
  Bytes message(static_cast<std::size_t>(bytes));
  if (world_rank() == 0) {
    message = pattern_block(0, last, message.size());
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(message.data(), bytes, MPI_BYTE, last, kTag, MPI_COMM_WORLD, &request);
    collective.run();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    if (world_rank() == last) {
      MPI_Recv(message.data(), bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      check(message == pattern_block(0, last, message.size()), "the message of isend");
    }
    collective.run();
  }
}

// Rank 0 posts a receive, collects; the last rank sends synchronously, collects.
void irecv_and_ssend(const Collective& collective, int bytes) {
  const int last = world_size() - 1;
  Bytes message(static_cast<std::size_t>(bytes));
  if (world_rank() == 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(message.data(), bytes, MPI_BYTE, last, kTag, MPI_COMM_WORLD, &request);
    collective.run();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(message == pattern_block(last, 0, message.size()), "the message of ssend");
  } else {
    if (world_rank() == last) {
      message = pattern_block(last, 0, message.size());
      MPI_Ssend(message.data(), bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
    }
    collective.run();
  }
}

// A collective of the MPI's own is in flight while carillon's blocks.
void host_collective_in_flight(const Collective& collective) {
  int mine = world_rank(), sum = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (world_rank() != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  collective.run();
  if (world_rank() == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(sum == world_size() * (world_size() - 1) / 2, "iallreduce beside a collective");
}

// Messages, a barrier, and one look whether they are there. MPI promises an answer only in the end,
// but its own collectives make it true at once, and programs count on that.
void probe_after_barrier(int tag) {
  constexpr int kMessages = 5;
  const int last = world_size() - 1;
  std::vector<int> numbers(kMessages, 1);
  std::vector<MPI_Request> requests(kMessages, MPI_REQUEST_NULL);
  for (int i = 0; i < kMessages && world_rank() == 0; ++i) {
    MPI_Isend(&numbers[static_cast<std::size_t>(i)], 1, MPI_INT, last, tag, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(i)]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int received = 0, found = 1;
  while (world_rank() == last && found != 0) {
    MPI_Iprobe(0, tag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    if (found == 0) break;
    int number = 0;
    MPI_Recv(&number, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    received += number;
  }
  MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
  check(world_rank() != last || received == kMessages,
        "a probe after a barrier found " + std::to_string(received) + " of 5 messages");
}

// A communicator's first collective makes its team: also then there must be progress.
void first_collective() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const int last = world_size() - 1;
  int number = 7;
  MPI_Request request = MPI_REQUEST_NULL;
  if (world_rank() == 0) MPI_Irecv(&number, 1, MPI_INT, last, kTag, MPI_COMM_WORLD, &request);
  if (world_rank() == last) MPI_Ssend(&number, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD);
  MPI_Barrier(comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  for (int round = 0; round < 3; ++round) {
    for (const Collective& collective : kCollectives) {
      MustTake must(collective.name);
      for (const int bytes : {8, 64 << 10, 4 << 20}) {
        isend_and_recv(collective, bytes);
        irecv_and_ssend(collective, bytes);
        must.expect();
        must.expect();
      }
      host_collective_in_flight(collective);
      must.expect();
    }
    first_collective();
    for (int i = 0; i < 30; ++i) probe_after_barrier(kTag + 1 + i);
  }
  return end();
}
