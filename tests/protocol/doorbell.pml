/* SPDX-License-Identifier: Apache-2.0
 *
 * Model of sleeping and waking: src/transport/shm/doorbell.{h,cc}, Waiter::sleep. The writer's
 * store may stand in its store buffer while it already looks for sleepers, as on x86; the
 * sleeper's membarrier empties the buffer.
 *
 * Proved: without any timeout, no message is slept through (no deadlock).
 */
#define MESSAGES 3

byte header;   /* messages in memory */
byte buffered; /* messages the writer has stored; `header` follows */
bool sleepers;
byte wake_count;
bool asleep;

active proctype writer() {
  bool seen;
  do
  :: buffered < MESSAGES ->
    buffered++;
#ifdef MUT_LOOK_FIRST /* the compiler may not swap the two either */
    buffered--;
    seen = sleepers;
    buffered++;
#else
    seen = sleepers;
#endif
    if
    :: seen -> wake_count++; asleep = false
    :: else
    fi
  :: else -> break
  od
}

active proctype store_buffer() {
  do
  :: atomic { header < buffered -> header++ }
  :: header == MESSAGES -> break
  od
}

active proctype sleeper() {
  byte taken, seen;
  do
  :: taken == MESSAGES -> break
  :: taken < MESSAGES && header > taken -> taken++
  :: taken < MESSAGES && header <= taken ->
#ifndef MUT_COUNT_LATE
    seen = wake_count;
#endif
    sleepers = true;
#ifndef MUT_NO_BARRIER
    header = buffered; /* membarrier */
#endif
    if
    :: header > taken
    :: else ->
#ifdef MUT_COUNT_LATE
      seen = wake_count;
#endif
      atomic { /* FUTEX_WAIT */
        if
        :: wake_count == seen -> asleep = true
        :: else
        fi
      };
      !asleep
    fi;
    sleepers = false
  od
}
