/* SPDX-License-Identifier: Apache-2.0
 *
 * Model of lists in the callers' memory, which the network moves only while who gets them is in a
 * call, and of ranks that give up: Team::fail, take_memory_back, end_what_is_under_way,
 * may_be_sent_to, Run::takes_lists.
 *
 * Each of RANKS ranks, on as many nodes, makes CALLS calls, in which it has a list for each other
 * one. It may find at any time that a call cannot end, and fails when it hears that another has
 * given up. Then it stays until its lists have arrived, tells the others, and stays until they have
 * given up, too. Who has failed never calls again.
 *
 * No clock is modelled. No list is given up on. Who stays for the others does so for all but those
 * that are in no call and to whose hosts the word has come: two seconds are enough for that.
 *
 * Proved: nobody waits for ever, and no caller has its memory back while the network may read it.
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef CALLS
#define CALLS 2
#endif
#define SENT 1
#define THERE 2 /* at the other's host */
#define HEARD 3

#define LINK(from, to) ((from) * RANKS + (to))
byte posted[RANKS * RANKS], taken[RANKS * RANKS]; /* lists */
byte word[RANKS * RANKS];                         /* that `from` has given up */
bool calls[RANKS];                                /* and so makes progress */

#define IS_UNDER_WAY(from, to) (posted[LINK(from, to)] > taken[LINK(from, to)])

/* Is `condition` of each other rank true? */
#if RANKS == 2
#define ALL_OTHERS(condition) (condition(1 - _pid))
#else
#define ALL_OTHERS(condition) (condition((_pid + 1) % RANKS) && condition((_pid + 2) % RANKS))
#endif
#define HAS_MINE(other) (!IS_UNDER_WAY(_pid, other))
#define HAS_SENT(other) (taken[LINK(other, _pid)] >= n)
#define HAS_NOT_GIVEN_UP(other) (word[LINK(other, _pid)] != HEARD)
#define HAS_GIVEN_UP(other) (word[LINK(other, _pid)] == HEARD)
#define IS_AWAY(other) (!calls[other] && word[LINK(_pid, other)] >= THERE)
#define NEEDS_NOBODY(other) (HAS_GIVEN_UP(other) || IS_AWAY(other))

inline begin_call() {
  d_step {
    calls[_pid] = true;
#ifndef MUT_DOES_NOT_LOOK
    i = 0;
    do
    :: i < RANKS ->
      if
      :: word[LINK(i, _pid)] == THERE -> word[LINK(i, _pid)] = HEARD
      :: else
      fi;
      i++
    :: else -> break
    od;
    i = 0
#endif
  }
}

/* The memory is the caller's again. The network reads what is under way. */
inline end_call() {
  assert(ALL_OTHERS(HAS_MINE));
  calls[_pid] = false
}

inline tell_others() {
  i = 0;
  do
  :: i < RANKS ->
    if
    :: i != _pid -> word[LINK(_pid, i)] = SENT
    :: else
    fi;
    i++
  :: else -> break
  od
}

active [RANKS] proctype rank() {
  byte n, i;
  do
  :: n == CALLS -> goto away
  :: n < CALLS ->
    n++;
    begin_call();
    i = 0;
    do
    :: i < RANKS && i == _pid -> i++
    :: i < RANKS && i != _pid && word[LINK(i, _pid)] != HEARD -> posted[LINK(_pid, i)] = n; i++
    :: i < RANKS && i != _pid && word[LINK(i, _pid)] == HEARD -> goto failed
    :: i < RANKS -> goto failed
    :: i == RANKS -> break
    od;
    if
    :: ALL_OTHERS(HAS_MINE) && ALL_OTHERS(HAS_SENT) -> skip
    :: !ALL_OTHERS(HAS_NOT_GIVEN_UP) -> goto failed
    :: true -> goto failed
    fi;
    end_call()
  od;
failed:
#ifdef MUT_TOLD_FIRST
  tell_others();
#endif
#ifndef MUT_NOT_AWAITED
  ALL_OTHERS(HAS_MINE);
#endif
#ifndef MUT_TOLD_FIRST
  tell_others();
#endif
#ifndef MUT_DOES_NOT_STAY
  ALL_OTHERS(NEEDS_NOBODY);
#endif
  end_call();
away:
  skip
}

proctype link(byte from, to) {
end:
  do
  :: atomic { IS_UNDER_WAY(from, to) && calls[to] -> taken[LINK(from, to)]++ }
  :: atomic { word[LINK(from, to)] == SENT -> word[LINK(from, to)] = THERE }
  :: atomic { word[LINK(from, to)] == THERE && calls[to] -> word[LINK(from, to)] = HEARD }
  od
}

init {
  byte i;
  atomic {
    do
    :: i < RANKS * RANKS ->
      if
      :: i / RANKS != i % RANKS -> run link(i / RANKS, i % RANKS)
      :: else
      fi;
      i++
    :: else -> break
    od
  }
}
