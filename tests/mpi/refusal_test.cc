// SPDX-License-Identifier: Apache-2.0
//
// What makes something of a communicator whose handle is none, or is called with other arguments
// that are wrong, by one rank alone: the MPI refuses it, and its error handler hears of it as often
// as without carillon.
#include <functional>

#include "support.h"
#include "way_out.h"

namespace mpi_test {
namespace {

int g_handled = 0;

void handle(MPI_Comm* /*comm*/, int* /*code*/, ...) { ++g_handled; }

struct Case {
  const char* name;
  std::function<int()> ours, theirs;
};

#define CASE(name, call)                                          \
  {                                                               \
    name, [=] { return MPI_##call; }, [=] { return PMPI_##call; } \
  }

std::vector<Case> makers(MPI_Comm comm) {
  static MPI_Comm made;
  static MPI_Win window;
  static int memory[4];
  static const int kOne = 1, kNo = 0;
  return {
      CASE("dup", Comm_dup(comm, &made)),
      CASE("split", Comm_split(comm, 0, 0, &made)),
      CASE("split by type", Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made)),
      CASE("grid", Cart_create(comm, 1, &kOne, &kNo, 0, &made)),
      CASE("window", Win_create(memory, sizeof(memory), 1, MPI_INFO_NULL, comm, &window)),
  };
}

// Of these a rank alone must hear that they are wrong: nobody else may come.
std::vector<Case> wrong_makers(MPI_Comm comm) {
  static MPI_Comm made;
  static MPI_Win window;
  static int memory[4];
  static MPI_Comm* const no_room = nullptr;
  static const int kMany[2] = {1000, 1000}, kNo[2] = {0, 0};
  return {
      CASE("dup, nowhere", Comm_dup(comm, no_room)),
      CASE("dup with info, nowhere", Comm_dup_with_info(comm, MPI_INFO_NULL, no_room)),
      CASE("create, of no group", Comm_create(comm, MPI_GROUP_NULL, &made)),
      CASE("create, nowhere", Comm_create(comm, MPI_GROUP_EMPTY, no_room)),
#ifdef OPEN_MPI  // MPICH waits for the others
      CASE("split, negative color", Comm_split(comm, -7, 0, &made)),
      CASE("graph, negative", Graph_create(comm, -1, kNo, kNo, 0, &made)),
      CASE("distributed graph, negative",
           Dist_graph_create_adjacent(comm, -1, kNo, MPI_UNWEIGHTED, 0, kNo, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &made)),
#endif
      CASE("split, nowhere", Comm_split(comm, 0, 0, no_room)),
      CASE("split by type, nowhere",
           Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, no_room)),
      CASE("grid, too large", Cart_create(comm, 2, kMany, kNo, 0, &made)),
      CASE("grid, negative", Cart_create(comm, -1, kMany, kNo, 0, &made)),
      CASE("graph, too large", Graph_create(comm, 1000, kNo, kNo, 0, &made)),
      CASE("intercommunicator, no such leader",
           Intercomm_create(comm, 1000, MPI_COMM_WORLD, 0, 0, &made)),
      CASE("window, negative", Win_create(memory, -1, 1, MPI_INFO_NULL, comm, &window)),
      CASE("window, no unit", Win_create(memory, 4, 0, MPI_INFO_NULL, comm, &window)),
  };
}

int class_of(int code) {
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  return error_class;
}

void compare(const Case& test) {
  g_handled = 0;
  const int theirs = class_of(test.theirs());
  const int their_calls = g_handled;
  g_handled = 0;
  const int ours = class_of(test.ours());
  check(ours == theirs && g_handled == their_calls,
        std::string(test.name) + ": the MPI answers class " + std::to_string(theirs) + ", " +
            std::to_string(their_calls) + " calls of the handler, with carillon it is " +
            std::to_string(ours) + ", " + std::to_string(g_handled));
}

// MPI_COMM_WORLD is nobody's to free, and is what it was after that, though the error handler does
// not return.
void test_world_is_not_freed() {
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(jump_out, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  static MPI_Comm world;
  world = MPI_COMM_WORLD;
  if (world_rank() == 0 && setjmp(g_way_out) == 0) {
    MPI_Comm_free(&world);
    check(false, "a handler that jumps out of MPI_Comm_free was not called");
  }
  MustTake must("allreduce");
  const int one = 1;
  int sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  must.expect();
  check(sum == world_size(), "allreduce after MPI_COMM_WORLD was not freed");
  MPI_Errhandler_free(&handler);
}

void run() {
  test_world_is_not_freed();
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);  // such errors are raised there
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  for (const Case& test : makers(MPI_COMM_NULL)) compare(test);
#if !defined(OPEN_MPI)  // whose handles are pointers
  MPI_Comm freed = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &freed);
  const MPI_Comm stale = freed;
  PMPI_Comm_free(&freed);
  for (const Case& test : makers(stale)) compare(test);
#endif
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  if (world_rank() == 0) {
    for (const Case& test : wrong_makers(comm)) compare(test);
  }
  MPI_Comm made = MPI_COMM_NULL;  // what is right still waits for all
  check(MPI_Comm_split(comm, 0, 0, &made) == MPI_SUCCESS, "split, after wrong calls of one rank");
  MPI_Comm_free(&made);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&handler);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  mpi_test::run();
  return mpi_test::end();
}
