// SPDX-License-Identifier: Apache-2.0
//
// What the interposer knows about each collective, as one table of rules, and one call of one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "carillon/carillon.h"
#include "host.h"

namespace carillon::shim {

/// Every collective that is intercepted, in the order of kRules.
enum class Collective : std::uint8_t {
  kBarrier,
  kBcast,
  kReduce,
  kAllreduce,
  kReduceScatterBlock,
  kAllgather,
  kGather,
  kScatter,
  kAlltoall,
  kAlltoallv,
  kAllgatherv,
  kGatherv,
  kScatterv,
  kReduceScatter,
  kScan,
  kExscan,
  kAlltoallw,
  kIbarrier,
  kIbcast,
  kIreduce,
  kIallreduce,
  kIallgather,
  kIalltoall,
  kIalltoallv,
};
inline constexpr std::size_t kCollectives = 24;

/// Why a call was left to the host. Every reason but the last two is the same on all ranks.
enum class Reason : std::uint8_t {
  kNone,            // it was not left
  kNotTaken,        // carillon does not do this collective yet
  kOff,             // CARILLON=off on some rank, or carillon could not start
  kNotInitialised,  // before MPI_Init or after carillon's end in MPI_Finalize
  kIntercommunicator,
  kOtherWorld,  // the communicator has processes of another MPI_COMM_WORLD
  kNotServed,   // the team agreed that carillon cannot serve it (several nodes, versions)
  kReduction,   // an operator and type that only the host may know
  kNested,      // the host called it while carillon called the host
  kSuspect,     // wrong arguments: the host answers
};
inline constexpr std::size_t kReasons = 10;

enum class Kind : std::uint8_t { kNotTaken, kBarrier, kData, kReduction, kBlocks };

/// On which ranks a buffer counts.
enum class At : std::uint8_t { kNone, kAll, kRoot, kNotRoot };

/// Which buffer MPI_IN_PLACE may stand for.
enum class InPlace : std::uint8_t { kNever, kInput, kOutput };

/// One side of a call: where it counts, and whether it holds one block or one per rank.
struct Side {
  At at = At::kNone;
  bool block_per_rank = false;
};

using DataCall = crl_status_t (*)(crl_team_h, const void* in, void* out, std::size_t bytes,
                                  int root);
using ReductionCall = crl_status_t (*)(crl_team_h, const void* in, void* out, std::size_t count,
                                       crl_dtype_t, crl_op_t, int root);

struct Rule {
  const char* name;
  Kind kind = Kind::kNotTaken;
  bool rooted = false;
  Side in, out;
  InPlace in_place = InPlace::kNever;
  DataCall data = nullptr;
  ReductionCall reduction = nullptr;
};

inline constexpr Rule kRules[kCollectives] = {
    {"Barrier", Kind::kBarrier},
    {"Bcast",
     Kind::kData,
     true,
     {At::kRoot},
     {At::kNotRoot},
     InPlace::kNever,
     [](crl_team_h team, const void* in, void* out, std::size_t bytes, int root) {
       return crl_bcast(team, out != nullptr ? out : const_cast<void*>(in), bytes, root);
     }},
    {"Reduce",
     Kind::kReduction,
     true,
     {At::kAll},
     {At::kRoot},
     InPlace::kInput,
     nullptr,
     [](crl_team_h team, const void* in, void* out, std::size_t count, crl_dtype_t dtype,
        crl_op_t op, int root) { return crl_reduce(team, in, out, count, dtype, op, root); }},
    {"Allreduce",
     Kind::kReduction,
     false,
     {At::kAll},
     {At::kAll},
     InPlace::kInput,
     nullptr,
     [](crl_team_h team, const void* in, void* out, std::size_t count, crl_dtype_t dtype,
        crl_op_t op, int /*root*/) { return crl_allreduce(team, in, out, count, dtype, op); }},
    {"Reduce_scatter_block",
     Kind::kReduction,
     false,
     {At::kAll, true},
     {At::kAll},
     InPlace::kInput,
     nullptr,
     [](crl_team_h team, const void* in, void* out, std::size_t count, crl_dtype_t dtype,
        crl_op_t op,
        int /*root*/) { return crl_reduce_scatter_block(team, in, out, count, dtype, op); }},
    {"Allgather",
     Kind::kData,
     false,
     {At::kAll},
     {At::kAll, true},
     InPlace::kInput,
     [](crl_team_h team, const void* in, void* out, std::size_t bytes, int /*root*/) {
       return crl_allgather(team, in, out, bytes);
     }},
    {"Gather", Kind::kData, true, {At::kAll}, {At::kRoot, true}, InPlace::kInput, &crl_gather},
    {"Scatter", Kind::kData, true, {At::kRoot, true}, {At::kAll}, InPlace::kOutput, &crl_scatter},
    {"Alltoall",
     Kind::kData,
     false,
     {At::kAll, true},
     {At::kAll, true},
     InPlace::kInput,
     [](crl_team_h team, const void* in, void* out, std::size_t bytes, int /*root*/) {
       return crl_alltoall(team, in, out, bytes);
     }},
    {"Alltoallv", Kind::kBlocks, false, {At::kAll, true}, {At::kAll, true}, InPlace::kInput},
    {"Allgatherv"},
    {"Gatherv"},
    {"Scatterv"},
    {"Reduce_scatter"},
    {"Scan"},
    {"Exscan"},
    {"Alltoallw"},
    {"Ibarrier"},
    {"Ibcast"},
    {"Ireduce"},
    {"Iallreduce"},
    {"Iallgather"},
    {"Ialltoall"},
    {"Ialltoallv"},
};

constexpr const Rule& rule_of(Collective collective) {
  return kRules[static_cast<std::size_t>(collective)];
}

constexpr bool counts_at(At at, bool is_root) {
  return at == At::kAll || (at == At::kRoot && is_root) || (at == At::kNotRoot && !is_root);
}

/// A buffer as the program describes it.
struct Buffer {
  const void* address = nullptr;
  std::int64_t count = 0;  // elements of one block
  MPI_Datatype type{};
};

/// The counts and displacements of a call with one block per rank, in int or in MPI_Count.
struct Blocks {
  const void* counts = nullptr;
  const void* offsets = nullptr;
  bool wide = false;

  [[nodiscard]] std::int64_t count(int rank) const { return at(counts, rank); }
  [[nodiscard]] std::int64_t offset(int rank) const { return at(offsets, rank); }

 private:
  [[nodiscard]] std::int64_t at(const void* array, int rank) const {
    return wide ? static_cast<const std::int64_t*>(array)[rank]
                : static_cast<const int*>(array)[rank];
  }
};

/// One call. Fields a collective does not have stay empty.
struct Call {
  Buffer in{}, out{};
  MPI_Op op{};
  int root = 0;
  MPI_Comm comm{};
  Blocks in_blocks{}, out_blocks{};
};

}  // namespace carillon::shim
