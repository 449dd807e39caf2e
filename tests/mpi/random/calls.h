// SPDX-License-Identifier: Apache-2.0
//
// Any collective, in any form, by carillon or by the MPI alone.
#pragma once

#include <cstdint>
#include <vector>

#include "support.h"

namespace mpi_test {

/// In the order of kNames.
enum class Kind : std::uint8_t {
  kBarrier,
  kBcast,
  kReduce,
  kAllreduce,
  kReduce_scatter_block,
  kReduce_scatter,
  kScan,
  kExscan,
  kAllgather,
  kAllgatherv,
  kGather,
  kGatherv,
  kScatter,
  kScatterv,
  kAlltoall,
  kAlltoallv,
  kAlltoallw,
  kNeighbor_allgather,
  kNeighbor_allgatherv,
  kNeighbor_alltoall,
  kNeighbor_alltoallv,
  kNeighbor_alltoallw,
};
constexpr int kKinds = 22;
const char* name_of(Kind kind);
constexpr bool is_reduction(Kind kind) { return kind >= Kind::kReduce && kind <= Kind::kExscan; }
constexpr bool is_of_neighbours(Kind kind) { return kind >= Kind::kNeighbor_allgather; }
constexpr bool is_rooted(Kind kind) {
  return kind == Kind::kBcast || kind == Kind::kReduce ||
         (kind >= Kind::kGather && kind <= Kind::kScatterv);
}

enum class CallForm : std::uint8_t { kBlocking, kStarted, kPersistent };

/// One buffer of a call: a block, or a list of blocks.
struct Side {
  void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<int> counts, offsets;
  std::vector<MPI_Datatype> types;
  std::vector<MPI_Count> wide_counts;
  std::vector<MPI_Aint> wide_offsets;
  bool no_lists = false;
};

struct Arguments {
  Side in, out;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
};

/// Who does it.
enum class By : std::uint8_t { kCarillon, kHost };
constexpr By kBoth[] = {By::kCarillon, By::kHost};

/// With MPI_Count, where the MPI has that.
int call(By by, CallForm form, Kind kind, bool wide, const Arguments& arguments,
         MPI_Request* request);

/// The functions that begin and complete requests.
struct Requests {
  decltype(&MPI_Start) start;
  decltype(&MPI_Startall) start_all;
  decltype(&MPI_Wait) wait;
  decltype(&MPI_Waitall) wait_all;
  decltype(&MPI_Waitany) wait_any;
  decltype(&MPI_Waitsome) wait_some;
  decltype(&MPI_Test) test;
  decltype(&MPI_Testall) test_all;
  decltype(&MPI_Testany) test_any;
  decltype(&MPI_Testsome) test_some;
  decltype(&MPI_Request_get_status) get_status;
  decltype(&MPI_Request_free) free;
};
const Requests& requests_of(By by);

}  // namespace mpi_test
