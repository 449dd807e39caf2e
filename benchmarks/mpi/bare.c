/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "bare.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bare_copies.h"

enum {
  LINES = 4,
  LINE_BYTES = 56, /* of a message in a line */
  CHUNK = 64 << 10,
  RING = 3 << 20, /* beyond the second-level cache, so that no line comes back dirty */
  SHORT_WAYS = BARE_MOST_WAYS
};

/* What one rank writes. Numbers and positions only grow. */
struct lane {
  struct {
    _Alignas(64) _Atomic uint64_t number; /* partner: the peer's load in await_line */
    char bytes[LINE_BYTES];
  } lines[LINES];
  /* Bytes of its ring; partner: the peer's load in move_chunks. */
  _Alignas(64) _Atomic uint64_t written;
  /* Of the peer's ring; partner: the peer's load in may_write. */
  _Alignas(64) _Atomic uint64_t read;
  _Alignas(64) _Atomic uint64_t taken; /* of the peer's lines; partner: its load in put_line */
  _Alignas(4096) char ring[RING];
};

static struct {
  struct lane *mine, *its;
  uint64_t lines_put, lines_taken, known_taken;
  uint64_t write_at, read_at, known_read;
  MPI_Win window;
  pid_t peer;
  int kernel_copies;
  unsigned look_after; /* turns of an empty loop */
  int way;
} bare;

enum { THROUGH_CACHES, BY_PARTS, PAST_CACHES, BY_KERNEL };

static void pause_briefly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void put_line(const void* bytes, size_t length) {
  const uint64_t number = ++bare.lines_put;
  while (number - bare.known_taken > LINES) {
    bare.known_taken = atomic_load_explicit(&bare.its->taken, memory_order_acquire);
  }
  memcpy(bare.mine->lines[number % LINES].bytes, bytes, length);
  atomic_store_explicit(&bare.mine->lines[number % LINES].number, number, memory_order_release);
}

/* Of the next line of the peer, once it is there. */
static const char* await_line(void) {
  const uint64_t number = ++bare.lines_taken;
  for (volatile unsigned i = 0; i < bare.look_after; ++i) {
  }
  while (atomic_load_explicit(&bare.its->lines[number % LINES].number, memory_order_acquire) <
         number) {
    pause_briefly();
  }
  return bare.its->lines[number % LINES].bytes;
}

static void done_with_line(void) {
  if (bare.lines_taken % (LINES / 2) == 0) {
    atomic_store_explicit(&bare.mine->taken, bare.lines_taken, memory_order_release);
  }
  __builtin_prefetch(&bare.mine->lines[(bare.lines_put + 1) % LINES], 1);
}

void bare_barrier(void) {
  put_line("", 0);
  await_line();
  done_with_line();
}

/* Which bytes a rank sends, and what it does with those it gets. */
struct move {
  const char* send; /* null: nothing */
  const char* from; /* of the rank's own block, which goes to `own`, unless that is null */
  char* own;
  char* to;         /* null: nothing comes */
  const char* left; /* added to what comes; null: that is copied */
  size_t bytes;
  int floats;
};

static void take(const struct move* move, size_t at, const char* from, size_t bytes) {
  char* const to = move->to + at;
  if (move->left == NULL) {
    if (bare.way == THROUGH_CACHES) {
      copy_plain(to, from, bytes);
    } else {
      copy_by_parts(to, from, bytes);
    }
  } else if (move->floats) {
    sum_floats((float*)to, (const float*)(move->left + at), (const float*)from,
               bytes / sizeof(float));
  } else {
    sum_bytes((unsigned char*)to, (const unsigned char*)move->left + at, (const unsigned char*)from,
              bytes);
  }
}

static void move_line(const struct move* move) {
  if (move->send != NULL) put_line(move->send, move->bytes);
  if (move->own != NULL) memcpy(move->own, move->from, move->bytes);
  if (move->to != NULL) {
    take(move, 0, await_line(), move->bytes);
    done_with_line();
  }
}

/* Where a chunk begins that is written or read at *at: one that would not fit is at the ring's
 * beginning. */
static size_t place(uint64_t* at, size_t bytes) {
  const size_t room = (bytes + 63) / 64 * 64, begin = (size_t)(*at % RING);
  const size_t skipped = begin + room > RING ? RING - begin : 0;
  *at += skipped + room;
  return skipped > 0 ? 0 : begin;
}

static int may_write(uint64_t end) {
  if (end - bare.known_read <= RING) return 1;
  bare.known_read = atomic_load_explicit(&bare.its->read, memory_order_acquire);
  return end - bare.known_read <= RING;
}

static void write_chunk(const struct move* move, size_t at, size_t bytes, size_t begin) {
  char* const to = bare.mine->ring + begin;
  if (bare.way == PAST_CACHES) {
    copy_past_caches(to, move->send + at, bytes);
  } else {
    copy_plain(to, move->send + at, bytes);
  }
}

static size_t chunk_at(const struct move* move, size_t at) {
  return move->bytes - at < CHUNK ? move->bytes - at : CHUNK;
}

static void move_chunks(const struct move* move) {
  size_t out = move->send != NULL ? 0 : move->bytes, in = move->to != NULL ? 0 : move->bytes;
  size_t own = move->own != NULL ? 0 : move->bytes;
  while (out < move->bytes || in < move->bytes) {
    if (out < move->bytes) {
      const size_t bytes = chunk_at(move, out);
      uint64_t end = bare.write_at;
      const size_t begin = place(&end, bytes);
      if (may_write(end)) {
        write_chunk(move, out, bytes, begin);
        bare.write_at = end;
        atomic_store_explicit(&bare.mine->written, end, memory_order_release);
        out += bytes;
      }
    }
    if (own < out) {
      memcpy(move->own + own, move->from + own, out - own);
      own = out;
    }
    if (in < move->bytes) {
      const size_t bytes = chunk_at(move, in);
      uint64_t end = bare.read_at;
      const size_t begin = place(&end, bytes);
      if (atomic_load_explicit(&bare.its->written, memory_order_acquire) < end) continue;
      take(move, in, bare.its->ring + begin, bytes);
      if (end / (RING / 4) != bare.read_at / (RING / 4)) {
        atomic_store_explicit(&bare.mine->read, end, memory_order_release);
      }
      bare.read_at = end;
      in += bytes;
    }
  }
}

/* The reader has the kernel copy it from where it is, and says when it has. */
static void move_by_kernel(const struct move* move) {
  static char piece[CHUNK];
  if (move->send != NULL) put_line(&move->send, sizeof(move->send));
  if (move->own != NULL) memcpy(move->own, move->from, move->bytes);
  if (move->to != NULL) {
    char* from = NULL;
    memcpy(&from, await_line(), sizeof(from));
    done_with_line();
    const size_t most = move->left != NULL ? CHUNK : move->bytes;
    for (size_t at = 0; at < move->bytes; at += most) {
      const size_t bytes = move->bytes - at < most ? move->bytes - at : most;
      const struct iovec there = {from + at, bytes};
      const struct iovec here = {move->left != NULL ? piece : move->to + at, bytes};
      if (process_vm_readv(bare.peer, &here, 1, &there, 1, 0) != (ssize_t)bytes) {
        perror("bare: process_vm_readv");
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
      if (move->left != NULL) take(move, at, piece, bytes);
    }
    put_line("", 0);
  }
  if (move->send != NULL) {
    await_line();
    done_with_line();
  }
}

static int is(const struct collective* collective, const char* name) {
  return strcmp(collective->name, name) == 0;
}

static void plan_move(const struct collective* collective, const struct call* call,
                      struct move* move) {
  const int rank = call->rank, peer = 1 - rank;
  const char* const in = call->in;
  char* const out = call->out;
  const size_t bytes = call->in_bytes < call->out_bytes ? call->in_bytes : call->out_bytes;
  memset(move, 0, sizeof(*move));
  move->bytes = bytes;
  move->floats = call->type == MPI_FLOAT;
  if (is(collective, "bcast")) {
    if (rank == 0) move->send = out;
    if (rank != 0) move->to = out;
  } else if (is(collective, "reduce") || is(collective, "allreduce")) {
    const int all = is(collective, "allreduce");
    if (all || rank != 0) move->send = in;
    if (all || rank == 0) move->to = out, move->left = in;
  } else {
    const size_t block = is(collective, "alltoall") ? bytes / 2 : bytes;
    const size_t apart = is(collective, "alltoall") ? block : 0;
    move->bytes = block;
    move->send = in + (size_t)peer * apart;
    move->from = in + (size_t)rank * apart;
    move->own = out + (size_t)rank * block;
    move->to = out + (size_t)peer * block;
  }
}

void bare_run(const struct collective* collective, const struct call* call) {
  struct move move;
  if (call->out_bytes == 0) {
    bare_barrier();
    return;
  }
  plan_move(collective, call, &move);
  if (move.bytes <= LINE_BYTES) {
    move_line(&move);
  } else if (bare.way == BY_KERNEL) {
    move_by_kernel(&move);
  } else {
    move_chunks(&move);
  }
}

int bare_can(const struct collective* collective) {
  static const char* const names[] = {"barrier",   "bcast",     "reduce",
                                      "allreduce", "allgather", "alltoall"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (is(collective, names[i])) return 1;
  }
  return 0;
}

static int is_short(const struct collective* collective, const struct call* call) {
  struct move move;
  plan_move(collective, call, &move);
  return move.bytes <= LINE_BYTES;
}

int bare_ways(const struct collective* collective, const struct call* call) {
  if (is_short(collective, call)) return SHORT_WAYS;
  return bare.kernel_copies ? BY_KERNEL + 1 : BY_KERNEL;
}

void bare_go(const struct collective* collective, const struct call* call, int way) {
  static const unsigned turns[SHORT_WAYS] = {0, 25, 50, 100, 200};
  bare.look_after = is_short(collective, call) ? turns[way] : 0;
  bare.way = way;
}

/* Can the kernel copy from the other rank's memory? The same on both. */
static int try_kernel(int rank) {
  char mine = 1, its = 0;
  struct {
    void* memory;
    long pid;
  } me = {&mine, (long)getpid()}, all[2];
#ifdef PR_SET_PTRACER
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
  PMPI_Allgather(&me, sizeof(me), MPI_BYTE, all, sizeof(me), MPI_BYTE, MPI_COMM_WORLD);
  bare.peer = (pid_t)all[1 - rank].pid;
  const struct iovec here = {&its, 1}, there = {all[1 - rank].memory, 1};
  const int here_works = process_vm_readv(bare.peer, &here, 1, &there, 1, 0) == 1 && its == 1;
  int works = 0; /* and both have read */
  PMPI_Allreduce(&here_works, &works, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return works;
}

int bare_begin(void) {
  int rank = 0, ranks = 0, near_ranks = 0, unit = 0;
  MPI_Comm near;
  MPI_Aint bytes = 0;
  char* memory = NULL;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  PMPI_Comm_size(near, &near_ranks);
  if (ranks == 2 && near_ranks == 2) {
    const size_t page = 4096;
    PMPI_Win_allocate_shared(rank == 0 ? (MPI_Aint)(2 * sizeof(struct lane) + page) : 0, 1,
                             MPI_INFO_NULL, near, &memory, &bare.window);
    PMPI_Win_shared_query(bare.window, 0, &bytes, &unit, &memory);
    struct lane* const lanes = (void*)(((uintptr_t)memory + page - 1) / page * page);
    bare.mine = &lanes[rank];
    bare.its = &lanes[1 - rank];
    memset(bare.mine, 0, sizeof(*bare.mine));
    bare.kernel_copies = try_kernel(rank);
  }
  PMPI_Comm_free(&near);
  return bare.mine != NULL;
}

void bare_end(void) {
  if (bare.mine != NULL) PMPI_Win_free(&bare.window);
}
