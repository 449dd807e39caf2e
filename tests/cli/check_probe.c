// SPDX-License-Identifier: Apache-2.0
//
// For carillon run --check: a program that does the same on all ranks, but for one call, in a way
// that its argument names, on the last rank (or, if there is a second argument, on that one).
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

enum { kMost = 64 };
static int rank, size, odd;
static double in[kMost * kMost], out[kMost * kMost];
static int counts[kMost], offsets[kMost];

static int is(const char* mistake, const char* name) { return odd && strcmp(mistake, name) == 0; }

// What is right: every form, types of one signature, both ends of what is uneven.
static void do_well(MPI_Comm comm) {
  MPI_Datatype pair, strided;
  MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  MPI_Type_vector(4, 1, 2, MPI_DOUBLE, &strided);
  MPI_Type_commit(&pair);
  MPI_Type_commit(&strided);
  if (rank % 2 == 0) {
    MPI_Bcast(in, 2, pair, 0, comm);
  } else {
    MPI_Bcast(in, 1, strided, 0, comm);
  }
  for (int i = 0; i < size; ++i) {
    counts[i] = i % 3;
    offsets[i] = 2 * i;
  }
  MPI_Allgatherv(in, counts[rank], MPI_DOUBLE, out, counts, offsets, MPI_DOUBLE, comm);
  MPI_Gatherv(in, counts[rank], MPI_DOUBLE, out, counts, offsets, MPI_DOUBLE, size - 1, comm);
  MPI_Request requests[3];
  MPI_Status statuses[3];
  MPI_Iallreduce(in, out, 3, MPI_DOUBLE, MPI_SUM, comm, &requests[0]);
  MPI_Ibarrier(comm, &requests[1]);
  MPI_Ialltoall(in, 1, MPI_DOUBLE, out + kMost, 1, MPI_DOUBLE, comm, &requests[2]);
  MPI_Waitall(3, requests, statuses);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 1, MPI_DOUBLE, comm);
  MPI_Scan(in, out, 2, MPI_DOUBLE, MPI_MAX, comm);
  MPI_Allreduce_init(in, out, 3, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
  MPI_Bcast_init(in, rank % 2 == 0 ? 2 : 1, rank % 2 == 0 ? pair : strided, 0, comm, MPI_INFO_NULL,
                 &requests[1]);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Type_free(&pair);
  MPI_Type_free(&strided);
}

static void err(const char* mistake, MPI_Comm comm) {
  MPI_Request request;
  if (is(mistake, "function")) {
    MPI_Barrier(comm);
  } else if (is(mistake, "started")) {
    MPI_Ibcast(in, 4, MPI_DOUBLE, 0, comm, &request);
  } else if (!is(mistake, "missing")) {
    MPI_Bcast(in, is(mistake, "count") ? 5 : 4, is(mistake, "type") ? MPI_LONG : MPI_DOUBLE,
              is(mistake, "root") ? 1 % size : 0, comm);
  }
  MPI_Allreduce(in, out, is(mistake, "operands") ? 2 : 1, MPI_DOUBLE,
                is(mistake, "operator") ? MPI_MAX : MPI_SUM, comm);
  MPI_Bcast_init(in, is(mistake, "persistent") ? 3 : 2, MPI_DOUBLE, 0, comm, MPI_INFO_NULL,
                 &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  for (int i = 0; i < size; ++i) {
    counts[i] = 2;
    offsets[i] = 2 * i;
  }
  if (is(mistake, "block")) counts[0] = 1;
  MPI_Alltoallv(in, counts, offsets, MPI_DOUBLE, out, counts, offsets, MPI_DOUBLE, comm);
  if (!is(mistake, "early")) MPI_Barrier(comm);
  if (is(mistake, "last")) MPI_Ibarrier(comm, &request);
}

int main(int argc, char** argv) {
  MPI_Comm half;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  odd = rank == (argc > 2 ? atoi(argv[2]) : size - 1);
  for (int i = 0; i < 50; ++i) {
    MPI_Comm_split(MPI_COMM_WORLD, (rank + i) % 2, 0, &half);
    MPI_Bcast(in, 4, MPI_DOUBLE, 0, half);
    MPI_Comm_free(&half);
  }
  do_well(MPI_COMM_WORLD);
  err(argc > 1 ? argv[1] : "", MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
