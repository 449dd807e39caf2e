// SPDX-License-Identifier: Apache-2.0
//
// One buffer as both input and output, on rank 0 alone. MPI forbids it; where the MPI lets it pass
// (Open MPI, and MPICH with MPIR_CVAR_COLL_ALIAS_CHECK=0) carillon must take the call, in place
// where that means the same, or rank 0 and the others would wait for each other for ever.
#include <cstdlib>
#include <string>

#include "support.h"

namespace mpi_test {
namespace {

using Ints = std::vector<int>;

bool aliases() { return world_rank() == 0; }

// Whether the MPI itself lets it pass on this rank.
bool accepted() {
#if defined(OPEN_MPI)
  return true;
#else
  const char* const setting = std::getenv("MPIR_CVAR_COLL_ALIAS_CHECK");
  return setting != nullptr && std::string(setting) == "0";
#endif
}

void test_reductions() {
  const int size = world_size(), sum = size * (size + 1) / 2;
  MustTake allreduce("allreduce"), reduce("reduce"), scatter("reduce_scatter_block");
  int number = world_rank() + 1, other = number;
  int* const in = aliases() ? &number : &other;
  MPI_Allreduce(in, &number, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  allreduce.expect();
  check(number == sum, "allreduce");
#if !defined(OPEN_MPI)  // which refuses this one alone
  number = other;
  MPI_Reduce(in, &number, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  reduce.expect();
  check(!aliases() || number == sum, "reduce");
#endif
  Ints blocks(static_cast<std::size_t>(size), other);
  number = -1;
  MPI_Reduce_scatter_block(blocks.data(), aliases() ? blocks.data() : &number, 1, MPI_INT, MPI_SUM,
                           MPI_COMM_WORLD);
  scatter.expect();
  check((aliases() ? blocks[0] : number) == sum, "reduce_scatter_block");
}

// The root alone calls, and hears at once what the MPI itself says.
void test_refused_at_root() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int number = world_rank(), sum = 0;
  MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, comm);
  const auto class_of = [](int code) {
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    return error_class;
  };
  if (world_rank() == 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int theirs = PMPI_Reduce(&number, &number, 1, MPI_INT, MPI_SUM, 0, comm);
    const int ours = MPI_Reduce(&number, &number, 1, MPI_INT, MPI_SUM, 0, comm);
    const int started = MPI_Ireduce(&number, &number, 1, MPI_INT, MPI_SUM, 0, comm, &request);
    check(theirs != MPI_SUCCESS && class_of(ours) == class_of(theirs), "reduce at the root");
    check(class_of(started) == class_of(theirs), "ireduce at the root");
    check(MPI_Reduce(&number, &number, 0, MPI_INT, MPI_SUM, 0, comm) == MPI_SUCCESS,
          "reduce of nothing at the root");
  }
  MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, comm);
  check(sum == world_size() * (world_size() - 1) / 2, "allreduce after reduces that are refused");
  MPI_Comm_free(&comm);
}

void check_ranks(const Ints& numbers, const char* name) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    check(numbers[i] == static_cast<int>(i), std::string(name) + ": data");
  }
}

// Also with two names of one type, which MPICH never takes for an alias.
void test_gathers(MPI_Datatype in_type) {
  const auto size = static_cast<std::size_t>(world_size());
  const int rank = world_rank();
  MustTake allgather("allgather"), gather("gather"), scatter("scatter");
  Ints all(size, -1);
  int other = rank;
  int* const own = &all[static_cast<std::size_t>(rank)];
  if (aliases()) *own = rank;
  MPI_Allgather(aliases() ? own : &other, 1, in_type, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
  allgather.expect();
  check_ranks(all, "allgather");
  Ints gathered(size, -1);
  gathered[0] = 0;
  MPI_Gather(aliases() ? gathered.data() : &other, 1, in_type, gathered.data(), 1, MPI_INT, 0,
             MPI_COMM_WORLD);
  gather.expect();
  if (aliases()) check_ranks(gathered, "gather");
  other = -1;
  MPI_Scatter(all.data(), 1, MPI_INT, aliases() ? all.data() : &other, 1, in_type, 0,
              MPI_COMM_WORLD);
  scatter.expect();
  check(aliases() ? all[0] == 0 : other == rank, "scatter");
}

void test_exchanges(MPI_Datatype in_type) {
  const auto size = static_cast<std::size_t>(world_size());
  MustTake alltoall("alltoall"), alltoallv("alltoallv");
  const Ints counts(size, 1);
  Ints mine(size, world_rank()), theirs(size, -1), offsets;
  for (int i = 0; i < world_size(); ++i) offsets.push_back(i);
  Ints& out = aliases() ? mine : theirs;
  MPI_Alltoall(mine.data(), 1, in_type, out.data(), 1, MPI_INT, MPI_COMM_WORLD);
  alltoall.expect();
  check_ranks(out, "alltoall");
  mine.assign(size, world_rank());
  MPI_Alltoallv(mine.data(), counts.data(), offsets.data(), in_type, out.data(), counts.data(),
                offsets.data(), MPI_INT, MPI_COMM_WORLD);
  alltoallv.expect();
  check_ranks(out, "alltoallv");
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  int is_accepted = accepted() ? 1 : 0;  // rank 0's word counts
  PMPI_Bcast(&is_accepted, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (is_accepted != 0) {
    test_reductions();
    test_gathers(MPI_INT);
    test_exchanges(MPI_INT);
  }
#if defined(OPEN_MPI)
  test_refused_at_root();
#else
  if (is_accepted == 0) test_refused_at_root();
#endif
  test_gathers(MPI_UNSIGNED);
  test_exchanges(MPI_UNSIGNED);
  return end();
}
