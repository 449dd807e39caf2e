// SPDX-License-Identifier: Apache-2.0
//
// The collectives whose blocks differ in length, the prefixes and the reduction to a root: random
// calls, each made by carillon and by the MPI, whose memory must then be the same, gaps included.
// Lengths may be zero or beyond a slot, blocks lie anywhere, ranks describe the same data by
// different types, in place wherever MPI allows it, every root, operators that do not commute.
//
//   uneven_test [ROUNDS, of nine calls each]
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

#include "blocks.h"
#include "support.h"

namespace mpi_test {
namespace {

struct Round {
  int number = 0, root = 0;
  bool in_place = false;
  std::vector<int> lengths;  // of each rank's block, equal on all ranks

  explicit Round(int n)
      : number(n), root(draw(g_shared, world_size())), in_place(draw(g_shared, 3) == 0) {
    const int scale = n % 12 == 11 ? 9000 : 1;
    for (int i = 0; i < world_size(); ++i) {
      lengths.push_back(std::max(draw(g_shared, 6) - 1, 0) * scale);
    }
  }
  [[nodiscard]] int own() const { return lengths[static_cast<std::size_t>(world_rank())]; }
  [[nodiscard]] bool at_root() const { return root == world_rank(); }
};

// Makes the call both ways, on the same memory.
void compare(const char* name, const Round& round, MustTake& must, const std::vector<int>& memory,
             const std::function<void(bool ours, int* out)>& call) {
  std::vector<int> ours = memory, theirs = memory;
  call(true, ours.data());
  must.expect();
  call(false, theirs.data());
  check(ours == theirs, std::string(name) + ", round " + std::to_string(round.number) + " root " +
                            std::to_string(round.root) + (round.in_place ? " in place" : "") +
                            ": differs from the MPI's");
}

// The MPI's answer is that of its gatherv to each rank in turn: MPICH 4.0's own allgatherv ignores
// the displacement on one rank, and fails if ranks receive by types of different extents.
void allgatherv(const Types& types, const Round& round, MustTake& must) {
  const Side in({round.own()}, any(types), 1), out(round.lengths, any(types), 2);
  const auto self = static_cast<std::size_t>(world_rank());
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(out.type, &lower_bound, &extent);
  const std::vector<int> before = out.memory;
  const void* const own = reinterpret_cast<const char*>(before.data()) + out.offsets[self] * extent;
  const void* const given = round.in_place ? own : in.memory.data();
  const MPI_Datatype type = round.in_place ? out.type : in.type;
  compare("allgatherv", round, must, out.memory, [&](bool ours, int* memory) {
    if (ours) {
      MPI_Allgatherv(round.in_place ? MPI_IN_PLACE : given, in.counts[0], in.type, memory,
                     out.counts.data(), out.offsets.data(), out.type, MPI_COMM_WORLD);
      return;
    }
    for (int root = 0; root < world_size(); ++root) {
      PMPI_Gatherv(given, round.own(), type, memory, out.counts.data(), out.offsets.data(),
                   out.type, root, MPI_COMM_WORLD);
    }
  });
}

void gatherv(const Types& types, const Round& round, MustTake& must) {
  const Side in({round.own()}, any(types), 1), out(round.lengths, any(types), 2);
  const bool in_place = round.in_place && round.at_root();
  const void* const input = in_place ? MPI_IN_PLACE : in.memory.data();
  const int* const counts = round.at_root() ? out.counts.data() : nullptr;
  compare("gatherv", round, must, out.memory, [&](bool ours, int* memory) {
    (ours ? MPI_Gatherv : PMPI_Gatherv)(input, in.counts[0], in.type, memory, counts,
                                        out.offsets.data(), out.type, round.root, MPI_COMM_WORLD);
  });
}

void scatterv(const Types& types, const Round& round, MustTake& must) {
  const Side in(round.lengths, any(types), 1), out({round.own()}, any(types), 2);
  const bool in_place = round.in_place && round.at_root();
  const int* const counts = round.at_root() ? in.counts.data() : nullptr;
  compare("scatterv", round, must, out.memory, [&](bool ours, int* memory) {
    (ours ? MPI_Scatterv : PMPI_Scatterv)(in.memory.data(), counts, in.offsets.data(), in.type,
                                          in_place ? MPI_IN_PLACE : memory, out.counts[0], out.type,
                                          round.root, MPI_COMM_WORLD);
  });
}

// Of the blocks to and from each rank; in place every rank gives what it gets.
struct Exchanged {
  std::vector<int> sent, received;

  explicit Exchanged(const Round& round) {
    const int size = world_size(), rank = world_rank();
    const auto length = [&](int from, int to) {
      const int both = round.in_place ? from + to : 2 * from + to;
      return round.lengths[static_cast<std::size_t>(both % size)];
    };
    for (int i = 0; i < size; ++i) {
      sent.push_back(length(rank, i));
      received.push_back(length(i, rank));
    }
  }
};

void alltoallv(const Types& types, const Round& round, MustTake& must) {
  const Exchanged lengths(round);
  const Side in(lengths.sent, any(types), 1), out(lengths.received, any(types), 2);
  compare("alltoallv", round, must, out.memory, [&](bool ours, int* memory) {
    (ours ? MPI_Alltoallv : PMPI_Alltoallv)(
        round.in_place ? MPI_IN_PLACE : in.memory.data(), in.counts.data(), in.offsets.data(),
        in.type, memory, out.counts.data(), out.offsets.data(), out.type, MPI_COMM_WORLD);
  });
}

// Types and displacements in bytes per block.
void alltoallw(const Types& types, const Round& round, MustTake& must) {
  const Exchanged lengths(round);
  Side in(lengths.sent, types[0], 1), out(lengths.received, types[0], 2);
  Types in_types, out_types;
  for (Side* side : {&in, &out}) {
    for (int& offset : side->offsets) {
      (side == &in ? in_types : out_types).push_back(any(types));
      // On one rank Open MPI 4.1 takes them for multiples of the extent.
      offset *= world_size() == 1 ? 0 : kElementInts * static_cast<int>(sizeof(int));
    }
  }
  compare("alltoallw", round, must, out.memory, [&](bool ours, int* memory) {
    (ours ? MPI_Alltoallw : PMPI_Alltoallw)(round.in_place ? MPI_IN_PLACE : in.memory.data(),
                                            in.counts.data(), in.offsets.data(), in_types.data(),
                                            memory, out.counts.data(), out.offsets.data(),
                                            out_types.data(), MPI_COMM_WORLD);
  });
}

// ---- Reductions --------------------------------------------------------------------------------

// x -> a*x + b, composed: associative, not commutative; `stride` ints hold one.
template <int kStride, int kSecond>
void compose(void* left, void* right, int* count, MPI_Datatype* /*type*/) {
  auto* in = static_cast<std::uint32_t*>(left);
  auto* inout = static_cast<std::uint32_t*>(right);
  for (int i = 0; i < *count; ++i, in += kStride, inout += kStride) {
    inout[kSecond] = in[0] * inout[kSecond] + in[kSecond];
    inout[0] *= in[0];
  }
}

// The same of elements in any of make_types' ways: where one's two ints are says its extent, which
// all of them have another.
void compose_any(void* left, void* right, int* count, MPI_Datatype* type) {
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(*type, &lower_bound, &extent);
  const auto stride = static_cast<std::size_t>(extent) / sizeof(int);
  const std::size_t first = lower_bound != 0 ? 1 : stride == 3 ? 2 : 0;
  const std::size_t second = lower_bound != 0 ? 2 : stride == 3 ? 0 : stride / 2;
  auto* in = static_cast<std::uint32_t*>(left);
  auto* inout = static_cast<std::uint32_t*>(right);
  for (int i = 0; i < *count; ++i, in += stride, inout += stride) {
    inout[second] = in[first] * inout[second] + in[second];
    inout[first] *= in[first];
  }
}

struct Operator {
  MPI_Op op{};
  MPI_Datatype type{};
};

// A plain sum, and compositions of plain and of spread elements.
std::vector<Operator> make_operators(const Types& types) {
  std::vector<Operator> operators{{MPI_SUM, MPI_INT}, {{}, types[0]}, {{}, types[1]}};
  MPI_Op_create(compose<2, 1>, 0, &operators[1].op);
  MPI_Op_create(compose<4, 2>, 0, &operators[2].op);
  return operators;
}

using Prefix = int (*)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

void prefix(const char* name, Prefix ours_call, Prefix theirs_call, const Operator& what,
            const Round& round, MustTake& must, bool has_first) {
  const int count = round.lengths[0];
  const Side in({count}, what.type, 1), out({count}, what.type, 2);
  std::vector<int> ours = out.memory, theirs = out.memory;
  const auto call = [&](Prefix function, std::vector<int>& memory) {
    function(round.in_place ? MPI_IN_PLACE : in.memory.data(), memory.data(), count, what.type,
             what.op, MPI_COMM_WORLD);
  };
  call(ours_call, ours);
  must.expect();
  call(theirs_call, theirs);
  if (!has_first && world_rank() == 0) return;  // undefined
  check(ours == theirs, std::string(name) + ", round " + std::to_string(round.number) +
                            (round.in_place ? " in place" : "") + ": differs from the MPI's");
}

// Elements, one after the other.
std::vector<char> packed(const void* from, int count, MPI_Datatype type) {
  int bytes = 0, at = 0;
  MPI_Type_size(type, &bytes);
  std::vector<char> elements(static_cast<std::size_t>(bytes) * static_cast<std::size_t>(count) + 1);
  PMPI_Pack(from, count, type, elements.data(), static_cast<int>(elements.size()), &at,
            MPI_COMM_SELF);
  return elements;
}

void unpack(const std::vector<char>& elements, void* to, int count, MPI_Datatype type) {
  int at = 0;
  PMPI_Unpack(elements.data(), static_cast<int>(elements.size()), &at, to, count, type,
              MPI_COMM_SELF);
}

// The MPI's answer is a part of its allreduce: MPICH 4.0's own reduce_scatter writes beyond its
// memory where an operator does not commute and elements have gaps.
void reduce_scatter(const Operator& what, const Round& round, MustTake& must) {
  const int total = std::accumulate(round.lengths.begin(), round.lengths.end(), 0);
  const int before =
      std::accumulate(round.lengths.begin(), round.lengths.begin() + world_rank(), 0);
  const Side in({total}, what.type, 1), out({round.in_place ? total : round.own()}, what.type, 2);
  std::vector<int> ours = out.memory, theirs = out.memory, all = out.memory;
  all.resize(std::max(in.memory.size(), out.memory.size()));
  MPI_Reduce_scatter(round.in_place ? MPI_IN_PLACE : in.memory.data(), ours.data(),
                     round.lengths.data(), what.type, what.op, MPI_COMM_WORLD);
  must.expect();
  PMPI_Allreduce(round.in_place ? MPI_IN_PLACE : in.memory.data(), all.data(), total, what.type,
                 what.op, MPI_COMM_WORLD);
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(what.type, &lower_bound, &extent);
  const char* const own = reinterpret_cast<const char*>(all.data()) + before * extent;
  unpack(packed(own, round.own(), what.type), theirs.data(), round.own(), what.type);
  // In place only the block is the result: of the rest MPI says nothing.
  const auto block = static_cast<std::size_t>(extent) * static_cast<std::size_t>(round.own());
  const std::size_t compared = round.in_place ? block : ours.size() * sizeof(int);
  check(std::memcmp(ours.data(), theirs.data(), compared) == 0,
        "reduce_scatter, round " + std::to_string(round.number) +
            (round.in_place ? " in place" : "") + ": differs from the MPI's");
}

// Each rank has a type of its own, of one signature, which is more than MPI asks for; so the MPI's
// answer is that of its reduction of packed elements.
void reduce(const Types& types, MPI_Op op, const Round& round, MustTake& must) {
  const int count = round.lengths[0];
  const bool in_place = round.in_place && round.at_root();
  const MPI_Datatype type = any(types);
  const Side in({count}, type, 1), out({count}, type, 2);
  const int* const given = in_place ? out.memory.data() : in.memory.data();
  compare("reduce", round, must, out.memory, [&](bool ours, int* memory) {
    if (ours) {
      MPI_Reduce(in_place ? MPI_IN_PLACE : given, memory, count, type, op, round.root,
                 MPI_COMM_WORLD);
      return;
    }
    const std::vector<char> elements = packed(given, count, type);
    std::vector<char> reduced(elements.size());
    PMPI_Reduce(elements.data(), reduced.data(), count, types[0], op, round.root, MPI_COMM_WORLD);
    if (round.at_root()) unpack(reduced, memory, count, type);
  });
}

void test_random(int rounds) {
  Types types = make_types();
  std::vector<Operator> operators = make_operators(types);
  MPI_Op compose_typed{};
  MPI_Op_create(compose_any, 0, &compose_typed);
  MustTake gathered("allgatherv"), to_root("gatherv"), from_root("scatterv"), listed("alltoallv"),
      typed("alltoallw"), scanned("scan"), before("exscan"), scattered("reduce_scatter"),
      reduced("reduce");
  for (int i = 0; i < rounds; ++i) {
    const Round round(i);
    allgatherv(types, round, gathered);
    gatherv(types, round, to_root);
    scatterv(types, round, from_root);
    alltoallv(types, round, listed);
    alltoallw(types, round, typed);
    const Operator& what = operators[static_cast<std::size_t>(i) % operators.size()];
    prefix("scan", MPI_Scan, PMPI_Scan, what, round, scanned, true);
    prefix("exscan", MPI_Exscan, PMPI_Exscan, what, round, before, false);
    reduce_scatter(what, round, scattered);
    reduce(types, compose_typed, round, reduced);
  }
  MPI_Op_free(&compose_typed);
  for (std::size_t i = 1; i < operators.size(); ++i) MPI_Op_free(&operators[i].op);
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
}

// Absolute addresses in the displacements.
void test_bottom() {
  const int size = world_size(), rank = world_rank();
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<int> in(ranks), out(ranks, -1), expected;
  for (int i = 0; i < size; ++i) {
    in[static_cast<std::size_t>(i)] = rank * 100 + i;
    expected.push_back(i * 100 + rank);
  }
  MPI_Aint from = 0, to = 0;
  MPI_Get_address(in.data(), &from);
  MPI_Get_address(out.data(), &to);
  const int one = 1;
  MPI_Datatype here{}, there{};
  MPI_Type_create_hindexed(1, &one, &from, MPI_INT, &here);
  MPI_Type_create_hindexed(1, &one, &to, MPI_INT, &there);
  MPI_Type_commit(&here);
  MPI_Type_commit(&there);
  std::vector<int> counts(ranks, 1), offsets;
  for (int i = 0; i < size; ++i) offsets.push_back(i * static_cast<int>(sizeof(int)));
  const Types in_types(ranks, here), out_types(ranks, there);
  {
    MustTake must("alltoallw");
    MPI_Alltoallw(MPI_BOTTOM, counts.data(), offsets.data(), in_types.data(), MPI_BOTTOM,
                  counts.data(), offsets.data(), out_types.data(), MPI_COMM_WORLD);
    must.expect();
  }
  check(out == expected, "alltoallw from and to MPI_BOTTOM");
  MPI_Type_free(&here);
  MPI_Type_free(&there);
}

#ifndef OPEN_MPI  // which wants a type for every block
// Around a ring: what has no elements has no type, on all ranks but the first.
void test_no_types() {
  const auto ranks = static_cast<std::size_t>(world_size());
  const int rank = world_rank(), size = world_size();
  const auto next = static_cast<std::size_t>((rank + 1) % size);
  const auto before = static_cast<std::size_t>((rank + size - 1) % size);
  const Types types(ranks, rank == 0 ? MPI_INT : MPI_DATATYPE_NULL);
  Types in_types = types, out_types = types;
  in_types[next] = out_types[before] = MPI_INT;
  std::vector<int> in_counts(ranks), out_counts(ranks);
  in_counts[next] = out_counts[before] = 1;
  const std::vector<int> offsets(ranks, 0);
  const int mine = 1000 + rank;
  MustTake blocking("alltoallw"), started("ialltoallw");
  int got = -1;
  MPI_Alltoallw(&mine, in_counts.data(), offsets.data(), in_types.data(), &got, out_counts.data(),
                offsets.data(), out_types.data(), MPI_COMM_WORLD);
  blocking.expect();
  check(got == 1000 + static_cast<int>(before), "alltoallw without types for no elements");
  MPI_Request request = MPI_REQUEST_NULL;
  got = -1;
  MPI_Ialltoallw(&mine, in_counts.data(), offsets.data(), in_types.data(), &got, out_counts.data(),
                 offsets.data(), out_types.data(), MPI_COMM_WORLD, &request);
  started.expect();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(got == 1000 + static_cast<int>(before), "ialltoallw without types for no elements");
}
#endif

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  mpi_test::g_own.seed(static_cast<unsigned>(mpi_test::world_rank()) + 5);
  mpi_test::test_random(argc > 1 ? std::atoi(argv[1]) : 60);
  mpi_test::test_bottom();
#ifndef OPEN_MPI
  mpi_test::test_no_types();
#endif
  return mpi_test::end();
}
