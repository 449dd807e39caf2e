/* SPDX-License-Identifier: Apache-2.0
 *
 * carillon-bcast-links-MPI: broadcasts on nodes whose wires are the limit, as benchmarks/multicast
 * starts it, with the interposer or without.
 *
 *   carillon-bcast-links-MPI BYTES,BYTES,... SECONDS [LATE_MS [any]]
 *
 * Each MPI_Bcast stands between two readings of the clock, after a barrier; of a call the slowest
 * rank counts. Rank 0 prints one JSON object a line: the mean and half of its 95 % confidence
 * interval; the same of a round of rank 0's, barrier included (wires may take a burst at once, and
 * make up for it during the barrier); what the node of the root has sent for a broadcast (less what
 * a barrier sends), and how busy the machine's cores were meanwhile: in all, with programs of lower
 * priority (nice), and with the ranks; and, in as many calls more, with what ranks do beside
 * yielding (yields.h).
 *
 * With LATE_MS, how long broadcasts take the others when one rank is late: for each one a node is
 * drawn that is not the root's, and by how much its first rank is late, 1 to LATE_MS; with "any",
 * a rank that is not the root. It sleeps that long between the barrier and its call, or behind its
 * call, so that nobody is late: in turn, and the one and the other first in turn. It sleeps as long
 * before the barrier, too: wires and cores have rested alike in both when the root begins, however
 * much a wire takes at once after a rest. A time is the mean of the ranks but for the one drawn.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "yields.h"

/* Warm-up: enough for a team to join its multicast groups (docs/multicast.md). */
enum { MIN_CALLS = 4, MAX_CALLS = 400, BARRIERS = 20, WARM_UP_BYTES = 5 << 20, MAX_WARM_UP = 80 };

struct ticks {
  double all, idle, nice;
};

static struct ticks ticks_now(void) {
  struct ticks ticks = {0, 0, 0};
  double columns[8] = {0};
  FILE* const file = fopen("/proc/stat", "r");
  if (file == NULL) return ticks;
  if (fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &columns[0], &columns[1], &columns[2],
             &columns[3], &columns[4], &columns[5], &columns[6], &columns[7]) == 8) {
    for (int i = 0; i < 8; ++i) ticks.all += columns[i];
    ticks.nice = columns[1];
    ticks.idle = columns[3] + columns[4];
  }
  fclose(file);
  return ticks;
}

/* By this node, to the others. */
static double bytes_sent(void) {
  double bytes = 0;
  FILE* const file = fopen("/sys/class/net/eth0/statistics/tx_bytes", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%lf", &bytes) != 1) bytes = 0;
  fclose(file);
  return bytes;
}

/* This rank's, in seconds. */
static double cpu_now(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double call(char* buffer, int bytes) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

/* How many calls fit into the seconds: the same number on all ranks. */
static int plan(char* buffer, int bytes, double seconds) {
  int calls = WARM_UP_BYTES / (bytes > 0 ? bytes : 1);
  calls = calls < 1 ? 1 : calls > MAX_WARM_UP ? MAX_WARM_UP : calls;
  double last = 0;
  for (int i = 0; i < calls; ++i) last = call(buffer, bytes);
  double slowest = 0;
  MPI_Allreduce(&last, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const double fitting = seconds / (slowest > 0 ? slowest : 1e-6);
  return fitting < MIN_CALLS ? MIN_CALLS : fitting > MAX_CALLS ? MAX_CALLS : (int)fitting;
}

static double barrier_bytes(void) {
  const double before = bytes_sent();
  for (int i = 0; i < BARRIERS; ++i) MPI_Barrier(MPI_COMM_WORLD);
  return (bytes_sent() - before) / BARRIERS;
}

static int is_right(const char* buffer, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    if (buffer[i] != (char)(i % 251)) return 0;
  }
  return 1;
}

static const char* algorithm(void) {
  const char* (*const last)(void) =
      (const char* (*)(void))dlsym(RTLD_DEFAULT, "carillon_shim_last_algorithm");
  const char* const name = last != NULL ? last() : NULL;
  return name != NULL ? name : "native";
}

/* The share of the cores that the ranks use for what they do beside yielding. In calls of its own,
 * because counting yields takes time. */
static double work_share(char* buffer, int bytes, int calls) {
  count_yields(1);
  MPI_Barrier(MPI_COMM_WORLD);
  const double yields_before = yield_seconds(), cpu_before = cpu_now(), start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call(buffer, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  const double took = MPI_Wtime() - start;
  const double work = cpu_now() - cpu_before - (yield_seconds() - yields_before);
  count_yields(0);
  double sum = 0;
  MPI_Allreduce(&work, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return fmax(sum, 0) / took / (double)sysconf(_SC_NPROCESSORS_ONLN);
}

struct figures {
  double mean, half;
};

static struct figures figures_of(const double* times, int count) {
  struct figures is = {0, 0};
  double squares = 0;
  for (int i = 0; i < count; ++i) is.mean += times[i] / count;
  for (int i = 0; i < count; ++i) squares += (times[i] - is.mean) * (times[i] - is.mean);
  is.half = 1.96 * sqrt(squares / (count - 1) / count);
  return is;
}

static int measure(int rank, int bytes, double seconds) {
  char* const buffer = malloc((size_t)bytes + 1);
  for (int i = 0; i < bytes; ++i) buffer[i] = (char)(rank == 0 ? i % 251 : -1);
  const int calls = plan(buffer, bytes, seconds);
  const double per_barrier = barrier_bytes();
  double mine[MAX_CALLS], slowest[MAX_CALLS], rounds[MAX_CALLS];
  const struct ticks begin = ticks_now();
  const double sent_before = bytes_sent(), cpu_before = cpu_now(), start = MPI_Wtime();
  double last = start;
  for (int i = 0; i < calls; ++i) {
    mine[i] = call(buffer, bytes);
    const double now = MPI_Wtime();
    rounds[i] = now - last;
    last = now;
  }
  const char* const name = algorithm();
  MPI_Barrier(MPI_COMM_WORLD); /* the last bytes have left */
  const double round = (MPI_Wtime() - start) / calls;
  const double sent = (bytes_sent() - sent_before) / calls - per_barrier * (calls + 1) / calls;
  const struct ticks end = ticks_now();
  const double cpu = (cpu_now() - cpu_before) / (double)sysconf(_SC_NPROCESSORS_ONLN);
  double cpus = 0;
  MPI_Allreduce(&cpu, &cpus, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(mine, slowest, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const struct figures is = figures_of(slowest, calls);
  const double all = end.all > begin.all ? end.all - begin.all : 1;
  const double work = work_share(buffer, bytes, calls);
  const int right = is_right(buffer, bytes);
  int all_right = 0;
  MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (rank == 0) {
    printf(
        "{\"algorithm\":\"%s\",\"bytes\":%d,\"calls\":%d,\"mean_us\":%.1f,\"half_us\":%.1f,"
        "\"round_us\":%.1f,\"round_half_us\":%.1f,\"sent_bytes\":%.0f,\"busy_percent\":%.1f,\"nice_"
        "percent\":%.1f,"
        "\"ranks_percent\":%.1f,\"work_percent\":%.1f,\"right\":%s}\n",
        name, bytes, calls, is.mean * 1e6, is.half * 1e6, round * 1e6,
        figures_of(rounds, calls).half * 1e6, sent, 100 * (1 - (end.idle - begin.idle) / all),
        100 * (end.nice - begin.nice) / all, 100 * cpus / (round * calls), 100 * work,
        all_right ? "true" : "false");
    fflush(stdout);
  }
  free(buffer);
  return all_right;
}

/* The first ranks of the nodes but rank 0's; how many. */
static int first_ranks(int rank, int ranks, int* firsts) {
  enum { NAME = MPI_MAX_PROCESSOR_NAME };
  char* const names = calloc((size_t)ranks, NAME);
  char mine[NAME] = "";
  int length = 0, count = 0;
  MPI_Get_processor_name(mine, &length);
  MPI_Allgather(mine, NAME, MPI_CHAR, names, NAME, MPI_CHAR, MPI_COMM_WORLD);
  for (int i = 1; i < ranks; ++i) {
    int seen = 0;
    while (strcmp(names + (size_t)seen * NAME, names + (size_t)i * NAME) != 0) ++seen;
    if (seen == i) firsts[count++] = i;
  }
  free(names);
  if (count > 0) return count;
  if (rank == 0) fprintf(stderr, "all ranks are on the root's node: nobody can be late\n");
  MPI_Abort(MPI_COMM_WORLD, 2);
  return 0;
}

/* Who may be late; how many. */
static int candidates(int rank, int ranks, int any, int* list) {
  if (!any) return first_ranks(rank, ranks, list);
  for (int i = 1; i < ranks; ++i) list[i - 1] = i;
  return ranks - 1;
}

static void sleep_ms(double ms) {
  const struct timespec time = {(time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6)};
  nanosleep(&time, NULL);
}

/* The rank that was drawn has some milliseconds; the others none. */
static double late_call(char* buffer, int bytes, double ms, int late) {
  if (ms > 0) sleep_ms(ms);
  MPI_Barrier(MPI_COMM_WORLD);
  if (ms > 0 && late) sleep_ms(ms);
  const double start = MPI_Wtime();
  MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  const double time = MPI_Wtime() - start;
  if (ms > 0 && !late) sleep_ms(ms);
  return time;
}

static int measure_late(int rank, int bytes, double seconds, double late_ms, int any) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int* const list = malloc((size_t)ranks * sizeof *list);
  const int listed = candidates(rank, ranks, any, list);
  char* const buffer = malloc((size_t)bytes + 1);
  for (int i = 0; i < bytes; ++i) buffer[i] = (char)(rank == 0 ? i % 251 : -1);
  const int fitting = plan(buffer, bytes, seconds);
  int pairs = (int)(seconds / (2 * (seconds / fitting + late_ms / 1e3)));
  pairs = pairs < MIN_CALLS ? MIN_CALLS : pairs;
  double mine[2][MAX_CALLS], sums[2][MAX_CALLS];
  unsigned short seed[3] = {1, 2, 3};
  for (int i = 0; i < pairs; ++i) {
    const int drawn = rank == list[nrand48(seed) % listed];
    const double ms = 1 + (late_ms - 1) * erand48(seed);
    for (int turn = 0; turn < 2; ++turn) {
      const int late = (i + turn) % 2;
      const double time = late_call(buffer, bytes, drawn ? ms : 0, late);
      mine[late][i] = drawn ? 0 : time / (ranks - 1);
    }
  }
  const char* const name = algorithm();
  const int right = is_right(buffer, bytes);
  int all_right = 0;
  for (int late = 0; late < 2; ++late) {
    MPI_Allreduce(mine[late], sums[late], pairs, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (rank == 0) {
    const struct figures none = figures_of(sums[0], pairs), one = figures_of(sums[1], pairs);
    printf(
        "{\"algorithm\":\"%s\",\"bytes\":%d,\"calls\":%d,\"none_late_us\":%.1f,"
        "\"none_late_half_us\":%.1f,\"one_late_us\":%.1f,\"one_late_half_us\":%.1f,"
        "\"late_rank\":\"%s\",\"right\":%s}\n",
        name, bytes, pairs, none.mean * 1e6, none.half * 1e6, one.mean * 1e6, one.half * 1e6,
        any ? "any" : "first", all_right ? "true" : "false");
    fflush(stdout);
  }
  free(buffer);
  free(list);
  return all_right;
}

int main(int argc, char** argv) {
  int rank = 0, status = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int any = argc == 5 && strcmp(argv[4], "any") == 0;
  if (argc != 3 && argc != 4 && !any) {
    if (rank == 0) fprintf(stderr, "usage: %s BYTES,BYTES,... SECONDS [LATE_MS [any]]\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const char* size = argv[1];
  for (;;) {
    char* end = NULL;
    const long bytes = strtol(size, &end, 10);
    const double seconds = atof(argv[2]);
    const int right = argc >= 4 ? measure_late(rank, (int)bytes, seconds, atof(argv[3]), any)
                                : measure(rank, (int)bytes, seconds);
    if (!right) status = 1;
    if (*end != ',') break;
    size = end + 1;
  }
  MPI_Finalize();
  return status;
}
