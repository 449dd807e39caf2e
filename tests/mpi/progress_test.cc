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

// Looks once for a message of rank 0; takes it if it is there.
using Look = bool (*)(int tag, int* number);

bool look_and_receive(int tag, int* number) {
  int found = 0;
  MPI_Iprobe(0, tag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  if (found != 0) MPI_Recv(number, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return found != 0;
}

bool look_and_match(int tag, int* number) {
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Improbe(0, tag, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
  if (found != 0) MPI_Mrecv(number, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  return found != 0;
}

// Mprobe waits, and needs no help; it must take what a look could have.
bool wait_and_match(int tag, int* number) {
  static int taken = 0;
  if (taken == 5) {
    taken = 0;
    return false;
  }
  ++taken;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Mprobe(0, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(number, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  return true;
}

// Messages, a barrier, and one look whether they are there. MPI promises an answer only in the end,
// but its own collectives make it true at once, and programs count on that.
void look_after_barrier(int tag, Look look) {
  constexpr int kMessages = 5;
  const int last = world_size() - 1;
  std::vector<int> numbers(kMessages, 1);
  std::vector<MPI_Request> requests(kMessages, MPI_REQUEST_NULL);
  for (int i = 0; i < kMessages && world_rank() == 0; ++i) {
    MPI_Isend(&numbers[static_cast<std::size_t>(i)], 1, MPI_INT, last, tag, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(i)]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int received = 0, number = 0;
  while (world_rank() == last && look(tag, &number)) received += number;
  MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
  check(world_rank() != last || received == kMessages,
        "looks after a barrier found " + std::to_string(received) + " of 5 messages");
}

// The same for the end of an exposure epoch. Not every way of Open MPI's messages has windows.
void win_test_after_barrier() {
  const int last = world_size() - 1, peer = world_rank() == 0 ? last : 0;
  int target = -1;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int made =
      MPI_Win_create(&target, sizeof(target), sizeof(target), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  if (made != MPI_SUCCESS) return;
  MPI_Group world{}, other{};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &peer, &other);
  if (world_rank() == last) MPI_Win_post(other, 0, win);
  if (world_rank() == 0) {
    MPI_Win_start(other, 0, win);
    MPI_Win_complete(win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == last) {
    int over = 0;
    MPI_Win_test(win, &over);
    check(over != 0, "MPI_Win_test after a barrier: the epoch is not over");
    if (over == 0) MPI_Win_wait(win);
  }
  MPI_Group_free(&other);
  MPI_Group_free(&world);
  MPI_Win_free(&win);
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
    for (const Look look : {look_and_receive, look_and_match, wait_and_match}) {
      for (int i = 0; i < 30; ++i) look_after_barrier(kTag + 1 + i, look);
    }
    for (int i = 0; i < 10; ++i) win_test_after_barrier();
  }
  return end();
}
