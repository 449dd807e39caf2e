/* SPDX-License-Identifier: Apache-2.0
 *
 * Model of a team's area from its making to its reuse: ControlMemory::allocate_area, Endpoint::open_area,
 * refresh_done, Team::quiet, Pool::busy on a chunk of an earlier team.
 *
 * Two ranks make TEAMS teams one after the other; on each, rank 0 sends LAST messages to rank 1,
 * one per collective, and so runs ahead: in turn through a line of its own area (channel all) and
 * one of rank 1's (pair), each a window of one, and the second through the only chunk. A rank retires a team as soon as it has done its part, and takes a new area for the
 * next one: the lowest that is free, which is often the one before last.
 *
 * Proved: nobody writes to a line or a chunk that a reader needs, or to an area that has become
 * another team's; no message of an earlier team is taken for one of this; areas do become free
 * (no deadlock with two areas a rank).
 */
#define TEAMS 4
#define LAST 3
#define AREAS 2
#define NONE 255
#define GEN(t) ((t) + 1)

/* Shared memory: rank * AREAS + area. */
byte gen[2 * AREAS], done[2 * AREAS]; /* one word */
byte line_tag[2 * AREAS];             /* the line that rank 0 writes */
byte g_team[2 * AREAS], g_line_team[2 * AREAS];
bool g_unread[2 * AREAS];

/* The exchange: area of each rank for each team. */
byte told[2 * TEAMS];
bool ready;

/* Rank 0's chunk: the message it holds. */
byte chunk_team, chunk_collective;
bool g_chunk_unread;

#define AREA(r, t) ((r) * AREAS + told[(r) * TEAMS + (t)])
#define HOME(k) (1 - (k) % 2) /* whose area has the line */
#define LINE(t, k) (HOME(k) * AREAS + told[HOME(k) * TEAMS + (t)])
#define IN_CHUNK(k) ((k) == 2)
#ifdef MUT_NO_GENERATION
#define DONE(r, t, k) (done[AREA(r, t)] >= (k))
#else
#define DONE(r, t, k) (gen[AREA(r, t)] != GEN(t) || done[AREA(r, t)] >= (k))
#endif
#ifdef MUT_FREED_WITHOUT_THE_OTHERS
#define QUIET(r, t) DONE(r, t, LAST)
#else
#define QUIET(r, t) (DONE(0, t, LAST) && DONE(1, t, LAST))
#endif
#define AREA_FREE(r, a) (owner[a] == NONE || (owner[a] != NONE && QUIET(r, owner[a])))

inline make_team(r, t) {
  /* allocate_area */
  if
  :: AREA_FREE(r, 0) -> a = 0
  :: !AREA_FREE(r, 0) && AREA_FREE(r, 1) -> a = 1
  fi;
  owner[a] = t;
  d_step { /* cleared */
    gen[r * AREAS + a] = 0; done[r * AREAS + a] = 0; line_tag[r * AREAS + a] = 0;
    assert(!g_unread[r * AREAS + a]);
    g_team[r * AREAS + a] = t
  }
#ifndef MUT_NOT_OPENED
  gen[r * AREAS + a] = GEN(t);
#endif
  told[r * TEAMS + t] = a;
  told[0 * TEAMS + t] != NONE && told[1 * TEAMS + t] != NONE /* they agree */
}

inline set_done(r, t, k) {
  d_step { gen[AREA(r, t)] = GEN(t); done[AREA(r, t)] = k }
}

active proctype writer() {
  byte t, k, a;
  byte owner[AREAS];
  ready;
  owner[0] = NONE; owner[1] = NONE;
  do
  :: t < TEAMS ->
    make_team(0, t);
    k = 1;
    do
    :: k <= LAST ->
      k <= 2 || DONE(1, t, k - 2); /* pair_line_free, all_line_free */
      !IN_CHUNK(k) || chunk_team == NONE ||
          (chunk_team != NONE && DONE(1, chunk_team, chunk_collective));
      d_step { /* payload */
        assert(g_team[LINE(t, k)] == t && !g_unread[LINE(t, k)]);
        g_unread[LINE(t, k)] = true; g_line_team[LINE(t, k)] = t;
        if
        :: IN_CHUNK(k) ->
          assert(!g_chunk_unread);
          g_chunk_unread = true; chunk_team = t; chunk_collective = k
        :: else
        fi
      };
      line_tag[LINE(t, k)] = k;
      set_done(0, t, k);
      k++
    :: else -> break
    od;
    t++
  :: else -> break
  od
}

active proctype reader() {
  byte t, k, a;
  byte owner[AREAS];
  ready;
  owner[0] = NONE; owner[1] = NONE;
  do
  :: t < TEAMS ->
    make_team(1, t);
    k = 1;
    do
    :: k <= LAST ->
      line_tag[LINE(t, k)] == k;
      d_step {
        assert(g_line_team[LINE(t, k)] == t && g_unread[LINE(t, k)]);
        g_unread[LINE(t, k)] = false;
        if
        :: IN_CHUNK(k) ->
          assert(g_chunk_unread && chunk_team == t && chunk_collective == k);
          g_chunk_unread = false
        :: else
        fi
      };
      set_done(1, t, k);
      k++
    :: else -> break
    od;
    t++
  :: else -> break
  od
}

init {
  byte i;
  d_step {
    i = 0;
    do
    :: i < 2 * AREAS -> g_team[i] = NONE; g_line_team[i] = NONE; i++
    :: else -> break
    od;
    chunk_team = NONE;
    i = 2 * TEAMS;
    do
    :: i > 0 -> i--; told[i] = NONE
    :: else -> break
    od;
    ready = true
  }
}
