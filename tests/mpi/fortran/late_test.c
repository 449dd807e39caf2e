/* SPDX-License-Identifier: Apache-2.0
 *
 * late_test LIBRARY: a library in Fortran that comes when MPI runs already, as modules of Python
 * do, on one rank before others; and collectives that some ranks call in C, some in Fortran. All
 * must be taken, or they would wait for each other.
 *
 * late_test LIBRARY refused: the library is there from the start, and some process may not change
 * it (refuse_mprotect.c). Then all calls must be left to Open MPI, on all ranks; MPICH's library
 * need not be changed, late or early.
 *
 * late_test LIBRARY memory: the first call of the library, on the last rank, is for memory, which
 * others then read where it is.
 *
 * late_test LIBRARY session: the first call of the library, on the last rank, makes a communicator
 * of a session's group, which the others make in C.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long (*counter_t)(const char*);
typedef int (*sum_t)(MPI_Fint* comm, int* number);

/* The ways to a sum, in Fortran and in C; the second is not blocking, and a barrier follows. */
enum { kSum, kWait, kWays };
static const char* const kInFortran[kWays] = {"sum_in_fortran_", "wait_in_fortran_"};
static sum_t in_fortran[kWays];

static int sum_in_c(int way, int number) {
  int sum = -1;
  MPI_Request request;
  if (way == kSum) {
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
  }
  MPI_Iallreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  return sum;
}

static int load(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  for (int way = 0; way < kWays && library != NULL; ++way) {
    in_fortran[way] = (sum_t)dlsym(library, kInFortran[way]);
    if (in_fortran[way] == NULL) return 0;
  }
  return library != NULL;
}

/* How many collectives were not taken so often. */
static int miscounted(int rank, unsigned long long calls) {
  const counter_t taken = (counter_t)dlsym(RTLD_DEFAULT, "carillon_shim_taken");
  static const char* const kNames[] = {"allreduce", "iallreduce", "barrier"};
  int failures = 0;
  for (int i = 0; i < 3; ++i) {
    if (taken != NULL && taken(kNames[i]) == calls) continue;
    fprintf(stderr, "rank %d: %s was not taken %llu times\n", rank, kNames[i], calls);
    ++failures;
  }
  return failures;
}

#if MPI_VERSION >= 4
typedef MPI_Fint (*make_t)(MPI_Fint* group);

static int test_session(const char* path) {
  const counter_t taken = (counter_t)dlsym(RTLD_DEFAULT, "carillon_shim_taken");
  MPI_Session session;
  MPI_Group all;
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, ranks = 0, sum = 0;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Group_rank(all, &rank);
  MPI_Group_size(all, &ranks);
  if (rank == ranks - 1) {
    MPI_Fint group = MPI_Group_c2f(all);
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const make_t make = library == NULL ? NULL : (make_t)dlsym(library, "make_in_fortran_");
    if (make == NULL) return 2;
    comm = MPI_Comm_f2c(make(&group));
  } else {
    MPI_Comm_create_from_group(all, "late", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  }
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  const int good = sum == ranks * (ranks - 1) / 2 && taken != NULL && taken("allreduce") == 1;
  MPI_Comm_free(&comm);
  MPI_Group_free(&all);
  MPI_Session_finalize(&session);
  fprintf(stderr, "rank %d: late_test has %s\n", rank, good ? "passed" : "failed");
  return good ? 0 : 1;
}
#endif

typedef void (*allocate_t)(MPI_Aint* bytes, void** memory);
typedef void (*node_bytes_t)(unsigned long long* in_place, unsigned long long* copied);

static int test_memory(const char* path) {
  const node_bytes_t node_bytes = (node_bytes_t)dlsym(RTLD_DEFAULT, "carillon_shim_node_bytes");
  unsigned long long in_place = 0, copied = 0;
  int rank = 0, ranks = 0;
  MPI_Aint bytes = 1 << 20;
  void* memory = NULL;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  const int last = ranks - 1;
  if (rank == last) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const allocate_t allocate =
        library == NULL ? NULL : (allocate_t)dlsym(library, "allocate_in_fortran_");
    if (allocate == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    allocate(&bytes, &memory);
  } else {
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory);
  }
  memset(memory, rank, (size_t)bytes);
  MPI_Bcast(memory, (int)bytes, MPI_BYTE, last, MPI_COMM_WORLD);
  if (node_bytes != NULL) node_bytes(&in_place, &copied);
  const int good = ((char*)memory)[bytes - 1] == last && node_bytes != NULL &&
                   (rank != last || in_place >= (unsigned long long)bytes);
  MPI_Free_mem(memory);
  MPI_Finalize();
  fprintf(stderr, "rank %d: late_test has %s\n", rank, good ? "passed" : "failed");
  return good ? 0 : 1;
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0, failures = 0, first = 0;
  if (argc == 3 && strcmp(argv[2], "memory") == 0) return test_memory(argv[1]);
  const int refused = argc == 3;
#if MPI_VERSION >= 4
  if (argc == 3 && strcmp(argv[2], "session") == 0) return test_session(argv[1]);
#endif
  if (argc < 2 || (refused && !load(argv[1]))) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD);
  for (int call = 0; call < 2 * ranks; ++call) {
    if (!refused && call == rank && !load(argv[1])) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < kWays; ++i) {
      const int way = (i + call / 2) % 2 == 0 ? kWait : kSum;
      int mine = 100 * call + 7 * i + rank;
      const int here = in_fortran[way] != NULL && (call + rank) % 3 != 2;
      if (here && first == 0) first = 1 << way;
      const int sum = here ? in_fortran[way](&world, &mine) : sum_in_c(way, mine);
      const int expected = (100 * call + 7 * i) * ranks + ranks * (ranks - 1) / 2;
      if (sum != expected) fprintf(stderr, "rank %d, call %d: %d\n", rank, call, sum);
      failures += sum != expected;
    }
  }
#ifdef OPEN_MPI
  failures += miscounted(rank, refused ? 0 : 2ULL * (unsigned)ranks);
#else
  failures += miscounted(rank, 2ULL * (unsigned)ranks);
#endif
  /* Where the library came late, either kind must have been the first call in Fortran somewhere. */
  PMPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
  failures += !refused && first != (1 << kSum | 1 << kWait);
  PMPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (failures > 0) fprintf(stderr, "late_test has failed\n");
  MPI_Finalize();
  if (failures == 0 && rank == 0) fprintf(stderr, "late_test has passed\n");
  return failures == 0 ? 0 : 1;
}
