// SPDX-License-Identifier: Apache-2.0
#include "schedule/problem.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace carillon {
namespace {

constexpr std::array<std::string_view, kCollectives> kNames = {
    "barrier",    "bcast",     "reduce",   "allreduce",
    "allgather",  "gather",    "scatter",  "reduce_scatter_block",
    "alltoall",   "alltoallv", "scan",     "exscan",
    "allgatherv", "gatherv",   "scatterv", "reduce_scatter"};

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
         collective == Collective::kGather || collective == Collective::kScatter ||
         collective == Collective::kGatherv || collective == Collective::kScatterv;
}

bool has_reduction(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kAllreduce ||
         collective == Collective::kReduceScatterBlock ||
         collective == Collective::kReduceScatter || collective == Collective::kScan ||
         collective == Collective::kExscan;
}

bool moves_block(const Shared& shared, Rank from, Rank to) {
  if (shared.collective == Collective::kGatherv) return to == shared.root;
  if (shared.collective == Collective::kScatterv) return from == shared.root;
  return has_tables(shared.collective);
}

Rank Limits::node_size(Rank rank, Rank ranks) const {
  return nodes ? static_cast<Rank>(nodes->members(nodes->node_of(rank)).size()) : ranks;
}

Rank Limits::domain_size(Rank rank, Rank ranks) const {
  return domains ? static_cast<Rank>(domains->members(domains->node_of(rank)).size())
                 : node_size(rank, ranks);
}

void ListCosts::set_entry(std::int64_t ps) {
  constexpr ListCosts kUsual;
  // In nanoseconds, as a product with picoseconds might not fit.
  constexpr std::int64_t kNsPs = 1000, kPart = kUsual.part_ps / kNsPs;
  constexpr std::int64_t kEntry = kUsual.entry_ps / kNsPs;
  entry_ps = ps;
  part_ps = std::max(kUsual.part_ps, ps * kPart / kEntry);
}

namespace {

bool are_equal(const std::shared_ptr<const Nodes>& a, const std::shared_ptr<const Nodes>& b) {
  return a == b || (a && b && *a == *b);
}

}  // namespace

bool Limits::operator==(const Limits& other) const {
  return slot_bytes == other.slot_bytes && send_bytes == other.send_bytes &&
         inline_bytes == other.inline_bytes && window == other.window &&
         large_slots == other.large_slots && multicast_bytes == other.multicast_bytes &&
         gather_entries == other.gather_entries && request_entries == other.request_entries &&
         list_costs == other.list_costs && domain_costs == other.domain_costs &&
         crowded == other.crowded && sockets == other.sockets &&
         multicast_pays == other.multicast_pays && aggregates == other.aggregates &&
         aggregation_pays == other.aggregation_pays && reproducible == other.reproducible &&
         are_equal(nodes, other.nodes) && are_equal(domains, other.domains);
}

TableFacts table_facts(std::span<const std::int64_t> send_bytes) {
  std::int64_t longest = 0, total = 0, blocks = 0;
  for (const std::int64_t bytes : send_bytes) {
    longest = std::max(longest, bytes);
    total = bytes > INT64_MAX - total ? INT64_MAX : total + bytes;
    if (bytes > 0) ++blocks;
  }
  return {longest, total, blocks, 0};
}

std::vector<std::int64_t> count_row(const Tables& tables) {
  std::vector<std::int64_t> row(tables.send_bytes.begin(), tables.send_bytes.end());
  const TableFacts facts = table_facts(tables.send_bytes);
  row.insert(row.end(), facts.begin(), facts.end());
  return row;
}

std::int64_t input_bytes(const Shared& shared, const Local& local, Rank rank) {
  const std::int64_t block = shared.block_bytes();
  switch (shared.collective) {
    case Collective::kBarrier: return 0;
    case Collective::kBcast: return rank == shared.root ? block : 0;
    case Collective::kReduce:
    case Collective::kAllreduce:
    case Collective::kAllgather:
    case Collective::kGather:
    case Collective::kScan:
    case Collective::kExscan: return block;
    case Collective::kScatter: return rank == shared.root ? block * shared.ranks : 0;
    case Collective::kReduceScatterBlock:
    case Collective::kAlltoall: return block * shared.ranks;
    case Collective::kAlltoallv:
    case Collective::kAllgatherv:
    case Collective::kGatherv:
    case Collective::kScatterv:
    case Collective::kReduceScatter:
      return extent(local.tables.send_bytes, local.tables.send_offsets);
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
    case Collective::kReduceScatterBlock:
    case Collective::kScan: return block;
    case Collective::kAllgather:
    case Collective::kAlltoall: return block * shared.ranks;
    case Collective::kGather: return rank == shared.root ? block * shared.ranks : 0;
    case Collective::kExscan: return rank == 0 ? 0 : block;
    case Collective::kAlltoallv:
    case Collective::kAllgatherv:
    case Collective::kGatherv:
    case Collective::kScatterv:
    case Collective::kReduceScatter:
      return extent(local.tables.recv_bytes, local.tables.recv_offsets);
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
    case Collective::kReduceScatter:
    case Collective::kScan:
    case Collective::kExscan:
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

std::int64_t Call::multicast_segment_bytes() const {
  return std::min({segment_bytes(), limits.slot_bytes, limits.multicast_bytes});
}

}  // namespace carillon
