/* SPDX-License-Identifier: Apache-2.0
 *
 * carillon: collective communication. The C API (C99), the library's only stable interface.
 *
 * Objects. A *context* is this process's part in its node's shared memory and, if the processes are
 * on several nodes, its end of the network. A *team* is an ordered set of processes, each with a
 * rank; collectives run on teams. A *request* is a collective in flight.
 *
 * Rules for all calls.
 *  - All ranks of a team start the same collectives on it in the same order, with the same
 *    root, operator and sizes (as in MPI). Collectives on different teams may be started in any
 *    order; non-blocking ones complete in any order.
 *  - Buffers belong to the caller and must stay untouched (input: unmodified) until the
 *    collective is complete. Input and output may not overlap unless CRL_IN_PLACE is given.
 *  - Calls that can fail return a crl_status_t (crl_alloc: NULL); on an error crl_last_error() says
 *    what happened, where, and what to do. Out-arguments are set only on success. A handle or a
 *    place for an answer that is NULL is such an error (CRL_ERR_INVALID_ARGUMENT), where nothing
 *    else is said; functions that do not return a status do nothing then. When a collective
 *    between nodes has failed, the network may still reach its buffers: they stay where they are
 *    until the context is destroyed.
 *  - Threads: with crl_context_config_t.threaded = 0 one thread at a time may use a context and
 *    everything made from it. With threaded = 1 any number may, but one team is used by one
 *    thread at a time (as MPI_THREAD_MULTIPLE has it for a communicator).
 *  - A process that dies breaks the teams it is in: the others' calls on them end with
 *    CRL_ERR_PEER_DEAD within crl_context_config_t.dead_peer_ms, or within five seconds if a
 *    whole node has gone.
 *  - A child of fork may use nothing of its parent's; to destroy it there does nothing.
 *  - Progress is made by calls into carillon, or by CARILLON_SERVLET's thread (docs/servlet.md).
 */
#ifndef CARILLON_CARILLON_H
#define CARILLON_CARILLON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CRL_API __attribute__((visibility("default")))

typedef enum {
  CRL_OK = 0,
  CRL_IN_PROGRESS = 1,
  CRL_ERR_INVALID_ARGUMENT = -1,
  CRL_ERR_UNSUPPORTED = -2,
  CRL_ERR_NO_MEMORY = -3,
  CRL_ERR_PEER_DEAD = -4,
  CRL_ERR_TIMEOUT = -5,
  CRL_ERR_MISMATCH = -6, /* ranks called with arguments that do not fit together */
  CRL_ERR_SYSTEM = -7,   /* the operating system refused something */
  CRL_ERR_INTERNAL = -8  /* a defect of carillon */
} crl_status_t;

/* A short English name, e.g. "peer dead". Never NULL. */
CRL_API const char* crl_status_string(crl_status_t status);
/* The message of this thread's last failed call, which begins with the status' name; valid until
 * its next one. Never NULL. */
CRL_API const char* crl_last_error(void);
/* "0.1.0" */
CRL_API const char* crl_version(void);

/* ---- Bootstrap -------------------------------------------------------------------------- */

/* How the members of a context or team exchange a few bytes before they can use carillon: a
 * non-blocking allgather among `size` members, of which the caller is `rank`. Only the thread
 * that calls into the context calls it. */
typedef struct {
  void* arg;
  int rank;
  int size;
  /* Starts to gather `bytes` bytes from every member into out (size * bytes, in rank order). Both
   * buffers stay valid until the request is done. 0, or an error of the caller's own. */
  int (*allgather_post)(void* arg, const void* in, void* out, size_t bytes, void** request_p);
  /* 0: done, and the request is gone. 1: in progress. Other: failed, and the request is gone. If
   * it is done, and a member's own bytes are not in its own place, what is being made there fails
   * with CRL_ERR_INVALID_ARGUMENT. */
  int (*allgather_test)(void* arg, void* request);
} crl_oob_t;

typedef struct crl_context* crl_context_h;
typedef struct crl_team* crl_team_h;
typedef struct crl_request* crl_request_h;
typedef struct crl_window* crl_window_h;

typedef struct {
  size_t struct_bytes; /* sizeof(crl_context_config_t), for later versions of it */
  /* The processes that make their contexts together. Those on this node share memory; it must
   * outlive crl_context_create only. */
  crl_oob_t oob;
  /* Called, outside any lock, every few hundred polls while a call blocks, so that e.g. the host
   * MPI makes progress. May be NULL. */
  void (*idle)(void* arg);
  void* idle_arg;
  int threaded;
  int dead_peer_ms; /* 0: as CARILLON_DEAD_PEER_MS says, 1000 if it is not set */
  /* Memory of this process that the others of its node may map, to read bytes where they stand as
   * in memory of crl_alloc: all of a file (memfd) of heap_bytes bytes, whole pages, mapped shared
   * from its start, and its descriptor. It must stay so while the context lives. NULL: none. The
   * processes' may differ. */
  const void* heap;
  size_t heap_bytes;
  int heap_fd;
} crl_context_config_t;

/* Collective over config->oob; blocks. Reads CARILLON_* settings. CRL_ERR_UNSUPPORTED: the
 * processes run different versions of carillon, or one of them does not take part because of its
 * settings, which its own call says. */
CRL_API crl_status_t crl_context_create(const crl_context_config_t* config,
                                        crl_context_h* context_p);
/* Local. All requests must be complete; teams not destroyed are destroyed. Waits, two seconds at
 * most, until processes on other nodes need nothing of this one any more. */
CRL_API void crl_context_destroy(crl_context_h context);
/* How many bytes a rank uses at most for a team of `ranks` on several nodes, of which it exchanges
 * data with `neighbours` on other nodes, with the settings in force; 0 if these cannot be read. */
CRL_API size_t crl_network_bytes(int ranks, int neighbours);
/* Moves everything in flight on the context on, without blocking. Returns the first error of a
 * request that ended with one since the last call, else CRL_OK; the request tells it, too. */
CRL_API crl_status_t crl_context_progress(crl_context_h context);

/* Collective over oob, and non-blocking: exchanges go on with any progress of the context; the
 * team can be used at once, collectives started before it is ready wait for it. oob is copied;
 * what its arg points to must live until crl_team_test says the team is ready or failed. */
CRL_API crl_status_t crl_team_create(crl_context_h context, const crl_oob_t* oob,
                                     crl_team_h* team_p);
/* CRL_OK: ready. CRL_IN_PROGRESS. CRL_ERR_UNSUPPORTED: the members agreed that carillon cannot
 * serve this team (no network between its nodes, or contexts that were not made together): every
 * member gets this answer; destroy the team and use something else. Makes progress. */
CRL_API crl_status_t crl_team_test(crl_team_h team);
/* Local; returns at once. The other members may still be finishing earlier collectives. All of
 * this process's requests on the team must be complete. Of one that is not ready yet, what it has
 * (some KiB) is kept until the context is destroyed: its exchange may still be under way. */
CRL_API void crl_team_destroy(crl_team_h team);
/* For a caller that cannot take part in the team's next collective (no memory for its buffer, say):
 * ends everything on the team with `status`, an error, for good. All further calls on it return
 * that; the other members' collectives that cannot complete without this process, and their later
 * ones, end with the same code within crl_context_config_t.dead_peer_ms. Local; blocks while the
 * team is made. On a team that has failed already, changes nothing. */
CRL_API void crl_team_fail(crl_team_h team, crl_status_t status);
/* What messages for people call the team; copied. */
CRL_API void crl_team_set_name(crl_team_h team, const char* name);
/* -1 if the team is NULL. */
CRL_API int crl_team_rank(crl_team_h team);
CRL_API int crl_team_size(crl_team_h team);
/* Id of the algorithm of the team's last started collective, e.g. "allreduce.flat"; "" if none, or
 * if the team is NULL. */
CRL_API const char* crl_team_last_algorithm(crl_team_h team);

/* So many of a team's calls were done by one algorithm, for one reason. */
typedef struct crl_decision {
  const char* algorithm; /* its id */
  const char* reason;    /* a few words for people; stays where it is, as the id does */
  uint64_t calls;
} crl_decision_t;
/* How the team's alltoallvs were done so far: which algorithm suits depends on tables that no rank
 * knows of the others, and so on what surveys of them say. Writes the first `room` of the
 * decisions, and returns how many there are. Local. */
CRL_API int crl_team_decisions(crl_team_h team, crl_decision_t* decisions, int room);

/* Memory that all processes of the node can read directly, which spares a copy when it is the
 * input of bcast and its like. Such a collective is complete at the root only when all others have
 * read it: from other memory the root may be done as soon as it has written its copy. NULL if the
 * node's share is used up. Not collective. What is not freed stays readable by this process when
 * the context is destroyed. */
CRL_API void* crl_alloc(crl_context_h context, size_t bytes);
/* CRL_ERR_INVALID_ARGUMENT: a collective that is not complete uses it, and the message names that;
 * the memory is not freed. What crl_alloc did not give is left as it is. */
CRL_API crl_status_t crl_free(crl_context_h context, void* memory);

/* Memory that the node's processes have mapped already, each at addresses of its own, such as a
 * window of MPI_Win_allocate_shared: carillon is told where, to read it in place as memory of
 * crl_alloc. parts[i] is where this process has what oob's member i calls its part, of bytes[i]
 * bytes, the same on all members; any process may use any of them in a collective. Collective over
 * oob; blocks. CRL_ERR_UNSUPPORTED, on all members: these are not all processes of one node, there
 * is but one, or a part is longer than a TiB; then it is as other memory. CRL_ERR_PEER_DEAD: a
 * process of the node has died. */
CRL_API crl_status_t crl_window_create(crl_context_h context, const crl_oob_t* oob,
                                       void* const* parts, const size_t* bytes,
                                       crl_window_h* window_p);
/* Before the memory is taken away: it is as other memory from now on. CRL_ERR_INVALID_ARGUMENT: a
 * collective of this process that is not complete uses it, and the message names that; nothing has
 * changed. CRL_OK if it is NULL. Local. */
CRL_API crl_status_t crl_window_close(crl_window_h window);
/* The same, where the memory goes in any case. Takes no lock. Local. */
CRL_API void crl_window_abandon(crl_window_h window);
/* Frees the handle. When all members have closed it: until then they may tell this process of bytes
 * there. Local. */
CRL_API void crl_window_destroy(crl_window_h window);

/* What this process gave to others since the context was made, messages of up to 56 bytes,
 * multicasts and what switches reduce aside. Within its node, each message counts once, however
 * many read it; to other nodes, once for each process that it went to. */
typedef struct crl_traffic {
  uint64_t in_place_bytes; /* read where they stood: in memory of crl_alloc, of a window or of
                            * config->heap */
  uint64_t lent_bytes;     /* read by the receiver in this process's private memory: one copy */
  uint64_t copied_bytes;   /* copied to shared memory, for the receivers to copy from there */
  uint64_t sent_in_place_bytes; /* to other nodes: the network read them where they stood */
  uint64_t sent_copied_bytes;   /* to other nodes: copied to memory that is sent from */
  uint64_t uncached_bytes;      /* of copied_bytes, those that went past this process's caches */
  uint64_t handed_bytes;        /* of copied_bytes, those in memory that went to the receiver */
} crl_traffic_t;
CRL_API void crl_context_traffic(crl_context_h context, crl_traffic_t* traffic);

/* ---- Types and operators ---------------------------------------------------------------- */

typedef enum {
  CRL_INT8,
  CRL_INT16,
  CRL_INT32,
  CRL_INT64,
  CRL_UINT8,
  CRL_UINT16,
  CRL_UINT32,
  CRL_UINT64,
  CRL_FLOAT32,
  CRL_FLOAT64,
  CRL_LONG_DOUBLE,
  CRL_BOOL, /* C99 _Bool */
  CRL_COMPLEX_FLOAT32,
  CRL_COMPLEX_FLOAT64,
  CRL_COMPLEX_LONG_DOUBLE,
  /* value and index, laid out as the C struct { value; int; } (for CRL_MINLOC, CRL_MAXLOC) */
  CRL_FLOAT32_INT,
  CRL_FLOAT64_INT,
  CRL_LONG_INT,
  CRL_INT_INT,
  CRL_SHORT_INT,
  CRL_LONG_DOUBLE_INT,
  CRL_FLOAT32_FLOAT32,
  CRL_FLOAT64_FLOAT64, /* Fortran's 2REAL, 2DOUBLE PRECISION */
  CRL_DTYPES
} crl_dtype_kind_t;

/* One of crl_dtype_kind_t, or CRL_OPAQUE(bytes) for elements only a user operator understands. */
typedef uint32_t crl_dtype_t;
#define CRL_OPAQUE(bytes) (0x80000000u | (crl_dtype_t)(bytes))
/* Bytes of one element; 0 for an invalid type. */
CRL_API size_t crl_dtype_bytes(crl_dtype_t dtype);

typedef enum {
  CRL_SUM,
  CRL_PROD,
  CRL_MIN,
  CRL_MAX,
  CRL_BAND,
  CRL_BOR,
  CRL_BXOR,
  CRL_LAND,
  CRL_LOR,
  CRL_LXOR,
  CRL_MINLOC,
  CRL_MAXLOC,
  CRL_OPS
} crl_op_kind_t;

/* One of crl_op_kind_t, or what crl_op_create made. */
typedef uintptr_t crl_op_t;

/* right[i] = left[i] (op) right[i] for `count` elements; left holds the lower ranks' part. Both are
   aligned for elements of any fundamental type, if the buffers of the calls are. */
typedef void (*crl_op_fn_t)(void* arg, const void* left, void* right, size_t count);
CRL_API crl_status_t crl_op_create(crl_op_fn_t fn, void* arg, int commutative, crl_op_t* op_p);
CRL_API void crl_op_free(crl_op_t op);
/* 1 if op is defined for dtype, else 0. */
CRL_API int crl_op_supports(crl_op_t op, crl_dtype_t dtype);

/* ---- Collectives ------------------------------------------------------------------------ */

/* As input: the data stands in the output, where the result of this rank goes (allgather, gather
 * at the root, and their forms with tables: in this rank's block; scatter and scatterv, as output
 * at the root: the root's block stays). */
#define CRL_IN_PLACE ((void*)(intptr_t)-1)

/* Blocking. `bytes` and `count` are one block: the whole vector for bcast, reduce, allreduce, scan
 * and exscan, one rank's share otherwise (so that the large side holds team size blocks in rank
 * order). */
CRL_API crl_status_t crl_barrier(crl_team_h team);
CRL_API crl_status_t crl_bcast(crl_team_h team, void* buffer, size_t bytes, int root);
CRL_API crl_status_t crl_reduce(crl_team_h team, const void* in, void* out, size_t count,
                                crl_dtype_t dtype, crl_op_t op, int root);
CRL_API crl_status_t crl_allreduce(crl_team_h team, const void* in, void* out, size_t count,
                                   crl_dtype_t dtype, crl_op_t op);
CRL_API crl_status_t crl_allgather(crl_team_h team, const void* in, void* out, size_t bytes);
CRL_API crl_status_t crl_gather(crl_team_h team, const void* in, void* out, size_t bytes, int root);
CRL_API crl_status_t crl_scatter(crl_team_h team, const void* in, void* out, size_t bytes,
                                 int root);
CRL_API crl_status_t crl_reduce_scatter_block(crl_team_h team, const void* in, void* out,
                                              size_t count, crl_dtype_t dtype, crl_op_t op);
CRL_API crl_status_t crl_alltoall(crl_team_h team, const void* in, void* out, size_t bytes);
/* Byte counts and byte offsets per peer; the arrays may be reused when the call returns, also
 * that of the non-blocking form. No CRL_IN_PLACE. A rank's block for itself has one length. A block
 * of 0 bytes is no message: a rank does not wait for those that have nothing for it. */
CRL_API crl_status_t crl_alltoallv(crl_team_h team, const void* in, const int64_t* send_bytes,
                                   const int64_t* send_offsets, void* out,
                                   const int64_t* recv_bytes, const int64_t* recv_offsets);

/* The same with blocks of different lengths: byte counts and byte offsets per peer, which only the
 * root needs of gatherv and scatterv (elsewhere they may be NULL); `bytes`: this rank's own. */
CRL_API crl_status_t crl_allgatherv(crl_team_h team, const void* in, size_t bytes, void* out,
                                    const int64_t* recv_bytes, const int64_t* recv_offsets);
CRL_API crl_status_t crl_gatherv(crl_team_h team, const void* in, size_t bytes, void* out,
                                 const int64_t* recv_bytes, const int64_t* recv_offsets, int root);
CRL_API crl_status_t crl_scatterv(crl_team_h team, const void* in, const int64_t* send_bytes,
                                  const int64_t* send_offsets, void* out, size_t bytes, int root);
/* counts: elements of each rank's block, the same on all ranks. */
CRL_API crl_status_t crl_reduce_scatter(crl_team_h team, const void* in, void* out,
                                        const int64_t* counts, crl_dtype_t dtype, crl_op_t op);
/* Rank r gets the reduction of ranks 0 to r; of exscan: to r-1, and rank 0 nothing (its out may be
 * NULL, and with CRL_IN_PLACE stays as it is). */
CRL_API crl_status_t crl_scan(crl_team_h team, const void* in, void* out, size_t count,
                              crl_dtype_t dtype, crl_op_t op);
CRL_API crl_status_t crl_exscan(crl_team_h team, const void* in, void* out, size_t count,
                                crl_dtype_t dtype, crl_op_t op);

/* A blocking call that is made again and again, with nothing but other buffers: for callers who can
 * tell that by less than the call's own arguments, such as one comparison with those of the last
 * time. The repeated call then need not look at them again. What comes after crl_op_free is another
 * operator, even if it has the same value. */
typedef struct crl_repeatable {
  void* call;
  uint64_t edition;
} crl_repeatable_t;
/* The team's last blocking call whose arguments were good, by crl_repeat or not, if it has
 * succeeded and can be made again so; else one that never can. */
CRL_API crl_repeatable_t crl_team_last_call(crl_team_h team);
/* Makes it again. in, out: as in that call, CRL_IN_PLACE and NULL where they stood there (of bcast
 * both are the buffer, of barrier NULL); nothing of this is checked. 1: *status is what the call
 * would have returned. 0: nothing was done, for the team has another edition of its calls by now;
 * make the call itself. As with all calls of a team, one at a time. */
CRL_API int crl_repeat(crl_team_h team, crl_repeatable_t call, const void* in, void* out,
                       crl_status_t* status);

/* Non-blocking: the same, and a request that crl_request_test or crl_request_wait completes. */
CRL_API crl_status_t crl_ibarrier(crl_team_h team, crl_request_h* request_p);
CRL_API crl_status_t crl_ibcast(crl_team_h team, void* buffer, size_t bytes, int root,
                                crl_request_h* request_p);
CRL_API crl_status_t crl_ireduce(crl_team_h team, const void* in, void* out, size_t count,
                                 crl_dtype_t dtype, crl_op_t op, int root,
                                 crl_request_h* request_p);
CRL_API crl_status_t crl_iallreduce(crl_team_h team, const void* in, void* out, size_t count,
                                    crl_dtype_t dtype, crl_op_t op, crl_request_h* request_p);
CRL_API crl_status_t crl_iallgather(crl_team_h team, const void* in, void* out, size_t bytes,
                                    crl_request_h* request_p);
CRL_API crl_status_t crl_igather(crl_team_h team, const void* in, void* out, size_t bytes, int root,
                                 crl_request_h* request_p);
CRL_API crl_status_t crl_iscatter(crl_team_h team, const void* in, void* out, size_t bytes,
                                  int root, crl_request_h* request_p);
CRL_API crl_status_t crl_ireduce_scatter_block(crl_team_h team, const void* in, void* out,
                                               size_t count, crl_dtype_t dtype, crl_op_t op,
                                               crl_request_h* request_p);
CRL_API crl_status_t crl_ialltoall(crl_team_h team, const void* in, void* out, size_t bytes,
                                   crl_request_h* request_p);
CRL_API crl_status_t crl_ialltoallv(crl_team_h team, const void* in, const int64_t* send_bytes,
                                    const int64_t* send_offsets, void* out,
                                    const int64_t* recv_bytes, const int64_t* recv_offsets,
                                    crl_request_h* request_p);

CRL_API crl_status_t crl_iallgatherv(crl_team_h team, const void* in, size_t bytes, void* out,
                                     const int64_t* recv_bytes, const int64_t* recv_offsets,
                                     crl_request_h* request_p);
CRL_API crl_status_t crl_igatherv(crl_team_h team, const void* in, size_t bytes, void* out,
                                  const int64_t* recv_bytes, const int64_t* recv_offsets, int root,
                                  crl_request_h* request_p);
CRL_API crl_status_t crl_iscatterv(crl_team_h team, const void* in, const int64_t* send_bytes,
                                   const int64_t* send_offsets, void* out, size_t bytes, int root,
                                   crl_request_h* request_p);
CRL_API crl_status_t crl_ireduce_scatter(crl_team_h team, const void* in, void* out,
                                         const int64_t* counts, crl_dtype_t dtype, crl_op_t op,
                                         crl_request_h* request_p);
CRL_API crl_status_t crl_iscan(crl_team_h team, const void* in, void* out, size_t count,
                               crl_dtype_t dtype, crl_op_t op, crl_request_h* request_p);
CRL_API crl_status_t crl_iexscan(crl_team_h team, const void* in, void* out, size_t count,
                                 crl_dtype_t dtype, crl_op_t op, crl_request_h* request_p);

/* CRL_IN_PROGRESS, or the collective's status; the request is then gone and *request_p NULL. CRL_OK
 * if it is NULL already. Makes progress. */
CRL_API crl_status_t crl_request_test(crl_request_h* request_p);
/* Blocks until then. */
CRL_API crl_status_t crl_request_wait(crl_request_h* request_p);
/* Id of the algorithm of a collective in flight. NULL if it is not known yet: one that is started
 * before its team is ready or while the servlet is at work, or that surveys decide on, gets it when
 * it begins. "" if it has failed without one, or if the request is NULL. Makes no progress. */
CRL_API const char* crl_request_algorithm(crl_request_h request);

#ifdef __cplusplus
}
#endif
#endif
