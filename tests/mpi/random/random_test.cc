// SPDX-License-Identifier: Apache-2.0
//
// Random calls, right ones and wrong ones: by carillon and by the MPI alone they have the same
// results, answers and states. `random_test FIRST SEEDS`: all numbers come from the seeds.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "batch.h"
#include "groups.h"
#include "mistakes.h"

namespace mpi_test {
namespace {

void try_one(const Group& group, std::uint64_t seed) {
  if (group.comm == MPI_COMM_NULL) return;
  Random shared(seed);
  auto kind = static_cast<Kind>(shared.below(kKinds));
  if (is_of_neighbours(kind) && !group.has_topology) kind = static_cast<Kind>(shared.below(17));
  Operation operation(group, kind, seed, mix(seed, static_cast<std::uint64_t>(world_rank()) + 1));
  const bool good = operation.call(By::kHost, CallForm::kBlocking, nullptr) == MPI_SUCCESS &&
                    operation.call(By::kCarillon, CallForm::kBlocking, nullptr) == MPI_SUCCESS;
  check(good && operation.same(), "seed " + std::to_string(seed) + ", " +
                                      (good ? "another result: " : "an error: ") +
                                      operation.text());
}

// Collectives that are on their way when their communicator is freed.
void try_freed(Group group, std::uint64_t seed) {
  if (group.comm == MPI_COMM_NULL) return;
  Random shared(seed);
  const auto kind = static_cast<Kind>(shared.below(17));
  Operation operation(group, kind, seed, mix(seed, static_cast<std::uint64_t>(world_rank()) + 1));
  operation.call(By::kHost, CallForm::kBlocking, nullptr);
  MPI_Request request = MPI_REQUEST_NULL;
  operation.call(By::kCarillon, CallForm::kStarted, &request);
  free_group(group);
  operation.free_types();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(operation.same(),
        "seed " + std::to_string(seed) + ", on a communicator that was freed: " + operation.text());
}

void try_seed(const std::vector<Group>& groups, MPI_Comm messages, std::uint64_t seed) {
  Random shared(seed);
  const Group& group = shared.one_of(groups);
  const int what = shared.below(10);
  const std::uint64_t next = shared.next();
  if (what < 4) return try_one(group, next);
  if (what < 7) return try_batch({group, shared.one_of(groups)}, messages, next);
  if (what < 9) return try_mistake(group, next);
  if (group.comm == MPI_COMM_NULL) return;
  Group fresh = make_group(group, shared.below(kGroupKinds), next);
  if (shared.chance(50)) return try_freed(fresh, next);
  if (shared.chance(50)) {
    try_batch({fresh, group}, MPI_COMM_NULL, next);
  } else {
    try_one(fresh, next);
  }
  free_group(fresh);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  const std::uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
  const bool says = std::getenv("MPI_TEST_SAYS") != nullptr;
  make_operators();
  MPI_Comm messages = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &messages);
  std::vector<Group> groups = make_groups(first);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const int before = failures();
    if (says)
      std::fprintf(stderr, "%d: seed %llu\n", world_rank(), static_cast<unsigned long long>(seed));
    try_seed(groups, messages, seed);
    if (failures() > before && world_size() > 0) {
      std::fprintf(stderr, "rank %d: seed %llu\n", world_rank(),
                   static_cast<unsigned long long>(seed));
    }
  }
  for (Group& group : groups) free_group(group);
  MPI_Comm_free(&messages);
  free_operators();
  if (world_rank() == 0) {
    std::uint64_t all = 0, others = 0;
    for (int i = 0; i < kKinds; ++i) {
      all += taken(name_of(static_cast<Kind>(i)));
      others += left(name_of(static_cast<Kind>(i)));
    }
    std::printf("%llu seeds from %llu on: of calls that block carillon took %llu, and left %llu\n",
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(all), static_cast<unsigned long long>(others));
  }
  return end();
}
