// SPDX-License-Identifier: Apache-2.0
//
// The same call again, and what only looks like it: other contents and addresses, one buffer after
// two, another root, and types, operators and communicators that have gone and come back under the
// same handles. After each that, wrong arguments are wrong.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "support.h"

namespace mpi_test {
namespace {

using Ints = std::vector<int>;

int size() { return world_size(); }
int rank() { return world_rank(); }
int value(int of_rank, int round, int index) { return of_rank * 1000 + round * 37 + index; }

Ints values(int of_rank, int round, int count) {
  Ints all(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) all[static_cast<std::size_t>(i)] = value(of_rank, round, i);
  return all;
}

int sum_of(int round, int index) {
  int sum = 0;
  for (int r = 0; r < size(); ++r) sum += value(r, round, index);
  return sum;
}

// Round by round in one pair of buffers, in others, and in one buffer.
void test_reductions() {
  constexpr int kCount = 3;
  MustTake taken("allreduce");
  Ints in(kCount), out(kCount);
  for (int round = 0; round < 30; ++round) {
    Ints other_in(kCount), other_out(kCount);
    Ints& from = round % 5 == 3 ? other_in : in;
    Ints& to = round % 7 == 3 ? other_out : out;
    const bool in_place = round % 3 == 2;
    (in_place ? to : from) = values(rank(), round, kCount);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : from.data(), to.data(), kCount, MPI_INT, MPI_SUM,
                  MPI_COMM_WORLD);
    taken.expect();
    for (int i = 0; i < kCount; ++i) {
      check(to[static_cast<std::size_t>(i)] == sum_of(round, i),
            "allreduce, round " + std::to_string(round));
    }
  }
#if defined(OPEN_MPI)  // which lets that pass
  for (int round = 0; round < 4; ++round) {
    Ints one = values(rank(), round, kCount), two(kCount);
    int* const to = round % 2 == 0 ? two.data() : one.data();
    MPI_Allreduce(one.data(), to, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    taken.expect();
    check(to[1] == sum_of(round, 1), "allreduce of one buffer, round " + std::to_string(round));
  }
#endif
}

void test_roots() {
  MustTake bcasts("bcast"), reduces("reduce");
  Ints buffer(2), out(2);
  for (int round = 0; round < 40; ++round) {
    const int root = round / 3 % size();
    buffer = rank() == root ? values(root, round, 2) : Ints(2, -1);
    MPI_Bcast(buffer.data(), 2, MPI_INT, root, MPI_COMM_WORLD);
    bcasts.expect();
    check(buffer == values(root, round, 2), "bcast, round " + std::to_string(round));
    buffer = values(rank(), round, 2);
    out.assign(2, -1);
    const bool in_place = rank() == root && round % 2 == 1;
    if (in_place) out = buffer;
    MPI_Reduce(in_place ? MPI_IN_PLACE : buffer.data(), out.data(), 2, MPI_INT, MPI_SUM, root,
               MPI_COMM_WORLD);
    reduces.expect();
    check(out[1] == (rank() == root ? sum_of(round, 1) : -1),
          "reduce, round " + std::to_string(round));
  }
}

// Blocks in one buffer and in two, by turns on each rank for itself.
void test_gathers() {
  MustTake gathers("allgather"), exchanges("alltoall"), scatters("scatter");
  Ints in(1), out(static_cast<std::size_t>(size())), blocks(static_cast<std::size_t>(size()));
  const auto me = static_cast<std::size_t>(rank());
  for (int round = 0; round < 24; ++round) {
    const bool in_place = (round + rank()) % 3 == 1;
    in[0] = value(rank(), round, 0);
    out.assign(out.size(), -1);
    if (in_place) out[me] = in[0];
    MPI_Allgather(in_place ? MPI_IN_PLACE : in.data(), 1, MPI_INT, out.data(), 1, MPI_INT,
                  MPI_COMM_WORLD);
    gathers.expect();
    for (int r = 0; r < size(); ++r) {
      check(out[static_cast<std::size_t>(r)] == value(r, round, 0),
            "allgather, round " + std::to_string(round));
      blocks[static_cast<std::size_t>(r)] = value(rank(), round, r);
    }
    MPI_Alltoall(blocks.data(), 1, MPI_INT, out.data(), 1, MPI_INT, MPI_COMM_WORLD);
    exchanges.expect();
    for (int r = 0; r < size(); ++r) {
      check(out[static_cast<std::size_t>(r)] == value(r, round, rank()),
            "alltoall, round " + std::to_string(round));
    }
    const bool stays = rank() == 0 && round % 2 == 1;
    in[0] = -1;
    MPI_Scatter(blocks.data(), 1, MPI_INT, stays ? MPI_IN_PLACE : in.data(), 1, MPI_INT, 0,
                MPI_COMM_WORLD);
    scatters.expect();
    check(stays || in[0] == value(0, round, rank()), "scatter, round " + std::to_string(round));
  }
}

void test_types() {
  MustTake bcasts("bcast");
  for (int round = 0; round < 20; ++round) {
    const int ints = 1 + round % 3;  // of an element
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(ints, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int again = 0; again < 2; ++again) {
      Ints buffer = rank() == 0 ? values(0, round + again, 8) : Ints(8, -1);
      MPI_Bcast(buffer.data(), 2, type, 0, MPI_COMM_WORLD);
      bcasts.expect();
      for (int i = 0; i < 8; ++i) {
        const int sent = i < 2 * ints || rank() == 0 ? value(0, round + again, i) : -1;
        check(buffer[static_cast<std::size_t>(i)] == sent, "type of " + std::to_string(ints));
      }
    }
    MPI_Type_free(&type);
  }
}

void add(void* in, void* out, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(out)[i] += static_cast<int*>(in)[i];
}
void take_larger(void* in, void* out, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    int& to = static_cast<int*>(out)[i];
    to = std::max(to, static_cast<int*>(in)[i]);
  }
}

void test_operators() {
  MustTake taken("allreduce");
  for (int round = 0; round < 20; ++round) {
    const bool adds = round % 2 == 0;
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(adds ? add : take_larger, 1, &op);
    for (int again = 0; again < 2; ++again) {
      const int in = value(rank(), round, again);
      int out = -1;
      MPI_Allreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD);
      taken.expect();
      check(out == (adds ? sum_of(round, again) : value(size() - 1, round, again)),
            "operator, round " + std::to_string(round));
    }
    MPI_Op_free(&op);
    const int in = value(rank(), round, 0);
    int out = -1;
    MPI_Allreduce(&in, &out, 1, MPI_INT, adds ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
    taken.expect();
    check(out == (adds ? sum_of(round, 0) : value(size() - 1, round, 0)),
          "operator of MPI's, round " + std::to_string(round));
  }
}

void test_communicators() {
  MustTake taken("allreduce");
  for (int round = 0; round < 12; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    const int parts = 1 + round % 2;
    MPI_Comm_split(MPI_COMM_WORLD, rank() % parts, 0, &comm);
    for (int again = 0; again < 3; ++again) {
      const int in = value(rank(), round, again);
      int out = -1, expected = 0;
      for (int r = rank() % parts; r < size(); r += parts) expected += value(r, round, again);
      MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm);
      taken.expect();
      check(out == expected, "communicator, round " + std::to_string(round));
    }
    MPI_Comm_free(&comm);
  }
}

int class_of(int code) {
  int of = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &of);
  return of;
}

// Of all ranks, so that nobody waits.
void test_wrong_arguments() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Ints buffer = values(0, 0, 4), out(4);
  MPI_Bcast(buffer.data(), 4, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Allreduce(buffer.data(), out.data(), 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(class_of(MPI_Bcast(buffer.data(), 4, MPI_INT, size(), MPI_COMM_WORLD)) == MPI_ERR_ROOT,
        "root beyond the ranks");
  check(class_of(MPI_Bcast(buffer.data(), -1, MPI_INT, 0, MPI_COMM_WORLD)) == MPI_ERR_COUNT,
        "negative count");
#if defined(OPEN_MPI)  // some MPICHs do not look at these, and crash
  check(class_of(MPI_Allreduce(buffer.data(), out.data(), -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD)) ==
            MPI_ERR_COUNT,
        "negative count of a reduction");
  check(MPI_Allreduce(buffer.data(), MPI_IN_PLACE, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD) !=
            MPI_SUCCESS,
        "MPI_IN_PLACE as output");
#endif
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  buffer = rank() == 0 ? values(0, 1, 4) : Ints(4, -1);
  MPI_Bcast(buffer.data(), 4, MPI_INT, 0, MPI_COMM_WORLD);
  check(buffer == values(0, 1, 4), "after wrong calls");
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  test_reductions();
  test_roots();
  test_gathers();
  test_types();
  test_operators();
  test_communicators();
  test_wrong_arguments();
  return end();
}
