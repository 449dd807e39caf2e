// SPDX-License-Identifier: Apache-2.0
//
// Requests that end with an error, here because the ranks give different counts: alone and among
// others that end well, through every function that completes requests. Memory that is to be freed
// while a request uses it, and messages that are too long beside one.
#include <algorithm>
#include <functional>
#include <string>

#include "support.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

namespace mpi_test {
namespace {

constexpr int kTag = 5, kRequests = 3, kBad = 1;

int g_handled = 0;
void handle(MPI_Comm* /*comm*/, int* /*code*/, ...) { ++g_handled; }

// What a function that completes requests said of all of them.
struct Said {
  int code = MPI_SUCCESS;  // the first that was no success
  int errors[kRequests] = {-1, -1, -1};
  int calls_that_failed = 0;
};

void note(Said* said, int code) {
  if (code == MPI_SUCCESS) return;
  ++said->calls_that_failed;
  if (said->code == MPI_SUCCESS) said->code = code;
}

// The statuses of `count` requests, and what the call returned.
void note_some(Said* said, int code, int count, const int* indices, const MPI_Status* statuses) {
  note(said, code);
  for (int k = 0; k < count; ++k) {
    int& error = said->errors[indices == nullptr ? k : indices[k]];
    error = MPI_SUCCESS;
    if (code == MPI_ERR_IN_STATUS && statuses[k].MPI_ERROR != MPI_SUCCESS) {
      MPI_Error_class(statuses[k].MPI_ERROR, &error);
    }
  }
}

// Where a function ends one at a time, the code is that of the request.
void note_one(Said* said, int index, int code) {
  note(said, code == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_IN_STATUS);
  MPI_Error_class(code, &said->errors[index]);
}

using Complete = Said (*)(MPI_Request* requests);

Said wait_all(MPI_Request* requests) {
  Said said;
  MPI_Status statuses[kRequests];
  note_some(&said, MPI_Waitall(kRequests, requests, statuses), kRequests, nullptr, statuses);
  for (int i = 0; i < kRequests; ++i) {  // MPI allows that others have not ended then
    if (said.errors[i] == MPI_ERR_PENDING) note_one(&said, i, MPI_Wait(&requests[i], &statuses[i]));
  }
  return said;
}

Said test_all(MPI_Request* requests) {
  Said said;
  MPI_Status statuses[kRequests];
  for (int done = 0; done == 0;) {
    const int code = MPI_Testall(kRequests, requests, &done, statuses);
    if (code != MPI_SUCCESS) done = 1;
    if (done != 0) note_some(&said, code, kRequests, nullptr, statuses);
  }
  return said;
}

Said some(MPI_Request* requests, decltype(&MPI_Waitsome) function) {
  Said said;
  for (;;) {
    MPI_Status statuses[kRequests];
    int done = 0, indices[kRequests];
    const int code = function(kRequests, requests, &done, indices, statuses);
    if (done == MPI_UNDEFINED) return said;
    note_some(&said, code, done, indices, statuses);
  }
}
Said wait_some(MPI_Request* requests) { return some(requests, MPI_Waitsome); }
Said test_some(MPI_Request* requests) { return some(requests, MPI_Testsome); }

Said wait_any(MPI_Request* requests) {
  Said said;
  for (;;) {
    int index = MPI_UNDEFINED;
    const int code = MPI_Waitany(kRequests, requests, &index, MPI_STATUS_IGNORE);
    if (index == MPI_UNDEFINED) return said;
    note_one(&said, index, code);
  }
}

Said test_any(MPI_Request* requests) {
  Said said;
  for (;;) {
    int index = MPI_UNDEFINED, done = 0;
    const int code = MPI_Testany(kRequests, requests, &index, &done, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && done == 0) continue;
    if (index == MPI_UNDEFINED) return said;
    note_one(&said, index, code);
  }
}

Said wait_each(MPI_Request* requests) {
  Said said;
  for (int i = 0; i < kRequests; ++i) {
    note_one(&said, i, MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
  }
  return said;
}

Said test_each(MPI_Request* requests) {
  Said said;
  for (int i = 0; i < kRequests; ++i) {
    int done = 0, code = MPI_SUCCESS;
    while (done == 0 && code == MPI_SUCCESS) {
      code = MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
    }
    note_one(&said, i, code);
  }
  return said;
}

struct Way {
  const char* name;
  Complete complete;
};
constexpr Way kWays[] = {{"Waitall", wait_all},   {"Testall", test_all}, {"Waitsome", wait_some},
                         {"Testsome", test_some}, {"Waitany", wait_any}, {"Testany", test_any},
                         {"Wait", wait_each},     {"Test", test_each}};

// A message, the sum that fails, and a sum that does not, in one array.
// `looks`: asks for the state of the one that fails first, which must leave the error to who ends
// it.
void try_way(const Way& way, bool persistent, bool looks) {
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  const int rank = world_rank(), size = world_size();
  int given = 10 + rank, got = -1, in[2] = {rank, rank}, out[2] = {}, sum = -1;
  MPI_Request sending = MPI_REQUEST_NULL;
  MPI_Request requests[kRequests] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, kTag, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&given, 1, MPI_INT, (rank + 1) % size, kTag, MPI_COMM_WORLD, &sending);
  const int count = rank == 0 ? 1 : 2;
  if (persistent) {
    MPI_Allreduce_init(in, out, count, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[kBad]);
    MPI_Start(&requests[kBad]);
  } else {
    MPI_Iallreduce(in, out, count, MPI_INT, MPI_SUM, comm, &requests[kBad]);
  }
  const MPI_Request handle_of_bad = requests[kBad];
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
  g_handled = 0;
  for (int done = 0; looks && done == 0;) {
    const int code = MPI_Request_get_status(requests[kBad], &done, MPI_STATUS_IGNORE);
    check(code == MPI_SUCCESS && g_handled == 0, "a look at what failed told of it");
  }
  const Said said = way.complete(requests);
  const std::string name = std::string(way.name) + (persistent ? ", persistent" : "");
  check(said.calls_that_failed == 1 && said.code == MPI_ERR_IN_STATUS,
        name + ": " + std::to_string(said.calls_that_failed) + " calls failed, with " +
            std::to_string(said.code));
  check(g_handled == 1, name + ": the handler was called " + std::to_string(g_handled) + " times");
  for (int i = 0; i < kRequests; ++i) {
    const int expected = i == kBad ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    check(said.errors[i] == expected, name + ": request " + std::to_string(i) + " ended with " +
                                          std::to_string(said.errors[i]));
  }
  check(got == 10 + (rank + size - 1) % size && sum == size * (size - 1) / 2,
        name + ": what the others did");
  const bool kept = persistent && requests[kBad] == handle_of_bad;
  check(persistent ? kept : requests[kBad] == MPI_REQUEST_NULL, name + ": the handle afterwards");
  if (kept) MPI_Request_free(&requests[kBad]);
  MPI_Wait(&sending, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&handler);
}

// The root waits until rank 0 has tried, so that nothing can have ended.
void free_in_use() {
  constexpr int kBytes = 70000;
  const int rank = world_rank(), root = world_size() - 1;
  if (root == 0) return;
  char* memory = nullptr;
  MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &memory);
  std::fill_n(memory, kBytes, rank == root ? 'r' : '-');
  char go = 0;
  if (rank == root) MPI_Recv(&go, 1, MPI_CHAR, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(memory, kBytes, MPI_CHAR, root, MPI_COMM_WORLD, &request);
  if (rank == 0) {
    g_handled = 0;
    check(MPI_Free_mem(memory) != MPI_SUCCESS && g_handled == 1, "freed while a request uses it");
    MPI_Send(&go, 1, MPI_CHAR, root, kTag, MPI_COMM_WORLD);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(std::all_of(memory, memory + kBytes, [](char byte) { return byte == 'r'; }), "bcast");
  check(MPI_Free_mem(memory) == MPI_SUCCESS, "freed when the request is complete");
}

// A non-blocking collective is neither freed nor cancelled; it goes on.
void forbidden() {
  int number = world_rank(), sum = 0, error_class = MPI_SUCCESS;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  g_handled = 0;
  MPI_Error_class(MPI_Request_free(&request), &error_class);
  check(error_class == MPI_ERR_REQUEST, "a collective is not freed");
  MPI_Error_class(MPI_Cancel(&request), &error_class);
  check(error_class == MPI_ERR_REQUEST && g_handled == 2, "a collective is not cancelled");
  check(request != MPI_REQUEST_NULL, "its handle stays");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(sum == world_size() * (world_size() - 1) / 2, "its result");
}

// What the MPI refuses it refuses beside a collective, too, and its error handler hears of it.
void no_place_for_indices() {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, barrier = MPI_REQUEST_NULL;
  int done = 0, theirs = MPI_SUCCESS, ours = MPI_SUCCESS;
  g_handled = 0;
  MPI_Error_class(PMPI_Waitsome(2, requests, &done, nullptr, MPI_STATUSES_IGNORE), &theirs);
  const int their_calls = g_handled;
  MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  g_handled = 0;
  MPI_Error_class(MPI_Waitsome(2, requests, &done, nullptr, MPI_STATUSES_IGNORE), &ours);
  check(ours == theirs && g_handled == their_calls, "MPI_Waitsome without a place for indices");
  MPI_Wait(&barrier, MPI_STATUS_IGNORE);
}

int g_handled_by_comm = 0;
void handle_of_comm(MPI_Comm* /*comm*/, int* /*code*/, ...) { ++g_handled_by_comm; }

// Who hears that a message is longer than its place, and what the call says.
struct Heard {
  int error_class = MPI_SUCCESS, by_comm = 0, elsewhere = 0;
};

using Receive = int (*)(int* place, int from, MPI_Comm comm);

Heard receive_too_much(Receive receive, MPI_Comm comm) {
  const int to = (world_rank() + 1) % world_size();
  const int from = (world_rank() + world_size() - 1) % world_size();
  int numbers[4] = {}, place = 0;
  MPI_Request sending = MPI_REQUEST_NULL;
  PMPI_Isend(numbers, 4, MPI_INT, to, kTag, comm, &sending);
  g_handled = g_handled_by_comm = 0;
  Heard heard;
  MPI_Error_class(receive(&place, from, comm), &heard.error_class);
  heard.by_comm = g_handled_by_comm;
  heard.elsewhere = g_handled;
  PMPI_Wait(&sending, MPI_STATUS_IGNORE);
  PMPI_Barrier(comm);
  return heard;
}

// What a function that blocks tells of it is the same beside a collective.
void compare_receive(const char* name, Receive ours, Receive of_mpi, MPI_Comm comm) {
  const Heard theirs = receive_too_much(of_mpi, comm);
  MPI_Request barrier = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  const Heard heard = receive_too_much(ours, comm);
  MPI_Wait(&barrier, MPI_STATUS_IGNORE);
  // MPICH 5 with the ABI of MPI 5 returns no error that a handler has been told.
  const bool same = theirs.error_class == MPI_SUCCESS || heard.error_class == theirs.error_class;
  check(same && heard.by_comm == theirs.by_comm && heard.elsewhere == theirs.elsewhere,
        std::string(name) + ": class " + std::to_string(heard.error_class) + ", handlers called " +
            std::to_string(heard.by_comm) + " and elsewhere " + std::to_string(heard.elsewhere));
}

void too_long() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Errhandler handler{};
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handle_of_comm, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Barrier(comm);
  compare_receive(
      "MPI_Recv",
      [](int* place, int from, MPI_Comm of) {
        return MPI_Recv(place, 1, MPI_INT, from, kTag, of, MPI_STATUS_IGNORE);
      },
      [](int* place, int from, MPI_Comm of) {
        return PMPI_Recv(place, 1, MPI_INT, from, kTag, of, MPI_STATUS_IGNORE);
      },
      comm);
  compare_receive(
      "MPI_Sendrecv",
      [](int* place, int from, MPI_Comm of) {
        return MPI_Sendrecv(nullptr, 0, MPI_INT, MPI_PROC_NULL, kTag, place, 1, MPI_INT, from, kTag,
                            of, MPI_STATUS_IGNORE);
      },
      [](int* place, int from, MPI_Comm of) {
        return PMPI_Sendrecv(nullptr, 0, MPI_INT, MPI_PROC_NULL, kTag, place, 1, MPI_INT, from,
                             kTag, of, MPI_STATUS_IGNORE);
      },
      comm);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&handler);
}

void run() {
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);  // some errors are raised there
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  for (const Way& way : kWays) {
    for (const bool persistent : {false, true}) try_way(way, persistent, false);
    try_way(way, false, true);
  }
  free_in_use();
  forbidden();
  no_place_for_indices();
  too_long();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  run();
  return end();
}
