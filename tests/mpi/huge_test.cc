// SPDX-License-Identifier: Apache-2.0
//
// Blocks of more than 2^31 bytes: bcast and alltoall, the number of bytes in the type, or, where
// the MPI has such functions, in the count. Takes 9 GiB on two ranks, and some time: only with
// CARILLON_TEST_HUGE, and where there is so much memory.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "support.h"

namespace mpi_test {
namespace {

constexpr int kUnitBytes = 65537;
constexpr int kUnits = 32768;
constexpr std::int64_t kBlock = std::int64_t{kUnitBytes} * kUnits;
static_assert(kBlock > std::int64_t{1} << 31);
constexpr std::int64_t kWord = sizeof(std::uint64_t);

std::int64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::int64_t kib = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return 0;
}

// On all ranks, or on none.
bool is_wanted() {
  const std::int64_t needed = kBlock * world_size() * world_size() + (std::int64_t{1} << 30);
  int wanted = std::getenv("CARILLON_TEST_HUGE") != nullptr && available_bytes() > needed ? 1 : 0;
  PMPI_Bcast(&wanted, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return wanted != 0;
}

// The word at place `at` of the block from `source` to `peer`.
std::uint64_t word_of(int source, int peer, std::int64_t at) {
  const auto block = static_cast<std::uint64_t>(source * 31 + peer + 1);
  return (static_cast<std::uint64_t>(at) + block) * 0x9E3779B97F4A7C15U + (block << 48);
}

void fill(std::uint8_t* block, int source, int peer) {
  for (std::int64_t at = 0; at < kBlock; at += kWord) {
    const std::uint64_t word = word_of(source, peer, at);
    std::memcpy(block + at, &word, static_cast<std::size_t>(std::min(kWord, kBlock - at)));
  }
}

// The first place where it is another block; -1: nowhere.
std::int64_t difference(const std::uint8_t* block, int source, int peer) {
  for (std::int64_t at = 0; at < kBlock; at += kWord) {
    const std::uint64_t word = word_of(source, peer, at);
    if (std::memcmp(block + at, &word, static_cast<std::size_t>(std::min(kWord, kBlock - at))) != 0)
      return at;
  }
  return -1;
}

void check_block(const std::uint8_t* block, int source, int peer, const std::string& what) {
  const std::int64_t at = difference(block, source, peer);
  check(at < 0, what + ": wrong from byte " + std::to_string(at) + " on, in the block of rank " +
                    std::to_string(source));
}

// Called with the number of elements, by either function.
template <typename Bcast, typename Alltoall>
void test_both(std::uint8_t* memory, const std::string& how, Bcast bcast, Alltoall alltoall) {
  const int ranks = world_size(), rank = world_rank();
  {
    MustTake must("bcast");
    const int root = ranks - 1;
    fill(memory, root, rank == root ? 0 : 1);
    bcast(memory, root);
    must.expect();
    check_block(memory, root, 0, "bcast, " + how);
  }
  MustTake must("alltoall");
  for (int peer = 0; peer < ranks; ++peer) fill(memory + peer * kBlock, rank, peer);
  alltoall(memory);
  must.expect();
  for (int peer = 0; peer < ranks; ++peer) {
    check_block(memory + peer * kBlock, peer, rank, "alltoall, " + how);
  }
}

void test_all() {
  const auto bytes = static_cast<std::size_t>(kBlock) * static_cast<std::size_t>(world_size());
  const auto memory = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
  MPI_Datatype unit{};
  MPI_Type_contiguous(kUnitBytes, MPI_BYTE, &unit);
  MPI_Type_commit(&unit);
  test_both(
      memory.get(), "by a long type",
      [&](void* block, int root) { MPI_Bcast(block, kUnits, unit, root, MPI_COMM_WORLD); },
      [&](void* blocks) {
        MPI_Alltoall(MPI_IN_PLACE, 0, unit, blocks, kUnits, unit, MPI_COMM_WORLD);
      });
  MPI_Type_free(&unit);
#if MPI_VERSION >= 4
  test_both(
      memory.get(), "by a large count",
      [](void* block, int root) { MPI_Bcast_c(block, kBlock, MPI_BYTE, root, MPI_COMM_WORLD); },
      [](void* blocks) {
        MPI_Alltoall_c(MPI_IN_PLACE, 0, MPI_BYTE, blocks, kBlock, MPI_BYTE, MPI_COMM_WORLD);
      });
#endif
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  if (mpi_test::is_wanted()) {
    mpi_test::test_all();
  } else if (mpi_test::world_rank() == 0) {
    std::puts("skipped: asked for by CARILLON_TEST_HUGE, with 10 GiB to spare");
  }
  return mpi_test::end();
}
