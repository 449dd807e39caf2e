// SPDX-License-Identifier: Apache-2.0
//
// A communicator whose first collective is a non-blocking one, and of which something is made at
// once: carillon copies it meanwhile, which not every MPI bears beside a copy of its own. And two
// such communicators, to which the ranks come in another order. Hangs are found by the test's time
// limit.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "support.h"

namespace mpi_test {
namespace {

// A sum over all ranks, which are in the same order as in the world.
void check_sum(MPI_Comm comm, const std::string& what) {
  int in = 3 * world_rank() + 1, out = -1;
  PMPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm);
  check(out == 3 * (world_size() * (world_size() - 1) / 2) + world_size(), what);
}

using Use = void (*)(MPI_Comm comm);

void copy(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &made);
  check_sum(made, "on a copy");
  MPI_Comm_free(&made);
}

template <typename Begin>
void copy_by(MPI_Comm comm, Begin begin) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  begin(comm, &made, &request);
  check(request != MPI_REQUEST_NULL, "a handle of a copy that is being made");
  // Others wait for this rank's message before they go on.
  const int next = (world_rank() + 1) % world_size();
  const int previous = (world_rank() + world_size() - 1) % world_size();
  int sent = world_rank(), received = -1;
  MPI_Sendrecv(&sent, 1, MPI_INT, next, 0, &received, 1, MPI_INT, previous, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  check(received == previous, "a message while a copy is being made");
  if (world_rank() % 2 == 0) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
  check(request == MPI_REQUEST_NULL, "no handle of a copy that is made");
  check_sum(made, "on a copy that was made meanwhile");
  MPI_Comm_free(&made);
}

void copy_meanwhile(MPI_Comm comm) { copy_by(comm, MPI_Comm_idup); }

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define NEWER_USES \
  , { "Comm_idup_with_info", copy_with_info }

void copy_with_info(MPI_Comm comm) {
  copy_by(comm, [](MPI_Comm of, MPI_Comm* made, MPI_Request* request) {
    MPI_Comm_idup_with_info(of, MPI_INFO_NULL, made, request);
  });
}
#else
#define NEWER_USES
#endif

void split(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(comm, 0, world_rank(), &made);
  check_sum(made, "on what was split off");
  MPI_Comm_free(&made);
}

void split_by_type(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, world_rank(), MPI_INFO_NULL, &made);
  int in = 1, out = 0, size = 0;
  MPI_Comm_size(made, &size);
  PMPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, made);
  check(out == size, "on a node");
  MPI_Comm_free(&made);
}

void create(MPI_Comm comm) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &group);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_create(comm, group, &made);
  check_sum(made, "on what a group was made to");
  MPI_Comm_free(&made);
  MPI_Group_free(&group);
}

void make_grid(MPI_Comm comm) {
  const int size = world_size(), periodic = 1, stays = 1;
  MPI_Comm grid = MPI_COMM_NULL, line = MPI_COMM_NULL;
  MPI_Cart_create(comm, 1, &size, &periodic, 0, &grid);
  check_sum(grid, "on a grid");
  MPI_Cart_sub(grid, &stays, &line);
  check_sum(line, "on a part of a grid");
  MPI_Comm_free(&line);
  MPI_Comm_free(&grid);
}

void make_graph(MPI_Comm comm) {
  const int next = (world_rank() + 1) % world_size();
  const int previous = (world_rank() + world_size() - 1) % world_size();
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(comm, 1, &previous, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &made);
  check_sum(made, "on a graph");
  MPI_Comm_free(&made);
}

void make_window(MPI_Comm comm) {
  std::vector<int> memory(4, -1);
  MPI_Win window = MPI_WIN_NULL;
  // Open MPI has none between nodes that only TCP connects.
  const bool may_fail = std::getenv("MPI_TEST_UNSERVED") != nullptr;
  if (may_fail) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int status =
      MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(int)), sizeof(int),
                     MPI_INFO_NULL, comm, &window);
  if (status != MPI_SUCCESS) return;
  const int value = world_rank();
  MPI_Win_fence(0, window);
  MPI_Put(&value, 1, MPI_INT, (world_rank() + 1) % world_size(), 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  check(memory[0] == (world_rank() + world_size() - 1) % world_size(), "in a window");
  MPI_Win_free(&window);
}

void open_file(MPI_Comm comm) {
  MPI_File file = MPI_FILE_NULL;
  const int status = MPI_File_open(comm, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  check(status == MPI_SUCCESS, "a file");
  if (status == MPI_SUCCESS) MPI_File_close(&file);
}

constexpr std::pair<const char*, Use> kUses[] = {{"Comm_dup", copy},
                                                 {"Comm_idup", copy_meanwhile},
                                                 {"Comm_split", split},
                                                 {"Comm_split_type", split_by_type},
                                                 {"Comm_create", create},
                                                 {"Cart_create", make_grid},
                                                 {"Dist_graph_create", make_graph},
                                                 {"Win_create", make_window},
                                                 {"File_open", open_file} NEWER_USES};

void use_at_once(Use use, int tests, bool free_first) {
  MPI_Comm comm = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int in = world_rank() + 1, out = -1, done = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
  for (int i = 0; i < tests && done == 0; ++i) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  use(comm);
  if (free_first) MPI_Comm_free(&comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(out == world_size() * (world_size() + 1) / 2, "what had begun before");
  if (!free_first) MPI_Comm_free(&comm);
}

// Two communicators, of which Open MPI holds back the one or the other.
struct Two {
  explicit Two(bool lower_first) {
    for (MPI_Comm& comm : comms) PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (!lower_first) std::swap(comms[0], comms[1]);
  }
  Two(const Two&) = delete;
  Two& operator=(const Two&) = delete;
  ~Two() {
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  }
  void start(std::size_t which) {
    MPI_Iallreduce(&in, &out[which], 1, MPI_INT, MPI_SUM, comms[which], &requests[which]);
  }
  void wait(std::size_t which) {
    MPI_Wait(&requests[which], MPI_STATUS_IGNORE);
    check(out[which] == world_size() * (world_size() + 1) / 2, "one of two communicators");
  }

  int in = world_rank() + 1;
  std::array<int, 2> out{};
  std::array<MPI_Comm, 2> comms{};
  std::array<MPI_Request, 2> requests{};
};

bool comes_late() {
  constexpr int kUs = 20000;  // so that the others have come, and wait
  const bool late = world_rank() == world_size() - 1;
  if (late) usleep(kUs);
  return late;
}

// Both are in the making where one rank waits for the one before it comes to the other.
void start_two(bool lower_first, bool other_order) {
  Two two(lower_first);
  if (comes_late()) {
    for (const std::size_t which : {0, 1}) {
      two.start(which);
      two.wait(which);
    }
  } else {
    for (const std::size_t which : {0, 1}) two.start(other_order ? 1 - which : which);
    for (const std::size_t which : {0, 1}) two.wait(which);
  }
}

// One is in the making where something else is made of the other.
void make_beside(Use use, bool lower_first, bool make_first) {
  Two two(lower_first);
  const bool late = comes_late();
  if (late && make_first) use(two.comms[1]);
  two.start(0);
  if (late) two.wait(0);
  if (!late || !make_first) use(two.comms[1]);
  if (!late) two.wait(0);
}

// How many collectives that was.
std::size_t use_two() {
  constexpr std::size_t kStarted = 4 * 2 + 4 * 2;
  for (const bool lower_first : {true, false}) {
    for (const bool second : {true, false}) {
      start_two(lower_first, second);
      make_beside(copy, lower_first, second);
      make_beside(split, lower_first, second);
    }
  }
  return kStarted;
}

void run() {
  constexpr int kRounds = 20;
  const std::size_t of_two = use_two();
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& [name, use] : kUses) {
      // Ranks are unlike far with their copies.
      use_at_once(use, (world_rank() + round) % 4 * (round + 1), round % 3 == 0);
    }
  }
  const bool served = std::getenv("MPI_TEST_UNSERVED") == nullptr;
  check((served ? taken : left)("iallreduce") == kRounds * std::size(kUses) + of_two,
        std::to_string(taken("iallreduce")) + " taken, " + std::to_string(left("iallreduce")) +
            " left");
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  run();
  return end();
}
