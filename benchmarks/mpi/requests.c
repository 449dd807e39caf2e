// SPDX-License-Identifier: Apache-2.0
//
// What a request costs: an allreduce of 8 bytes that blocks, one that is started and waited for,
// and a persistent one that is, of the MPI's alone (PMPI) and as the program sees it (carillon's
// under `carillon run`); and a wait for nothing, which is what a call costs that is passed through.
//
//   carillon run -n 2 build/bin/requests-openmpi
//
// Medians over batches of the ways in turn, on the slowest rank, in nanoseconds.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT_ALLREDUCE MPIX_Allreduce_init
#define NATIVE_PERSISTENT_ALLREDUCE PMPIX_Allreduce_init
#else
#define PERSISTENT_ALLREDUCE MPI_Allreduce_init
#define NATIVE_PERSISTENT_ALLREDUCE PMPI_Allreduce_init
#endif

enum {
  kBlocking,
  kStarted,
  kPersistent,
  kNativeBlocking,
  kNativeStarted,
  kNativePersistent,
  kNull,
  kNativeNull,
  kWays
};
enum { kBatches = 101, kCalls = 2000 };
static const char* const kNames[kWays] = {
    "allreduce",      "iallreduce, wait",      "persistent allreduce, wait",
    "PMPI allreduce", "PMPI iallreduce, wait", "PMPI persistent allreduce, wait",
    "wait, null",     "PMPI wait, null"};

static double persistent_in = 1, persistent_out;
static MPI_Request persistent, native_persistent;

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
    case kPersistent:
      MPI_Start(&persistent);
      MPI_Wait(&persistent, MPI_STATUS_IGNORE);
      break;
    case kNativePersistent:
      PMPI_Start(&native_persistent);
      PMPI_Wait(&native_persistent, MPI_STATUS_IGNORE);
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
  PERSISTENT_ALLREDUCE(&persistent_in, &persistent_out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &persistent);
  NATIVE_PERSISTENT_ALLREDUCE(&persistent_in, &persistent_out, 1, MPI_DOUBLE, MPI_SUM,
                              MPI_COMM_WORLD, MPI_INFO_NULL, &native_persistent);
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
    printf("%-32s %8.1f ns   %.1f..%.1f\n", kNames[way], took_ns[way][kBatches / 2],
           took_ns[way][kBatches / 4], took_ns[way][3 * kBatches / 4]);
  }
  PMPI_Request_free(&native_persistent);
  MPI_Request_free(&persistent);
  MPI_Finalize();
  return 0;
}
