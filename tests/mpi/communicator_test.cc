// SPDX-License-Identifier: Apache-2.0
//
// Communicators made in every way: carillon must take their collectives, and get them right; those
// it cannot take must still work. Handles that come back or stay, leaks, and the end of MPI.
#include <dirent.h>

#include <cstring>
#include <initializer_list>

#include "support.h"
#include "way_out.h"
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5  // where the persistent ones are an extension
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

namespace mpi_test {
namespace {

// A few collectives, each with values that depend on the rank.
void exercise(MPI_Comm comm, const std::string& how) {
  if (comm == MPI_COMM_NULL) return;
  MustTake barrier("barrier"), bcast("bcast"), allreduce("allreduce"), allgather("allgather");
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Barrier(comm);
  barrier.expect();
  for (int root = 0; root < size; ++root) {
    int number = rank == root ? 1000 + root : -1;
    MPI_Bcast(&number, 1, MPI_INT, root, comm);
    bcast.expect();
    check(number == 1000 + root, how + ": bcast from " + std::to_string(root));
  }
  int mine = rank + 1, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  allreduce.expect();
  check(sum == size * (size + 1) / 2, how + ": allreduce");
  std::vector<int> all(static_cast<std::size_t>(size), -1);
  MPI_Allgather(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
  allgather.expect();
  for (int i = 0; i < size; ++i) {
    check(all[static_cast<std::size_t>(i)] == i, how + ": allgather");
  }
}

void exercise_and_free(MPI_Comm comm, const std::string& how) {
  exercise(comm, how);
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

void test_duplicates() {
  MPI_Comm comm = MPI_COMM_NULL;
  exercise(MPI_COMM_WORLD, "world");
  exercise(MPI_COMM_SELF, "self");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  exercise_and_free(comm, "dup");
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  exercise_and_free(comm, "dup of self");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
  exercise_and_free(comm, "dup_with_info");
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  exercise_and_free(comm, "idup");
}

void test_splits() {
  const int rank = world_rank();
  MPI_Comm half = MPI_COMM_NULL, comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  exercise(half, "split, backwards");
  int half_rank = 0;
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_split(half, half_rank / 2, half_rank, &comm);
  exercise_and_free(comm, "split of a split");
  exercise_and_free(half, "split, again");
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, rank, &comm);
  exercise_and_free(comm, "split without rank 0");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm);
  exercise_and_free(comm, "split_type");
}

void test_groups() {
  MPI_Group world{}, some{};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> ranks;
  for (int i = world_size() - 1; i >= 0; i -= 2) ranks.push_back(i);
  MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &some);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_create(MPI_COMM_WORLD, some, &comm);
  exercise_and_free(comm, "create");
  comm = MPI_COMM_NULL;
  int in_group = MPI_UNDEFINED;
  MPI_Group_rank(some, &in_group);
  if (in_group != MPI_UNDEFINED) MPI_Comm_create_group(MPI_COMM_WORLD, some, 17, &comm);
  exercise_and_free(comm, "create_group");
  MPI_Group_free(&some);
  MPI_Group_free(&world);
}

void test_topologies() {
  const int size = world_size();
  MPI_Comm comm = MPI_COMM_NULL, row = MPI_COMM_NULL;
  int dims[2] = {0, 0}, periodic[2] = {1, 0}, keep[2] = {0, 1};
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 1, &comm);
  exercise(comm, "cart");
  MPI_Cart_sub(comm, keep, &row);
  exercise_and_free(row, "cart_sub");
  MPI_Comm_free(&comm);
  std::vector<int> index, edges;
  for (int i = 0; i < size; ++i) {
    edges.push_back((i + 1) % size);
    index.push_back(static_cast<int>(edges.size()));
  }
  MPI_Graph_create(MPI_COMM_WORLD, size, index.data(), edges.data(), 0, &comm);
  exercise_and_free(comm, "graph");
  const int from = (world_rank() + size - 1) % size, to = (world_rank() + 1) % size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &comm);
  exercise_and_free(comm, "dist_graph");
}

// An intercommunicator is the MPI's; what is merged from it is carillon's again.
void test_intercommunicators() {
  if (world_size() < 2) return;
  const int side = world_rank() % 2;
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, side, world_rank(), &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter);
  const std::uint64_t taken_before = taken("allreduce"), left_before = left("allreduce");
  int one = 1, sum = 0, others = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
  MPI_Comm_remote_size(inter, &others);
  check(sum == others, "allreduce on an intercommunicator");
  MPI_Barrier(inter);
  int number = side == 0 ? 42 : -1;
  const int root = side == 1 ? 0 : world_rank() == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(&number, 1, MPI_INT, root, inter);
  check(number == 42, "bcast on an intercommunicator");
  check(taken("allreduce") == taken_before && left("allreduce") == left_before + 1,
        "an intercommunicator's allreduce must be left to the MPI");
  MPI_Intercomm_merge(inter, side, &merged);
  exercise_and_free(merged, "intercomm_merge");
  MPI_Comm_free(&inter);
  exercise_and_free(half, "half of an intercommunicator");
}

int open_files() {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (folder != nullptr && readdir(folder) != nullptr) ++count;
  if (folder != nullptr) closedir(folder);
  return count;
}

// Communicators that come and go: their handles come back, and nothing stays behind.
void test_many() {
  int before = 0;
  for (int i = 0; i < 300; ++i) {
    if (i == 50) before = open_files();
    MPI_Comm comm = MPI_COMM_NULL;
    const bool whole = i % 3 != 0;
    MPI_Comm_split(MPI_COMM_WORLD, whole ? 0 : world_rank() % 2, world_rank(), &comm);
    int size = 0, one = 1, sum = 0;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    check(sum == size, "allreduce on one of many communicators");
    if (i % 4 == 0) {  // rank 0 may leave before the others have begun
      MPI_Bcast(&sum, 1, MPI_INT, 0, comm);
    }
    MPI_Comm_free(&comm);
  }
  // Connections to other processes are made as they are needed, each once.
  check(open_files() <= before + 2 + 2 * world_size(), "file descriptors leak");
}

int g_ended = 0;  // calls of the following

// A library ends what it has on a communicator that is being freed, by a collective on it.
int end_on(MPI_Comm comm, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  int rank = 0, size = 0, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  check(sum == size * (size + 1) / 2, "allreduce on a communicator that is being freed");
  ++g_ended;
  return MPI_SUCCESS;
}

// The next one of that handle has other ranks.
void test_collectives_at_the_end() {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_on, &keyval, nullptr);
  constexpr int kRounds = 12;
  for (int i = 0; i < kRounds; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    const int key = i % 3 == 0 ? -world_rank() : world_rank();
    MPI_Comm_split(MPI_COMM_WORLD, i % 2 == 0 ? 0 : world_rank() % 2, key, &comm);
    // Carillon's attribute comes second, or first.
    if (i % 4 < 2) MPI_Comm_set_attr(comm, keyval, nullptr);
    exercise(comm, "one of many that end with a collective");
    if (i % 4 >= 2) MPI_Comm_set_attr(comm, keyval, nullptr);
    if (i % 5 == 0) {
      MPI_Comm_disconnect(&comm);
    } else {
      MPI_Comm_free(&comm);
    }
  }
  check(g_ended == kRounds, "attributes of communicators: their ends");
  MPI_Comm_free_keyval(&keyval);
}

bool g_refuses = true;

int refuse_end(MPI_Comm /*comm*/, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  return g_refuses ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int g_told = 0;
void count_told(MPI_Comm* /*comm*/, int* /*code*/, ...) { ++g_told; }

using FreeComm = int (*)(MPI_Comm* comm);

// A communicator that an attribute does not let go is what it was, also where carillon's own
// attribute has gone before that one, which is so on some ranks only.
void test_refused_end(int keyval, FreeComm free_comm) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (const MPI_Comm one : {comm, MPI_COMM_WORLD}) {  // MPICH tells that of MPI_COMM_WORLD
    MPI_Comm_set_errhandler(one, MPI_ERRORS_RETURN);
  }
  const bool sets_first = world_rank() % 2 == 0;
  if (sets_first) MPI_Comm_set_attr(comm, keyval, nullptr);
  exercise(comm, "a communicator that is to stay");
  int one = 1, sum = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
  if (!sets_first) MPI_Comm_set_attr(comm, keyval, nullptr);
  g_refuses = true;
  free_comm(&comm);  // Open MPI's MPI_Comm_disconnect returns no error then
  check(comm != MPI_COMM_NULL, "an attribute that refuses");
  exercise(comm, "a communicator that has stayed");
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(count_told, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  g_told = 0;
  for (int i = 0; i < 2; ++i) MPI_Start(&request);
  check(g_told == 1, "a persistent allreduce that is started twice: its communicator is told");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(sum == world_size(), "a persistent allreduce of a communicator that has stayed");
  MPI_Request_free(&request);
  MPI_Errhandler_free(&handler);
  g_refuses = false;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  free_comm(&comm);
  check(comm == MPI_COMM_NULL, "an attribute that refuses no more");
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &comm);
  exercise_and_free(comm, "the next one of that handle");
}

// The program's error handler never returns to what frees.
void test_jump_out_of_end(int keyval) {
  static MPI_Comm comm;
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(jump_out, &handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (const MPI_Comm one : {comm, MPI_COMM_WORLD}) MPI_Comm_set_errhandler(one, handler);
  MPI_Comm_set_attr(comm, keyval, nullptr);
  exercise(comm, "a communicator that is to stay");
  g_refuses = true;
  if (setjmp(g_way_out) == 0) {
    MPI_Comm_free(&comm);
    check(false, "a handler that jumps out of MPI_Comm_free was not called");
  }
  overwrite_stack();
  MPI_Comm other = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  exercise_and_free(other, "another one after a jump out of MPI_Comm_free");
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  check(sum == world_size(), "allreduce after a jump out of MPI_Comm_free");
  g_refuses = false;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &other);
  exercise_and_free(other, "the next one of that handle after a jump");
  MPI_Errhandler_free(&handler);
}

void test_refused_ends() {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse_end, &keyval, nullptr);
  test_refused_end(keyval, MPI_Comm_free);
  test_refused_end(keyval, MPI_Comm_disconnect);
  test_jump_out_of_end(keyval);
  MPI_Comm_free_keyval(&keyval);
}

#ifdef OPEN_MPI  // under MPICH carillon's own copy has the attributes, too
int refuse_copy(MPI_Comm /*comm*/, int /*keyval*/, void* /*extra*/, void* /*in*/, void* /*out*/,
                int* /*flag*/) {
  return MPI_ERR_OTHER;
}

int count_end(MPI_Comm /*comm*/, int /*keyval*/, void* value, void* extra) {
  *static_cast<int*>(value) += *static_cast<int*>(extra);
  return MPI_SUCCESS;
}

using CreateKeyval = int (*)(MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function*, int*,
                             void*);

// Where nobody asks for a copy, a function that refuses it is not asked. Copies of the program's
// have what they had without carillon.
void test_attributes(CreateKeyval create) {
  int ends = 0, step = 10, copied = 0, *found = nullptr, is_there = 0;
  int refusing = MPI_KEYVAL_INVALID, copying = MPI_KEYVAL_INVALID;
  create(refuse_copy, count_end, &refusing, &step);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, count_end, &copying, &step);
  MPI_Comm comm = MPI_COMM_NULL, copy = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank(), &comm);
  MPI_Comm_set_attr(comm, refusing, &ends);
  MPI_Comm_set_attr(comm, copying, &copied);
  MustTake must("ibcast");
  int number = world_rank() == 0 ? 4711 : -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(&number, 1, MPI_INT, 0, comm, &request);
  must.expect();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(number == 4711, "ibcast on a communicator with attributes");
  check(ends == 0 && copied == 0, "attributes end with a copy that nobody has asked for");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  check(MPI_Comm_dup(comm, &copy) != MPI_SUCCESS, "a copy that an attribute refuses");
  MPI_Comm_delete_attr(comm, refusing);
  check(ends == 10, "an attribute is deleted");
  MPI_Comm_dup(comm, &copy);
  MPI_Comm_get_attr(copy, copying, static_cast<void*>(&found), &is_there);
  check(is_there != 0 && found == &copied, "the program's copy has no attribute");
  MPI_Comm_free(&copy);
  MPI_Comm_free(&comm);
  check(copied == 20, "the ends of an attribute and its copy");
  MPI_Comm_free_keyval(&refusing);
  MPI_Comm_free_keyval(&copying);
}
#endif

// Several at once, used in turn.
void test_alternating() {
  std::vector<MPI_Comm> comms(40, MPI_COMM_NULL);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < comms.size(); ++i) {
      int number = world_rank() == 0 ? static_cast<int>(i) + round : -1;
      MPI_Bcast(&number, 1, MPI_INT, 0, comms[i]);
      check(number == static_cast<int>(i) + round, "bcast on communicators in turn");
    }
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// Memory of MPI_Alloc_mem, which carillon may provide, in collectives and beyond.
void test_memory() {
  std::vector<int*> all;
  for (const int count : {1, 1000, 300000}) {
    int* numbers = nullptr;
    MPI_Alloc_mem(count * static_cast<MPI_Aint>(sizeof(int)), MPI_INFO_NULL, &numbers);
    for (int i = 0; i < count; ++i) numbers[i] = world_rank() == 0 ? i : -1;
    MPI_Bcast(numbers, count, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) check(numbers[i] == i, "bcast from MPI_Alloc_mem");
    all.push_back(numbers);
  }
  for (int* numbers : all) MPI_Free_mem(numbers);
}

// A library that ends itself in MPI_Finalize, with collectives.
int end_of_library(MPI_Comm /*comm*/, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (sum != world_size()) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Barrier(MPI_COMM_SELF);
  return MPI_SUCCESS;
}

void prepare_end() {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_of_library, &keyval, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
  MPI_Comm leaked = MPI_COMM_NULL;  // on purpose
  MPI_Comm_dup(MPI_COMM_WORLD, &leaked);
  exercise(leaked, "a communicator that is never freed");
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  mpi_test::test_duplicates();
  mpi_test::test_splits();
  mpi_test::test_groups();
  mpi_test::test_topologies();
  mpi_test::test_intercommunicators();
  mpi_test::test_many();
  mpi_test::test_collectives_at_the_end();
  mpi_test::test_refused_ends();
#ifdef OPEN_MPI
  mpi_test::test_attributes(MPI_Comm_create_keyval);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  mpi_test::test_attributes(MPI_Keyval_create);
#pragma GCC diagnostic pop
#endif
  mpi_test::test_alternating();
  mpi_test::test_memory();
  mpi_test::prepare_end();
  return mpi_test::end();
}
