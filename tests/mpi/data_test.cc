// SPDX-License-Identifier: Apache-2.0
//
// The collectives that move data: every root, every way to describe a block, different ways on
// different ranks, in place, zero counts, long blocks. Each byte received is checked, and that the
// gaps of the types stay as they were.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <initializer_list>

#include "support.h"

namespace mpi_test {
namespace {

struct Job {
  MPI_Comm comm = MPI_COMM_WORLD;
  int rank = 0, size = 1;
  const Signature* signature = nullptr;
  std::size_t variant = 0;
  bool mixed = false;  // ranks describe the same block differently

  // What this rank uses on the sending and on the receiving side.
  [[nodiscard]] const Shape& send() const { return pick(mixed ? 2 * rank : 0); }
  [[nodiscard]] const Shape& receive() const { return pick(mixed ? 3 * rank + 1 : 0); }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(packed_bytes(signature->shapes[0]));
  }
  [[nodiscard]] std::string name(const char* collective) const {
    return std::string(collective) + " of " + signature->name + " as " + send().name + " / " +
           receive().name;
  }

 private:
  [[nodiscard]] const Shape& pick(int shift) const {
    const std::vector<Shape>& shapes = signature->shapes;
    return shapes[(variant + static_cast<std::size_t>(shift)) % shapes.size()];
  }
};

void bcast(const Job& job, MustTake& must) {
  for (int root = 0; root < job.size; ++root) {
    const Bytes block = pattern_block(root, 0, job.bytes());
    TypedBuffer buffer(job.send(), 1), expected(job.send(), 1);
    if (job.rank == root) buffer.put(0, block);
    expected.put(0, block);
    MPI_Bcast(buffer.address(), job.send().count, job.send().type, root, job.comm);
    must.expect();
    check(buffer.raw() == expected.raw(), job.name("bcast") + " from " + std::to_string(root));
  }
}

void allgather(const Job& job, MustTake& must) {
  for (const bool in_place : {false, true}) {
    TypedBuffer in(job.send(), 1), out(job.receive(), job.size), expected(job.receive(), job.size);
    in.put(0, pattern_block(job.rank, 0, job.bytes()));
    const Bytes sent = in.raw();
    if (in_place) out.put(job.rank, pattern_block(job.rank, 0, job.bytes()));
    for (int i = 0; i < job.size; ++i) expected.put(i, pattern_block(i, 0, job.bytes()));
    MPI_Allgather(in_place ? MPI_IN_PLACE : in.address(), job.send().count, job.send().type,
                  out.address(), job.receive().count, job.receive().type, job.comm);
    must.expect();
    check(out.raw() == expected.raw(), job.name("allgather") + (in_place ? " in place" : ""));
    check(in.raw() == sent, job.name("allgather") + " changed its input");
  }
}

void gather(const Job& job, MustTake& must) {
  for (int root = 0; root < job.size; ++root) {
    for (const bool in_place : {false, true}) {
      TypedBuffer in(job.send(), 1), out(job.receive(), job.size),
          expected(job.receive(), job.size);
      const bool here = job.rank == root;
      in.put(0, pattern_block(job.rank, root, job.bytes()));
      if (in_place && here) out.put(root, pattern_block(root, root, job.bytes()));
      for (int i = 0; i < job.size && here; ++i) {
        expected.put(i, pattern_block(i, root, job.bytes()));
      }
      MPI_Gather(in_place && here ? MPI_IN_PLACE : in.address(), job.send().count, job.send().type,
                 here ? out.address() : nullptr,
                 here ? job.receive().count : -1,  // only the root's count
                 here ? job.receive().type : MPI_DATATYPE_NULL, root, job.comm);
      must.expect();
      check(out.raw() == expected.raw(),
            job.name("gather") + " to " + std::to_string(root) + (in_place ? " in place" : ""));
    }
  }
}

void scatter(const Job& job, MustTake& must) {
  for (int root = 0; root < job.size; ++root) {
    for (const bool in_place : {false, true}) {
      TypedBuffer in(job.send(), job.size), out(job.receive(), 1), expected(job.receive(), 1);
      const bool here = job.rank == root;
      for (int i = 0; i < job.size; ++i) in.put(i, pattern_block(root, i, job.bytes()));
      const Bytes sent = in.raw();
      if (!(in_place && here)) expected.put(0, pattern_block(root, job.rank, job.bytes()));
      MPI_Scatter(here ? in.address() : nullptr, here ? job.send().count : -1,
                  here ? job.send().type : MPI_DATATYPE_NULL,
                  in_place && here ? MPI_IN_PLACE : out.address(), job.receive().count,
                  job.receive().type, root, job.comm);
      must.expect();
      check(out.raw() == expected.raw(),
            job.name("scatter") + " from " + std::to_string(root) + (in_place ? " in place" : ""));
      check(in.raw() == sent, job.name("scatter") + " changed its input");
    }
  }
}

void alltoall(const Job& job, MustTake& must) {
  for (const bool in_place : {false, true}) {
    TypedBuffer in(job.send(), job.size), out(job.receive(), job.size),
        expected(job.receive(), job.size);
    for (int i = 0; i < job.size; ++i) {
      (in_place ? out : in).put(i, pattern_block(job.rank, i, job.bytes()));
      expected.put(i, pattern_block(i, job.rank, job.bytes()));
    }
    MPI_Alltoall(in_place ? MPI_IN_PLACE : in.address(), job.send().count, job.send().type,
                 out.address(), job.receive().count, job.receive().type, job.comm);
    must.expect();
    check(out.raw() == expected.raw(), job.name("alltoall") + (in_place ? " in place" : ""));
  }
}

// How many elements of a block go from one rank to another. Ranks that describe blocks differently
// count in different units, so there it is all or nothing.
int elements(const Job& job, int source, int peer) {
  const int count = job.receive().count, number = source * 5 + peer * 3;
  return job.mixed ? number % 3 / 2 * count : number % (count + 1);
}

void alltoallv(const Job& job, MustTake& must) {
  const auto size = static_cast<std::size_t>(job.size);
  const int count = job.receive().count;
  TypedBuffer in(job.receive(), 2 * job.size), out(job.receive(), 2 * job.size),
      expected(job.receive(), 2 * job.size);
  const std::size_t element = count == 0 ? 0 : job.bytes() / static_cast<std::size_t>(count);
  std::vector<int> in_counts(size), in_offsets(size), out_counts(size), out_offsets(size);
  for (int i = 0; i < job.size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    in_counts[at] = elements(job, job.rank, i);
    in_offsets[at] = 2 * i * count;  // with holes
    out_counts[at] = elements(job, i, job.rank);
    out_offsets[at] = (2 * (job.size - 1 - i) + 1) * count;  // and backwards
    in.put(2 * i, pattern_block(job.rank, i, job.bytes()));
    Bytes block = expected.get(2 * (job.size - 1 - i) + 1);
    const Bytes received = pattern_block(i, job.rank, job.bytes());
    std::copy_n(received.begin(), element * static_cast<std::size_t>(out_counts[at]),
                block.begin());
    expected.put(2 * (job.size - 1 - i) + 1, block);
  }
  MPI_Alltoallv(in.address(), in_counts.data(), in_offsets.data(), job.receive().type,
                out.address(), out_counts.data(), out_offsets.data(), job.receive().type, job.comm);
  must.expect();
  check(out.raw() == expected.raw(), job.name("alltoallv"));
}

void alltoallv_in_place(const Job& job, MustTake& must) {
  const auto size = static_cast<std::size_t>(job.size);
  const int count = job.receive().count;
  TypedBuffer out(job.receive(), job.size), expected(job.receive(), job.size);
  std::vector<int> counts(size, count), offsets(size);
  for (int i = 0; i < job.size; ++i) {
    offsets[static_cast<std::size_t>(i)] = i * count;
    out.put(i, pattern_block(job.rank, i, job.bytes()));
    expected.put(i, pattern_block(i, job.rank, job.bytes()));
  }
  MPI_Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, out.address(), counts.data(),
                offsets.data(), job.receive().type, job.comm);
  must.expect();
  check(out.raw() == expected.raw(), job.name("alltoallv") + " in place");
}

struct Collective {
  const char* name;
  void (*test)(const Job&, MustTake&);
};

constexpr Collective kCollectives[] = {{"bcast", bcast},
                                       {"allgather", allgather},
                                       {"gather", gather},
                                       {"scatter", scatter},
                                       {"alltoall", alltoall},
                                       {"alltoallv", alltoallv},
                                       {"alltoallv", alltoallv_in_place}};

void test_signatures() {
  std::vector<Signature> signatures = make_signatures();
  Job job{.rank = world_rank(), .size = world_size()};
  for (const Collective& collective : kCollectives) {
    MustTake must(collective.name);
    for (const Signature& signature : signatures) {
      job.signature = &signature;
      for (std::size_t variant = 0; variant < signature.shapes.size(); ++variant) {
        job.variant = variant;
        for (const bool mixed : {false, true}) {
          job.mixed = mixed;
          collective.test(job, must);
        }
      }
    }
  }
  free_signatures(signatures);
}

// Plain blocks of awkward sizes, from nothing over slots and segments to beyond the L2 cache.
void test_sizes() {
  Job job{.rank = world_rank(), .size = world_size()};
  for (const int bytes : {1, 7, 63, 64, 65, 1000, 4096, 65535, 65536, 65537, 300007, 2500001}) {
    if (bytes > 1000000 && world_size() > 4) continue;
    const Signature signature{"bytes", {{std::to_string(bytes), MPI_BYTE, bytes}}};
    job.signature = &signature;
    for (const Collective& collective : kCollectives) {
      MustTake must(collective.name);
      collective.test(job, must);
    }
  }
}

// Absolute addresses, and bytes counted beyond an int.
void test_bottom() {
  std::vector<int> values(10, -1);
  MPI_Aint address = 0;
  MPI_Get_address(values.data(), &address);
  const int lengths[] = {3, 4};
  const MPI_Aint offsets[] = {address + 4, address + 20};
  MPI_Datatype type{};
  MPI_Type_create_hindexed(2, lengths, offsets, MPI_INT, &type);
  MPI_Type_commit(&type);
  if (world_rank() == 0) std::fill(values.begin(), values.end(), 7);
  {
    MustTake must("bcast");
    MPI_Bcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD);
    must.expect();
  }
  const std::vector<int> expected = world_rank() == 0
                                        ? std::vector<int>(10, 7)
                                        : std::vector<int>{-1, 7, 7, 7, -1, 7, 7, 7, 7, -1};
  check(values == expected, "bcast from MPI_BOTTOM");
  MPI_Type_free(&type);
}

// Of a long double, some bytes mean nothing, and MPICH does not copy them.
void test_long_doubles() {
  constexpr int kAll = 8, kMine = kAll / 2;
  const bool is_root = world_rank() == 0;
  const auto wanted = [](int i) { return static_cast<long double>(i) + 1.25L; };
  int all = kAll, how = MPI_DISTRIBUTE_CYCLIC, one = MPI_DISTRIBUTE_DFLT_DARG, halves = 2;
  MPI_Datatype every_second{};
  MPI_Type_create_darray(2, 0, 1, &all, &how, &one, &halves, MPI_ORDER_C, MPI_LONG_DOUBLE,
                         &every_second);
  MPI_Type_commit(&every_second);
  long double values[kAll];
  std::memset(values, is_root ? 0x5a : 0, sizeof(values));
  for (int i = 0; is_root && i < kMine; ++i) values[i] = wanted(i);
  {
    MustTake must("bcast");
    MPI_Bcast(values, is_root ? kMine : 1, is_root ? MPI_LONG_DOUBLE : every_second, 0,
              MPI_COMM_WORLD);
    must.expect();
  }
  for (int i = 0; i < kMine; ++i) {
    check(values[is_root ? i : 2 * i] == wanted(i), "bcast of long doubles to a darray");
  }
  MPI_Type_free(&every_second);

  struct Pair {
    long double value;
    int index;
  };
  const int lengths[] = {1, 1};
  const MPI_Aint offsets[] = {0, offsetof(Pair, index)};
  const MPI_Datatype types[] = {MPI_LONG_DOUBLE, MPI_INT};
  MPI_Datatype parts{}, pair{};
  MPI_Type_create_struct(2, lengths, offsets, types, &parts);
  MPI_Type_create_resized(parts, 0, sizeof(Pair), &pair);
  MPI_Type_commit(&pair);
  Pair pairs[3];
  std::memset(pairs, is_root ? 0x5a : 0, sizeof(pairs));
  for (int i = 0; is_root && i < 3; ++i) {
    pairs[i].value = wanted(i);
    pairs[i].index = i;
  }
  {
    MustTake must("bcast");
    MPI_Bcast(pairs, 3, is_root ? pair : MPI_LONG_DOUBLE_INT, 0, MPI_COMM_WORLD);
    must.expect();
  }
  for (int i = 0; i < 3; ++i) {
    check(pairs[i].value == wanted(i) && pairs[i].index == i, "bcast of MPI_LONG_DOUBLE_INT");
  }
  MPI_Type_free(&parts);
  MPI_Type_free(&pair);
}

#ifdef OPEN_MPI  // others refuse equal addresses
// An int at `offset` of every 8 bytes.
MPI_Datatype every_second_int(MPI_Aint offset) {
  const int length = 1;
  MPI_Datatype one{}, spaced{};
  MPI_Type_create_hindexed(1, &length, &offset, MPI_INT, &one);
  MPI_Type_create_resized(one, 0, 8, &spaced);
  MPI_Type_commit(&spaced);
  MPI_Type_free(&one);
  return spaced;
}

// Both sides begin at one address, but each has its own part of what is there.
void test_parts_of_one_array() {
  const int size = world_size(), rank = world_rank();
  MPI_Datatype even = every_second_int(0), odd = every_second_int(4);
  std::vector<int> values(2 * static_cast<std::size_t>(size), -1), expected = values;
  for (int i = 0; i < size; ++i) {
    const auto at = 2 * static_cast<std::size_t>(i);
    values[at] = expected[at] = rank * 100 + i;
    expected[at + 1] = i * 100 + rank;
  }
  {
    MustTake must("alltoall");
    MPI_Alltoall(values.data(), 1, even, values.data(), 1, odd, MPI_COMM_WORLD);
    must.expect();
  }
  check(values == expected, "alltoall between two parts of one array");

  std::vector<int> gathered(static_cast<std::size_t>(size), -1), all;
  int own = rank + 5;
  for (int i = 0; i < size; ++i) all.push_back(i + 5);
  MPI_Aint from = 0, to = 0;
  MPI_Get_address(&own, &from);
  MPI_Get_address(gathered.data(), &to);
  const int length = 1;
  MPI_Datatype here{}, spread{}, there{};
  MPI_Type_create_hindexed(1, &length, &from, MPI_INT, &here);
  MPI_Type_create_hindexed(1, &length, &to, MPI_INT, &spread);
  MPI_Type_create_resized(spread, 0, sizeof(int), &there);
  MPI_Type_commit(&here);
  MPI_Type_commit(&there);
  MPI_Allgather(MPI_BOTTOM, 1, here, MPI_BOTTOM, 1, there, MPI_COMM_WORLD);
  check(gathered == all, "allgather with MPI_BOTTOM on both sides");
  for (MPI_Datatype* type : {&even, &odd, &here, &spread, &there}) MPI_Type_free(type);
}
#else
void test_parts_of_one_array() {}
#endif

void test_large() {
  if (world_size() != 2) return;
  constexpr std::size_t kMiB = 1 << 20, kBytes = 2049 * kMiB;  // more than INT_MAX
  Bytes block(kBytes);
  const auto expected = [](std::size_t i) { return static_cast<std::uint8_t>(i * 31 + (i >> 20)); };
  if (world_rank() == 0) {
    for (std::size_t i = 0; i < kBytes; ++i) block[i] = expected(i);
  }
  MPI_Datatype mib{};
  MPI_Type_contiguous(kMiB, MPI_BYTE, &mib);
  MPI_Type_commit(&mib);
  {
    MustTake must("bcast");
    MPI_Bcast(block.data(), kBytes / kMiB, mib, 0, MPI_COMM_WORLD);
    must.expect();
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kBytes; ++i) wrong += block[i] != expected(i) ? 1 : 0;
  check(wrong == 0, "bcast of 2049 MiB: " + std::to_string(wrong) + " bytes are wrong");
  MPI_Type_free(&mib);
}

// What carillon delivers is what the MPI delivers.
void test_against_host() {
  const int rank = world_rank(), size = world_size();
  const auto total = static_cast<std::size_t>(size) * 100;
  std::vector<int> in(total), ours(total, -1), theirs(total, -1);
  for (std::size_t i = 0; i < total; ++i) in[i] = rank * 100000 + static_cast<int>(i);
  const auto same = [&](const char* name) {
    check(ours == theirs, std::string(name) + " differs from the MPI's");
    std::fill(ours.begin(), ours.end(), -1);
    theirs = ours;
  };
  for (int root = 0; root < size; ++root) {
    MPI_Gather(in.data(), 100, MPI_INT, ours.data(), 100, MPI_INT, root, MPI_COMM_WORLD);
    PMPI_Gather(in.data(), 100, MPI_INT, theirs.data(), 100, MPI_INT, root, MPI_COMM_WORLD);
    same("gather");
    MPI_Scatter(in.data(), 100, MPI_INT, ours.data(), 100, MPI_INT, root, MPI_COMM_WORLD);
    PMPI_Scatter(in.data(), 100, MPI_INT, theirs.data(), 100, MPI_INT, root, MPI_COMM_WORLD);
    same("scatter");
    ours = theirs = in;
    MPI_Bcast(ours.data(), 100, MPI_INT, root, MPI_COMM_WORLD);
    PMPI_Bcast(theirs.data(), 100, MPI_INT, root, MPI_COMM_WORLD);
    same("bcast");
  }
  MPI_Allgather(in.data(), 100, MPI_INT, ours.data(), 100, MPI_INT, MPI_COMM_WORLD);
  PMPI_Allgather(in.data(), 100, MPI_INT, theirs.data(), 100, MPI_INT, MPI_COMM_WORLD);
  same("allgather");
  MPI_Alltoall(in.data(), 100, MPI_INT, ours.data(), 100, MPI_INT, MPI_COMM_WORLD);
  PMPI_Alltoall(in.data(), 100, MPI_INT, theirs.data(), 100, MPI_INT, MPI_COMM_WORLD);
  same("alltoall");
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  mpi_test::test_signatures();
  mpi_test::test_sizes();
  mpi_test::test_bottom();
  mpi_test::test_long_doubles();
  mpi_test::test_parts_of_one_array();
  mpi_test::test_against_host();
  if (argc > 1 && std::string(argv[1]) == "large") mpi_test::test_large();
  return mpi_test::end();
}
