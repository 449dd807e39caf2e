// SPDX-License-Identifier: Apache-2.0
//
// The program that launch_test.py starts in many ways. Prints one line per rank:
//   rank R sum S taken T left L
// With "die PREFIX", the last rank kills itself, and the others write to the files PREFIX.RANK how
// their next collective ended (a launcher may stop forwarding output when a process is killed).
// With "alltoallv N" there are N of those before the line.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

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

// Of blocks of 0, 4 and 8 bytes.
void exchange(int rank, int size, int calls) {
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<int> send(ranks), recv(ranks), starts(ranks), in(2 * ranks, rank), out(2 * ranks, -1);
  for (int peer = 0; peer < size; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    send[at] = (rank + 2 * peer) % 3;
    recv[at] = (peer + 2 * rank) % 3;
    starts[at] = 2 * peer;
  }
  for (int call = 0; call < calls; ++call) {
    MPI_Alltoallv(in.data(), send.data(), starts.data(), MPI_INT, out.data(), recv.data(),
                  starts.data(), MPI_INT, MPI_COMM_WORLD);
  }
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    for (std::size_t i = 0; i < 2; ++i) {
      const int right = static_cast<int>(i) < recv[peer] ? static_cast<int>(peer) : -1;
      if (out[2 * peer + i] != right) MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0, one = 1, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 2 && std::strcmp(argv[1], "die") == 0) die_or_tell(rank, size, argv[2]);
  if (argc > 2 && std::strcmp(argv[1], "alltoallv") == 0) exchange(rank, size, std::atoi(argv[2]));
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  std::printf("rank %d sum %d taken %llu left %llu\n", rank, sum, counted("carillon_shim_taken"),
              counted("carillon_shim_left"));
  MPI_Finalize();
  return 0;
}
