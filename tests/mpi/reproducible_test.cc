// SPDX-License-Identifier: Apache-2.0
//
// CARILLON_REPRODUCIBLE=1: every sum has the bits of the sum from left to right, in the order of
// the ranks. The numbers are such that any other order rounds differently somewhere; with
// MPI_TEST_OTHER_BITS that is what is checked. Without the setting, too, all ranks have the same
// bits, and have them each time.
#include <cstdlib>
#include <cstring>

#include "support.h"

namespace mpi_test {
namespace {

using Doubles = std::vector<double>;

// Of all sizes and both signs.
double value(int rank, std::size_t i) {
  const std::uint8_t mantissa = pattern(rank, 1, i), exponent = pattern(rank, 2, i);
  const double sign = mantissa % 2 == 0 ? 1.0 : -1.0;
  double scale = 1.0;
  for (int k = 0; k < exponent % 40; ++k) scale *= 3.0;
  return sign * scale / (mantissa + 0.7);
}

Doubles numbers(int rank, std::size_t count) {
  Doubles made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = value(rank, i);
  return made;
}

// Of the first `ranks` ranks.
Doubles left_fold(int ranks, std::size_t count) {
  Doubles sums = numbers(0, count);
  for (int rank = 1; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < count; ++i) sums[i] += value(rank, i);
  }
  return sums;
}

int g_other_bits = 0;  // results with bits of another order

void compare(const std::string& what, const Doubles& got, const Doubles& expected,
             std::size_t first = 0) {
  const bool same =
      std::memcmp(got.data(), expected.data() + first, got.size() * sizeof(double)) == 0;
  if (same) return;
  ++g_other_bits;
  if (std::getenv("MPI_TEST_OTHER_BITS") == nullptr) fail(what + " has other bits");
}

void add(void* left, void* right, int* count, MPI_Datatype* /*type*/) {
  for (int i = 0; i < *count; ++i) static_cast<double*>(right)[i] += static_cast<double*>(left)[i];
}

// `length`: of one block.
void try_length(std::size_t length, MPI_Op op, const std::string& name) {
  const int rank = world_rank(), size = world_size();
  const auto ranks = static_cast<std::size_t>(size), mine = static_cast<std::size_t>(rank);
  const int n = static_cast<int>(length);
  const MPI_Comm comm = MPI_COMM_WORLD;
  const Doubles in = numbers(rank, length), all_in = numbers(rank, ranks * length);
  const Doubles sums = left_fold(size, length), all_sums = left_fold(size, ranks * length);
  const std::string of = " of " + std::to_string(length) + ", " + name;
  Doubles out(length);
  MPI_Allreduce(in.data(), out.data(), n, MPI_DOUBLE, op, comm);
  compare("allreduce" + of, out, sums);
  out = in;
  MPI_Allreduce(MPI_IN_PLACE, out.data(), n, MPI_DOUBLE, op, comm);
  compare("allreduce in place" + of, out, sums);
  for (int root = 0; root < size; ++root) {
    MPI_Reduce(in.data(), out.data(), n, MPI_DOUBLE, op, root, comm);
    if (rank == root) compare("reduce" + of, out, sums);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(in.data(), out.data(), n, MPI_DOUBLE, op, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  compare("iallreduce" + of, out, sums);
  MPI_Scan(in.data(), out.data(), n, MPI_DOUBLE, op, comm);
  compare("scan" + of, out, left_fold(rank + 1, length));
  MPI_Exscan(in.data(), out.data(), n, MPI_DOUBLE, op, comm);
  if (rank > 0) compare("exscan" + of, out, left_fold(rank, length));
  MPI_Reduce_scatter_block(all_in.data(), out.data(), n, MPI_DOUBLE, op, comm);
  compare("reduce_scatter_block" + of, out, all_sums, mine * length);
  std::vector<int> counts(ranks, n);
  counts[0] = size == 1 ? n : n / 2;
  Doubles own(static_cast<std::size_t>(counts[mine]));
  MPI_Reduce_scatter(all_in.data(), own.data(), counts.data(), MPI_DOUBLE, op, comm);
  compare("reduce_scatter" + of, own, all_sums,
          mine == 0 ? 0 : static_cast<std::size_t>(counts[0]) + (mine - 1) * length);
}

// Of an allreduce: in any order, but in one.
void try_agreement(std::size_t length, MPI_Op op) {
  const int n = static_cast<int>(length);
  const Doubles in = numbers(world_rank(), length);
  Doubles first(length), again(length);
  MPI_Allreduce(in.data(), first.data(), n, MPI_DOUBLE, op, MPI_COMM_WORLD);
  Doubles of_root = first;
  PMPI_Bcast(of_root.data(), n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const auto same = [&](const Doubles& other) {
    return std::memcmp(first.data(), other.data(), length * sizeof(double)) == 0;
  };
  check(same(of_root), "allreduce of " + std::to_string(length) + ": rank 0 has other bits");
  MPI_Allreduce(in.data(), again.data(), n, MPI_DOUBLE, op, MPI_COMM_WORLD);
  check(same(again), "allreduce of " + std::to_string(length) + ": other bits the second time");
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  MPI_Op user = MPI_OP_NULL;
  MPI_Op_create(add, 1, &user);
  for (const std::size_t length : {1, 7, 300, 20000}) {
    try_length(length, MPI_SUM, "sum");
    try_length(length, user, "a function of the program");
    for (const MPI_Op op : {MPI_Op{MPI_SUM}, user}) try_agreement(length, op);
  }
  check(left("allreduce") + left("reduce_scatter") == 0 && taken("allreduce") > 0,
        "carillon must take the sums");
  if (std::getenv("MPI_TEST_OTHER_BITS") != nullptr) {
    check(g_other_bits > 0, "another order has no other bits: the numbers are too alike");
  }
  MPI_Op_free(&user);
  return end();
}
