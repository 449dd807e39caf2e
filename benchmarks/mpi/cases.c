/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PICK(side, name) ((side) == NATIVE ? PMPI_##name : MPI_##name)

static void run_barrier(const struct call* c, enum side side) {
  (void)c;
  PICK(side, Barrier)(MPI_COMM_WORLD);
}

static void run_bcast(const struct call* c, enum side side) {
  PICK(side, Bcast)(c->out, c->count, c->type, 0, MPI_COMM_WORLD);
}

static void run_reduce(const struct call* c, enum side side) {
  PICK(side, Reduce)(c->in, c->out, c->count, c->type, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void run_allreduce(const struct call* c, enum side side) {
  PICK(side, Allreduce)(c->in, c->out, c->count, c->type, MPI_SUM, MPI_COMM_WORLD);
}

static void run_reduce_scatter_block(const struct call* c, enum side side) {
  PICK(side, Reduce_scatter_block)(c->in, c->out, c->count, c->type, MPI_SUM, MPI_COMM_WORLD);
}

static void run_allgather(const struct call* c, enum side side) {
  PICK(side, Allgather)(c->in, c->count, c->type, c->out, c->count, c->type, MPI_COMM_WORLD);
}

static void run_gather(const struct call* c, enum side side) {
  PICK(side, Gather)(c->in, c->count, c->type, c->out, c->count, c->type, 0, MPI_COMM_WORLD);
}

static void run_scatter(const struct call* c, enum side side) {
  PICK(side, Scatter)(c->in, c->count, c->type, c->out, c->count, c->type, 0, MPI_COMM_WORLD);
}

static void run_alltoall(const struct call* c, enum side side) {
  PICK(side, Alltoall)(c->in, c->count, c->type, c->out, c->count, c->type, MPI_COMM_WORLD);
}

static void run_alltoallv(const struct call* c, enum side side) {
  PICK(side, Alltoallv)
  (c->in, c->counts, c->offsets, c->type, c->out, c->counts, c->offsets, c->type, MPI_COMM_WORLD);
}

static void run_scan(const struct call* c, enum side side) {
  PICK(side, Scan)(c->in, c->out, c->count, c->type, MPI_SUM, MPI_COMM_WORLD);
}

static void run_exscan(const struct call* c, enum side side) {
  PICK(side, Exscan)(c->in, c->out, c->count, c->type, MPI_SUM, MPI_COMM_WORLD);
}

static void run_allgatherv(const struct call* c, enum side side) {
  PICK(side, Allgatherv)
  (c->in, c->count, c->type, c->out, c->counts, c->offsets, c->type, MPI_COMM_WORLD);
}

static void run_gatherv(const struct call* c, enum side side) {
  PICK(side, Gatherv)
  (c->in, c->count, c->type, c->out, c->counts, c->offsets, c->type, 0, MPI_COMM_WORLD);
}

static void run_scatterv(const struct call* c, enum side side) {
  PICK(side, Scatterv)
  (c->in, c->counts, c->offsets, c->type, c->out, c->count, c->type, 0, MPI_COMM_WORLD);
}

static void run_reduce_scatter(const struct call* c, enum side side) {
  PICK(side, Reduce_scatter)(c->in, c->out, c->counts, c->type, MPI_SUM, MPI_COMM_WORLD);
}

const struct collective collectives[] = {
    {"barrier", 0, 0, 0, run_barrier},
    {"bcast", 0, 0, 0, run_bcast},
    {"reduce", 0, 0, 1, run_reduce},
    {"allreduce", 0, 0, 1, run_allreduce},
    {"allgather", 0, 1, 0, run_allgather},
    {"gather", 0, 1, 0, run_gather},
    {"scatter", 1, 0, 0, run_scatter},
    {"reduce_scatter_block", 1, 0, 1, run_reduce_scatter_block},
    {"alltoall", 1, 1, 0, run_alltoall},
    {"alltoallv", 1, 1, 0, run_alltoallv},
    {"scan", 0, 0, 1, run_scan},
    {"exscan", 0, 0, 1, run_exscan},
    {"allgatherv", 0, 1, 0, run_allgatherv},
    {"gatherv", 0, 1, 0, run_gatherv},
    {"scatterv", 1, 0, 0, run_scatterv},
    {"reduce_scatter", 1, 0, 1, run_reduce_scatter},
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

int call_create(const struct collective* collective, size_t bytes, int shared, struct call* call) {
  memset(call, 0, sizeof(*call));
  PMPI_Comm_rank(MPI_COMM_WORLD, &call->rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &call->ranks);
  /* Sums of floats, as the public suites do them; bytes where the size is not whole floats. */
  const int floats = collective->reduces && bytes % sizeof(float) == 0;
  call->type = floats ? MPI_FLOAT : collective->reduces ? MPI_UNSIGNED_CHAR : MPI_CHAR;
  call->count = (int)(floats ? bytes / sizeof(float) : bytes);
  const size_t ranks = (size_t)call->ranks;
  call->in_bytes = bytes * (collective->in_blocks_per_rank ? ranks : 1);
  call->out_bytes = bytes * (collective->out_blocks_per_rank ? ranks : 1);
  call->in = allocate(call->in_bytes, shared);
  call->out = allocate(call->out_bytes, shared);
  call->counts = calloc(ranks, sizeof(int));
  call->offsets = calloc(ranks, sizeof(int));
  if (!call->in || !call->out || !call->counts || !call->offsets) return 0;
  for (int peer = 0; peer < call->ranks; ++peer) {
    call->counts[peer] = call->count;
    call->offsets[peer] = peer * call->count;
  }
  return 1;
}

void call_free(struct call* call, int shared) {
  release(call->in, shared);
  release(call->out, shared);
  free(call->counts);
  free(call->offsets);
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
  unsigned char* values = memory;
  for (size_t i = 0; i < bytes; ++i) {
    values[i] = (unsigned char)(i * 7 + (i >> 8) + (size_t)(c->rank * 13 + salt));
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

int answers_agree(const struct collective* collective, const struct call* call) {
  void* const native = malloc(call->out_bytes + 1);
  if (native == NULL) return 0;
  for (int side = NATIVE; side <= CARILLON; ++side) {
    fill(call, call->in, call->in_bytes, 1);
    /* What a call must not touch has to stay; the root's buffer of bcast is its input. */
    fill(call, call->out, call->out_bytes, 5);
    collective->run(call, (enum side)side);
    if (side == NATIVE) memcpy(native, call->out, call->out_bytes);
  }
  const int equal = memcmp(native, call->out, call->out_bytes) == 0;
  free(native);
  return equal;
}
