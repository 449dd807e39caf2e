/* SPDX-License-Identifier: Apache-2.0
 *
 * carillon-bench-MPI: the program that `carillon bench` starts, under that MPI's launcher and with
 * carillon's interposer. Rank 0 prints one JSON object a line per collective and size.
 *
 *   carillon-bench-MPI --collectives a,b --sizes 8,64 [--shared] [--fresh] [--counter]
 *                      [--together] [--bare] [--seconds S] [--iterations N] [--overlap [--tests N]]
 *
 * If carillon did not take the calls, or gave another answer than the MPI, there is nothing to
 * compare: then it prints {"error": why} and ends. (With status 0: launchers add paragraphs of
 * their own to others.)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"
#include "cases.h"
#include "measure.h"
#include "overlap.h"
#include "together.h"

struct options {
  char *collectives, *sizes;
  int shared, counter;
  int overlap, tests;
  struct effort effort;
};

/* What the interposer exports for us (docs/cli.md). */
static unsigned long long (*taken_calls)(const char* collective);
static const char* (*last_algorithm)(void);

static int everywhere(int here) {
  int all = 0;
  PMPI_Allreduce(&here, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return all;
}

/* Ends the program on all ranks; rank 0 says why. */
static void stop(int rank, const char* what, const char* why) {
  if (rank == 0) printf("{\"error\":\"%s: %s\"}\n", what, why);
  fflush(stdout);
  MPI_Finalize();
  exit(0);
}

static int parse(int argc, char** argv, struct options* options) {
  memset(options, 0, sizeof(*options));
  options->effort.seconds = 0.5;
  for (int i = 1; i < argc; ++i) {
    const int last = i + 1 == argc;
    if (strcmp(argv[i], "--shared") == 0) {
      options->shared = 1;
    } else if (strcmp(argv[i], "--fresh") == 0) {
      options->effort.fresh = 1;
    } else if (strcmp(argv[i], "--together") == 0) {
      options->effort.together = 1;
    } else if (strcmp(argv[i], "--bare") == 0) {
      options->effort.bare = 1;
    } else if (strcmp(argv[i], "--counter") == 0) {
      options->counter = 1;
    } else if (strcmp(argv[i], "--overlap") == 0) {
      options->overlap = 1;
    } else if (last) {
      return 0;
    } else if (strcmp(argv[i], "--collectives") == 0) {
      options->collectives = argv[++i];
    } else if (strcmp(argv[i], "--sizes") == 0) {
      options->sizes = argv[++i];
    } else if (strcmp(argv[i], "--seconds") == 0) {
      options->effort.seconds = atof(argv[++i]);
    } else if (strcmp(argv[i], "--iterations") == 0) {
      options->effort.iterations = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--tests") == 0) {
      options->tests = atoi(argv[++i]);
    } else {
      return 0;
    }
  }
  return options->collectives != NULL && options->sizes != NULL;
}

static void find_interposer(int rank) {
  taken_calls = (unsigned long long (*)(const char*))dlsym(RTLD_DEFAULT, "carillon_shim_taken");
  last_algorithm = (const char* (*)(void))dlsym(RTLD_DEFAULT, "carillon_shim_last_algorithm");
  if (everywhere(taken_calls != NULL)) return;
  stop(rank, "carillon's interposer is not loaded on every rank",
       "start this program with carillon bench, or with carillon exec");
}

static void print_row(const struct collective* collective, const char* algorithm, int ranks,
                      size_t bytes, const struct figures* f) {
  printf(
      "{\"collective\":\"%s\",\"algorithm\":\"%s\",\"ranks\":%d,\"bytes\":%zu,"
      "\"latency_us\":%.4f,\"native_us\":%.4f,\"speedup\":%.4g,"
      "\"speedup_quartiles\":[%.4g,%.4g],\"batches\":%d",
      collective->name, algorithm, ranks, bytes, f->carillon_us, f->native_us, f->speedup,
      f->speedup_low, f->speedup_high, f->batches);
  if (f->bare_us > 0) printf(",\"bare_us\":%.4f,\"room\":%.4g", f->bare_us, f->room);
  printf("}\n");
  fflush(stdout);
}

static void print_overlap(const struct collective* collective, int ranks, size_t bytes,
                          const struct overlaps* overlaps) {
  static const char* const sides[] = {"native", "carillon"};
  static const char* const figures[OVERLAP_FIGURES] = {
      "pure_us", "start_us", "compute_us", "total_us", "overlap_percent", "over_longer"};
  printf("{\"collective\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"batches\":%d", collective->name,
         ranks, bytes, overlaps->batches);
  for (int side = NATIVE; side <= CARILLON; ++side) {
    printf(",\"%s\":{", sides[side]);
    for (int figure = 0; figure < OVERLAP_FIGURES; ++figure) {
      printf("%s\"%s\":%.3f", figure == 0 ? "" : ",", figures[figure],
             overlaps->side[side].of[figure]);
    }
    printf(",\"busy_percent\":%.1f}", overlaps->busy_percent[side]);
  }
  printf("}\n");
  fflush(stdout);
}

static void check_taken(const struct call* call, const char* name, unsigned long long taken,
                        long calls) {
  if (everywhere(taken >= (unsigned long long)calls)) return;
  stop(call->rank, name,
       "carillon left calls to the MPI, so there is nothing to compare; carillon run --stats "
       "says why");
}

static void bench_overlap(const struct collective* collective, const struct call* call,
                          size_t bytes, const struct options* options) {
  char started[64];
  struct overlaps overlaps;
  snprintf(started, sizeof(started), "i%s", collective->name);
  const unsigned long long before = taken_calls(started);
  measure_overlap(collective, call, &options->effort, options->tests, &overlaps);
  check_taken(call, started, taken_calls(started) - before, overlaps.carillon_calls);
  if (call->rank == 0) print_overlap(collective, call->ranks, bytes, &overlaps);
}

static void bench_call(const struct collective* collective, const struct call* call, size_t bytes,
                       const struct options* options) {
  struct figures figures;
  const unsigned long long before = taken_calls(collective->name);
  if (!measure(collective, call, &options->effort, &figures)) {
    stop(call->rank, collective->name, "some rank was never in time; does something else run?");
  }
  check_taken(call, collective->name, taken_calls(collective->name) - before,
              figures.carillon_calls);
  collective->run(call, CARILLON);
  const char* const algorithm = last_algorithm != NULL ? last_algorithm() : "";
  if (call->rank == 0) {
    print_row(collective, algorithm != NULL ? algorithm : "", call->ranks, bytes, &figures);
  }
}

static void check_bare(const struct collective* collective, const struct call* call) {
  for (int way = 0; way < bare_ways(collective, call); ++way) {
    bare_go(collective, call, way);
    if (everywhere(answers_agree(collective, call, BARE, 0))) continue;
    stop(call->rank, collective->name, "the bare loop's answer is not that of the MPI");
  }
}

static void bench_one(const struct collective* collective, size_t bytes,
                      const struct options* options) {
  struct call call;
  const int created = call_create(collective, bytes, options->shared, &call);
  if (!everywhere(created)) stop(call.rank, collective->name, "not enough memory");
  if (!everywhere(answers_agree(collective, &call, CARILLON, options->overlap))) {
    stop(call.rank, collective->name,
         "carillon's answer is not that of the MPI (a defect of carillon: please report it)");
  }
  if (options->effort.bare && bare_can(collective)) check_bare(collective, &call);
  if (options->overlap) {
    bench_overlap(collective, &call, bytes, options);
  } else {
    bench_call(collective, &call, bytes, options);
  }
  call_free(&call, options->shared);
}

static void bench_all(struct options* options, int rank) {
  char* rest = NULL;
  for (char* name = strtok_r(options->collectives, ",", &rest); name != NULL;
       name = strtok_r(NULL, ",", &rest)) {
    const struct collective* const collective = find_collective(name);
    if (collective == NULL) stop(rank, name, "there is no such collective");
    const char* size = options->sizes;
    while (*size != '\0') {
      char* end = NULL;
      const unsigned long long bytes = strtoull(size, &end, 10);
      const int barrier = strcmp(name, "barrier") == 0;
      bench_one(collective, barrier ? 0 : (size_t)bytes, options);
      if (barrier || *end != ',') break;
      size = end + 1;
    }
  }
}

int main(int argc, char** argv) {
  struct options options;
  int rank = 0;
  MPI_Init(&argc, &argv);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!parse(argc, argv, &options)) {
    stop(
        rank, argv[0],
        "use --collectives a,b --sizes 8,64 [--shared] [--fresh] [--counter] [--together] [--bare] "
        "[--seconds S] [--iterations N] [--overlap [--tests N]]");
  }
  find_interposer(rank);
  if (options.counter) measure_with_counter();
  if (options.effort.together && !can_begin_together()) {
    stop(rank, "ranks cannot begin together",
         "they need the clock of one machine, and a core each; leave --together out");
  }
  if (options.effort.bare && !bare_begin()) {
    stop(rank, "--bare", "the bare loop is of two ranks of one machine");
  }
  bench_all(&options, rank);
  if (options.effort.bare) bare_end();
  MPI_Finalize();
  return 0;
}
