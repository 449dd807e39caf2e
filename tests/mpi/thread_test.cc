// SPDX-License-Identifier: Apache-2.0
//
// MPI_THREAD_MULTIPLE: several threads, each with communicators of its own, collectives, types and
// operators that come and go, requests of all kinds, and messages between.
#include <algorithm>
#include <thread>

#include "support.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Bcast_init MPIX_Bcast_init
#endif

namespace mpi_test {
namespace {

constexpr int kThreads = 4, kRounds = 60;

struct Findings {
  int wrong = 0;
  void check(bool good) { wrong += good ? 0 : 1; }
};

void add(void* left, void* right, int* count, MPI_Datatype* /*type*/) {
  const auto* const in = static_cast<const int*>(left);
  auto* const inout = static_cast<int*>(right);
  for (int i = 0; i < *count; ++i) inout[i] += in[i];
}

void exercise(MPI_Comm comm, int number, Findings& findings) {
  const int rank = world_rank(), size = world_size();
  int mine = rank + number, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  findings.check(sum == size * (size - 1) / 2 + size * number);
  MPI_Op op{};
  MPI_Op_create(add, 1, &op);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, op, comm);
  findings.check(sum == size * (size - 1) / 2 + size * number);
  MPI_Op_free(&op);
  MPI_Datatype type{};
  MPI_Type_vector(3, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  const int root = number % size;
  int numbers[5] = {-1, -1, -1, -1, -1};
  if (rank == root) numbers[0] = numbers[2] = numbers[4] = number;
  MPI_Bcast(numbers, 1, type, root, comm);
  findings.check(numbers[0] == number && numbers[2] == number && numbers[4] == number &&
                 numbers[1] == -1);
  MPI_Type_free(&type);
  std::vector<int> in(static_cast<std::size_t>(size), rank), out(in.size(), -1);
  MPI_Alltoall(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, comm);
  for (int i = 0; i < size; ++i) findings.check(out[static_cast<std::size_t>(i)] == i);
}

constexpr int kRequests = 4;

// Each thread in another way.
void complete(MPI_Request* requests, int thread) {
  int done = 0, index = 0, indices[kRequests];
  switch (thread % 4) {
    case 0: MPI_Waitall(kRequests, requests, MPI_STATUSES_IGNORE); return;
    case 1:
      while (done == 0) MPI_Testall(kRequests, requests, &done, MPI_STATUSES_IGNORE);
      return;
    case 2:
      while (index != MPI_UNDEFINED) {
        MPI_Waitany(kRequests, requests, &index, MPI_STATUS_IGNORE);
      }
      return;
    default:
      while (done != MPI_UNDEFINED) {
        MPI_Testsome(kRequests, requests, &done, indices, MPI_STATUSES_IGNORE);
      }
  }
}

// A persistent broadcast, non-blocking collectives and a message in one array, while other threads
// move everything on.
void exercise_requests(MPI_Comm comm, int thread, Findings& findings) {
  const int rank = world_rank(), size = world_size(), root = thread % size;
  int data[2] = {}, sum = 0, got = -1;
  std::vector<int> all(static_cast<std::size_t>(size), -1);
  MPI_Request requests[kRequests];
  std::fill_n(requests, kRequests, MPI_REQUEST_NULL);
  MPI_Bcast_init(data, 2, MPI_INT, root, comm, MPI_INFO_NULL, &requests[0]);
  for (int round = 0; round < 3; ++round) {
    const int number = 10 * thread + round, given = 100 * rank + number;
    data[0] = data[1] = rank == root ? number : -1;
    MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, kThreads + thread, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Start(&requests[0]);
    MPI_Iallreduce(&number, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[2]);
    MPI_Iallgather(&given, 1, MPI_INT, all.data(), 1, MPI_INT, comm, &requests[3]);
    MPI_Send(&given, 1, MPI_INT, (rank + 1) % size, kThreads + thread, MPI_COMM_WORLD);
    complete(requests, thread);
    findings.check(data[0] == number && data[1] == number && sum == size * number);
    findings.check(got == 100 * ((rank + size - 1) % size) + number);
    for (int i = 0; i < size; ++i) {
      findings.check(all[static_cast<std::size_t>(i)] == 100 * i + number);
    }
  }
  MPI_Request_free(&requests[0]);
}

void run_thread(MPI_Comm comm, int thread, Findings* findings) {
  const int rank = world_rank(), size = world_size();
  for (int round = 0; round < kRounds; ++round) {
    exercise(comm, thread * 100 + round, *findings);
    int given = round, got = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, thread, MPI_COMM_WORLD, &request);
    if (round % 2 == 0) MPI_Barrier(comm);
    MPI_Ssend(&given, 1, MPI_INT, (rank + 1) % size, thread, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    findings->check(got == round);
    if (round % 4 == 0) exercise_requests(comm, thread, *findings);
    if (round % 20 == thread) {
      MPI_Comm copy = MPI_COMM_NULL;
      MPI_Comm_dup(comm, &copy);
      exercise(copy, round, *findings);
      MPI_Comm_free(&copy);
    }
  }
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv, MPI_THREAD_MULTIPLE);
  std::vector<MPI_Comm> comms(kThreads, MPI_COMM_NULL);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<Findings> findings(kThreads);
  const std::uint64_t taken_before = taken("allreduce");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    const auto at = static_cast<std::size_t>(i);
    threads.emplace_back(run_thread, comms[at], i, &findings[at]);
  }
  for (std::thread& thread : threads) thread.join();
  for (const Findings& finding : findings) {
    check(finding.wrong == 0, std::to_string(finding.wrong) + " wrong results in a thread");
  }
  check(taken("allreduce") >= taken_before + 2 * kThreads * kRounds,
        "the threads' allreduces must be taken");
  constexpr int kStarts = kThreads * (kRounds / 4) * 3;
  check(taken("bcast_init") == kStarts && taken("iallreduce") == kStarts,
        "the threads' requests must be taken");
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return end();
}
