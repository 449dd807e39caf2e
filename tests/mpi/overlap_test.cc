// SPDX-License-Identifier: Apache-2.0
//
// With CARILLON_SERVLET=on: non-blocking collectives of 1 MiB end while no rank
// calls MPI. Each looks at its own output until what must come out stands there.
#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support.h"

namespace mpi_test {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr int kCount = 131072;  // 1 MiB
constexpr double kPatienceS = 60;

Numbers numbers_of(int rank, int round, int count) {
  Numbers numbers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    numbers[static_cast<std::size_t>(i)] = (rank + 1) * 1000003LL + round * 7919 + i * 31LL;
  }
  return numbers;
}

Numbers sums(int round) {
  Numbers all(kCount);
  for (int rank = 0; rank < world_size(); ++rank) {
    const Numbers one = numbers_of(rank, round, kCount);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += one[i];
  }
  return all;
}

// No call of MPI's.
bool compute_until(const Numbers& out, const Numbers& expected, double begin) {
  const volatile std::int64_t* const now = out.data();
  for (std::size_t i = out.size(); i-- > 0;) {
    while (now[i] != expected[i]) {
      if (MPI_Wtime() - begin > kPatienceS) return false;
      sched_yield();
    }
  }
  return true;
}

void end(const char* name, MPI_Request* request, const Numbers& out, const Numbers& expected) {
  check(compute_until(out, expected, MPI_Wtime()), std::string(name) + " ends by itself");
  MPI_Wait(request, MPI_STATUS_IGNORE);
  check(out == expected, name);
}

void try_allreduce(int round) {
  const Numbers in = numbers_of(world_rank(), round, kCount);
  Numbers out(kCount);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(in.data(), out.data(), kCount, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
  end("iallreduce", &request, out, sums(round));
}

void try_bcast(int round) {
  const int root = round % world_size();
  const Numbers expected = numbers_of(root, round, kCount);
  Numbers data = world_rank() == root ? expected : Numbers(kCount);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(data.data(), kCount, MPI_INT64_T, root, MPI_COMM_WORLD, &request);
  end("ibcast", &request, data, expected);
}

void try_alltoallv(int round) {
  const int size = world_size();
  const int block = kCount / size;
  const Numbers in = numbers_of(world_rank(), round, block * size);
  Numbers out(in.size()), expected;
  std::vector<int> counts(static_cast<std::size_t>(size), block), places;
  for (int rank = 0; rank < size; ++rank) {
    places.push_back(rank * block);
    const Numbers theirs = numbers_of(rank, round, block * size);
    const auto mine = theirs.begin() + world_rank() * block;
    expected.insert(expected.end(), mine, mine + block);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ialltoallv(in.data(), counts.data(), places.data(), MPI_INT64_T, out.data(), counts.data(),
                 places.data(), MPI_INT64_T, MPI_COMM_WORLD, &request);
  end("ialltoallv", &request, out, expected);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  MPI_Barrier(MPI_COMM_WORLD);  // the team is there
  for (int round = 0; round < 5; ++round) {
    try_allreduce(round);
    try_bcast(round);
    try_alltoallv(round);
  }
  return end();
}
