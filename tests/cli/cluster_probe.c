/* SPDX-License-Identifier: Apache-2.0
 *
 * The program that cluster_test.py runs on virtual clusters. Every rank checks some collectives and
 * prints "rank R of N on HOST, L on this node, errors E"; with a number of bytes as argument, rank
 * 0 first sends that many to the last rank. With "fail", the last rank aborts with status 3; with
 * "many", the collectives are checked a hundred times;
 * with "hang", no rank ends; with "die", the last rank is killed in the middle of many allreduces.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 5000 };
static int rank, ranks, errors;
static int in[COUNT], out[COUNT];

static void check(int count, int factor, int addend) {
  for (int i = 0; i < count; ++i) errors += out[i] != factor * i + addend;
  memset(out, 0, sizeof(out));
}

static void check_collectives(void) {
  for (int i = 0; i < COUNT; ++i) in[i] = i + rank;
  MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(COUNT, ranks, ranks * (ranks - 1) / 2);
  memcpy(out, in, sizeof(in));
  MPI_Bcast(out, COUNT, MPI_INT, ranks - 1, MPI_COMM_WORLD);
  check(COUNT, 1, ranks - 1);
  MPI_Allgather(&rank, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
  check(ranks, 1, 0);
  for (int i = 0; i < ranks; ++i) in[i] = 100 * rank + i;
  MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
  check(ranks, 100, rank);
}

static void send_bytes(int bytes) {
  char* const buffer = calloc((size_t)bytes, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  if (rank == 0) {
    memset(buffer, 7, (size_t)bytes);
    MPI_Send(buffer, bytes, MPI_BYTE, ranks - 1, 0, MPI_COMM_WORLD);
  } else if (rank == ranks - 1) {
    MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; ++i) errors += buffer[i] != 7;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("seconds %.4f\n", MPI_Wtime() - begin);
  free(buffer);
}

static void die(void) {
  for (int i = 0;; ++i) {
    if (i == 1000 && rank == ranks - 1) raise(SIGKILL);
    MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  MPI_Comm node;
  int local = 0;
  char host[256];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &local);
  gethostname(host, sizeof(host));
  const char* const what = argc > 1 ? argv[1] : "";
  if (atoi(what) > 0) send_bytes(atoi(what));
  for (int round = strcmp(what, "many") == 0 ? 100 : 1; round > 0; --round) check_collectives();
  printf("rank %d of %d on %s, %d on this node, errors %d\n", rank, ranks, host, local, errors);
  fflush(stdout);
  if (strcmp(what, "die") == 0) die();
  if (strcmp(what, "hang") == 0) {
    for (;;) pause();
  }
  if (strcmp(what, "fail") == 0 && rank == ranks - 1) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Comm_free(&node);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
