/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the start of a non-blocking collective keeps a program, of the MPI's alone (PMPI) and
 * with carillon:
 *
 *   CARILLON_SERVLET=on carillon run -n 2 build/bin/posts-openmpi
 *   CARILLON_SERVLET=on carillon cluster run --nodes 2 --rate 500mbit \
 *       -- build/bin/posts-openmpi alltoallv,allreduce,bcast 65536,1048576 300
 *
 *   posts-MPI [COLLECTIVES [SIZES [ROUNDS]]]
 *
 * Of each round the sides in turn: a barrier, one start by itself (`first`), and after its end 16
 * in a row, each on buffers of its own (`in a row`). Every start lies between two readings of the
 * clock; a reading alone is the first row. On each rank quantiles over all starts; of the ranks the
 * slowest's. Rank 0 prints one row for each collective, size and way.
 *
 * Others of the machine may take the core away in the middle of a start, the servlet that it wakes
 * among them: the median is what the start itself does, the 99th of a hundred what may come to it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "measure.h"

enum { IN_A_ROW = 16, MAX_ROUNDS = 5000, WARM_UP_ROUNDS = 5 };
enum way { FIRST, ROW, WAYS };
static const char* const way_names[WAYS] = {"first", "in a row"};
static const char* const side_names[] = {"PMPI", "MPI"};

/* Of one side and way. */
struct samples {
  double* us;
  int count;
};
static struct samples samples[2][WAYS];

static int rank;

static void stop(const char* what, const char* why) {
  if (rank == 0) fprintf(stderr, "posts: %s: %s\n", what, why);
  MPI_Finalize();
  exit(1);
}

/* Starts and ends `count` of them. */
static void post(const struct collective* collective, const struct call* calls, enum side side,
                 int count, struct samples* into) {
  MPI_Request requests[IN_A_ROW];
  bench_barrier(side);
  for (int i = 0; i < count; ++i) {
    const double begin_us = now_us();
    collective->start(&calls[i], side, &requests[i]);
    const double took_us = now_us() - begin_us;
    if (into != NULL) into->us[into->count++] = took_us;
  }
  for (int i = 0; i < count; ++i) wait_for(&requests[i], side);
}

static void round_of(const struct collective* collective, const struct call* calls, enum side side,
                     int counts) {
  post(collective, calls, side, 1, counts ? &samples[side][FIRST] : NULL);
  post(collective, calls, side, IN_A_ROW, counts ? &samples[side][ROW] : NULL);
}

static double slowest(double mine) {
  double all = 0;
  PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

static void print_row(const char* what, const char* side, const char* bytes, const char* way,
                      const struct samples* of) {
  static const double parts[] = {0.25, 0.5, 0.75, 0.99};
  double us[4];
  for (int i = 0; i < 4; ++i) us[i] = slowest(quantile(of->us, of->count, parts[i]));
  if (rank != 0) return;
  printf("%-24s %-5s %9s  %-8s %9.3f   %.3f..%.3f %9.3f\n", what, side, bytes, way, us[1], us[0],
         us[2], us[3]);
  fflush(stdout);
}

static void clock_row(int rounds) {
  struct samples* const into = &samples[CARILLON][FIRST];
  into->count = 0;
  for (int i = 0; i < rounds; ++i) {
    const double begin_us = now_us();
    into->us[into->count++] = now_us() - begin_us;
  }
  print_row("the clock", "", "", "", into);
}

/* Whether carillon took the starts since. */
static unsigned long long taken(const char* name) {
  unsigned long long (*const ask)(const char*) =
      (unsigned long long (*)(const char*))dlsym(RTLD_DEFAULT, "carillon_shim_taken");
  return ask != NULL ? ask(name) : 0;
}

static void measure_one(const struct collective* collective, size_t bytes, int rounds) {
  struct call calls[IN_A_ROW];
  char name[64], size[32];
  snprintf(name, sizeof name, "i%s", collective->name);
  snprintf(size, sizeof size, "%zu", bytes);
  int created = 1;
  for (int i = 0; i < IN_A_ROW; ++i) created &= call_create(collective, bytes, 0, &calls[i]);
  if (slowest(!created) > 0) stop(name, "not enough memory");
  if (slowest(!answers_agree(collective, &calls[0], CARILLON, 1)) > 0) {
    stop(name, "carillon's answer is not that of the MPI");
  }
  for (int side = NATIVE; side <= CARILLON; ++side) {
    for (int way = FIRST; way < WAYS; ++way) samples[side][way].count = 0;
  }
  const unsigned long long before = taken(name);
  for (int i = -WARM_UP_ROUNDS; i < rounds; ++i) {
    for (int turn = 0; turn < 2; ++turn) {
      round_of(collective, calls, (turn + i) % 2 == 0 ? NATIVE : CARILLON, i >= 0);
    }
  }
  const unsigned long long all = (unsigned long long)rounds * (1 + IN_A_ROW);
  if (slowest(taken(name) - before < all) > 0) {
    stop(name, "carillon did not take the calls; start this program with carillon run");
  }
  for (int side = NATIVE; side <= CARILLON; ++side) {
    for (int way = FIRST; way < WAYS; ++way) {
      print_row(name, side_names[side], size, way_names[way], &samples[side][way]);
    }
  }
  for (int i = 0; i < IN_A_ROW; ++i) call_free(&calls[i], 0);
}

static void measure_all(const char* names, const char* sizes, int rounds) {
  char* const list = strdup(names);
  char* rest = NULL;
  for (char* name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
    const struct collective* const collective = find_collective(name);
    if (collective == NULL) stop(name, "there is no such collective");
    for (const char* size = sizes; *size != '\0';) {
      char* end = NULL;
      const unsigned long long bytes = strtoull(size, &end, 10);
      if (end == size || (*end != ',' && *end != '\0')) stop(size, "no list of bytes");
      measure_one(collective, (size_t)bytes, rounds);
      size = *end == ',' ? end + 1 : end;
    }
  }
  free(list);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int rounds = argc > 3 ? atoi(argv[3]) : 1000;
  if (argc > 4 || rounds < 1 || rounds > MAX_ROUNDS) {
    stop(argv[0], "use [COLLECTIVES [SIZES [ROUNDS, 1 to 5000]]]");
  }
  for (int side = NATIVE; side <= CARILLON; ++side) {
    samples[side][FIRST].us = calloc((size_t)rounds, sizeof(double));
    samples[side][ROW].us = calloc((size_t)rounds * IN_A_ROW, sizeof(double));
    if (!samples[side][FIRST].us || !samples[side][ROW].us) stop(argv[0], "not enough memory");
  }
  measure_with_counter();
  if (rank == 0) {
    printf("%-24s %-5s %9s  %-8s %9s   %s %9s\n", "start of", "by", "bytes", "which", "median us",
           "quartiles", "99 %");
  }
  clock_row(rounds);
  measure_all(argc > 1 ? argv[1] : "allreduce,bcast,alltoallv",
              argc > 2 ? argv[2] : "8,8192,65536,1048576", rounds);
  MPI_Finalize();
  return 0;
}
