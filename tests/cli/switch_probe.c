/* SPDX-License-Identifier: Apache-2.0
 *
 * The program that switch_test.py runs. Every rank makes allreduces of all operators and types that
 * switches compute, of several lengths, in place and not, blocking and several at once, and checks
 * each element; then it prints "rank R of N, errors E, ALGORITHM". The argument says how many
 * rounds; rank 0 prints "round I" after each, so that something may happen meanwhile. With two
 * named pipes after it a call comes first in which rank 0 makes no progress (held), and with
 * "short" all are of a packet. After "rooted ROUNDS" the calls are reduces, bcasts and barriers.
 * "groups N" makes so many communicators and calls on each of them in turn; rank 0 prints
 * "groups G of N": those that have a group of the switch's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 20000, COUNTS = 10, OPS = 6, TYPES = 4, AT_ONCE = 5 };
static const int counts[COUNTS] = {1, 2, 3, 5, 7, 8, 13, 352, 1000, MOST};
static int rank, ranks, errors, lengths = COUNTS;

static const char* algorithm(void) {
  const char* (*const last)(void) =
      (const char* (*)(void))dlsym(RTLD_DEFAULT, "carillon_shim_last_algorithm");
  const char* const name = last != NULL ? last() : NULL;
  return name != NULL ? name : "none";
}

/* Small whole numbers, so that sums of floats are exact in any order. */
static int64_t value(int from, int round, int i) {
  return ((int64_t)from * 7919 + (int64_t)round * 104729 + (int64_t)i * 31) % 8191 - 4000;
}

static int64_t combined(int op, int64_t a, int64_t b) {
  switch (op) {
    case 0: return a + b;
    case 1: return a < b ? a : b;
    case 2: return a > b ? a : b;
    case 3: return a & b;
    case 4: return a | b;
    default: return a ^ b;
  }
}

static void store(void* to, int type, int i, int64_t number) {
  if (type == 0) ((int32_t*)to)[i] = (int32_t)number;
  if (type == 1) ((int64_t*)to)[i] = number;
  if (type == 2) ((float*)to)[i] = (float)number;
  if (type == 3) ((double*)to)[i] = (double)number;
}

static int64_t load(const void* from, int type, int i) {
  if (type == 0) return ((const int32_t*)from)[i];
  if (type == 1) return ((const int64_t*)from)[i];
  if (type == 2) return (int64_t)((const float*)from)[i];
  return (int64_t)((const double*)from)[i];
}

static void check(const void* result, int op, int type, int round, int count) {
  for (int i = 0; i < count; ++i) {
    int64_t expected = value(0, round, i);
    for (int from = 1; from < ranks; ++from) {
      expected = combined(op, expected, value(from, round, i));
    }
    errors += load(result, type, i) != expected;
  }
}

static const MPI_Op* operators(void) {
  static MPI_Op all[OPS];
  const MPI_Op list[OPS] = {MPI_SUM, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR};
  memcpy(all, list, sizeof all);
  return all;
}

static MPI_Datatype type_of(int type) {
  const MPI_Datatype list[TYPES] = {MPI_INT32_T, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE};
  return list[type];
}

static void blocking(int round) {
  static char in[MOST * 8], out[MOST * 8];
  for (int op = 0; op < OPS; ++op) {
    for (int type = 0; type < TYPES; ++type) {
      if (op > 2 && type > 1) continue;
      const int count = counts[(round + op * TYPES + type) % lengths];
      const int in_place = (round + op + type) % 2;
      for (int i = 0; i < count; ++i) store(in_place ? out : in, type, i, value(rank, round, i));
      MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, type_of(type), operators()[op],
                    MPI_COMM_WORLD);
      check(out, op, type, round, count);
      memset(out, 0x5a, sizeof out);
    }
  }
}

static void at_once(int round) {
  static char data[AT_ONCE][MOST * 8];
  MPI_Request requests[AT_ONCE];
  MPI_Status statuses[AT_ONCE];
  for (int k = 0; k < AT_ONCE; ++k) {
    const int count = counts[(round + k) % lengths];
    for (int i = 0; i < count; ++i) store(data[k], 3, i, value(rank, round + k, i));
    MPI_Iallreduce(MPI_IN_PLACE, data[k], count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[k]);
  }
  MPI_Waitall(AT_ONCE, requests, statuses);
  for (int k = 0; k < AT_ONCE; ++k) check(data[k], 0, 3, round + k, counts[(round + k) % lengths]);
}

static void expect(const char* name) { errors += strcmp(algorithm(), name) != 0; }

/* Of every root; what is no root's output keeps its value. */
static void rooted(int round) {
  static char in[MOST * 8], out[MOST * 8];
  static const int lengths_of_bytes[COUNTS] = {1, 2, 3, 4, 5, 6, 7, 9, 1411, 50001};
  for (int root = 0; root < ranks; ++root) {
    const int op = (round + root) % 3, type = (round / 3 + root) % TYPES;
    const int count = counts[(round + root) % COUNTS], in_place = rank == root && round % 2 == 1;
    for (int i = 0; i < count; ++i) store(in_place ? out : in, type, i, value(rank, round, i));
    if (!in_place) memset(out, 0x5a, sizeof out);
    MPI_Reduce(in_place ? MPI_IN_PLACE : in, out, count, type_of(type), operators()[op], root,
               MPI_COMM_WORLD);
    expect("reduce.switch");
    if (rank == root) check(out, op, type, round, count);
    for (size_t i = 0; rank != root && i < sizeof out; ++i) errors += out[i] != 0x5a;

    const int bytes = lengths_of_bytes[(round + root) % COUNTS];
    memset(out, 0x5a, sizeof out);
    for (int i = 0; rank == root && i < bytes; ++i) out[i] = (char)value(root, round, i);
    MPI_Bcast(out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    expect("bcast.switch");
    for (int i = 0; i < bytes; ++i) errors += out[i] != (char)value(root, round, i);
    errors += out[bytes] != 0x5a;
    MPI_Barrier(MPI_COMM_WORLD);
    expect("barrier.switch");
  }
}

/* Calls of one communicator do not wait for those of others. */
static void groups(int number) {
  enum { COUNT = 1000 };
  static double data[COUNT];
  MPI_Comm* const all = malloc((size_t)number * sizeof *all);
  if (all == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  int in_switch = 0;
  double one = 1;
  MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* it comes first */
  for (int i = 0; i < number; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &all[i]);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < number; ++i) {
      for (int k = 0; k < COUNT; ++k) data[k] = (double)value(rank, round + i, k);
      MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_DOUBLE, MPI_SUM, all[i]);
      in_switch += round == 0 && strcmp(algorithm(), "allreduce.switch") == 0;
      check(data, 0, 3, round + i, COUNT);
    }
  }
  for (int i = 0; i < number; ++i) MPI_Comm_free(&all[i]);
  free(all);
  if (rank == 0) printf("groups %d of %d\n", in_switch, number);
}

/* Ranks 0 and 1 meet in files: rank 1 comes when it is told by `go`, and rank 0, which has begun,
 * does nothing until rank 1 has its result. */
static void held(const char* go, const char* end) {
  enum { COUNT = 5000 };
  static double data[COUNT];
  char sign = 0;
  MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < COUNT; ++i) data[i] = (double)value(rank, 0, i);
  if (rank == 0) {
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, data, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    printf("begun\n");
    fflush(stdout);
    FILE* const file = fopen(end, "r");
    errors += file == NULL || fread(&sign, 1, 1, file) != 1;
    if (file != NULL) fclose(file);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    FILE* file = rank == 1 ? fopen(go, "r") : NULL;
    errors += rank == 1 && (file == NULL || fread(&sign, 1, 1, file) != 1);
    if (file != NULL) fclose(file);
    MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    file = rank == 1 ? fopen(end, "w") : NULL;
    errors += rank == 1 && (file == NULL || fwrite(&sign, 1, 1, file) != 1);
    if (file != NULL) fclose(file);
  }
  check(data, 0, 3, 0, COUNT);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int by_root = argc > 2 && strcmp(argv[1], "rooted") == 0;
  if (argc > 2 && strcmp(argv[1], "groups") == 0) groups(atoi(argv[2]));
  if (argc > 3) held(argv[2], argv[3]);
  if (argc == 3 && strcmp(argv[2], "short") == 0) lengths = 7;
  const int rounds = argc > 1 ? atoi(argv[1 + by_root]) : COUNTS;
  for (int round = 0; round < rounds; ++round) {
    if (by_root) {
      rooted(round);
    } else {
      blocking(round);
      at_once(round);
    }
    if (rank == 0) {
      printf("round %d\n", round);
      fflush(stdout);
    }
  }
  double one = 1;
  MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d, errors %d, %s\n", rank, ranks, errors + (one != ranks), algorithm());
  MPI_Finalize();
  return 0;
}
