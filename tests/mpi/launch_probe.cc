// SPDX-License-Identifier: Apache-2.0
//
// The program that launch_test.py starts in many ways. Prints one line per rank:
//   rank R sum S taken T left L
// With "die PREFIX", the last rank kills itself, and the others write to the files PREFIX.RANK how
// their next collective ended (a launcher may stop forwarding output when a process is killed).
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

unsigned long long counted(const char* symbol) {
  using Counter = unsigned long long (*)(const char*);
  const auto counter = reinterpret_cast<Counter>(dlsym(RTLD_DEFAULT, symbol));
  return counter == nullptr ? 0 : counter("allreduce");
}

void die_or_tell(int rank, int size, const char* prefix) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) {
    usleep(300000);
    raise(SIGKILL);
  }
  signal(SIGPIPE, SIG_IGN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const double begin = MPI_Wtime();
  const int code = MPI_Barrier(MPI_COMM_WORLD);
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  char path[512];
  std::snprintf(path, sizeof(path), "%s.%d", prefix, rank);
  std::FILE* const file = std::fopen(path, "w");
  std::fprintf(file, "after %.2f s: %s\n", MPI_Wtime() - begin, text);
  std::fclose(file);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0, one = 1, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 2 && std::strcmp(argv[1], "die") == 0) die_or_tell(rank, size, argv[2]);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  std::printf("rank %d sum %d taken %llu left %llu\n", rank, sum, counted("carillon_shim_taken"),
              counted("carillon_shim_left"));
  MPI_Finalize();
  return 0;
}
