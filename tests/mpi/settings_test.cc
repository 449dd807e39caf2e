// SPDX-License-Identifier: Apache-2.0
//
// Ranks whose environments differ (settings_test.py): what collectives deliver is as if they did
// not, and all ranks do alike. The arguments are what must become of the calls, "taken" or "left",
// and the number of doubles per block from which on nothing is tried.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "support.h"

namespace mpi_test {
namespace {

using Values = std::vector<double>;

// Integers, so that sums are exact in any order; they differ for each rank, block and index.
double value(int rank, int block, std::size_t i) {
  return rank * 1000003.0 + block * 10007.0 + static_cast<double>(i % 65521) + 1;
}

double sum(int ranks, int block, std::size_t i) {
  double all = 0;
  for (int rank = 0; rank < ranks; ++rank) all += value(rank, block, i);
  return all;
}

struct Job {
  int rank = world_rank(), size = world_size();
  std::size_t count = 0;
  bool left = false;

  [[nodiscard]] int elements() const { return static_cast<int>(count); }
};

using Expected = std::function<double(int block, std::size_t i)>;

Values made(const Job& job, int rank, int blocks) {
  Values values;
  values.reserve(job.count * static_cast<std::size_t>(blocks));
  for (int block = 0; block < blocks; ++block) {
    for (std::size_t i = 0; i < job.count; ++i) values.push_back(value(rank, block, i));
  }
  return values;
}

Values room(const Job& job, int blocks) {
  return Values(job.count * static_cast<std::size_t>(blocks), -1.0);
}

void compare(const Job& job, const Values& got, const char* name, const Expected& expected) {
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < got.size(); ++at) {
    const auto block = static_cast<int>(at / job.count);
    if (got[at] != expected(block, at % job.count)) ++wrong;
  }
  check(wrong == 0, std::string(name) + " of " + std::to_string(job.count) +
                        " doubles: " + std::to_string(wrong) + " are wrong");
}

void bcast(const Job& job) {
  for (int root = 0; root < job.size; ++root) {
    Values data = job.rank == root ? made(job, root, 1) : room(job, 1);
    MPI_Bcast(data.data(), job.elements(), MPI_DOUBLE, root, MPI_COMM_WORLD);
    compare(job, data, "bcast", [root](int block, std::size_t i) { return value(root, block, i); });
  }
}

void reduce(const Job& job) {
  const Values in = made(job, job.rank, 1);
  Values out = room(job, 1);
  const int root = job.size - 1;
  MPI_Reduce(in.data(), out.data(), job.elements(), MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
  compare(job, out, "reduce", [&](int block, std::size_t i) {
    return job.rank == root ? sum(job.size, block, i) : -1;
  });
}

void allreduce(const Job& job) {
  const Values in = made(job, job.rank, 1);
  Values out = room(job, 1);
  MPI_Allreduce(in.data(), out.data(), job.elements(), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  compare(job, out, "allreduce", [&](int block, std::size_t i) { return sum(job.size, block, i); });
}

void iallreduce(const Job& job) {
  const Values in = made(job, job.rank, 1);
  Values out = room(job, 1);
  MPI_Request request{};
  MPI_Iallreduce(in.data(), out.data(), job.elements(), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                 &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  compare(job, out, "iallreduce",
          [&](int block, std::size_t i) { return sum(job.size, block, i); });
}

void allgather(const Job& job) {
  const Values in = made(job, job.rank, 1);
  Values out = room(job, job.size);
  MPI_Allgather(in.data(), job.elements(), MPI_DOUBLE, out.data(), job.elements(), MPI_DOUBLE,
                MPI_COMM_WORLD);
  compare(job, out, "allgather", [](int block, std::size_t i) { return value(block, 0, i); });
}

void alltoall(const Job& job) {
  const Values in = made(job, job.rank, job.size);
  Values out = room(job, job.size);
  MPI_Alltoall(in.data(), job.elements(), MPI_DOUBLE, out.data(), job.elements(), MPI_DOUBLE,
               MPI_COMM_WORLD);
  compare(job, out, "alltoall",
          [&](int block, std::size_t i) { return value(block, job.rank, i); });
}

// Every other rank sends nothing to the next one.
void alltoallv(const Job& job) {
  const auto ranks = static_cast<std::size_t>(job.size);
  const auto sends = [&](int from, int to) {
    return from % 2 == 1 && to == (from + 1) % job.size ? 0 : job.elements();
  };
  std::vector<int> in_counts(ranks), out_counts(ranks), starts(ranks);
  for (int peer = 0; peer < job.size; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    in_counts[at] = sends(job.rank, peer);
    out_counts[at] = sends(peer, job.rank);
    starts[at] = peer * job.elements();
  }
  const Values in = made(job, job.rank, job.size);
  Values out = room(job, job.size);
  MPI_Alltoallv(in.data(), in_counts.data(), starts.data(), MPI_DOUBLE, out.data(),
                out_counts.data(), starts.data(), MPI_DOUBLE, MPI_COMM_WORLD);
  compare(job, out, "alltoallv", [&](int block, std::size_t i) {
    return sends(block, job.rank) > 0 ? value(block, job.rank, i) : -1;
  });
}

void gather(const Job& job) {
  const Values in = made(job, job.rank, 1);
  Values out = room(job, job.size);
  MPI_Gather(in.data(), job.elements(), MPI_DOUBLE, out.data(), job.elements(), MPI_DOUBLE, 0,
             MPI_COMM_WORLD);
  compare(job, out, "gather",
          [&](int block, std::size_t i) { return job.rank == 0 ? value(block, 0, i) : -1; });
}

void scan(const Job& job) {
  const Values in = made(job, job.rank, 1);
  Values out = room(job, 1);
  MPI_Scan(in.data(), out.data(), job.elements(), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  compare(job, out, "scan", [&](int block, std::size_t i) { return sum(job.rank + 1, block, i); });
}

void reduce_scatter_block(const Job& job) {
  const Values in = made(job, job.rank, job.size);
  Values out = room(job, 1);
  MPI_Reduce_scatter_block(in.data(), out.data(), job.elements(), MPI_DOUBLE, MPI_SUM,
                           MPI_COMM_WORLD);
  compare(job, out, "reduce_scatter_block",
          [&](int, std::size_t i) { return sum(job.size, job.rank, i); });
}

struct Collective {
  const char* name;
  void (*test)(const Job& job);
  bool for_each_root = false;
};

constexpr Collective kCollectives[] = {
    {"bcast", bcast, true},   {"reduce", reduce},
    {"allreduce", allreduce}, {"iallreduce", iallreduce},
    {"allgather", allgather}, {"alltoall", alltoall},
    {"alltoallv", alltoallv}, {"gather", gather},
    {"scan", scan},           {"reduce_scatter_block", reduce_scatter_block},
};

void test(const Job& job, const Collective& collective) {
  const std::uint64_t taken_before = taken(collective.name), left_before = left(collective.name);
  collective.test(job);
  const std::uint64_t calls = collective.for_each_root ? static_cast<std::uint64_t>(job.size) : 1;
  const std::uint64_t took = taken(collective.name) - taken_before;
  const std::uint64_t gave = left(collective.name) - left_before;
  check(took == (job.left ? 0 : calls) && gave == (job.left ? calls : 0),
        std::string(collective.name) + ": of " + std::to_string(calls) + " calls carillon took " +
            std::to_string(took) + " and left " + std::to_string(gave));
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  mpi_test::Job job;
  job.left = argc > 1 && std::string(argv[1]) == "left";
  const std::size_t limit = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 300001;
  // From nothing over one slot to several, and to what is lent.
  for (const std::size_t count : {0UL, 1UL, 7UL, 1000UL, 9000UL, 300000UL}) {
    if (count >= limit) break;
    job.count = count;
    for (const mpi_test::Collective& collective : mpi_test::kCollectives) {
      mpi_test::test(job, collective);
    }
  }
  return mpi_test::end();
}
