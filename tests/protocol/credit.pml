/* SPDX-License-Identifier: Apache-2.0
 *
 * Model of the credit protocol: src/transport/shm/{endpoint,pool}.h, Run::write_message, poll,
 * release, tell_release, Team::complete. `check` beside this file explores it exhaustively.
 *
 * Ranks run lists of collectives, several in flight, each a strand of up to two ops:
 *   OUT  puts `count` messages on a channel,   IN  waits for and releases `count` messages.
 * A line holds two messages' worth of bookkeeping: what the code keeps (tag, lag, chunk) and the
 * ghosts it does not have (g_...): the full number and which readers still need it.
 *
 * Proved, for each scenario: no line, chunk or referenced user buffer is overwritten while a
 * reader needs it; no reader takes a message for another one; what a lag claims is true; every
 * rank ends (no deadlock), all collectives complete.
 *
 * Smaller than life: W lines a channel instead of 8, tags modulo M instead of 2^32, at most 4 chunks.
 * Every fact a writer acts upon (done, ack) only ever grows, so that a guard over several of them
 * is as good as reading one after the other. SC memory: the orderings are argued in the code.
 */
#define W 2
#ifdef MUT_SHORT_TAG /* tags repeat every W numbers */
#define M 2
#else
#define M 8
#endif
#define START 6 /* number of the first message: tags wrap during every scenario */
#define NONE 255
#define G 1 /* chunks that the oldest collective of each team, one strand here, is sure of */

/* An op. */
#define OUT_(c, n)  (1 + 8 * (c) + 64 * (n))
#define IN_(c, n)   (8 * (c) + 64 * (n))
#define BIG_(c, n)  (3 + 8 * (c) + 64 * (n)) /* each message needs a chunk */
#define REF_(c, n)  (5 + 8 * (c) + 64 * (n)) /* readers read the user's memory */
#define IS_OUT(o) ((o) & 1)
#define IS_BIG(o) (((o) >> 1) & 1)
#define IS_REF(o) (((o) >> 2) & 1)
#define CHAN(o) (((o) >> 3) & 7)
#define COUNT(o) ((o) >> 6)
#define BLOCKING 128 /* in a program: go on when it is complete */

/* How a scenario is written. */
#define channel(c, team, writer, readers) \
  ch_team[c] = team; ch_writer[c] = writer; ch_readers[c] = readers
#define collective(s, team, index) co_team[s] = team; co_index[s] = index
#define op(rank, s, a, b) ops[((rank) * S + s) * 2] = a; ops[((rank) * S + s) * 2 + 1] = b
#define program(rank, a, b, c, d) \
  prog[rank * 4] = a; prog[rank * 4 + 1] = b; prog[rank * 4 + 2] = c; prog[rank * 4 + 3] = d

#include "credit_scenarios.pml"
#define C 3

/* ---- What a run of the model never changes. ---- */
hidden short ops[R * S * 2]; /* of rank, collective, place; 0: none */
hidden byte prog[R * 4];
hidden byte ch_team[C], ch_readers[C], ch_writer[C];
hidden byte co_team[S], co_index[S];
/* ---- Shared memory. ---- */
byte line_tag[C * W], line_lag[C * W], line_chunk[C * W];
byte done[T * R];  /* one word each */
byte ack[C * R];
byte g_number[C * W], g_readers[C * W]; /* in the line, and who still needs it */

/* ---- One rank's own. ---- */
byte used_number[C * W], used_by[C * W]; /* Endpoint: the writer's note of each line */
byte out_next[C], in_next[C * R];
byte chunk_channel[R * CHUNKS], chunk_number[R * CHUNKS], chunk_by[R * CHUNKS], chunks[R];
bit chunk_long[R * CHUNKS];
byte g_chunk_readers[R * CHUNKS];
byte state[R * S]; /* 0: not begun, 1: running, 2: complete */
byte at_op[R * S], at_msg[R * S], released[R * S];
byte first[R * S * 2];
bool told[R * S]; /* strands finished, held by references only: everything is told */
byte g_refs[R * S]; /* reads of this collective's user memory still to come */

#define IX(s) (r * S + (s))
#define OP_OF(s) ops[IX(s) * 2 + at_op[IX(s)]]
#define NUMBER(s) (first[IX(s) * 2 + at_op[IX(s)]] + at_msg[IX(s)])
#define DONE(s) done[co_team[s] * R + r]
#define OLDEST(s) (DONE(s) + 1 == co_index[s])
#define LONG(o) (COUNT(o) > W) /* only these channels' messages are acknowledged one by one */
#ifdef MUT_ACK_NOT_OLDEST
#define TELLS(s) true
#else
#define TELLS(s) OLDEST(s)
#endif

/* Endpoint::pair_released, all_released: message n of collective k on channel c. */
#ifdef MUT_RELEASED_EARLY
#define ACKED(c, q, n) (ack[(c) * R + q] >= n)
#else
#define ACKED(c, q, n) (ack[(c) * R + q] > n)
#endif
#define RELEASED_BY(c, q, n, k) \
  (!((ch_readers[c] >> q) & 1) || (k) <= done[ch_team[c] * R + q] || ACKED(c, q, n))
#if R == 3
#define RELEASED(c, n, k) \
  (RELEASED_BY(c, 0, n, k) && RELEASED_BY(c, 1, n, k) && RELEASED_BY(c, 2, n, k))
#else
#define RELEASED(c, n, k) (RELEASED_BY(c, 0, n, k) && RELEASED_BY(c, 1, n, k))
#endif

/* Endpoint::pair_line_free, all_line_free. */
#define LINE(c, n) ((c) * W + (n) % W)
#ifdef MUT_NO_TURN /* a line never used in this lap counts as free */
#define MY_TURN(c, n) true
#else
#define MY_TURN(c, n) (used_number[LINE(c, n)] == (n) - W)
#endif
#define LINE_FREE(c, n) \
  (MY_TURN(c, n) && RELEASED(c, used_number[LINE(c, n)], used_by[LINE(c, n)]))

/* Pool::take: a free chunk, or one more for the oldest collective of the team: for each message
 * that only the collective's end releases, and for G of those that are acknowledged. */
#define CHUNK(i) (r * CHUNKS + (i))
#define CHUNK_FREE(i) \
  ((i) < chunks[r] && \
   (chunk_channel[CHUNK(i)] == NONE || \
    RELEASED(chunk_channel[CHUNK(i)], chunk_number[CHUNK(i)], chunk_by[CHUNK(i)])))
#define MINE(i, s) \
  ((i) < chunks[r] && !CHUNK_FREE(i) && ch_team[chunk_channel[CHUNK(i)]] == co_team[s])
#define HELD(s) (HOLDS(0, s) + HOLDS(1, s) + HOLDS(2, s) + HOLDS(3, s))
#if defined(MUT_NO_GUARANTEE) || CHUNKS == 1
#define MAY_GROW(s) false
#elif defined(MUT_GUARANTEE_PER_TEAM) /* counts what later collectives of the team hold */
#define HOLDS(i, s) MINE(i, s)
#define MAY_GROW(s) (HELD(s) < G)
#elif defined(MUT_GUARANTEE_UNACKNOWLEDGED) /* counts what is released by `done` only */
#define HOLDS(i, s) (MINE(i, s) && chunk_by[CHUNK(i)] <= co_index[s])
#define MAY_GROW(s) (OLDEST(s) && HELD(s) < G)
#else
#define HOLDS(i, s) (MINE(i, s) && chunk_by[CHUNK(i)] <= co_index[s] && chunk_long[CHUNK(i)])
#define MAY_GROW(s) (OLDEST(s) && (!LONG(OP_OF(s)) || HELD(s) < G))
#endif
#if CHUNKS == 1
#define ANY_CHUNK(s) CHUNK_FREE(0)
#else
#define ANY_CHUNK(s) \
  (CHUNK_FREE(0) || CHUNK_FREE(1) || CHUNK_FREE(2) || CHUNK_FREE(3) || MAY_GROW(s))
#endif

#define TAG(n) (((n) + 1) % M)
#define ARRIVED(c, n) (line_tag[LINE(c, n)] == TAG(n))

#define CAN_OP(s) \
  (at_op[IX(s)] < 2 && \
   (IS_OUT(OP_OF(s)) -> LINE_FREE(CHAN(OP_OF(s)), NUMBER(s)) && \
                        (!IS_BIG(OP_OF(s)) || ANY_CHUNK(s)) \
                      : ARRIVED(CHAN(OP_OF(s)), NUMBER(s))))
/* Run::references_released */
#define REF_FREE(s, i) \
  (!IS_REF(ops[IX(s) * 2 + i]) || \
   RELEASED(CHAN(ops[IX(s) * 2 + i]), first[IX(s) * 2 + i] + COUNT(ops[IX(s) * 2 + i]) - 1, \
            co_index[s]))
#define REFS_FREE(s) (REF_FREE(s, 0) && REF_FREE(s, 1))
#ifdef MUT_REFERENCES_SILENT /* short collectives tell nothing but `done` */
#define CAN_TELL(s) false
#else
#define CAN_TELL(s) (!told[IX(s)] && !REFS_FREE(s) && OLDEST(s))
#endif
#ifdef MUT_REFERENCES_FORGOTTEN
#define CAN_END(s) true
#else
#define CAN_END(s) (REFS_FREE(s) || CAN_TELL(s))
#endif
#define CAN_MOVE(s) (state[IX(s)] == 1 && (CAN_OP(s) || (at_op[IX(s)] == 2 && CAN_END(s))))

/* Reader r needs message n on channel c, written by collective s, no more. */
inline g_release(c, n, s) {
  assert(g_number[LINE(c, n)] == n);
  g_readers[LINE(c, n)] = g_readers[LINE(c, n)] & ~(1 << r);
  if
  :: line_chunk[LINE(c, n)] != NONE ->
    g_chunk_readers[ch_writer[c] * CHUNKS + line_chunk[LINE(c, n)]] =
        g_chunk_readers[ch_writer[c] * CHUNKS + line_chunk[LINE(c, n)]] & ~(1 << r)
  :: else
  fi;
  if
  :: g_refs[ch_writer[c] * S + s] > 0 -> g_refs[ch_writer[c] * S + s]--
  :: else
  fi
}

inline skip_missing_ops(s) {
  do
  :: at_op[IX(s)] < 2 && OP_OF(s) == 0 -> at_op[IX(s)]++
  :: else -> break
  od
}

/* Run::begin, take_numbers */
inline begin(s) {
  state[IX(s)] = 1;
  i = 0;
  do
  :: i < 2 ->
    o = ops[IX(s) * 2 + i];
    if
    :: o == 0
    :: o != 0 && IS_OUT(o) ->
      first[IX(s) * 2 + i] = out_next[CHAN(o)]; out_next[CHAN(o)] = out_next[CHAN(o)] + COUNT(o)
    :: o != 0 && !IS_OUT(o) ->
      first[IX(s) * 2 + i] = in_next[CHAN(o) * R + r];
      in_next[CHAN(o) * R + r] = in_next[CHAN(o) * R + r] + COUNT(o)
    fi;
    i++
  :: else -> break
  od;
  skip_missing_ops(s);
  i = 0; o = 0
}

/* After a message of the current op. Short ops' messages may be read to the strand's end. */
inline advance(s) {
  at_msg[IX(s)]++;
  if
  :: at_msg[IX(s)] == COUNT(OP_OF(s)) ->
    at_msg[IX(s)] = 0; at_op[IX(s)]++;
    skip_missing_ops(s);
    i = 0;
    do
    :: at_op[IX(s)] == 2 && i < 2 ->
      o = ops[IX(s) * 2 + i];
      n = first[IX(s) * 2 + i];
      do
      :: o != 0 && !IS_OUT(o) && !LONG(o) && n < first[IX(s) * 2 + i] + COUNT(o) ->
        g_release(CHAN(o), n, s); n++
      :: else -> break
      od;
      i++
    :: else -> break
    od
  :: else
  fi;
  i = 0; o = 0; n = 0; c = 0
}

/* Pool::take */
inline take_chunk(s) {
  i = 0;
  do
  :: i < chunks[r] && !CHUNK_FREE(i) -> i++
  :: else -> break
  od;
  if
  :: i == chunks[r] -> chunks[r]++
  :: else
  fi;
  assert(i < CHUNKS && g_chunk_readers[CHUNK(i)] == 0);
  chunk_channel[CHUNK(i)] = c; chunk_number[CHUNK(i)] = n; chunk_by[CHUNK(i)] = co_index[s];
  chunk_long[CHUNK(i)] = LONG(OP_OF(s));
  g_chunk_readers[CHUNK(i)] = ch_readers[c];
  line_chunk[LINE(c, n)] = i
}

/* Run::write_message; the guard CAN_OP is true. */
inline put(s) {
  d_step { /* the payload */
    o = OP_OF(s); c = CHAN(o); n = NUMBER(s);
    assert(g_readers[LINE(c, n)] == 0);
    g_number[LINE(c, n)] = n; g_readers[LINE(c, n)] = ch_readers[c];
    line_chunk[LINE(c, n)] = NONE;
    if
    :: IS_BIG(o) -> take_chunk(s)
    :: else
    fi;
    if
    :: IS_REF(o) && ch_readers[c] == 6 -> g_refs[IX(s)] = g_refs[IX(s)] + 2
    :: IS_REF(o) && ch_readers[c] != 6 -> g_refs[IX(s)]++
    :: else
    fi;
    used_number[LINE(c, n)] = n; used_by[LINE(c, n)] = co_index[s];
    i = 0; o = 0
  }
  d_step { /* the header */
#ifdef MUT_LAG_TOO_SHORT
    line_lag[LINE(c, n)] = co_index[s] - DONE(s) - 1;
#else
    line_lag[LINE(c, n)] = co_index[s] - DONE(s);
#endif
    line_tag[LINE(c, n)] = TAG(n);
    advance(s)
  }
}

/* Run::poll, a read of the payload, release, tell_release */
inline take(s) {
  d_step { /* poll: note_lag */
    o = OP_OF(s); c = CHAN(o); n = NUMBER(s);
    assert(co_index[s] - line_lag[LINE(c, n)] <= done[ch_team[c] * R + ch_writer[c]])
  }
  d_step { /* the payload, in the line or in a chunk; then release */
    assert(g_number[LINE(c, n)] == n);
    if
    :: line_chunk[LINE(c, n)] != NONE ->
      assert(chunk_channel[ch_writer[c] * CHUNKS + line_chunk[LINE(c, n)]] == c &&
             chunk_number[ch_writer[c] * CHUNKS + line_chunk[LINE(c, n)]] == n)
    :: else
    fi;
    if
    :: LONG(o) ->
      g_release(c, n, s);
      released[IX(s)]++;
      if
      :: TELLS(s) -> ack[c * R + r] = n + 1
      :: else
      fi
    :: else
    fi;
    advance(s)
  }
}

inline ack_all(s) {
  i = 0;
  do
  :: i < 2 ->
    o = ops[IX(s) * 2 + i];
    if
    :: o != 0 && !IS_OUT(o) -> ack[CHAN(o) * R + r] = first[IX(s) * 2 + i] + COUNT(o)
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0; o = 0
}

/* Run::tell_releases of the collective that has become the oldest */
inline tell_releases() {
  c = 0;
  do
  :: c < S && !(state[IX(c)] == 1 && co_team[c] == co_team[n] && OLDEST(c)) -> c++
  :: else -> break
  od;
  if
  :: c < S && released[IX(c)] > 0 ->
    i = 0;
    do
    :: i < 2 ->
      o = ops[IX(c) * 2 + i];
      if
      :: o != 0 && !IS_OUT(o) && LONG(o) && at_op[IX(c)] >= i ->
        ack[CHAN(o) * R + r] =
            first[IX(c) * 2 + i] + (at_op[IX(c)] > i -> COUNT(o) : at_msg[IX(c)])
      :: else
      fi;
      i++
    :: else -> break
    od
  :: else
  fi;
  c = 0; i = 0; o = 0
}

/* Team::complete */
inline finish(s) {
  d_step {
    if
    :: CAN_TELL(s) -> told[IX(s)] = true; ack_all(s)
    :: else ->
      assert(g_refs[IX(s)] == 0);
      state[IX(s)] = 2;
      n = s;
#ifdef MUT_DONE_NOT_IN_ORDER
      if
      :: DONE(s) < co_index[s] -> DONE(s) = co_index[s]
      :: else
      fi;
#else
      i = 0;
      do /* all that are complete without a gap */
      :: i < S && state[IX(i)] == 2 && co_team[i] == co_team[s] && OLDEST(i) -> DONE(s)++; i = 0
      :: i < S && !(state[IX(i)] == 2 && co_team[i] == co_team[s] && OLDEST(i)) -> i++
      :: else -> break
      od;
#endif
      i = 0;
      tell_releases();
      n = 0
    fi
  }
}

inline move(s) {
  if
  :: at_op[IX(s)] == 2 -> finish(s)
  :: at_op[IX(s)] < 2 && IS_OUT(OP_OF(s)) -> put(s)
  :: else -> take(s)
  fi
}

#define PROG(i) (prog[r * 4 + (i)] & 127)
#define MAY_BEGIN \
  (pc < 4 && prog[r * 4 + pc] != NONE && \
   (pc == 0 || prog[r * 4 + pc - 1] < BLOCKING || state[IX(PROG(pc - 1))] == 2))
#define COMPLETE(i) (prog[r * 4 + i] == NONE || state[IX(PROG(i))] == 2)

proctype rank(byte r) {
  byte pc, c, n, i;
  short o;
  do
  :: atomic { MAY_BEGIN -> d_step { c = PROG(pc); begin(c); pc++; c = 0 } }
  :: CAN_MOVE(0) -> move(0)
  :: CAN_MOVE(1) -> move(1)
  :: CAN_MOVE(2) -> move(2)
#if S > 3
  :: CAN_MOVE(3) -> move(3)
#endif
  :: COMPLETE(0) && COMPLETE(1) && COMPLETE(2) && COMPLETE(3) -> break
  od
}

init {
  byte i;
  atomic {
    d_step {
      scenario();
      i = 0;
      do /* as if messages up to START - 1 had been */
      :: i < C * W ->
        used_number[i] = START - W + i % W; g_number[i] = START - W + i % W;
        line_tag[i] = TAG(START - W + i % W); line_chunk[i] = NONE;
        i++
      :: else -> break
      od;
      i = 0;
      do
      :: i < C -> out_next[i] = START; i++
      :: else -> break
      od;
      i = 0;
      do
      :: i < C * R -> in_next[i] = START; i++
      :: else -> break
      od;
      i = 0;
      do
      :: i < R * CHUNKS -> chunk_channel[i] = NONE; chunks[i / CHUNKS] = FIRST_CHUNKS; i++
      :: else -> break
      od
    };
    i = 0;
    do
    :: i < R -> run rank(i); i++
    :: else -> break
    od
  }
}
