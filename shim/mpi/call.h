// SPDX-License-Identifier: Apache-2.0
//
// What the interposer knows about each collective, as one table of rules, and one call of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

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
  kNeighborAllgather,
  kNeighborAllgatherv,
  kNeighborAlltoall,
  kNeighborAlltoallv,
  kNeighborAlltoallw,
};
inline constexpr std::size_t kCollectives = 22;

/// Of each collective: MPI_Bcast, MPI_Ibcast and MPI_Bcast_init.
enum class Form : std::uint8_t { kBlocking, kStarted, kPersistent };
inline constexpr std::size_t kForms = 3;

/// What is counted: a collective in one of its forms.
inline constexpr std::size_t kCalls = kForms * kCollectives;
constexpr std::size_t call_index(Collective collective, Form form = Form::kBlocking) {
  return static_cast<std::size_t>(form) * kCollectives + static_cast<std::size_t>(collective);
}
/// E.g. "Bcast", "Ibcast" or "Bcast_init".
std::string call_name(std::size_t index);

/// Why a call was left to the host. Every reason but the last three is the same on all ranks.
enum class Reason : std::uint8_t {
  kNone,            // it was not left
  kOff,             // CARILLON=off on some rank, or carillon could not start
  kNotInitialised,  // before MPI_Init or after carillon's end in MPI_Finalize
  kIntercommunicator,
  kOtherWorld,  // the communicator has processes of another MPI_COMM_WORLD
  kNotServed,   // the team agreed that carillon cannot serve it (several nodes, versions)
  kReduction,   // an operator and type that only the host may know
  kOwnOrder,    // a neighbour on both sides in a grid, whose blocks the host has in its own order
  kNested,      // the host called it while carillon called the host
  kSuspect,     // wrong arguments: the host answers
  kObserved,    // it is taken or left elsewhere, and recorded or checked
};
inline constexpr std::size_t kReasons = 11;

/// What became of a call: taken, with its MPI error code, or left to the host, with the reason.
struct Outcome {
  int code = MPI_SUCCESS;
  Reason left = Reason::kNone;
};

constexpr Outcome leave(Reason reason) { return {MPI_SUCCESS, reason}; }

/// How its arguments are looked at. kLists: both sides list a block per rank; kOneList: one does;
/// kNeighbours: blocks are those of a topology's neighbours.
enum class Kind : std::uint8_t {
  kBarrier,
  kData,
  kReduction,
  kReduceScatter,
  kLists,
  kOneList,
  kNeighbours,
};

/// On which ranks a buffer counts.
enum class At : std::uint8_t { kNone, kAll, kRoot, kNotRoot };

/// Which buffer MPI_IN_PLACE may stand for.
enum class InPlace : std::uint8_t { kNever, kInput, kOutput };

/// One side of a call: where it counts, and whether it holds one block or one per rank, or
/// neighbour.
struct Side {
  At at = At::kNone;
  bool block_per_rank = false;
};

/// Blocking, or with a place for the request.
using DataCall = crl_status_t (*)(crl_team_h, const void* in, void* out, std::size_t bytes,
                                  int root, crl_request_h* request);
using ReductionCall = crl_status_t (*)(crl_team_h, const void* in, void* out, std::size_t count,
                                       crl_dtype_t, crl_op_t, int root, crl_request_h* request);

struct Rule {
  const char* name;
  Kind kind = Kind::kBarrier;
  bool rooted = false;
  Side in, out;
  InPlace in_place = InPlace::kNever;
  DataCall data = nullptr;
  ReductionCall reduction = nullptr;
};

/// A reduction without a root: carillon's blocking call, or its other form.
template <auto kBlocking, auto kStarted>
crl_status_t reduce_for_all(crl_team_h team, const void* in, void* out, std::size_t count,
                            crl_dtype_t dtype, crl_op_t op, int /*root*/, crl_request_h* request) {
  return request == nullptr ? kBlocking(team, in, out, count, dtype, op)
                            : kStarted(team, in, out, count, dtype, op, request);
}

inline constexpr Rule kRules[kCollectives] = {
    {"Barrier", Kind::kBarrier},
    {"Bcast",
     Kind::kData,
     true,
     {At::kRoot},
     {At::kNotRoot},
     InPlace::kNever,
     [](crl_team_h team, const void* in, void* out, std::size_t bytes, int root,
        crl_request_h* request) {
       void* const buffer = out != nullptr ? out : const_cast<void*>(in);
       return request == nullptr ? crl_bcast(team, buffer, bytes, root)
                                 : crl_ibcast(team, buffer, bytes, root, request);
     }},
    {"Reduce",
     Kind::kReduction,
     true,
     {At::kAll},
     {At::kRoot},
     InPlace::kInput,
     nullptr,
     [](crl_team_h team, const void* in, void* out, std::size_t count, crl_dtype_t dtype,
        crl_op_t op, int root, crl_request_h* request) {
       return request == nullptr ? crl_reduce(team, in, out, count, dtype, op, root)
                                 : crl_ireduce(team, in, out, count, dtype, op, root, request);
     }},
    {"Allreduce",
     Kind::kReduction,
     false,
     {At::kAll},
     {At::kAll},
     InPlace::kInput,
     nullptr,
     reduce_for_all<crl_allreduce, crl_iallreduce>},
    {"Reduce_scatter_block",
     Kind::kReduction,
     false,
     {At::kAll, true},
     {At::kAll},
     InPlace::kInput,
     nullptr,
     reduce_for_all<crl_reduce_scatter_block, crl_ireduce_scatter_block>},
    {"Allgather",
     Kind::kData,
     false,
     {At::kAll},
     {At::kAll, true},
     InPlace::kInput,
     [](crl_team_h team, const void* in, void* out, std::size_t bytes, int /*root*/,
        crl_request_h* request) {
       return request == nullptr ? crl_allgather(team, in, out, bytes)
                                 : crl_iallgather(team, in, out, bytes, request);
     }},
    {"Gather",
     Kind::kData,
     true,
     {At::kAll},
     {At::kRoot, true},
     InPlace::kInput,
     [](crl_team_h team, const void* in, void* out, std::size_t bytes, int root,
        crl_request_h* request) {
       return request == nullptr ? crl_gather(team, in, out, bytes, root)
                                 : crl_igather(team, in, out, bytes, root, request);
     }},
    {"Scatter",
     Kind::kData,
     true,
     {At::kRoot, true},
     {At::kAll},
     InPlace::kOutput,
     [](crl_team_h team, const void* in, void* out, std::size_t bytes, int root,
        crl_request_h* request) {
       return request == nullptr ? crl_scatter(team, in, out, bytes, root)
                                 : crl_iscatter(team, in, out, bytes, root, request);
     }},
    {"Alltoall",
     Kind::kData,
     false,
     {At::kAll, true},
     {At::kAll, true},
     InPlace::kInput,
     [](crl_team_h team, const void* in, void* out, std::size_t bytes, int /*root*/,
        crl_request_h* request) {
       return request == nullptr ? crl_alltoall(team, in, out, bytes)
                                 : crl_ialltoall(team, in, out, bytes, request);
     }},
    {"Alltoallv", Kind::kLists, false, {At::kAll, true}, {At::kAll, true}, InPlace::kInput},
    {"Allgatherv", Kind::kOneList, false, {At::kAll}, {At::kAll, true}, InPlace::kInput},
    {"Gatherv", Kind::kOneList, true, {At::kAll}, {At::kRoot, true}, InPlace::kInput},
    {"Scatterv", Kind::kOneList, true, {At::kRoot, true}, {At::kAll}, InPlace::kOutput},
    {"Reduce_scatter", Kind::kReduceScatter, false, {At::kAll, true}, {At::kAll}, InPlace::kInput},
    {"Scan",
     Kind::kReduction,
     false,
     {At::kAll},
     {At::kAll},
     InPlace::kInput,
     nullptr,
     reduce_for_all<crl_scan, crl_iscan>},
    {"Exscan",
     Kind::kReduction,
     false,
     {At::kAll},
     {At::kAll},
     InPlace::kInput,
     nullptr,
     reduce_for_all<crl_exscan, crl_iexscan>},
    {"Alltoallw", Kind::kLists, false, {At::kAll, true}, {At::kAll, true}, InPlace::kInput},
    {"Neighbor_allgather", Kind::kNeighbours, false, {At::kAll}, {At::kAll, true}},
    {"Neighbor_allgatherv", Kind::kNeighbours, false, {At::kAll}, {At::kAll, true}},
    {"Neighbor_alltoall", Kind::kNeighbours, false, {At::kAll, true}, {At::kAll, true}},
    {"Neighbor_alltoallv", Kind::kNeighbours, false, {At::kAll, true}, {At::kAll, true}},
    {"Neighbor_alltoallw", Kind::kNeighbours, false, {At::kAll, true}, {At::kAll, true}},
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

/// The counts and displacements of a call with one block per rank, or neighbour, in int or in
/// MPI_Count.
struct Blocks {
  const void* counts = nullptr;
  const void* offsets = nullptr;
  bool wide = false;
  const MPI_Datatype* types = nullptr;  // of each block; its displacement is then in bytes
  bool wide_offsets = wide;
  std::int64_t stride = 0;  // elements from block to block, where there are no offsets

  [[nodiscard]] std::int64_t count(int block) const { return at(counts, block, wide); }
  [[nodiscard]] std::int64_t offset(int block) const {
    return offsets != nullptr ? at(offsets, block, wide_offsets) : block * stride;
  }

 private:
  [[nodiscard]] static std::int64_t at(const void* array, int block, bool wide) {
    return wide ? static_cast<const std::int64_t*>(array)[block]
                : static_cast<const int*>(array)[block];
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
