// SPDX-License-Identifier: Apache-2.0
//
// MPI_THREAD_MULTIPLE: several threads, each with communicators of its own, collectives, types and
// operators that come and go, and messages between.
#include <thread>

#include "support.h"

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
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return end();
}
