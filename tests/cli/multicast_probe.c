/* SPDX-License-Identifier: Apache-2.0
 *
 * The program that multicast_test.py runs on virtual clusters. Every rank checks broadcasts of
 * several lengths from every root, and prints "rank R of N, errors E, ALGORITHM". Before that, by
 * the first argument:
 *
 *   late R: rank R calls a few broadcasts of rank 0 when rank 0 is through with them
 *
 *   kill R PREFIX: rank R kills itself; each other rank broadcasts until a call fails, writes to
 * the file PREFIX.RANK how, and ends (a launcher may stop forwarding what is printed when a process
 * is killed)
 *
 *   change R WHAT: the shell command WHAT is run by each rank, and rank R broadcasts
 *
 *   much: so much is broadcast, after that, that multicast is chosen where nobody has asked
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 300000, ROUNDS = 3, FEW = 20, MUCH = 70, SIGN = 7 };
static int rank, ranks, errors;
static unsigned char data[MOST];

static unsigned char expected(int root, int round, int i) {
  return (unsigned char)(root * 31 + round * 7 + i % 253);
}

static void broadcast(int root, int round, int bytes) {
  for (int i = 0; i < bytes; ++i) data[i] = rank == root ? expected(root, round, i) : 0;
  MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
  for (int i = 0; i < bytes; ++i) errors += data[i] != expected(root, round, i);
}

static const char* algorithm(void) {
  const char* (*const last)(void) =
      (const char* (*)(void))dlsym(RTLD_DEFAULT, "carillon_shim_last_algorithm");
  const char* const name = last != NULL ? last() : NULL;
  return name != NULL ? name : "none";
}

/* `late` waits for a sign that rank 0 gives behind its own broadcasts. */
static void come_late(int late) {
  char sign = 0;
  if (rank == late) MPI_Recv(&sign, 1, MPI_BYTE, 0, SIGN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < FEW; ++i) broadcast(0, i, 1000);
  if (rank == 0) MPI_Send(&sign, 1, MPI_BYTE, late, SIGN, MPI_COMM_WORLD);
}

static void outlive(int victim, const char* prefix) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == victim) raise(SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int code = MPI_SUCCESS;
  while (code == MPI_SUCCESS) code = MPI_Bcast(data, MOST, MPI_BYTE, 0, MPI_COMM_WORLD);
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  char path[512], begun[520];
  snprintf(path, sizeof path, "%s.%d", prefix, rank);
  snprintf(begun, sizeof begun, "%s.begun", path);
  FILE* const file = fopen(begun, "w");
  if (file != NULL) {
    fprintf(file, "%s, %s\n", algorithm(), text);
    fclose(file);
    rename(begun, path); /* whole from the first moment on */
  }
  _exit(0);
}

/* Nobody broadcasts while it is changed. */
static void change(int root, const char* command) {
  broadcast(root, 0, MOST);
  MPI_Barrier(MPI_COMM_WORLD);
  errors += system(command) != 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < FEW; ++i) broadcast(root, i, MOST);
}

int main(int argc, char** argv) {
  static const int lengths[ROUNDS] = {1, 5000, MOST};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* const what = argc > 1 ? argv[1] : "";
  const int who = argc > 2 ? atoi(argv[2]) : -1;
  broadcast(0, 0, 1);
  if (strcmp(what, "late") == 0) come_late(who);
  if (strcmp(what, "kill") == 0 && argc > 3) outlive(who, argv[3]);
  const int changes = strcmp(what, "change") == 0 && argc > 3;
  if (changes) change(who, argv[3]);
  for (int round = 0; round < ROUNDS && !changes; ++round) {
    for (int root = 0; root < ranks; ++root) broadcast(root, round, lengths[round]);
  }
  for (int i = 0; strcmp(what, "much") == 0 && i < MUCH; ++i) broadcast(i % ranks, i, 65536);
  printf("rank %d of %d, errors %d, %s\n", rank, ranks, errors, algorithm());
  MPI_Finalize();
  return errors != 0;
}
