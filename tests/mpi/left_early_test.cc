// SPDX-License-Identifier: Apache-2.0
//
// Collectives that are started while their communicator's team is in the making, and are the MPI's
// because it cannot be made. By then the program has freed their types, operators and communicator,
// others have got the handles, and the lists are gone. And what comes later has another error
// handler. The ranks are on nodes without a network.
#include <algorithm>
#include <numeric>

#include "support.h"
#include "way_out.h"

namespace mpi_test {
namespace {

using Ints = std::vector<int>;

void add(void* in, void* inout, int* length, MPI_Datatype* /*type*/) {
  for (int i = 0; i < *length; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

void give_nothing(void* /*in*/, void* inout, int* length, MPI_Datatype* /*type*/) {
  std::fill_n(static_cast<int*>(inout), *length, -5);
}

// Those that come after may get the handles of those that went.
struct Objects {
  MPI_Datatype three = MPI_DATATYPE_NULL, gapped = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;

  Objects(MPI_Datatype basic, MPI_User_function* function) {
    MPI_Type_contiguous(3, basic, &three);
    MPI_Type_vector(2, 1, 2, basic, &gapped);
    MPI_Type_commit(&three);
    MPI_Type_commit(&gapped);
    MPI_Op_create(function, 1, &op);
  }
  void free() {
    MPI_Type_free(&three);
    MPI_Type_free(&gapped);
    MPI_Op_free(&op);
  }
};

MPI_Comm copy_of_world() {
  MPI_Comm comm = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return comm;
}

void freed_meanwhile(bool with_communicator) {
  MPI_Comm comm = copy_of_world();
  const int rank = world_rank(), size = world_size();
  Objects used(MPI_INT, add);
  Ints data(6, rank == 0 ? 5 : -1), gaps(3, rank == 0 ? 7 : -1), mine(3, rank);
  Ints all(3 * static_cast<std::size_t>(size), -1);
  int sum = -1;
  MPI_Request requests[4];
  MPI_Ibcast(data.data(), 2, used.three, 0, comm, &requests[0]);
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, used.op, comm, &requests[1]);
  MPI_Iallgather(mine.data(), 1, used.three, all.data(), 1, used.three, comm, &requests[2]);
  MPI_Ibcast(gaps.data(), 1, used.gapped, 0, comm, &requests[3]);
  used.free();
  Objects others(MPI_CHAR, give_nothing);
  if (with_communicator) MPI_Comm_free(&comm);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  check(data == Ints(6, 5), "a broadcast of a type that is freed");
  check(sum == size * (size - 1) / 2, "a sum by an operator that is freed");
  for (int i = 0; i < 3 * size; ++i) {
    check(all[static_cast<std::size_t>(i)] == i / 3, "an allgather of a type that is freed");
  }
  check(gaps[0] == 7 && gaps[1] == (rank == 0 ? 7 : -1) && gaps[2] == 7,
        "a broadcast of a type with gaps that is freed");
  others.free();
  if (!with_communicator) MPI_Comm_free(&comm);
}

// Of an alltoallw, an alltoallv and a reduce_scatter.
void lists_gone() {
  MPI_Comm comm = copy_of_world();
  const auto size = static_cast<std::size_t>(world_size());
  const int rank = world_rank();
  Objects used(MPI_INT, add);
  Ints counts(size, 1), offsets(size), bytes(size), in(3 * size), v(3 * size, -1), w = v;
  Ints block(1, -1), expected(3 * size);
  for (std::size_t i = 0; i < size; ++i) {
    offsets[i] = static_cast<int>(i);
    bytes[i] = static_cast<int>(3 * i * sizeof(int));
  }
  std::iota(in.begin(), in.end(), 100 * rank);
  for (int i = 0; i < 3 * world_size(); ++i) {
    expected[static_cast<std::size_t>(i)] = 100 * (i / 3) + 3 * rank + i % 3;
  }
  std::vector<MPI_Datatype> types(size, used.three);
  MPI_Request requests[3];
  MPI_Ialltoallw(in.data(), counts.data(), bytes.data(), types.data(), w.data(), counts.data(),
                 bytes.data(), types.data(), comm, &requests[0]);
  MPI_Ialltoallv(in.data(), counts.data(), offsets.data(), used.three, v.data(), counts.data(),
                 offsets.data(), used.three, comm, &requests[1]);
  MPI_Ireduce_scatter(in.data(), block.data(), counts.data(), MPI_INT, MPI_SUM, comm, &requests[2]);
  used.free();
  std::fill(counts.begin(), counts.end(), -1);
  std::fill(offsets.begin(), offsets.end(), -1);
  std::fill(bytes.begin(), bytes.end(), -1);
  std::fill(types.begin(), types.end(), MPI_DATATYPE_NULL);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  check(w == expected, "an alltoallw whose lists are gone");
  check(v == expected, "an alltoallv whose lists are gone");
  const int ranks = world_size();
  check(block[0] == 100 * ranks * (ranks - 1) / 2 + ranks * rank,
        "a reduce_scatter whose list is gone");
  MPI_Comm_free(&comm);
}

// Lists that only the root has.
void lists_of_root_gone() {
  MPI_Comm comm = copy_of_world();
  const auto size = static_cast<std::size_t>(world_size());
  const int rank = world_rank();
  const bool root = rank == 0;
  Objects used(MPI_INT, add);
  Ints counts(root ? size : 0, 1), offsets(root ? size : 0), all(3 * size, -1);
  std::iota(offsets.begin(), offsets.end(), 0);
  Ints in(3, rank), out(3, -1), given(root ? 3 * size : 0);
  std::iota(given.begin(), given.end(), 0);
  // Elsewhere a type that means nothing need be none.
  const MPI_Datatype type_of_root = root ? used.three : MPI_DATATYPE_NULL;
  MPI_Request requests[2];
  MPI_Igatherv(in.data(), 1, used.three, all.data(), root ? counts.data() : nullptr,
               root ? offsets.data() : nullptr, type_of_root, 0, comm, &requests[0]);
  MPI_Iscatterv(given.data(), root ? counts.data() : nullptr, root ? offsets.data() : nullptr,
                type_of_root, out.data(), 1, used.three, 0, comm, &requests[1]);
  used.free();
  std::fill(counts.begin(), counts.end(), -1);
  std::fill(offsets.begin(), offsets.end(), -1);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 3 * world_size(); ++i) {
    check(all[static_cast<std::size_t>(i)] == (root ? i / 3 : -1),
          "a gatherv of lists that are gone");
  }
  check(out == Ints({3 * rank, 3 * rank + 1, 3 * rank + 2}), "a scatterv of lists that are gone");
  MPI_Comm_free(&comm);
}

// In a ring.
void lists_of_neighbours_gone() {
  MPI_Comm comm = MPI_COMM_NULL;
  const int rank = world_rank(), size = world_size();
  const int before = (rank + size - 1) % size, behind = (rank + 1) % size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &behind,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  Objects used(MPI_INT, add);
  Ints in(3, rank), out(3, -1);
  int count = 1;
  MPI_Aint offset = 0;
  MPI_Datatype type = used.three;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ineighbor_alltoallw(in.data(), &count, &offset, &type, out.data(), &count, &offset, &type,
                          comm, &request);
  used.free();
  count = -1;
  offset = 1 << 20;
  type = MPI_DATATYPE_NULL;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(out == Ints(3, before), "a neighbours' alltoallw whose lists are gone");
  MPI_Comm_free(&comm);
}

// In a line, whose ends have neighbours on one side only: the other side's lists are empty, and yet
// there. (No alltoallw, of which MPICH 4.0 loses what comes to a rank without destinations.)
void empty_lists_of_neighbours() {
  MPI_Comm comm = MPI_COMM_NULL;
  const int rank = world_rank(), size = world_size();
  const int before = rank - 1, behind = rank + 1;
  const int sources = before >= 0 ? 1 : 0, destinations = behind < size ? 1 : 0;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sources, &before, MPI_UNWEIGHTED, destinations,
                                 &behind, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  const int count = 3, offset = 0;
  Ints in(3, rank), gathered(3, -1), v(3, -1);
  MPI_Request requests[2];
  MPI_Ineighbor_allgatherv(in.data(), 3, MPI_INT, gathered.data(), &count, &offset, MPI_INT, comm,
                           &requests[0]);
  MPI_Ineighbor_alltoallv(in.data(), &count, &offset, MPI_INT, v.data(), &count, &offset, MPI_INT,
                          comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  const Ints expected(3, before);
  check(gathered == expected, "a neighbours' allgatherv with an empty list");
  check(v == expected, "a neighbours' alltoallv with empty lists");
  MPI_Comm_free(&comm);
}

int g_handled = 0;

void handle(MPI_Comm* /*comm*/, int* /*code*/, ...) { ++g_handled; }

int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

// What the MPI refuses on its copy of the communicator it tells the handler that the program has
// set since.
void other_error_handler() {
  MPI_Comm comm = copy_of_world();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(handle, &handler);
  int number = 0;
  for (int round = 1; round <= 2; ++round) {
    MPI_Comm_set_errhandler(comm, round == 1 ? MPI_ERRORS_RETURN : handler);
    // MPICH 5 with the ABI of MPI 5 returns no error of which a handler has been told.
    const int theirs = class_of(PMPI_Bcast(&number, 1, MPI_INT, world_size(), comm));
    g_handled = 0;
    const int answers[] = {MPI_Bcast(&number, 1, MPI_INT, world_size(), comm),
                           MPI_Ibcast(&number, 1, MPI_INT, world_size(), comm, &request)};
    for (const int answer : answers) {
      check(class_of(answer) == theirs, "the error of a root that is none");
    }
    check(g_handled == (round == 1 ? 0 : 2), "the error handler is told");
  }
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

// The MPI refuses a root that is none meanwhile, and the error handler never returns.
void jump_out_of_start() {
  static MPI_Comm comm;
  static int one, sum;
  static MPI_Request request;
  MPI_Errhandler handler{};
  comm = copy_of_world();
  MPI_Comm_create_errhandler(jump_out, &handler);
  for (const MPI_Comm told : {comm, MPI_COMM_WORLD}) MPI_Comm_set_errhandler(told, handler);
  one = 1;
  sum = 0;
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  if (setjmp(g_way_out) == 0) {
    MPI_Request wrong = MPI_REQUEST_NULL;
    MPI_Ibcast(&one, 1, MPI_INT, world_size(), comm, &wrong);
    check(false, "an error handler that jumps out of what starts was not called");
  }
  overwrite_stack();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(sum == world_size(), "an allreduce that was started before a jump");
  sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  check(sum == world_size(), "an allreduce after a jump");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&handler);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  for (int round = 0; round < 10; ++round) {
    for (const bool with_communicator : {false, true}) freed_meanwhile(with_communicator);
    lists_gone();
    lists_of_root_gone();
    lists_of_neighbours_gone();
    empty_lists_of_neighbours();
    other_error_handler();
  }
  check(left("iallreduce") == 20 && left("ialltoallw") == 10, "all are the MPI's in the end");
  jump_out_of_start();
  return end();
}
