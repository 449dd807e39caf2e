/* SPDX-License-Identifier: Apache-2.0
 *
 * carillon-footprint-MPI: what a rank's start costs, in time and memory. `benchmarks/footprint`
 * runs it with and without the interposer and subtracts.
 *
 *   carillon-footprint-MPI [LIBRARY]
 *
 * Starts itself anew, with LIBRARY in LD_PRELOAD, so that the time from exec counts the loading and
 * the constructors of libraries. Then rank 0 prints one JSON object:
 *   exec_ms, init_ms   from exec to the end of MPI_Init; MPI_Init alone; of the slowest rank
 *   own_ms             of that, what the interposer does before and after the MPI's own; 0 without
 *   start_kib          PSS after MPI_Init and one call of a few collectives; mean of the ranks
 *   communicator_kib   PSS for each further communicator with a collective done on it; mean
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kCommunicators = 64 };

static const char kStarted[] = "FOOTPRINT_STARTED_MS";

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

/* The interposer calls the MPI by this name; the program itself does not. The next one behind this
 * would be the interposer's own: the MPI's is in the library that has PMPI_Wtime. */
static double g_host_ms;

int PMPI_Init(int* argc, char*** argv) {
  Dl_info place;
  int (*of_mpi)(int*, char***) = NULL;
  void* const mpi = dladdr(dlsym(RTLD_DEFAULT, "PMPI_Wtime"), &place) != 0
                        ? dlopen(place.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                        : NULL;
  if (mpi != NULL) *(void**)&of_mpi = dlsym(mpi, "PMPI_Init");
  if (of_mpi == NULL) return MPI_ERR_INTERN;
  const double before = now_ms();
  const int status = of_mpi(argc, argv);
  g_host_ms = now_ms() - before;
  return status;
}

/* Does not return. */
static void start_anew(char** argv) {
  char text[64];
  if (argv[1] != NULL) setenv("LD_PRELOAD", argv[1], 1);
  snprintf(text, sizeof(text), "%.6f", now_ms());
  setenv(kStarted, text, 1);
  execv("/proc/self/exe", argv);
  perror("execv");
  _exit(1);
}

/* Pages of this process, shared ones counted in part. */
static double pss_kib(void) {
  char line[256];
  long kib = 0;
  FILE* const file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) return 0;
  while (fgets(line, sizeof(line), file) != NULL && sscanf(line, "Pss: %ld", &kib) != 1) {
  }
  fclose(file);
  return (double)kib;
}

/* Of all ranks together: nobody goes on while others still count. */
static double mean_pss_kib(int ranks) {
  double sum = 0;
  PMPI_Barrier(MPI_COMM_WORLD);
  const double mine = pss_kib();
  PMPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / ranks;
}

static double slowest(double mine) {
  double most = 0;
  PMPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

static void first_collectives(int ranks) {
  double in[16] = {0}, out[16];
  double* const all = calloc((size_t)ranks * 16, sizeof(double));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Bcast(in, 16, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Reduce(in, out, 16, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Allreduce(in, out, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allgather(in, 16, MPI_DOUBLE, all, 16, MPI_DOUBLE, MPI_COMM_WORLD);
  free(all);
}

int main(int argc, char** argv) {
  const char* const started = getenv(kStarted);
  if (started == NULL) start_anew(argv);
  const double before = now_ms();
  MPI_Init(&argc, &argv);
  const double after = now_ms();
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double exec_ms = slowest(after - strtod(started, NULL));
  const double init_ms = slowest(after - before);
  const double own_ms = slowest(g_host_ms > 0 ? after - before - g_host_ms : 0);
  (void)mean_pss_kib(ranks); /* what it needs itself is there before the first figure */
  first_collectives(ranks);
  const double start_kib = mean_pss_kib(ranks);
  /* One more does not tell: memory is taken by the page. */
  MPI_Comm communicators[kCommunicators];
  for (int i = 0; i < kCommunicators; ++i) {
    double in = 1, out = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, communicators[i]);
  }
  const double communicator_kib = (mean_pss_kib(ranks) - start_kib) / kCommunicators;
  if (rank == 0) {
    printf(
        "{\"exec_ms\":%.3f,\"init_ms\":%.3f,\"own_ms\":%.3f,\"start_kib\":%.1f,"
        "\"communicator_kib\":%.2f}\n",
        exec_ms, init_ms, own_ms, start_kib, communicator_kib);
  }
  for (int i = 0; i < kCommunicators; ++i) MPI_Comm_free(&communicators[i]);
  MPI_Finalize();
  return 0;
}
