// SPDX-License-Identifier: Apache-2.0
//
// For the tests of calls whose blocks differ in length: the same data described in different ways,
// anywhere in memory.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "support.h"

namespace mpi_test {

inline constexpr int kElementInts = 4;  // of memory, at the most

inline std::mt19937 g_shared(17);  // draws the same on all ranks
inline std::mt19937 g_own(1);      // draws differently

inline int draw(std::mt19937& from, int bound) {
  return static_cast<int>(from() % static_cast<unsigned>(bound));
}

using Types = std::vector<MPI_Datatype>;

// Different ways to describe two ints.
inline Types make_types() {
  Types types(4);
  MPI_Type_contiguous(2, MPI_INT, &types[0]);
  MPI_Datatype gapped{};
  MPI_Type_vector(2, 1, 2, MPI_INT, &gapped);
  MPI_Type_create_resized(gapped, 0, 16, &types[1]);
  MPI_Type_free(&gapped);
  const int one[] = {1, 1};
  const MPI_Aint backwards[] = {8, 0};
  MPI_Type_create_hindexed(2, one, backwards, MPI_INT, &types[2]);
  const MPI_Aint later[] = {4};
  const int two[] = {2};
  MPI_Type_create_hindexed(1, two, later, MPI_INT, &types[3]);
  for (MPI_Datatype& type : types) MPI_Type_commit(&type);
  return types;
}

// One side of a call: blocks in random order, with holes between.
struct Side {
  std::vector<int> counts, offsets;
  MPI_Datatype type{};
  std::vector<int> memory;

  Side(const std::vector<int>& lengths, MPI_Datatype of, int salt) : counts(lengths), type(of) {
    counts.reserve(lengths.size() + 1);  // Open MPI refuses lists at no address, be they empty
    offsets.reserve(lengths.size() + 1);
    offsets.resize(counts.size());
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), g_own);
    int next = 0;
    for (const std::size_t i : order) {
      offsets[i] = next += draw(g_own, 3);
      next += counts[i];
    }
    memory.resize(static_cast<std::size_t>(next + 2) * kElementInts);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] = world_rank() * 1000003 + static_cast<int>(i) * 7 + salt;
    }
  }
};

inline MPI_Datatype any(const Types& types) {
  return types[static_cast<std::size_t>(draw(g_own, static_cast<int>(types.size())))];
}

}  // namespace mpi_test
