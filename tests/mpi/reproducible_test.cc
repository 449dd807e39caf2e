// SPDX-License-Identifier: Apache-2.0
//
// CARILLON_REPRODUCIBLE=1: every sum, in every form, has the bits of the sum from left to right, in
// the order of the ranks. The numbers are such that any other order rounds differently somewhere;
// with MPI_TEST_OTHER_BITS that is what is checked. Without the setting, too, all ranks have the
// same bits, and have them each time.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "support.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

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

enum class Form { kBlocking, kStarted, kPersistent };

// The three forms of one call. A macro, because they are three functions.
#define CALL(name, started, ...)                                                              \
  [&](Form form, double* out, MPI_Request* request) {                                         \
    switch (form) {                                                                           \
      case Form::kBlocking: MPI_##name(__VA_ARGS__, MPI_COMM_WORLD); return;                  \
      case Form::kStarted: MPI_##started(__VA_ARGS__, MPI_COMM_WORLD, request); return;       \
      default: PERSISTENT(name)(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, request); return; \
    }                                                                                         \
  }

// The call in every form. `before`: what its output holds. `expected`, from `first` on; null:
// nothing comes out here.
template <typename Call>
void try_call(const std::string& what, const Doubles& before, const Doubles* expected,
              std::size_t first, Call call) {
  Doubles out = before;
  const auto look = [&](const char* form) {
    if (expected != nullptr) compare(form + what, out, *expected, first);
    std::copy(before.begin(), before.end(), out.begin());  // a persistent call knows where it is
  };
  MPI_Request request = MPI_REQUEST_NULL;
  call(Form::kBlocking, out.data(), &request);
  look("");
  call(Form::kStarted, out.data(), &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  look("started ");
  call(Form::kPersistent, out.data(), &request);
  for (int turn = 0; turn < 2; ++turn) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    look("persistent ");
  }
  MPI_Request_free(&request);
}

// `length`: of one block.
void try_length(std::size_t length, MPI_Op op, const std::string& name) {
  const int rank = world_rank(), size = world_size();
  const auto ranks = static_cast<std::size_t>(size), mine = static_cast<std::size_t>(rank);
  const int n = static_cast<int>(length);
  const Doubles in = numbers(rank, length), all_in = numbers(rank, ranks * length);
  const Doubles sums = left_fold(size, length), all_sums = left_fold(size, ranks * length);
  const Doubles up_to_here = left_fold(rank + 1, length);
  const Doubles before_here = left_fold(std::max(rank, 1), length);
  const Doubles none(length);
  const std::string of = " of " + std::to_string(length) + ", " + name;
  const double* const from = in.data();
  const double* const all = all_in.data();
  try_call("allreduce" + of, none, &sums, 0,
           CALL(Allreduce, Iallreduce, from, out, n, MPI_DOUBLE, op));
  try_call("allreduce in place" + of, in, &sums, 0,
           CALL(Allreduce, Iallreduce, MPI_IN_PLACE, out, n, MPI_DOUBLE, op));
  for (int root = 0; root < size; ++root) {
    try_call("reduce" + of, none, rank == root ? &sums : nullptr, 0,
             CALL(Reduce, Ireduce, from, out, n, MPI_DOUBLE, op, root));
  }
  try_call("scan" + of, none, &up_to_here, 0, CALL(Scan, Iscan, from, out, n, MPI_DOUBLE, op));
  try_call("exscan" + of, none, rank > 0 ? &before_here : nullptr, 0,
           CALL(Exscan, Iexscan, from, out, n, MPI_DOUBLE, op));
  try_call("reduce_scatter_block" + of, none, &all_sums, mine * length,
           CALL(Reduce_scatter_block, Ireduce_scatter_block, all, out, n, MPI_DOUBLE, op));
  std::vector<int> counts(ranks, n);
  counts[0] = size == 1 ? n : n / 2;
  const Doubles own(static_cast<std::size_t>(counts[mine]));
  try_call("reduce_scatter" + of, own, &all_sums,
           mine == 0 ? 0 : static_cast<std::size_t>(counts[0]) + (mine - 1) * length,
           CALL(Reduce_scatter, Ireduce_scatter, all, out, counts.data(), MPI_DOUBLE, op));
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
  for (const std::string one :
       {"allreduce", "reduce", "scan", "exscan", "reduce_scatter_block", "reduce_scatter"}) {
    for (const std::string& form : {one, "i" + one, one + "_init"}) {
      check(left(form.c_str()) == 0 && taken(form.c_str()) > 0, "carillon must take " + form);
    }
  }
  if (std::getenv("MPI_TEST_OTHER_BITS") != nullptr) {
    check(g_other_bits > 0, "another order has no other bits: the numbers are too alike");
  }
  MPI_Op_free(&user);
  return end();
}
