// SPDX-License-Identifier: Apache-2.0
//
// An MPI program to be recorded: every collective that carillon takes, on several communicators,
// some that it leaves to the MPI, and, with an argument, an end that nobody expects.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 64, kRounds = 10 };

static void keep_the_right(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)in, (void)inout, (void)count, (void)type;  // not commutative: the last rank's stays
}

// Rank r sends r + i bytes to rank i.
static void exchange_uneven(int rank, int size) {
  int sent[kMost], received[kMost], from[kMost], to[kMost];
  static char in[kMost * kMost], out[kMost * kMost];
  for (int i = 0; i < size; ++i) {
    sent[i] = received[i] = rank + i;
    from[i] = to[i] = i * kMost;
  }
  MPI_Alltoallv(in, sent, from, MPI_CHAR, out, received, to, MPI_CHAR, MPI_COMM_WORLD);
}

// Two at once, one that is waited for, one that is asked for until it is there.
static void start_some(int rank) {
  double in[2] = {rank, 1}, out[2];
  int value = rank, done = 0;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Iallreduce(in + i, out + i, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, requests + i);
  }
  MPI_Waitall(2, requests, statuses);
  MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, requests);
  MPI_Wait(requests, MPI_STATUS_IGNORE);
  MPI_Ibarrier(MPI_COMM_WORLD, requests);
  while (!done) MPI_Test(requests, &done, MPI_STATUS_IGNORE);
}

// An element that does not fit into a slot is left to the MPI.
static void call_the_others(int rank) {
  static double in[40000], out[40000];
  int value = rank, sum = 0;
  MPI_Datatype large;
  MPI_Op op;
  MPI_Scan(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Type_contiguous(40000, MPI_DOUBLE, &large);
  MPI_Type_commit(&large);
  MPI_Op_create(keep_the_right, 1, &op);
  MPI_Allreduce(in, out, 1, large, op, MPI_COMM_WORLD);
  MPI_Op_free(&op);
  MPI_Type_free(&large);
}

static void use_blocks(int rank, int size) {
  static int in[kMost * 3], out[kMost * 3];
  MPI_Allgather(in, 3, MPI_INT, out, 3, MPI_INT, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 2, MPI_INT, MPI_COMM_WORLD);
  MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
  const int root = size - 1;
  if (rank == root) {
    MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 3, MPI_INT, root, MPI_COMM_WORLD);
    MPI_Scatter(in, 2, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
  } else {
    MPI_Gather(in, 3, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
    MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, out, 2, MPI_INT, root, MPI_COMM_WORLD);
  }
}

static void reduce(int rank) {
  double in[5 * kMost] = {rank + 1.0}, out[5 * kMost];
  MPI_Op op;
  MPI_Op_create(keep_the_right, 0, &op);
  for (int i = 0; i < kRounds; ++i) {
    MPI_Allreduce(in, out, 5, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Reduce_scatter_block(in, out, 5, MPI_DOUBLE, op, MPI_COMM_WORLD);
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : in, rank == 0 ? in : NULL, 4, MPI_DOUBLE, MPI_MAX, 0,
             MPI_COMM_WORLD);
  MPI_Op_free(&op);
}

int main(int argc, char** argv) {
  int rank = 0, size = 0, part_size = 0;
  int values[100] = {0};
  MPI_Comm part, copy;
  MPI_Datatype gaps;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank,
                 &part);  // odd and even, from the last to the first
  MPI_Comm_dup(part, &copy);
  MPI_Comm_size(part, &part_size);
  MPI_Type_vector(10, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  for (int i = 0; i < kRounds; ++i) {
    MPI_Bcast(values, 50, MPI_INT, part_size - 1, part);
    MPI_Bcast(values, 2, gaps, 0, copy);
  }
  if (argc > 1 && strcmp(argv[1], "crash") == 0 && rank == size - 1) abort();
  reduce(rank);
  use_blocks(rank, size);
  exchange_uneven(rank, size);
  call_the_others(rank);
  start_some(rank);
  const int many = argc > 1 && strcmp(argv[1], "many") == 0 ? 70000 : 0;
  for (int i = 0; i < many; ++i) MPI_Allreduce(MPI_IN_PLACE, values, 1, MPI_INT, MPI_SUM, copy);
  MPI_Type_free(&gaps);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&part);
  MPI_Finalize();
  return 0;
}
