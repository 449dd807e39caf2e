/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain MPI program: does some collectives at some sizes and prints, for each, the time of a
 * call (on the slowest rank) and a digest of what all ranks received. It knows nothing of
 * carillon; `make run` starts it without and with.
 *
 *   mpicc -O2 collectives.c -o collectives
 *   mpirun -n 4 ./collectives
 *   carillon run -n 4 ./collectives
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_BYTES = 65536, CALLS = 4 };
static const double kSeconds = 0.03; /* for each line of the output, about */

static int rank, ranks;
static double *in, *out; /* room for a block per rank */

static void barrier(int count) {
  (void)count;
  MPI_Barrier(MPI_COMM_WORLD);
}
static void bcast(int count) { MPI_Bcast(out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
static void reduce(int count) {
  MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void allreduce(int count) {
  MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void allgather(int count) {
  MPI_Allgather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD);
}
static void gather(int count) {
  MPI_Gather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void scatter(int count) {
  MPI_Scatter(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void reduce_scatter_block(int count) {
  MPI_Reduce_scatter_block(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void alltoall(int count) {
  MPI_Alltoall(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  void (*run)(int count);
} kCollectives[] = {
    {"barrier", barrier},     {"bcast", bcast},
    {"reduce", reduce},       {"allreduce", allreduce},
    {"allgather", allgather}, {"gather", gather},
    {"scatter", scatter},     {"reduce_scatter_block", reduce_scatter_block},
    {"alltoall", alltoall},
};

/* Whole numbers, whose sums are exact in any order, different for every rank and place. */
static void fill(int salt) {
  for (int i = 0; i < ranks * MAX_BYTES / 8; ++i) {
    in[i] = (i * 31 + rank * 17 + salt) % 1009;
    out[i] = (i * 13 + rank * 7 + salt) % 503;
  }
}

/* FNV-1a of this rank's output; on rank 0, of those of all ranks. */
static uint64_t digest(void) {
  const uint64_t start = 14695981039346656037u;
  uint64_t all[1024], hash = start;
  const unsigned char* bytes = (const unsigned char*)out;
  for (int i = 0; i < ranks * MAX_BYTES; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  MPI_Gather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  hash = start;
  for (int i = 0; rank == 0 && i < ranks; ++i) hash = (hash ^ all[i]) * 1099511628211u;
  return hash;
}

/* Microseconds of a call, each after a barrier, on the slowest rank. */
static double time_of(void (*run)(int count), int count) {
  for (int i = 0; i < CALLS; ++i) run(count); /* warm-up */
  const double start = MPI_Wtime();
  double mine = 0, slowest = 0;
  int calls = 0, more = 1;
  while (more) {
    for (int i = 0; i < CALLS; ++i, ++calls) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double before = MPI_Wtime();
      run(count);
      mine += MPI_Wtime() - before;
    }
    more = MPI_Wtime() - start < kSeconds;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  mine *= 1e6 / calls;
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return slowest;
}

static void try_collective(int which, int bytes) {
  fill(bytes);
  kCollectives[which].run(bytes / 8);
  const uint64_t result = digest();
  const double time_us = time_of(kCollectives[which].run, bytes / 8);
  if (rank == 0) {
    printf("%-20s %7d B  %10.2f us  %016llx\n", kCollectives[which].name, bytes, time_us,
           (unsigned long long)result);
  }
}

int main(int argc, char** argv) {
  static const int kSizes[] = {8, 4096, MAX_BYTES};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  in = malloc((size_t)ranks * MAX_BYTES);
  out = malloc((size_t)ranks * MAX_BYTES);
  if (in == NULL || out == NULL || ranks > 1024) MPI_Abort(MPI_COMM_WORLD, 1);
  try_collective(0, 0);
  for (int which = 1; which < (int)(sizeof(kCollectives) / sizeof(kCollectives[0])); ++which) {
    for (int size = 0; size < 3; ++size) try_collective(which, kSizes[size]);
  }
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
