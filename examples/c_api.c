/* SPDX-License-Identifier: Apache-2.0
 *
 * The C API in a program that is started by MPI: MPI only tells the ranks where the others are, and
 * carillon does the collectives. Any other allgather will do for that (docs/api.md).
 *
 *   mpicc c_api.c $(pkg-config --cflags --libs carillon) -o c_api
 *   mpirun -n 4 ./c_api
 */
#include <carillon/carillon.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Begins to gather `bytes` bytes of each rank; carillon's only way to speak before it is there. */
static int post(void* arg, const void* in, void* out, size_t bytes, void** request_p) {
  MPI_Comm* const comm = arg;
  MPI_Request* const request = malloc(sizeof *request);
  if (request == NULL) return -1;
  if (MPI_Iallgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, *comm, request) !=
      MPI_SUCCESS) {
    free(request);
    return -1;
  }
  *request_p = request;
  return 0;
}

/* 0: done; 1: not yet; else: it has failed. */
static int test(void* arg, void* request) {
  int done = 0;
  (void)arg;
  const int error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
  if (error == MPI_SUCCESS && !done) return 1;
  free(request);
  return error == MPI_SUCCESS ? 0 : -1;
}

static void check(crl_status_t status) {
  if (status == CRL_OK) return;
  fprintf(stderr, "c_api: %s\n", crl_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  MPI_Comm world = MPI_COMM_WORLD;
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &ranks);

  const crl_oob_t oob = {
      .arg = &world, .rank = rank, .size = ranks, .allgather_post = post, .allgather_test = test};
  const crl_context_config_t config = {.struct_bytes = sizeof config, .oob = oob};
  crl_context_h context;
  crl_team_h team;
  check(crl_context_create(&config, &context));
  check(crl_team_create(context, &oob, &team)); /* of all; another oob would make one of some */

  double mine = rank + 1, sum = 0;
  check(crl_allreduce(team, &mine, &sum, 1, CRL_FLOAT64, CRL_SUM));

  int value = rank == 0 ? 42 : 0;
  crl_request_h request;
  check(crl_ibcast(team, &value, sizeof value, 0, &request));
  /* what does not need `value` goes here; crl_request_test, called now and then, moves it on */
  check(crl_request_wait(&request));

  printf("rank %d of %d: sum %g, value %d, by %s\n", rank, ranks, sum, value,
         crl_team_last_algorithm(team));
  crl_team_destroy(team);
  crl_context_destroy(context);
  MPI_Finalize();
  return sum == ranks * (ranks + 1) / 2.0 && value == 42 ? 0 : 1;
}
