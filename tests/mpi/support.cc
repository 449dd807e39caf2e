// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <dlfcn.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace mpi_test {
namespace {

constexpr std::uint8_t kUntouched = 0xa5;
constexpr int kPrintedFailures = 10;

int g_rank = 0, g_size = 1, g_failures = 0;

using Counter = unsigned long long (*)(const char*);

Counter find_counter(const char* name) {
  return reinterpret_cast<Counter>(dlsym(RTLD_DEFAULT, name));
}

std::uint64_t counted(const char* symbol, const char* collective) {
  const Counter counter = find_counter(symbol);
  return counter == nullptr ? 0 : counter(collective);
}

// Nobody may read this process's memory, nor has this one the right to do so all the same.
void forbid_tracing() {
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct none[2] = {};
  if (prctl(PR_SET_DUMPABLE, 0) != 0 || syscall(SYS_capset, &header, none) != 0) {
    fail("tracing cannot be forbidden");
  }
}

}  // namespace

void fail(const std::string& what) {
  if (++g_failures <= kPrintedFailures) {
    std::fprintf(stderr, "FAILED on rank %d of %d: %s\n", g_rank, g_size, what.c_str());
  }
}

int failures() { return g_failures; }

void begin(int argc, char** argv, int thread_level) {
  if (std::getenv("MPI_TEST_NO_TRACING") != nullptr) forbid_tracing();
  int provided = MPI_THREAD_SINGLE;
  if (thread_level == MPI_THREAD_SINGLE) {
    MPI_Init(&argc, &argv);
  } else {
    MPI_Init_thread(&argc, &argv, thread_level, &provided);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  if (provided < thread_level) fail("the MPI does not provide the thread level");
  if (find_counter("carillon_shim_taken") == nullptr) {
    std::fputs("the interposer is not loaded (LD_PRELOAD)\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int end() {
  int all = 0;
  PMPI_Allreduce(&g_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (all > 0 && g_rank == 0) std::fprintf(stderr, "%d checks failed\n", all);
  MPI_Finalize();
  return all > 0 ? 1 : 0;
}

int world_rank() { return g_rank; }
int world_size() { return g_size; }

std::uint64_t taken(const char* collective) { return counted("carillon_shim_taken", collective); }
std::uint64_t left(const char* collective) { return counted("carillon_shim_left", collective); }

MustTake::MustTake(const char* collective)
    : collective_(collective), taken_(taken(collective)), left_(left(collective)) {}

MustTake::~MustTake() {
  const std::uint64_t more = taken(collective_) - taken_;
  if (more != calls_ || left(collective_) != left_) {
    fail(std::string(collective_) + ": " + std::to_string(calls_) + " calls, but carillon took " +
         std::to_string(more) + " and left " + std::to_string(left(collective_) - left_));
  }
}

std::uint8_t pattern(int source, int peer, std::size_t i) {
  std::uint64_t hash =
      static_cast<std::uint64_t>(source) * 1000003U + static_cast<std::uint64_t>(peer) * 10007U + i;
  hash *= UINT64_C(0x9E3779B97F4A7C15);
  return static_cast<std::uint8_t>(hash >> 37);
}

Bytes pattern_block(int source, int peer, std::size_t bytes) {
  Bytes block(bytes);
  for (std::size_t i = 0; i < bytes; ++i) block[i] = pattern(source, peer, i);
  return block;
}

std::int64_t packed_bytes(const Shape& shape) {
  MPI_Count size = 0;
  MPI_Type_size_x(shape.type, &size);
  return size * shape.count;
}

TypedBuffer::TypedBuffer(const Shape& shape, int blocks) : shape_(shape) {
  MPI_Aint lower_bound = 0, extent = 0, true_lower_bound = 0, true_extent = 0;
  MPI_Type_get_extent(shape.type, &lower_bound, &extent);
  MPI_Type_get_true_extent(shape.type, &true_lower_bound, &true_extent);
  extent_ = extent;
  const std::int64_t last = std::max(0, shape.count * blocks - 1) * extent;
  const std::int64_t lowest = true_lower_bound + std::min<std::int64_t>(0, last);
  const std::int64_t span = std::max(last, -last) + true_extent;
  raw_.assign(static_cast<std::size_t>(span) + 64, kUntouched);
  base_ = reinterpret_cast<std::uintptr_t>(raw_.data()) + 32 - static_cast<std::uintptr_t>(lowest);
}

void* TypedBuffer::block_address(int block) const {
  return reinterpret_cast<void*>(base_ +
                                 static_cast<std::uintptr_t>(block * shape_.count * extent_));
}

void TypedBuffer::put(int block, const Bytes& packed) {
  int position = 0;
  if (packed.empty()) return;
  PMPI_Unpack(packed.data(), static_cast<int>(packed.size()), &position, block_address(block),
              shape_.count, shape_.type, MPI_COMM_SELF);
}

Bytes TypedBuffer::get(int block) const {
  Bytes packed(static_cast<std::size_t>(packed_bytes(shape_)));
  int position = 0;
  if (!packed.empty()) {
    PMPI_Pack(block_address(block), shape_.count, shape_.type, packed.data(),
              static_cast<int>(packed.size()), &position, MPI_COMM_SELF);
  }
  return packed;
}

}  // namespace mpi_test
