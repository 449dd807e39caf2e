/* SPDX-License-Identifier: Apache-2.0
 *
 * The program by which switch_cluster_test.py measures: "switch_times COUNT CALLS ..." makes so
 * many allreduces of so many doubles, of each count in turn, one rank on each node, and checks each
 * element. Rank 0 prints a line for each count:
 *
 *   count C us T busy B up U down D
 *
 * T is the median of the slowest rank's times, B how busy the machine's cores were meanwhile in
 * percent, U and D the most bytes per call that a node's interface sent and received, from the
 * beginning of the calls to their ends.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks, errors;

typedef struct {
  long long all, idle;
} Ticks;

/* "cpu user nice system idle iowait irq softirq steal guest ...": guest is part of user. */
static Ticks ticks(void) {
  Ticks sum = {0, 0};
  FILE* const file = fopen("/proc/stat", "r");
  if (file == NULL || fscanf(file, "cpu") != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int column = 0; column < 8; ++column) {
    long long value = 0;
    if (fscanf(file, "%lld", &value) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
    sum.all += value;
    if (column == 3 || column == 4) sum.idle += value;
  }
  fclose(file);
  return sum;
}

static long long interface_bytes(const char* way) {
  char path[64];
  snprintf(path, sizeof path, "/sys/class/net/eth0/statistics/%s_bytes", way);
  FILE* const file = fopen(path, "r");
  long long bytes = 0;
  if (file == NULL || fscanf(file, "%lld", &bytes) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
  fclose(file);
  return bytes;
}

/* One call: its time; the bytes meanwhile are added. */
static double call(double* data, int count, long long* up, long long* down) {
  for (int i = 0; i < count; ++i) data[i] = rank + i % 64;
  MPI_Barrier(MPI_COMM_WORLD);
  const long long up_before = interface_bytes("tx"), down_before = interface_bytes("rx");
  const double begin = MPI_Wtime();
  MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double time = MPI_Wtime() - begin;
  *up += interface_bytes("tx") - up_before;
  *down += interface_bytes("rx") - down_before;
  for (int i = 0; i < count; ++i) {
    errors += data[i] != (double)ranks * (ranks - 1) / 2 + (double)ranks * (i % 64);
  }
  return time;
}

static double median(double* values, int count) {
  for (int i = 1; i < count; ++i) {
    for (int k = i; k > 0 && values[k] < values[k - 1]; --k) {
      const double value = values[k];
      values[k] = values[k - 1];
      values[k - 1] = value;
    }
  }
  return values[count / 2];
}

static void measure(int count, int calls) {
  double* const data = malloc((size_t)count * sizeof *data);
  double* const times = malloc((size_t)calls * sizeof *times);
  if (data == NULL || times == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  long long bytes[2] = {0, 0}, most[2];
  call(data, count, &bytes[0], &bytes[1]); /* the first one makes connections */
  bytes[0] = bytes[1] = 0;
  const Ticks before = ticks();
  for (int i = 0; i < calls; ++i) times[i] = call(data, count, &bytes[0], &bytes[1]);
  const Ticks after = ticks();
  PMPI_Allreduce(MPI_IN_PLACE, times, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  PMPI_Allreduce(bytes, most, 2, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
  const double all = (double)(after.all - before.all), idle = (double)(after.idle - before.idle);
  if (rank == 0) {
    printf("count %d us %.1f busy %.0f up %.0f down %.0f\n", count, median(times, calls) * 1e6,
           all > 0 ? 100 * (1 - idle / all) : 0, (double)most[0] / calls, (double)most[1] / calls);
    fflush(stdout);
  }
  free(data);
  free(times);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i + 1 < argc; i += 2) {
    const int count = atoi(argv[i]), calls = atoi(argv[i + 1]);
    if (count < 1 || calls < 1) MPI_Abort(MPI_COMM_WORLD, 2);
    measure(count, calls);
  }
  MPI_Finalize();
  return errors != 0;
}
