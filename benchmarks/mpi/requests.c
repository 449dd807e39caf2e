// SPDX-License-Identifier: Apache-2.0
//
// What a request costs: an allreduce of 8 bytes that blocks, and one that is started and waited
// for, of the MPI's alone (PMPI) and as the program sees it (carillon's under `carillon run`); and
// a wait for nothing, which is what a call costs that is passed through.
//
//   carillon run -n 2 build/bin/requests-openmpi
//
// Medians over batches of the four ways in turn, on the slowest rank, in nanoseconds.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBlocking, kStarted, kNativeBlocking, kNativeStarted, kNull, kNativeNull, kWays };
enum { kBatches = 101, kCalls = 2000 };
static const char* const kNames[kWays] = {"allreduce",      "iallreduce, wait",
                                          "PMPI allreduce", "PMPI iallreduce, wait",
                                          "wait, null",     "PMPI wait, null"};

static void call(int way) {
  const double in = 1;
  double out = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  switch (way) {
    case kBlocking: MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
    case kStarted:
      MPI_Iallreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case kNativeBlocking: PMPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
    case kNativeStarted:
      PMPI_Iallreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
      PMPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case kNull: MPI_Wait(&request, MPI_STATUS_IGNORE); break;
    default: PMPI_Wait(&request, MPI_STATUS_IGNORE); break;
  }
}

static int compare(const void* a, const void* b) {
  const double left = *(const double*)a;
  const double right = *(const double*)b;
  return (left > right) - (left < right);
}

int main(int argc, char** argv) {
  static double took_ns[kWays][kBatches];
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int batch = -2; batch < kBatches; ++batch) {  // the first two warm up
    for (int way = 0; way < kWays; ++way) {
      PMPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (int i = 0; i < kCalls; ++i) call(way);
      const double mine = (MPI_Wtime() - begin) * 1e9 / kCalls;
      double slowest = 0;
      PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (batch >= 0) took_ns[way][batch] = slowest;
    }
  }
  for (int way = 0; way < kWays && rank == 0; ++way) {
    qsort(took_ns[way], kBatches, sizeof took_ns[way][0], compare);
    printf("%-22s %8.1f ns   %.1f..%.1f\n", kNames[way], took_ns[way][kBatches / 2],
           took_ns[way][kBatches / 4], took_ns[way][3 * kBatches / 4]);
  }
  MPI_Finalize();
  return 0;
}
