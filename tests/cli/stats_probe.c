// SPDX-License-Identifier: Apache-2.0
//
// For carillon run --stats: calls of known bytes on several communicators, of each form, and some
// that are left to the MPI. Prints which algorithms did what it calls on MPI_COMM_WORLD. With
// "surveyed N", N calls of MPI_Ialltoallv instead; with "late", calls that wait for some time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Bcast_init MPIX_Bcast_init
#endif

enum { kMost = 16, kLarge = 1 << 17 };
static int rank, size;
static int in[kMost * kMost], out[kMost * kMost], counts[kMost], starts[kMost];

static void print_algorithm(const char* what) {
  const char* (*last)(void) =
      (const char* (*)(void))dlsym(RTLD_DEFAULT, "carillon_shim_last_algorithm");
  if (rank == 0) printf("%s %s\n", what, last != NULL && *last() != 0 ? last() : "none");
}

static void use_world(void) {
  static double large_in[kLarge], large_out[kLarge];
  for (int i = 0; i < 5; ++i) {
    MPI_Allreduce(large_in, large_out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  print_algorithm("small");
  for (int i = 0; i < 2; ++i) {
    MPI_Allreduce(large_in, large_out, kLarge, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  print_algorithm("large");
  MPI_Allreduce(in, out, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Request request;
  MPI_Bcast_init(in, 3, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < 4; ++i) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
}

// Rank r has r + 1 numbers; the type has gaps, which are no bytes.
static void use_lists(MPI_Comm comm) {
  MPI_Datatype types[kMost], gaps;
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  int bytes[kMost];
  for (int i = 0; i < size; ++i) {
    counts[i] = i + 1;
    starts[i] = kMost * i;
    bytes[i] = starts[i] * (int)sizeof(int);
    types[i] = gaps;
  }
  const int own = rank + 1, root = 1;
  MPI_Allgatherv(in, own, MPI_INT, out, counts, starts, MPI_INT, comm);
  MPI_Gatherv(in, own, MPI_INT, out, counts, starts, MPI_INT, root, comm);
  MPI_Scatterv(in, counts, starts, MPI_INT, out, own, MPI_INT, root, comm);
  MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < size; ++i) counts[i] = rank + i;
  MPI_Alltoallv(in, counts, starts, MPI_INT, out, counts, starts, MPI_INT, comm);
  for (int i = 0; i < size; ++i) counts[i] = 1;
  MPI_Alltoallw(in, counts, bytes, types, out, counts, bytes, types, comm);
  MPI_Type_free(&gaps);
}

static void use_blocks(MPI_Comm comm) {
  const int root = 1;
  MPI_Barrier(comm);
  MPI_Bcast(in, 10, MPI_INT, root, comm);
  MPI_Reduce(in, out, 3, MPI_INT, MPI_SUM, root, comm);
  MPI_Reduce_scatter_block(in, out, 2, MPI_INT, MPI_SUM, comm);
  MPI_Allgather(in, 3, MPI_INT, out, 3, MPI_INT, comm);
  MPI_Gather(in, 5, MPI_INT, out, 5, MPI_INT, root, comm);
  MPI_Scatter(in, 6, MPI_INT, out, 6, MPI_INT, root, comm);
  MPI_Alltoall(in, 7, MPI_INT, out, 7, MPI_INT, comm);
  MPI_Scan(in, out, 2, MPI_INT, MPI_SUM, comm);
  MPI_Exscan(in, out, 3, MPI_INT, MPI_SUM, comm);
}

// The same bytes as where nothing is.
static void use_blocks_in_place(MPI_Comm comm) {
  const int root = 1;
  const int is_root = rank == root;
  MPI_Reduce(is_root ? MPI_IN_PLACE : in, out, 3, MPI_INT, MPI_SUM, root, comm);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 3, MPI_INT, comm);
  MPI_Gather(is_root ? MPI_IN_PLACE : in, 5, MPI_INT, out, 5, MPI_INT, root, comm);
  MPI_Scatter(in, 6, MPI_INT, is_root ? MPI_IN_PLACE : out, 6, MPI_INT, root, comm);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 7, MPI_INT, comm);
}

// A ring that ends.
static void use_neighbours(void) {
  const int sizes[] = {size}, periods[] = {0};
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, 0, &grid);
  MPI_Comm_set_name(grid, "grid");
  MPI_Neighbor_allgather(in, 3, MPI_INT, out, 3, MPI_INT, grid);
  MPI_Neighbor_alltoall(in, 2, MPI_INT, out, 2, MPI_INT, grid);
  MPI_Comm_free(&grid);
}

// The first one is started while the communicator is new.
static void start_some(void) {
  MPI_Comm fresh;
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  MPI_Comm_set_name(fresh, "fresh");
  MPI_Request requests[4];
  MPI_Status statuses[4];
  for (int i = 0; i < 4; ++i) {
    MPI_Iallreduce(in + i, out + i, 1, MPI_INT, MPI_SUM, fresh, &requests[i]);
  }
  MPI_Waitall(4, requests, statuses);
  int done = 0;
  MPI_Ibcast(in, 10, MPI_INT, 0, fresh, requests);
  while (!done) MPI_Test(requests, &done, MPI_STATUS_IGNORE);
  MPI_Comm_free(&fresh);
}

// Rank 0 and the others, between which all is the MPI's.
static void use_groups(void) {
  MPI_Comm part, bridge;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &part);
  MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 7, &bridge);
  MPI_Comm_set_name(bridge, "bridge");
  MPI_Allreduce(in, out, 2, MPI_INT, MPI_SUM, bridge);
  MPI_Allgather(in, 2, MPI_INT, out, 2, MPI_INT, bridge);
  MPI_Bcast(in, 9, MPI_INT, rank == 0 ? MPI_ROOT : 0, bridge);
  MPI_Gather(in, 4, MPI_INT, out, 4, MPI_INT, rank == 0 ? MPI_ROOT : 0, bridge);
  MPI_Comm_free(&bridge);
  MPI_Comm_free(&part);
}

// Two of one size that the program does not name.
static void use_nameless(void) {
  for (int i = 0; i < 2; ++i) {
    MPI_Comm some;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &some);
    MPI_Comm_set_name(some, "");
    MPI_Bcast(in, i + 1, MPI_INT, 0, some);
    MPI_Comm_free(&some);
  }
}

static void exchange(int calls) {
  for (int i = 0; i < size; ++i) {
    counts[i] = 1;
    starts[i] = i;
  }
  for (int i = 0; i < calls; ++i) {
    MPI_Request request;
    MPI_Ialltoallv(in, counts, starts, MPI_INT, out, counts, starts, MPI_INT, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

static void compute(double seconds) {
  const double begin = MPI_Wtime();
  while (MPI_Wtime() - begin < seconds) continue;
}

// Rank 0 waits for the others, in the call or for its end; then all compute beside a collective.
static void come_late(double seconds) {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  MPI_Comm_set_name(comm, "late");
  if (rank != 0) compute(seconds);
  MPI_Barrier(comm);
  if (rank != 0) compute(seconds);
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_set_name(comm, "beside");
  MPI_Ibarrier(comm, &request);
  compute(seconds);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 2 && strcmp(argv[1], "surveyed") == 0) {
    exchange(atoi(argv[2]));
  } else if (argc > 2 && strcmp(argv[1], "late") == 0) {
    come_late(atof(argv[2]));
  } else {
    MPI_Comm copy, in_place;
    use_world();
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_name(copy, "the \"copy\" \\ of\nit, \xc3\xa9t\xe9");
    use_blocks(copy);
    use_lists(copy);
    MPI_Comm_dup(MPI_COMM_WORLD, &in_place);
    MPI_Comm_set_name(in_place, "in place");
    use_blocks_in_place(in_place);
    use_neighbours();
    start_some();
    use_groups();
    use_nameless();
    MPI_Comm_free(&in_place);
    MPI_Comm_free(&copy);
  }
  MPI_Finalize();
  return 0;
}
