// SPDX-License-Identifier: Apache-2.0
#include "schedule/problem.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace carillon {
namespace {

constexpr std::array<std::string_view, kCollectives> kNames = {
    "barrier",   "bcast",    "reduce",  "allreduce",
    "allgather", "gather",   "scatter", "reduce_scatter_block",
    "alltoall",  "alltoallv"};

std::int64_t extent(std::span<const std::int64_t> bytes, std::span<const std::int64_t> offsets) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) end = std::max(end, offsets[i] + bytes[i]);
  return end;
}

}  // namespace

std::string_view collective_name(Collective collective) {
  return kNames.at(static_cast<std::size_t>(collective));
}

bool collective_from_name(std::string_view name, Collective* collective) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return false;
  *collective = static_cast<Collective>(found - kNames.begin());
  return true;
}

bool has_root(Collective collective) {
  return collective == Collective::kBcast || collective == Collective::kReduce ||
         collective == Collective::kGather || collective == Collective::kScatter;
}

bool has_reduction(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kAllreduce ||
         collective == Collective::kReduceScatterBlock;
}

Rank Limits::node_size(Rank rank, Rank ranks) const {
  return nodes ? static_cast<Rank>(nodes->members(nodes->node_of(rank)).size()) : ranks;
}

bool Limits::operator==(const Limits& other) const {
  return slot_bytes == other.slot_bytes && send_bytes == other.send_bytes &&
         inline_bytes == other.inline_bytes && window == other.window &&
         large_slots == other.large_slots && crowded == other.crowded &&
         (nodes == other.nodes || (nodes && other.nodes && *nodes == *other.nodes));
}

std::int64_t input_bytes(const Shared& shared, const Local& local, Rank rank) {
  const std::int64_t block = shared.block_bytes();
  switch (shared.collective) {
    case Collective::kBarrier: return 0;
    case Collective::kBcast: return rank == shared.root ? block : 0;
    case Collective::kReduce:
    case Collective::kAllreduce:
    case Collective::kAllgather:
    case Collective::kGather: return block;
    case Collective::kScatter: return rank == shared.root ? block * shared.ranks : 0;
    case Collective::kReduceScatterBlock:
    case Collective::kAlltoall: return block * shared.ranks;
    case Collective::kAlltoallv: return extent(local.tables.send_bytes, local.tables.send_offsets);
  }
  return 0;
}

std::int64_t output_bytes(const Shared& shared, const Local& local, Rank rank) {
  const std::int64_t block = shared.block_bytes();
  switch (shared.collective) {
    case Collective::kBarrier: return 0;
    case Collective::kBcast: return rank == shared.root ? 0 : block;
    case Collective::kReduce: return rank == shared.root ? block : 0;
    case Collective::kAllreduce:
    case Collective::kScatter:
    case Collective::kReduceScatterBlock: return block;
    case Collective::kAllgather:
    case Collective::kAlltoall: return block * shared.ranks;
    case Collective::kGather: return rank == shared.root ? block * shared.ranks : 0;
    case Collective::kAlltoallv: return extent(local.tables.recv_bytes, local.tables.recv_offsets);
  }
  return 0;
}

std::int64_t in_place_shift(const Shared& shared, Rank rank) {
  switch (shared.collective) {
    case Collective::kAllgather:
    case Collective::kGather: return rank * shared.block_bytes();
    case Collective::kScatter: return -rank * shared.block_bytes();
    default: return 0;
  }
}

bool in_place_allowed(const Shared& shared, Rank rank) {
  switch (shared.collective) {
    case Collective::kAllreduce:
    case Collective::kAllgather:
    case Collective::kReduceScatterBlock:
    case Collective::kAlltoall: return true;
    case Collective::kReduce:
    case Collective::kGather:
    case Collective::kScatter: return rank == shared.root;
    default: return false;
  }
}

std::int64_t Call::blocks_before(Rank member) const {
  if (weights.empty()) return member;
  return std::accumulate(weights.begin(), weights.begin() + member, std::int64_t{0});
}

std::int64_t Call::segment_bytes() const {
  std::int64_t bytes = limits.slot_bytes;
  if (params.segment_bytes > 0) bytes = std::min(bytes, params.segment_bytes);
  return std::max<std::int64_t>(bytes / shared.element_bytes, 1) * shared.element_bytes;
}

}  // namespace carillon
