/* SPDX-License-Identifier: Apache-2.0
 *
 * Model of chunks that go to the reader with their message: src/transport/shm/pool.{h,cc}, hand and
 * keep; Run::take_chunk, note_handed, keep_handed. Two ranks write to each other, each message in a
 * chunk that stays the writer's until it is released, or in one that is handed over, as they like.
 * All are of one length: those of the other are counted apart.
 *
 * Proved: no chunk is written while a message in it has yet to be read; each has one owner; no rank
 * has more than MOST of the other's, nor more to write in than both may give; both end.
 */
#define N 3    /* messages each way */
#define W 2    /* lines */
#define MOST 2 /* so many more may go there than have come */
#define EACH 4 /* chunks of a rank at first */
#define CHUNKS (2 * EACH)
#define NONE 0
#define RING 1    /* for any message: always one */
#define STOCK 2   /* came from the other rank, for messages to it */
#define RESERVE 3 /* takes the place of one that goes */

/* Shared memory: lines and counts of each rank's messages. */
byte line_chunk[2 * W];
bit line_handed[2 * W];
byte written[2], acked[2];
/* One rank's own: what each chunk is to it, and which of its messages stands in its ring's. */
byte place[2 * CHUNKS], letter[2];
/* What the code does not have: a message is there, and not released. */
bit g_unread[CHUNKS];
byte ended;

#define AT(c) (r * CHUNKS + (c))
#define LINE(from, n) ((from) * W + (n) % W)
#ifdef MUT_GIVEN_FOR_EVER
#define MAY_GIVE true
#else
#define MAY_GIVE (owed < MOST)
#endif

/* The first that a rank has so, in found; CHUNKS: none. */
inline find(what) {
  found = 0;
  do
  :: found == CHUNKS -> break
  :: found < CHUNKS && place[AT(found)] == what -> break
  :: else -> found++
  od
}

inline write(handed) {
  assert(!g_unread[chunk]);
  g_unread[chunk] = true;
  line_chunk[LINE(r, sent)] = chunk;
  line_handed[LINE(r, sent)] = handed;
  sent++;
  written[r] = sent /* the header */
}

inline keep() {
  chunk = line_chunk[LINE(1 - r, taken)];
  if
  :: line_handed[LINE(1 - r, taken)] ->
    place[AT(chunk)] = STOCK;
    stock++;
    assert(stock <= 2 * MOST);
    owed--
  :: else
  fi
}

proctype rank(byte r) {
  byte sent, taken, chunk, found, stock;
  byte ring = r * EACH, left = EACH - 1; /* its one chunk for any message; how many in reserve */
  short owed;
  bool reading;
  do
  :: atomic { sent < N && sent - acked[r] < W && (stock > 0 || letter[r] <= acked[r]) ->
    chunk = ring;
    if
    :: stock > 0 ->
      find(STOCK);
      chunk = found;
      place[AT(chunk)] = NONE;
      stock--;
      owed++;
      write(true)
    :: letter[r] <= acked[r] -> letter[r] = sent + 1; write(false)
    :: stock == 0 && letter[r] <= acked[r] && MAY_GIVE && left > 0 ->
#ifndef MUT_STAYS_ITS_GIVERS
      find(RESERVE);
      left--;
      ring = found;
      place[AT(chunk)] = NONE;
      place[AT(ring)] = RING;
#endif
      letter[r] = 0;
      owed++;
      assert(owed <= MOST);
      write(true)
    fi }
  :: !reading && taken < written[1 - r] ->
    reading = true;
#ifdef MUT_KEPT_BEFORE_IT_IS_READ
    keep()
#endif
  :: reading ->
    atomic {
      reading = false;
      g_unread[line_chunk[LINE(1 - r, taken)]] = false;
#ifndef MUT_KEPT_BEFORE_IT_IS_READ
      keep();
#endif
      taken++;
      acked[1 - r] = taken
    }
  :: sent == N && taken == N && !reading -> break
  od;
  atomic {
    ended++;
    if
    :: ended == 2 ->
      chunk = 0;
      do
      :: chunk < CHUNKS ->
        assert((place[chunk] != NONE) + (place[CHUNKS + chunk] != NONE) == 1);
        chunk++
      :: else -> break
      od
    :: else
    fi
  }
}

init {
  atomic {
    place[0] = RING; place[1] = RESERVE; place[2] = RESERVE; place[3] = RESERVE;
    place[CHUNKS + 4] = RING; place[CHUNKS + 5] = RESERVE;
    place[CHUNKS + 6] = RESERVE; place[CHUNKS + 7] = RESERVE;
    run rank(0); run rank(1)
  }
}
