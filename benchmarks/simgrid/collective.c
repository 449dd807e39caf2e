// SPDX-License-Identifier: Apache-2.0
//
// One collective, timed on the simulated clock of SimGrid's SMPI: from a moment at which all ranks
// begin to the end of the last one. Run by compare.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 1);
  const int bytes = atoi(argv[2]);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char* in = calloc((size_t)ranks, (size_t)bytes);
  char* out = calloc((size_t)ranks, (size_t)bytes);
  usleep((useconds_t)((1.0 - MPI_Wtime()) * 1e6 + 0.5));
  const double begin = MPI_Wtime();
  if (strcmp(argv[1], "allreduce") == 0) {
    MPI_Allreduce(in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(argv[1], "allgather") == 0) {
    MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  }
  const double end = MPI_Wtime();
  double first, last;
  MPI_Reduce(&begin, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%.3f\n", (last - first) * 1e6);
  MPI_Finalize();
  return 0;
}
