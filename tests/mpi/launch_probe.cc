// SPDX-License-Identifier: Apache-2.0
//
// The program that launch_test.py starts in many ways. Prints one line per rank:
//   rank R sum S taken T left L
// With "die PREFIX VICTIM CALL BYTES fatal|return" all make the call again and again until the
// victim is killed, and write files PREFIX.WHAT.RANK: their pids, stderr, the time of death, and
// how the others' calls ended, what they hold (a launcher may stop forwarding output when a process
// is killed). With "alltoallv N" there are N of those before the line.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
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

std::FILE* open_file(const char* prefix, const char* what, int rank, const char* mode) {
  char path[512];
  std::snprintf(path, sizeof(path), "%s.%s.%d", prefix, what, rank);
  std::FILE* const file = std::fopen(path, mode);
  if (file == nullptr) std::abort();
  return file;
}

struct Death {
  const char* prefix;
  int victim;
  const char* call;
  std::size_t bytes;
  bool fatal;
};

int call_once(const Death& death, const std::vector<double>& in, std::vector<double>& out) {
  const auto is = [&](const char* name) { return std::strcmp(death.call, name) == 0; };
  const int count = static_cast<int>(death.bytes / sizeof(double));
  if (is("barrier")) return MPI_Barrier(MPI_COMM_WORLD);
  if (is("changing")) {  // never the call that was made before
    static int turn = 0;
    return MPI_Allreduce(in.data(), out.data(), count, MPI_DOUBLE,
                         ++turn % 2 == 0 ? MPI_MIN : MPI_MAX, MPI_COMM_WORLD);
  }
  if (is("alltoall")) {
    return MPI_Alltoall(in.data(), count, MPI_DOUBLE, out.data(), count, MPI_DOUBLE,
                        MPI_COMM_WORLD);
  }
  if (is("allreduce")) {
    return MPI_Allreduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Request request{};
  int done = 0, code = MPI_Iallreduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM,
                                      MPI_COMM_WORLD, &request);
  if (code == MPI_SUCCESS && is("wait")) return MPI_Wait(&request, MPI_STATUS_IGNORE);
  while (code == MPI_SUCCESS && done == 0) code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  return code;
}

// What of this process the kernel keeps while anybody uses it: files that it maps, and sockets.
void tell_what_is_held(const char* prefix, int rank) {
  std::FILE* const told = open_file(prefix, "held", rank, "w");
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (std::fgets(line, sizeof(line), maps) != nullptr) std::fputs(line, told);
  std::fclose(maps);
  for (int file = 0; file < 1024; ++file) {
    char link[64];
    std::snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, line, sizeof(line) - 1);
    if (length > 0) std::fprintf(told, "%.*s\n", static_cast<int>(length), line);
  }
  std::fclose(told);
}

// A process that outlives the job, as none should, with the memory of carillon and a socket.
void stay_behind(const char* prefix, int socket) {
  if (fork() != 0) return;
  setsid();
  for (int file = 0; file < 1024; ++file) {
    if (file != socket) close(file);
  }
  std::fprintf(open_file(prefix, "stays", 0, "w"), "%d\n", static_cast<int>(getpid()));
  std::fflush(nullptr);
  sleep(60);
  _exit(0);
}

// The victim dies somewhere in its calls, after it has written when.
void die_or_tell(int rank, int size, const Death& death) {
  static int written_by_the_victim = -1;
  std::FILE* const errors = open_file(death.prefix, "stderr", rank, "w");
  dup2(fileno(errors), STDERR_FILENO);
  std::fprintf(open_file(death.prefix, "pid", rank, "w"), "%d\n", static_cast<int>(getpid()));
  std::fflush(nullptr);
  signal(SIGPIPE, SIG_IGN);
  if (!death.fatal) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const std::size_t values = death.bytes / sizeof(double) * static_cast<std::size_t>(size);
  const std::vector<double> in(values, 1.0);
  std::vector<double> out(values);
  MPI_Barrier(MPI_COMM_WORLD);
  const bool stays = rank == 0 && std::getenv("PROBE_STAYS") != nullptr;
  const int unix_socket = stays ? socket(AF_UNIX, SOCK_DGRAM, 0) : -1;
  tell_what_is_held(death.prefix, rank);
  if (stays) stay_behind(death.prefix, unix_socket);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == death.victim) {
    written_by_the_victim = fileno(open_file(death.prefix, "killed", rank, "w"));
    signal(SIGALRM, [](int) {
      timespec now{};
      clock_gettime(CLOCK_MONOTONIC, &now);
      const double seconds =
          static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
      dprintf(written_by_the_victim, "%.3f\n", seconds);
      raise(SIGKILL);
    });
    ualarm(300000, 0);
  }
  int code = MPI_SUCCESS;
  while (code == MPI_SUCCESS) code = call_once(death, in, out);
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  std::fprintf(open_file(death.prefix, "end", rank, "w"), "%s\n", text);
  std::fflush(nullptr);
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
  if (argc > 6 && std::strcmp(argv[1], "die") == 0) {
    die_or_tell(rank, size,
                {argv[2], std::atoi(argv[3]), argv[4], std::strtoul(argv[5], nullptr, 10),
                 std::strcmp(argv[6], "fatal") == 0});
  }
  if (argc > 2 && std::strcmp(argv[1], "alltoallv") == 0) exchange(rank, size, std::atoi(argv[2]));
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  std::printf("rank %d sum %d taken %llu left %llu\n", rank, sum, counted("carillon_shim_taken"),
              counted("carillon_shim_left"));
  MPI_Finalize();
  return 0;
}
