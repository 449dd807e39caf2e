/* SPDX-License-Identifier: Apache-2.0
 *
 * Model of a node's reception of multicasts: src/engine/reception.{h,cc}. Two processes of a node
 * read the same messages; one of them at a time, the owner, puts their packets into the ring. The
 * network gives the owner each packet when it asks for it: the sources keep what is not published.
 * Taking over is possible at any time between two critical sections, whatever the patience.
 *
 * Proved: each message is read whole, and none is overwritten before both have read it; with -DLATE,
 * where process 0 begins only when process 1 has read as many messages as the ring holds, that
 * process 1 gets there (no deadlock).
 */
#define MESSAGES 4
#define RING 2
#define PACKETS 2
#define TAKEOVERS 3 /* enough for each to lose the ring and get it back */

byte owner; /* counted from 1; 0: nobody */
bool locked;
byte takeovers;
byte published;
byte released[2];
byte ring[4]; /* RING * PACKETS: the number of the message, counted from 1 */

#ifdef MUT_NO_ROOM
#define ROOM true
#else
#define ROOM (released[0] + RING > number && released[1] + RING > number)
#endif
#ifdef MUT_FIXED_OWNER
#define MAY_TAKE (me == 0 && !locked)
#else
#ifdef MUT_TAKES_LOCKED
#define MAY_TAKE (owner == 0 || owner == me + 1 || takeovers < TAKEOVERS)
#else
#define MAY_TAKE (!locked && (owner == 0 || owner == me + 1 || takeovers < TAKEOVERS))
#endif
#endif
#ifdef MUT_OWNER_FOR_EVER /* it does not look whether another has taken over */
#define STILL_OWNER (!locked)
#define LOST false
#else
#define STILL_OWNER (owner == me + 1 && !locked)
#define LOST (owner != me + 1)
#endif

proctype process(byte me) {
  byte number; /* of the message it reads next */
  byte got;    /* packets of message `number` that it has put into the ring */
  bool wants;  /* it has seen that the message is not there, and that there is room */
  bool receives;
#ifdef LATE
  if
  :: me == 0 -> released[1] == RING
  :: else
  fi;
#endif
  do
  :: number == MESSAGES -> break
  :: number < MESSAGES && published > number ->
    assert(ring[(number % RING) * PACKETS] == number + 1);
    assert(ring[(number % RING) * PACKETS + 1] == number + 1);
    released[me] = number + 1;
    number++;
    wants = false;
    receives = false
  :: number < MESSAGES && published == number && !wants && !receives && ROOM -> wants = true
  :: atomic {
      wants && MAY_TAKE ->
      if
      :: owner != 0 && owner != me + 1 -> takeovers++
      :: else
      fi;
      owner = me + 1;
      locked = true
    }
    wants = false;
    if
    :: published == number -> receives = true; got = 0
    :: else
    fi;
    locked = false
  :: atomic { receives && STILL_OWNER -> locked = true }
    ring[(number % RING) * PACKETS + got] = number + 1;
    got++;
    if
    :: got == PACKETS -> receives = false; published = number + 1
    :: else
    fi;
    locked = false
  :: receives && LOST -> receives = false
  od
}

init {
  atomic {
    run process(0);
    run process(1)
  }
}
