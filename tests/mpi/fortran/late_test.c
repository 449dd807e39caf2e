/* SPDX-License-Identifier: Apache-2.0
 *
 * late_test LIBRARY: a library in Fortran that comes when MPI runs already, as modules of Python
 * do, on one rank before others; and collectives that some ranks call in C, some in Fortran. All
 * must be taken, or they would wait for each other.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

typedef unsigned long long (*counter_t)(const char*);
typedef int (*sum_t)(MPI_Fint* comm, int* number);

static int sum_in_c(int number) {
  int sum = -1;
  MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

int main(int argc, char** argv) {
  const counter_t taken = (counter_t)dlsym(RTLD_DEFAULT, "carillon_shim_taken");
  int rank = 0, ranks = 0, failures = 0;
  sum_t sum_in_fortran = NULL;
  if (argc != 2 || taken == NULL) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD);
  for (int call = 0; call < 2 * ranks; ++call) {
    if (call == rank) {
      void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
      if (library == NULL) fprintf(stderr, "%s\n", dlerror());
      sum_in_fortran = library == NULL ? NULL : (sum_t)dlsym(library, "sum_in_fortran_");
      if (sum_in_fortran == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int mine = 100 * call + rank;
    const int sum =
        sum_in_fortran != NULL && call % 3 != 2 ? sum_in_fortran(&world, &mine) : sum_in_c(mine);
    const int expected = 100 * call * ranks + ranks * (ranks - 1) / 2;
    if (sum != expected) fprintf(stderr, "rank %d, call %d: %d\n", rank, call, sum);
    failures += sum != expected;
  }
  if (taken("allreduce") != 2ULL * (unsigned long long)ranks) {
    fprintf(stderr, "rank %d: %llu calls were taken\n", rank, taken("allreduce"));
    ++failures;
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
