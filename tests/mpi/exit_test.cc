// SPDX-License-Identifier: Apache-2.0
//
// A program that still uses MPI, and ends it, while its process ends: the objects that belong to
// its threads are gone then.
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "support.h"

namespace mpi_test {
namespace {

// By MPI_Testall: then whatever makes progress finds that they have ended.
void start_and_test(MPI_Comm comm) {
  constexpr std::size_t kCalls = 3;
  const int one = 1;
  std::array<int, kCalls> sums{};
  std::array<MPI_Request, kCalls> requests{};
  for (std::size_t i = 0; i < kCalls; ++i) {
    MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
  }
  for (int done = 0; done == 0;) {
    MPI_Testall(kCalls, requests.data(), &done, MPI_STATUSES_IGNORE);
  }
  for (const int sum : sums) check(sum == world_size(), "iallreduce and testall");
}

// Short blocks of the program's own, which get what memory others have given back.
class Blocks {
 public:
  Blocks() {
    constexpr std::size_t kBlocks = 2000, kMost = 128, kStep = 8;
    blocks_.reserve(kBlocks);
    for (std::size_t i = 0; i < kBlocks; ++i) {
      blocks_.emplace_back(i * kStep % kMost + kStep, kByte);
    }
  }
  [[nodiscard]] bool are_whole() const {
    for (const Bytes& block : blocks_) {
      for (const std::uint8_t byte : block) {
        if (byte != kByte) return false;
      }
    }
    return true;
  }

 private:
  static constexpr std::uint8_t kByte = 0x77;
  std::vector<Bytes> blocks_;
};

void end_late() {
  {
    const Blocks blocks;
    MustTake must("iallreduce");
    for (int i = 0; i < 3; ++i) must.expect();
    start_and_test(MPI_COMM_WORLD);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 3; ++i) must.expect();
    start_and_test(comm);
    MPI_Comm_free(&comm);
    check(blocks.are_whole(), "carillon writes to memory that it has given back");
  }
  const int status = end();
  std::fflush(stdout);
  // Else by return: where functions of MPICH 5's own are not called at exit, it may end the job as
  // if it had failed.
  if (status != 0) std::_Exit(status);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  if (std::atexit(mpi_test::end_late) != 0) return 1;
  mpi_test::start_and_test(MPI_COMM_WORLD);
  return 0;
}
