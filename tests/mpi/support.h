// SPDX-License-Identifier: Apache-2.0
//
// For the tests of the interposer, which are plain MPI programs: checks that say what and where,
// typed buffers whose every byte is known, and the interposer's own counters.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mpi_test {

using Bytes = std::vector<std::uint8_t>;

/// Counts a failure and prints it, the first few in full.
void fail(const std::string& what);
inline void check(bool good, const std::string& what) {
  if (!good) fail(what);
}

/// How many there were in this process.
int failures();

/// Starts MPI; gives up without the interposer. With MPI_TEST_NO_TRACING in the environment, before
/// that makes this a process that cannot read others' memory, nor be read.
void begin(int argc, char** argv, int thread_level = MPI_THREAD_SINGLE);
/// Ends MPI; the process's exit status: 0 if no check failed on any rank.
int end();

int world_rank();
int world_size();

/// Calls of a collective in this process that carillon took, or left to the MPI.
std::uint64_t taken(const char* collective);
std::uint64_t left(const char* collective);

/// Checks, at its end, how many calls of a collective were taken, and that none was left.
class MustTake {
 public:
  explicit MustTake(const char* collective);
  ~MustTake();
  MustTake(const MustTake&) = delete;
  MustTake& operator=(const MustTake&) = delete;
  void expect() { ++calls_; }

 private:
  const char* collective_;
  std::uint64_t taken_, left_, calls_ = 0;
};

/// The byte that the block from `source` to `peer` has at `i`: differs for each of the three.
std::uint8_t pattern(int source, int peer, std::size_t i);
Bytes pattern_block(int source, int peer, std::size_t bytes);

/// A datatype and a count: one way to describe a block.
struct Shape {
  std::string name;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int count = 0;
};

std::int64_t packed_bytes(const Shape& shape);

/// Memory for `blocks` blocks of a shape, all of it filled with a known byte.
class TypedBuffer {
 public:
  TypedBuffer(const Shape& shape, int blocks);
  /// What to pass to MPI.
  [[nodiscard]] void* address() const { return reinterpret_cast<void*>(base_); }
  void put(int block, const Bytes& packed);
  [[nodiscard]] Bytes get(int block) const;
  /// All bytes, gaps included.
  [[nodiscard]] const Bytes& raw() const { return raw_; }

 private:
  [[nodiscard]] void* block_address(int block) const;
  Shape shape_;
  std::int64_t extent_ = 0;
  std::uintptr_t base_ = 0;
  Bytes raw_;
};

/// Groups of shapes with one signature, made in many ways; the types are committed.
struct Signature {
  std::string name;
  std::vector<Shape> shapes;
};
std::vector<Signature> make_signatures();
void free_signatures(std::vector<Signature>& signatures);

}  // namespace mpi_test
