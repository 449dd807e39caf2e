/* SPDX-License-Identifier: Apache-2.0
 *
 * The scenarios of credit.pml: ranks, teams, chunks, and who does what in which order. One is
 * chosen by a define.
 */
#if defined(ALL)
/* One writer, two readers, channel 0: all of rank 0; rank 1 also writes to rank 0 (channel 2). */
#define R 3
#define T 1
#define S 3
#define CHUNKS 1
#define FIRST_CHUNKS 1
inline scenario() {
  channel(0, 0, 0, 6); channel(2, 0, 1, 1);
  collective(0, 0, 1); collective(1, 0, 2); collective(2, 0, 3);
  /* 1: rank 0 passes on what it gets from rank 1: later collectives would overtake it */
  op(0, 0, IN_(2, 1), OUT_(0, 1)); op(1, 0, OUT_(2, 1), IN_(0, 1)); op(2, 0, IN_(0, 1), 0);
  /* 2: more messages than lines */
  op(0, 1, OUT_(0, 3), 0); op(1, 1, IN_(0, 3), 0); op(2, 1, IN_(0, 3), 0);
  /* 3: a short one, and back */
  op(0, 2, OUT_(0, 2), IN_(2, 1)); op(1, 2, OUT_(2, 1), IN_(0, 2)); op(2, 2, IN_(0, 2), 0);
  program(0, 0, 1, 2, NONE); program(1, 0, 1, 2, NONE); program(2, 0, 1, 2, NONE);
}
#elif defined(PAIR)
/* The same between two ranks, with one collective that rank 1 ends at once. Channel 1: 0 to 1, 2: 1 to 0. */
#define R 2
#define T 1
#define S 4
#define CHUNKS 1
#define FIRST_CHUNKS 1
inline scenario() {
  channel(1, 0, 0, 2); channel(2, 0, 1, 1);
  collective(0, 0, 1); collective(1, 0, 2); collective(2, 0, 3); collective(3, 0, 4);
  op(0, 0, IN_(2, 1), OUT_(1, 1)); op(1, 0, OUT_(2, 1), IN_(1, 1));
  op(0, 1, IN_(2, 1), 0);          op(1, 1, OUT_(2, 1), 0);
  op(0, 2, OUT_(1, 3), IN_(2, 1)); op(1, 2, OUT_(2, 1), IN_(1, 3));
  op(0, 3, OUT_(1, 4), IN_(2, 3)); op(1, 3, IN_(1, 4), OUT_(2, 3));
  program(0, 0, 1, 2, 3); program(1, 0, 1, 2, 3);
}
#elif defined(REFERENCES)
/* Both ranks put their own memory; neither is done before the other has read it. */
#define R 2
#define T 1
#define S 4
#define CHUNKS 1
#define FIRST_CHUNKS 1
inline scenario() {
  channel(0, 0, 0, 2); channel(1, 0, 1, 1);
  collective(0, 0, 1); collective(1, 0, 2); collective(2, 0, 3); collective(3, 0, 4);
  op(0, 0, REF_(0, 1), IN_(1, 1)); op(1, 0, REF_(1, 1), IN_(0, 1));
  op(0, 1, REF_(0, 1), IN_(1, 1)); op(1, 1, REF_(1, 1), IN_(0, 1));
  op(0, 2, REF_(0, 3), 0);         op(1, 2, IN_(0, 3), 0);
  op(0, 3, IN_(1, 1), REF_(0, 2)); op(1, 3, REF_(1, 1), IN_(0, 2));
  program(0, 0, 1, 2, 3); program(1, 0, 1, 2, 3);
}
#elif defined(POOL)
/* Rank 1 has a chunk of its own and is sure of another. It passes collective 1 on to rank 2, while
 * it is itself the root of the later ones, which can use up every chunk before 1 arrives. */
#define R 3
#define T 1
#define S 3
#define CHUNKS 4
#define FIRST_CHUNKS 1
inline scenario() {
  channel(0, 0, 0, 2); channel(1, 0, 1, 4); channel(2, 0, 1, 1);
  collective(0, 0, 1); collective(1, 0, 2); collective(2, 0, 3);
  op(0, 0, BIG_(0, 1), 0); op(1, 0, IN_(0, 1), BIG_(1, 1)); op(2, 0, IN_(1, 1), 0);
  op(1, 1, BIG_(2, 3), 0); op(0, 1, IN_(2, 3), 0);
  op(1, 2, BIG_(2, 1), BIG_(1, 3)); op(0, 2, IN_(2, 1), 0); op(2, 2, IN_(1, 3), 0);
  program(0, 0, 1, 2, NONE); program(1, 0, 1, 2, NONE); program(2, 0, 1, 2, NONE);
}
#elif defined(TEAMS)
/* Rank 0: three Ibcast on team A, then an allreduce on team B; rank 1 the other way round. More
 * chunks are wanted than there are. */
#define R 2
#define T 2
#define S 4
#define CHUNKS 4
#define FIRST_CHUNKS 1
inline scenario() {
  channel(0, 0, 0, 2); channel(1, 1, 0, 2); channel(2, 1, 1, 1);
  collective(0, 0, 1); collective(1, 0, 2); collective(2, 0, 3); collective(3, 1, 1);
  op(0, 0, BIG_(0, 1), 0); op(1, 0, IN_(0, 1), 0);
  op(0, 1, BIG_(0, 2), 0); op(1, 1, IN_(0, 2), 0);
  op(0, 2, BIG_(0, 3), 0); op(1, 2, IN_(0, 3), 0);
  op(0, 3, BIG_(1, 1), IN_(2, 1)); op(1, 3, BIG_(2, 1), IN_(1, 1));
  program(0, 0, 1, 2, 3 + BLOCKING); program(1, 3 + BLOCKING, 0, 1, 2);
}
#endif
