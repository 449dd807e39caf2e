/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives that are measured: how each is called, natively (PMPI_*) and with carillon
 * (MPI_*, which its interposer takes), and whether both give the same answer.
 */
#ifndef CARILLON_BENCH_CASES_H
#define CARILLON_BENCH_CASES_H

#include <mpi.h>
#include <stddef.h>

enum side { NATIVE, CARILLON, BARE /* by no library, bare.h */ };

/* One collective at one size, root 0. `bytes`: the whole vector for bcast, reduce and allreduce;
 * one rank's share otherwise. */
struct call {
  MPI_Comm comm;  /* MPI_COMM_WORLD, or of neighbourhood collectives a grid of two dimensions */
  void *in, *out; /* of the side with one block per rank, if there is one, room for all */
  size_t in_bytes, out_bytes;
  int count; /* elements of `type` in a block */
  MPI_Datatype type;
  int *counts, *offsets; /* of alltoallv and its like: of each block */
  MPI_Datatype* types;   /* of alltoallw */
  MPI_Aint* places;      /* of neighbor_alltoallw: offsets in bytes */
  int rank, ranks;
};

/* How many a side has. */
enum blocks { ONE_BLOCK, PER_RANK, PER_NEIGHBOUR };

struct collective {
  const char* name; /* "allreduce", as carillon has it */
  enum blocks in_blocks, out_blocks;
  int reduces;
  void (*run)(const struct call* call, enum side side);
  void (*start)(const struct call* call, enum side side, MPI_Request* request);
};

extern const struct collective collectives[];
extern const int collective_count;
/* Null if there is none of that name. */
const struct collective* find_collective(const char* name);

/* 0 if memory runs out. `shared`: memory of MPI_Alloc_mem instead of malloc. */
int call_create(const struct collective* collective, size_t bytes, int shared, struct call* call);
void call_free(struct call* call, int shared);

/* Writes to every cache line of this rank's input, as a program does that computes between calls.
 * The next round gets other values. */
void call_rewrite_input(const struct collective* collective, const struct call* call, int round);

/* On that side. */
void call_run(const struct collective* collective, const struct call* call, enum side side);

/* Runs it once natively and once on that side, on equal inputs; whether the outputs are equal on
 * this rank. `started`: by its form that gives a request. */
int answers_agree(const struct collective* collective, const struct call* call, enum side side,
                  int started);

/* Of that side. */
void wait_for(MPI_Request* request, enum side side);
void test_for(MPI_Request* request, enum side side);

#endif
