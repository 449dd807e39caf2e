// SPDX-License-Identifier: Apache-2.0
//
// CARILLON_WATCHDOG under the interposer: ranks that wait for the last one, in each form of a
// collective, say so, and name it and the communicator. What they write to stderr the last one
// reads, and comes only then.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "support.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Alltoall_init MPIX_Alltoall_init
#endif

namespace mpi_test {
namespace {

int late_rank() { return world_size() - 1; }
bool is_late() { return world_rank() == late_rank(); }

// A pipe from the others to the last rank.
class Words {
 public:
  Words() {
    std::array<char, 64> path{};
    if (is_late()) {
      std::snprintf(folder_.data(), folder_.size(), "/tmp/watchdog_test.XXXXXX");
      check(mkdtemp(folder_.data()) != nullptr, "no folder for a pipe");
      std::snprintf(path.data(), path.size(), "%s/words", folder_.data());
      check(mkfifo(path.data(), 0600) == 0, "no pipe");
      pipe_ = open(path.data(), O_RDWR);  // at once, not only when somebody writes
    }
    PMPI_Bcast(path.data(), static_cast<int>(path.size()), MPI_CHAR, late_rank(), MPI_COMM_WORLD);
    if (!is_late()) {
      pipe_ = open(path.data(), O_WRONLY);
      own_stderr_ = dup(STDERR_FILENO);
      check(dup2(pipe_, STDERR_FILENO) >= 0, "stderr is no pipe");
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    if (is_late()) {
      unlink(path.data());
      rmdir(folder_.data());
    }
  }
  ~Words() {
    if (!is_late()) dup2(own_stderr_, STDERR_FILENO);
    PMPI_Barrier(MPI_COMM_WORLD);  // nobody writes any more
    close(pipe_);
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  /// Reads on until each of the others waits for the last rank in this collective.
  void listen(const std::string& comm, const std::string& collective) {
    std::string heard;
    const std::string late = "rank " + std::to_string(late_rank()) + " (has completed ";
    for (int rank = 0; rank < late_rank();) {
      const std::string who = "watchdog: rank " + std::to_string(rank) + " of a team of " +
                              std::to_string(world_size()) + " (" + comm + ") has waited for ";
      if (says(heard, {who, " on the team, " + collective + "; not in it: ", late})) {
        ++rank;
        continue;
      }
      std::array<char, 4096> some{};
      const ssize_t count = read(pipe_, some.data(), some.size());
      if (count <= 0) {
        fail("the pipe has ended");
        return;
      }
      heard.append(some.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  // Whether there is a line with all of these words.
  static bool says(const std::string& heard, const std::array<std::string, 3>& words) {
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = heard.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      const std::string line = heard.substr(begin, end - begin);
      bool all = true;
      for (const std::string& word : words) all = all && line.find(word) != std::string::npos;
      if (all) return true;
    }
    return false;
  }

  std::array<char, 32> folder_{};
  int pipe_ = -1, own_stderr_ = -1;
};

void run(MPI_Comm comm, const std::string& name) {
  Words words;
  const int mine = world_rank(), size = world_size();
  const auto ranks = static_cast<std::size_t>(size);
  int sum = 0;
  std::vector<int> in(ranks, mine), all(ranks), others(ranks);
  MPI_Request request = MPI_REQUEST_NULL;

  MPI_Barrier(comm);  // makes the team
  if (is_late()) words.listen(name, "allreduce");
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);

  if (is_late()) words.listen(name, "allgather");
  MPI_Iallgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);

  MPI_Alltoall_init(in.data(), 1, MPI_INT, others.data(), 1, MPI_INT, comm, MPI_INFO_NULL,
                    &request);
  if (is_late()) words.listen(name, "alltoall");
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);

  check(sum == size * (size - 1) / 2, "allreduce, late");
  for (int i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    check(all[at] == i && others[at] == i, "allgather or alltoall, late");
  }
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  run(MPI_COMM_WORLD, "MPI_COMM_WORLD");
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "of the program");
  run(comm, "of the program");
  MPI_Comm_free(&comm);
  return end();
}
