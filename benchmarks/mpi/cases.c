/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"

enum { DIMENSIONS = 2 }; /* of the grid */

#define PICK(side, name) ((side) == NATIVE ? PMPI_##name : MPI_##name)

/* Both forms of a collective, on either side: run_ID blocks, start_ID gives a request. */
#define FORMS(id, Name, Iname, ...)                                                    \
  static void run_##id(const struct call* c, enum side side) {                         \
    PICK(side, Name)(__VA_ARGS__, c->comm);                                            \
  }                                                                                    \
  static void start_##id(const struct call* c, enum side side, MPI_Request* request) { \
    PICK(side, Iname)(__VA_ARGS__, c->comm, request);                                  \
  }

static void run_barrier(const struct call* c, enum side side) { PICK(side, Barrier)(c->comm); }

static void start_barrier(const struct call* c, enum side side, MPI_Request* request) {
  PICK(side, Ibarrier)(c->comm, request);
}

FORMS(bcast, Bcast, Ibcast, c->out, c->count, c->type, 0)
FORMS(reduce, Reduce, Ireduce, c->in, c->out, c->count, c->type, MPI_SUM, 0)
FORMS(allreduce, Allreduce, Iallreduce, c->in, c->out, c->count, c->type, MPI_SUM)
FORMS(reduce_scatter_block, Reduce_scatter_block, Ireduce_scatter_block, c->in, c->out, c->count,
      c->type, MPI_SUM)
FORMS(allgather, Allgather, Iallgather, c->in, c->count, c->type, c->out, c->count, c->type)
FORMS(gather, Gather, Igather, c->in, c->count, c->type, c->out, c->count, c->type, 0)
FORMS(scatter, Scatter, Iscatter, c->in, c->count, c->type, c->out, c->count, c->type, 0)
FORMS(alltoall, Alltoall, Ialltoall, c->in, c->count, c->type, c->out, c->count, c->type)
FORMS(alltoallv, Alltoallv, Ialltoallv, c->in, c->counts, c->offsets, c->type, c->out, c->counts,
      c->offsets, c->type)
/* The offsets are in bytes there: so long is an element of what is not reduced. */
FORMS(alltoallw, Alltoallw, Ialltoallw, c->in, c->counts, c->offsets, c->types, c->out, c->counts,
      c->offsets, c->types)
FORMS(scan, Scan, Iscan, c->in, c->out, c->count, c->type, MPI_SUM)
FORMS(exscan, Exscan, Iexscan, c->in, c->out, c->count, c->type, MPI_SUM)
FORMS(allgatherv, Allgatherv, Iallgatherv, c->in, c->count, c->type, c->out, c->counts, c->offsets,
      c->type)
FORMS(gatherv, Gatherv, Igatherv, c->in, c->count, c->type, c->out, c->counts, c->offsets, c->type,
      0)
FORMS(scatterv, Scatterv, Iscatterv, c->in, c->counts, c->offsets, c->type, c->out, c->count,
      c->type, 0)
FORMS(reduce_scatter, Reduce_scatter, Ireduce_scatter, c->in, c->out, c->counts, c->type, MPI_SUM)
FORMS(neighbor_allgather, Neighbor_allgather, Ineighbor_allgather, c->in, c->count, c->type, c->out,
      c->count, c->type)
FORMS(neighbor_alltoall, Neighbor_alltoall, Ineighbor_alltoall, c->in, c->count, c->type, c->out,
      c->count, c->type)
FORMS(neighbor_allgatherv, Neighbor_allgatherv, Ineighbor_allgatherv, c->in, c->count, c->type,
      c->out, c->counts, c->offsets, c->type)
FORMS(neighbor_alltoallv, Neighbor_alltoallv, Ineighbor_alltoallv, c->in, c->counts, c->offsets,
      c->type, c->out, c->counts, c->offsets, c->type)
FORMS(neighbor_alltoallw, Neighbor_alltoallw, Ineighbor_alltoallw, c->in, c->counts, c->places,
      c->types, c->out, c->counts, c->places, c->types)

const struct collective collectives[] = {
    {"barrier", ONE_BLOCK, ONE_BLOCK, 0, run_barrier, start_barrier},
    {"bcast", ONE_BLOCK, ONE_BLOCK, 0, run_bcast, start_bcast},
    {"reduce", ONE_BLOCK, ONE_BLOCK, 1, run_reduce, start_reduce},
    {"allreduce", ONE_BLOCK, ONE_BLOCK, 1, run_allreduce, start_allreduce},
    {"allgather", ONE_BLOCK, PER_RANK, 0, run_allgather, start_allgather},
    {"gather", ONE_BLOCK, PER_RANK, 0, run_gather, start_gather},
    {"scatter", PER_RANK, ONE_BLOCK, 0, run_scatter, start_scatter},
    {"reduce_scatter_block", PER_RANK, ONE_BLOCK, 1, run_reduce_scatter_block,
     start_reduce_scatter_block},
    {"alltoall", PER_RANK, PER_RANK, 0, run_alltoall, start_alltoall},
    {"alltoallv", PER_RANK, PER_RANK, 0, run_alltoallv, start_alltoallv},
    {"alltoallw", PER_RANK, PER_RANK, 0, run_alltoallw, start_alltoallw},
    {"scan", ONE_BLOCK, ONE_BLOCK, 1, run_scan, start_scan},
    {"exscan", ONE_BLOCK, ONE_BLOCK, 1, run_exscan, start_exscan},
    {"allgatherv", ONE_BLOCK, PER_RANK, 0, run_allgatherv, start_allgatherv},
    {"gatherv", ONE_BLOCK, PER_RANK, 0, run_gatherv, start_gatherv},
    {"scatterv", PER_RANK, ONE_BLOCK, 0, run_scatterv, start_scatterv},
    {"reduce_scatter", PER_RANK, ONE_BLOCK, 1, run_reduce_scatter, start_reduce_scatter},
    {"neighbor_allgather", ONE_BLOCK, PER_NEIGHBOUR, 0, run_neighbor_allgather,
     start_neighbor_allgather},
    {"neighbor_alltoall", PER_NEIGHBOUR, PER_NEIGHBOUR, 0, run_neighbor_alltoall,
     start_neighbor_alltoall},
    {"neighbor_allgatherv", ONE_BLOCK, PER_NEIGHBOUR, 0, run_neighbor_allgatherv,
     start_neighbor_allgatherv},
    {"neighbor_alltoallv", PER_NEIGHBOUR, PER_NEIGHBOUR, 0, run_neighbor_alltoallv,
     start_neighbor_alltoallv},
    {"neighbor_alltoallw", PER_NEIGHBOUR, PER_NEIGHBOUR, 0, run_neighbor_alltoallw,
     start_neighbor_alltoallw},
};
const int collective_count = (int)(sizeof(collectives) / sizeof(collectives[0]));

const struct collective* find_collective(const char* name) {
  for (int i = 0; i < collective_count; ++i) {
    if (strcmp(collectives[i].name, name) == 0) return &collectives[i];
  }
  return NULL;
}

/* Page-aligned, as the public suites have it. */
static void* allocate(size_t bytes, int shared) {
  void* memory = NULL;
  bytes += bytes == 0;
  if (shared) return MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory) == 0 ? memory : NULL;
  return posix_memalign(&memory, 4096, bytes) == 0 ? memory : NULL;
}

static void release(void* memory, int shared) {
  if (memory == NULL) return;
  if (shared) {
    MPI_Free_mem(memory);
  } else {
    free(memory);
  }
}

/* Not periodic where the neighbours on both sides would be one: that carillon leaves to the MPI. */
static MPI_Comm make_grid(int ranks) {
  int sizes[DIMENSIONS] = {0}, periods[DIMENSIONS];
  MPI_Comm grid = MPI_COMM_NULL;
  PMPI_Dims_create(ranks, DIMENSIONS, sizes);
  for (int i = 0; i < DIMENSIONS; ++i) periods[i] = sizes[i] > 2;
  MPI_Cart_create(MPI_COMM_WORLD, DIMENSIONS, sizes, periods, 0, &grid);
  return grid;
}

static size_t blocks_of(enum blocks blocks, int ranks) {
  if (blocks == PER_NEIGHBOUR) return 2 * DIMENSIONS;
  return blocks == PER_RANK ? (size_t)ranks : 1;
}

/* One entry for each block, of ranks or of neighbours. */
static int make_lists(struct call* call, enum blocks blocks) {
  const size_t entries = blocks_of(blocks, call->ranks);
  call->counts = calloc(entries, sizeof(int));
  call->offsets = calloc(entries, sizeof(int));
  call->types = calloc(entries, sizeof(MPI_Datatype));
  call->places = calloc(entries, sizeof(MPI_Aint));
  if (!call->counts || !call->offsets || !call->types || !call->places) return 0;
  for (size_t i = 0; i < entries; ++i) {
    call->counts[i] = call->count;
    call->offsets[i] = (int)i * call->count;
    call->types[i] = call->type;
    call->places[i] = (MPI_Aint)i * call->count;
  }
  return 1;
}

int call_create(const struct collective* collective, size_t bytes, int shared, struct call* call) {
  memset(call, 0, sizeof(*call));
  PMPI_Comm_rank(MPI_COMM_WORLD, &call->rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &call->ranks);
  const int on_grid = collective->out_blocks == PER_NEIGHBOUR;
  call->comm = on_grid ? make_grid(call->ranks) : MPI_COMM_WORLD;
  /* Sums of floats, as the public suites do them; bytes where the size is not whole floats. */
  const int floats = collective->reduces && bytes % sizeof(float) == 0;
  call->type = floats ? MPI_FLOAT : collective->reduces ? MPI_UNSIGNED_CHAR : MPI_CHAR;
  call->count = (int)(floats ? bytes / sizeof(float) : bytes);
  call->in_bytes = bytes * blocks_of(collective->in_blocks, call->ranks);
  call->out_bytes = bytes * blocks_of(collective->out_blocks, call->ranks);
  call->in = allocate(call->in_bytes, shared);
  call->out = allocate(call->out_bytes, shared);
  return make_lists(call, on_grid ? PER_NEIGHBOUR : PER_RANK) && call->in != NULL &&
         call->out != NULL;
}

void call_free(struct call* call, int shared) {
  release(call->in, shared);
  release(call->out, shared);
  free(call->counts);
  free(call->offsets);
  free(call->types);
  free(call->places);
  if (call->comm != MPI_COMM_WORLD) MPI_Comm_free(&call->comm);
}

/* Small whole numbers, different for every rank and place, whose sums are exact in any order. */
static void fill(const struct call* c, void* memory, size_t bytes, int salt) {
  if (c->type == MPI_FLOAT) {
    float* values = memory;
    for (size_t i = 0; i < bytes / sizeof(float); ++i) {
      values[i] = (float)((i * 7 + (size_t)(c->rank * 13 + salt)) % 1021);
    }
    return;
  }
  /* Sums of bytes stay in a byte: Open MPI 4's are cut off at 255, from 16 of them on. */
  const size_t most = c->type == MPI_UNSIGNED_CHAR ? 255 / (size_t)c->ranks : 255;
  unsigned char* values = memory;
  for (size_t i = 0; i < bytes; ++i) {
    values[i] = (unsigned char)((i * 7 + (i >> 8) + (size_t)(c->rank * 13 + salt)) % (most + 1));
  }
}

void call_rewrite_input(const struct collective* collective, const struct call* call, int round) {
  const int is_bcast = collective->run == run_bcast;
  if (is_bcast && call->rank != 0) return;
  float* const values = is_bcast ? call->out : call->in;
  const size_t count = (is_bcast ? call->out_bytes : call->in_bytes) / sizeof(float);
  for (size_t i = 0; i < count; i += 64 / sizeof(float))
    values[i] = (float)((round + call->rank) % 8);
}

void wait_for(MPI_Request* request, enum side side) {
  PICK(side, Wait)(request, MPI_STATUS_IGNORE);
}

void test_for(MPI_Request* request, enum side side) {
  int done = 0;
  PICK(side, Test)(request, &done, MPI_STATUS_IGNORE);
}

void call_run(const struct collective* collective, const struct call* call, enum side side) {
  if (side == BARE) {
    bare_run(collective, call);
  } else {
    collective->run(call, side);
  }
}

static void play(const struct collective* collective, const struct call* call, enum side side,
                 int started) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (!started) {
    call_run(collective, call, side);
    return;
  }
  collective->start(call, side, &request);
  wait_for(&request, side);
}

int answers_agree(const struct collective* collective, const struct call* call, enum side side,
                  int started) {
  void* const native = malloc(call->out_bytes + 1);
  if (native == NULL) return 0;
  for (int turn = 0; turn < 2; ++turn) {
    fill(call, call->in, call->in_bytes, 1);
    /* What a call must not touch has to stay; the root's buffer of bcast is its input. */
    fill(call, call->out, call->out_bytes, 5);
    play(collective, call, turn == 0 ? NATIVE : side, started);
    if (turn == 0) memcpy(native, call->out, call->out_bytes);
  }
  const int equal = memcmp(native, call->out, call->out_bytes) == 0;
  free(native);
  return equal;
}
