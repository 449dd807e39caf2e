/* SPDX-License-Identifier: Apache-2.0
 *
 * Model of messages whose bytes stay in the writer's memory, and of a writer that gives up:
 * Run::read_lent, stands, sources_stand, withdraw_messages, Endpoint::give_up, Team::fail.
 *
 * The writer tells of MESSAGES messages through W lines. It may give up at any time: then it marks
 * the lines, says that it has given up, and its memory is the caller's again, who overwrites it at
 * once. Else that happens when all have been read. The reader copies a message that is lent, and
 * the next one with it if that is there, byte by byte, and looks at the first one's line again;
 * with -DIN_PLACE it reads where the bytes stand, and asks before it passes anything on whether
 * the writer has given up. Stores of the writer become visible in any order, but for fences.
 *
 * Proved: what the reader goes on with are the message's bytes; it ends, and if the writer has not
 * given up, with all messages.
 */
#define MESSAGES 4
#define W 2
#define BYTES 2
#define LENT 1
#define WITHDRAWN 2

/* Shared memory. */
byte tag[W], kind[W]; /* one word */
bool gave_up;
byte released;                 /* messages, as the reader tells */
byte memory[MESSAGES * BYTES]; /* the caller's: the message's number, counted from 1, or 0 */

/* What the writer has stored, and nobody else sees yet. */
bool mark_stored[W], gave_up_stored;

#define THERE(n) (tag[(n) % W] == (n) + 1)
#define STANDS(n) (kind[(n) % W] != WITHDRAWN)
#define ALL_VISIBLE (!mark_stored[0] && !mark_stored[1] && !gave_up_stored)

/* Run::withdraw_messages, Team::fail */
inline give_up() {
#ifndef MUT_NOT_WITHDRAWN
  i = 0;
  do
  :: i < W ->
    if
    :: tag[i] != 0 -> mark_stored[i] = true
    :: else
    fi;
    i++
  :: else -> break
  od;
#endif
#ifdef MUT_FENCE_TOO_EARLY
  ALL_VISIBLE;
#endif
  gave_up_stored = true;
#if !defined(MUT_NO_FENCE) && !defined(MUT_FENCE_TOO_EARLY)
  ALL_VISIBLE
#endif
}

inline overwrite() {
  i = 0;
  do
  :: i < MESSAGES * BYTES -> memory[i] = 0; i++
  :: else -> break
  od
}

active proctype writer() {
  byte n, i;
  do
  :: n < MESSAGES && released + W > n ->
    d_step { memory[n * BYTES] = n + 1; memory[n * BYTES + 1] = n + 1 };
    d_step { kind[n % W] = LENT; tag[n % W] = n + 1 }; /* a release store */
    n++
  :: n == MESSAGES && released == MESSAGES -> break
  :: true ->
#ifdef MUT_OVERWRITTEN_FIRST
    overwrite();
#endif
    give_up();
    break
  od;
  overwrite()
}

active proctype visible() {
end:
  do
  :: atomic { mark_stored[0] -> kind[0] = WITHDRAWN; mark_stored[0] = false }
  :: atomic { mark_stored[1] -> kind[1] = WITHDRAWN; mark_stored[1] = false }
  :: atomic { gave_up_stored -> gave_up = true; gave_up_stored = false }
  od
}

/* Of message n, and of the next one if `ahead`: into got. */
inline read_bytes() {
  i = 0;
  do
  :: i < (1 + ahead) * BYTES -> got[i] = memory[n * BYTES + i]; i++
  :: else -> break
  od
}

/* What it does with the message. */
inline use() {
  i = 0;
  do
  :: i < (1 + ahead) * BYTES -> assert(got[i] == n + 1 + i / BYTES); i++
  :: else -> break
  od;
  i = 0;
  do
  :: i <= ahead -> n++; released = n; i++
  :: else -> break
  od
}

active proctype reader() {
  byte n, i;
  bit ahead;
  byte got[2 * BYTES];
  do
  :: n == MESSAGES -> break
  :: n < MESSAGES && THERE(n) && !STANDS(n) -> break
  :: n < MESSAGES && !THERE(n) && gave_up -> break
  :: n < MESSAGES && THERE(n) && STANDS(n) ->
#ifdef IN_PLACE
    ahead = 0;
#else
    ahead = (n + 1 < MESSAGES && THERE(n + 1) && STANDS(n + 1) -> 1 : 0);
#endif
#ifdef MUT_LOOKS_FIRST
    if
    :: !STANDS(n) || gave_up -> break
    :: else
    fi;
#endif
    read_bytes();
#ifndef MUT_LOOKS_FIRST
    if
#ifdef IN_PLACE
    :: gave_up -> break
#else
    :: !STANDS(n) -> break
#endif
    :: else
    fi;
#endif
    use()
  od
}
