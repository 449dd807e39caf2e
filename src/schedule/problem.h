// SPDX-License-Identifier: Apache-2.0
//
// What a collective call asks for: Shared (equal on all ranks by MPI's rules), Local (this rank's
// own), and the Limits and Params agreed once per team. An algorithm's `emit` sees nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/list_requests.h"
#include "schedule/nodes.h"

namespace carillon {

enum class Collective : std::uint8_t {
  kBarrier,
  kBcast,
  kReduce,
  kAllreduce,
  kAllgather,
  kGather,
  kScatter,
  kReduceScatterBlock,
  kAlltoall,
  kAlltoallv,
  kScan,
  kExscan,
  kAllgatherv,
  kGatherv,
  kScatterv,
  kReduceScatter,
};
inline constexpr int kCollectives = 16;

/// "allreduce"; the same word in algorithm ids, the CLI and the docs.
std::string_view collective_name(Collective collective);
/// False if no collective has that name.
bool collective_from_name(std::string_view name, Collective* collective);
/// True for bcast, reduce, gather, scatter, gatherv and scatterv.
bool has_root(Collective collective);
/// True for reduce, allreduce, reduce_scatter_block, reduce_scatter, scan and exscan.
bool has_reduction(Collective collective);
/// True where all ranks know all tables, so that a schedule is one of certain tables:
/// reduce_scatter. The other schedules are the same for all tables, and send and receive by their
/// entries.
constexpr bool emits_by_tables(Collective collective) {
  return collective == Collective::kReduceScatter;
}
constexpr bool sends_by_tables(Collective collective) {
  return collective == Collective::kAlltoallv || collective == Collective::kAllgatherv ||
         collective == Collective::kGatherv || collective == Collective::kScatterv;
}
/// True where blocks differ in length and Tables say how: the "v" collectives and reduce_scatter.
constexpr bool has_tables(Collective collective) {
  return sends_by_tables(collective) || emits_by_tables(collective);
}

/// What MPI makes equal on all ranks. Selection sees this and nothing else (design rule: all
/// ranks decide alike).
///
/// `count` elements of `element_bytes` are one *block*: the whole vector for bcast, reduce and
/// allreduce, scan and exscan; one rank's share for allgather, gather, scatter,
/// reduce_scatter_block and alltoall; unused for barrier and where there are tables. Collectives
/// without a reduction may use element_bytes = 1.
struct Shared {
  Collective collective = Collective::kBarrier;
  Rank ranks = 1;
  Rank root = 0;
  std::int64_t count = 0;
  std::int32_t element_bytes = 1;
  bool commutative = true;
  /// Switches compute this operator on this type.
  bool in_switch = true;

  [[nodiscard]] std::int64_t block_bytes() const { return count * element_bytes; }
  bool operator==(const Shared&) const = default;
};

/// Of what an aggregate has a whole number, in bytes: elements, or where there is no operator the
/// words that switches combine.
inline constexpr std::int64_t kAggregateUnit = 4;
inline std::int64_t aggregate_unit(const Shared& shared) {
  return has_reduction(shared.collective) ? shared.element_bytes : kAggregateUnit;
}

/// Byte counts and offsets, one entry per peer, in the packed input and output: what this rank
/// sends to each, and receives from each. allgatherv sends the same to all; in gatherv only the
/// entries for the root count, and in scatterv only those of the root. In reduce_scatter block j
/// of the input is for rank j, and all entries of the output are this rank's block.
struct Tables {
  std::span<const std::int64_t> send_bytes, send_offsets, recv_bytes, recv_offsets;
};

/// What a rank tells of its part of an alltoallv, each the more the slower: its longest block, what
/// it sends in all, to how many ranks, and what its caller adds (0 unless it says).
enum class TableFact : std::uint8_t { kLongest, kTotal, kBlocks, kNote };
inline constexpr std::size_t kTableFacts = 4;
using TableFacts = std::array<std::int64_t, kTableFacts>;
TableFacts table_facts(std::span<const std::int64_t> send_bytes);

/// The numbers that a schedule of an alltoallv can copy from: send_bytes and their facts.
std::vector<std::int64_t> count_row(const Tables& tables);

/// This rank's own part of the call.
struct Local {
  /// The input is where MPI_IN_PLACE says: inside the output (inside the input for scatter).
  /// May differ between ranks for the collectives where only the root may ask for it.
  bool in_place = false;
  Tables tables;
};

/// Whether rank `from` gives rank `to` a block that tables describe.
bool moves_block(const Shared& shared, Rank from, Rank to);

/// Bytes of this rank's input and output space (0 where the rank has none: the output of a
/// non-root in reduce and of rank 0 in exscan, the input of a non-root in bcast). At the root of
/// bcast the user's one buffer is the input and there is no output; elsewhere it is the output.
std::int64_t input_bytes(const Shared& shared, const Local& local, Rank rank);
std::int64_t output_bytes(const Shared& shared, const Local& local, Rank rank);

/// In place, input byte x is output byte x + in_place_shift.
std::int64_t in_place_shift(const Shared& shared, Rank rank);
/// Whether this rank's part can be emitted in place. (Those that send by tables reach emit as calls
/// with two buffers: alltoallv with a staged input, because its scratch would depend on the tables,
/// the others with an input that is already where it belongs in the output, or the other way.)
bool in_place_allowed(const Shared& shared, Rank rank);

/// What a list between nodes costs instead of a copy, for algorithms that choose between the two.
/// The defaults are those of machines/edr.toml, which says where they come from.
struct ListCosts {
  std::int64_t entry_ps = 20'000;  ///< of the node's NIC, per entry after the first
  std::int64_t part_ps = 107'000;  ///< per request after the first; 0: lists of several are packed
  std::int64_t copy_ps = 10'000;   ///< of the CPU: per copy,
  std::int64_t run_ps = 5'000;     ///< per contiguous run of it,
  std::int64_t byte_fs = 80'000;   ///< and per byte
  /// Where entries are dear, so are requests: as many entries as by default, and no less than that.
  void set_entry(std::int64_t ps);
  bool operator==(const ListCosts&) const = default;
};

/// What decides whether the ranks of a NUMA domain read what one of them, its head, has written for
/// them, or each of them what a rank of another domain has. The defaults are estimates: 12 GB/s for
/// a copy, 40 GB/s between domains.
struct DomainCosts {
  std::int64_t cross_fs = 25'000;  ///< per byte and reader, of the way into the readers' domain
  std::int64_t write_fs = 80'000;  ///< of the head's CPU, per byte,
  std::int64_t hop_ps = 300'000;   ///< and how much later its message comes than the first one
  /// Of `bytes` for `readers` ranks of another domain than the writer's, the head among them.
  [[nodiscard]] bool pay_head(Rank readers, std::int64_t bytes) const {
    const std::int64_t saved_fs = (readers - 1) * cross_fs - write_fs;
    return saved_fs > 0 && bytes > hop_ps * 1000 / saved_fs;
  }
  bool operator==(const DomainCosts&) const = default;
};

/// What the team's transports guarantee, agreed over the team so that all ranks emit matching
/// parts.
struct Limits {
  std::int64_t slot_bytes = 65536;      ///< largest put; larger data goes in segments
  std::int64_t send_bytes = INT64_MAX;  ///< largest message that can be sent and received
  std::int32_t inline_bytes = 56;       ///< a put up to this size costs one cache line
  std::int32_t window = 4;              ///< messages in flight per channel before a put must wait
  /// Longest message to all ranks of the team, or to the leaders of its nodes, over a network that
  /// copies it; `window` of them fit into what a sender keeps. 0: the team has no such network.
  std::int64_t multicast_bytes = 65536;
  /// Switches reduce what the leaders of the nodes give them (aggregate).
  bool aggregates = true;
  std::int32_t large_slots = 2;  ///< puts above inline_bytes a strand is guaranteed in flight
  /// Longest list that a put to another node takes as it is, without copying it together first;
  /// 1: none.
  std::int32_t gather_entries = 1;
  /// What each of the team's devices takes of such a list in one request, if that is less.
  std::int32_t request_entries = INT32_MAX;
  ListCosts list_costs;
  /// How many requests a list of so many runs takes.
  [[nodiscard]] std::int64_t requests(std::int64_t runs) const {
    return list_requests(runs, std::min(gather_entries, request_entries));
  }
  DomainCosts domain_costs;
  /// More ranks than cores: fewer, larger exchanges pay. For selection; schedules do not depend
  /// on it.
  bool crowded = false;
  /// A message between nodes goes through the kernel, which takes microseconds. For selection, too.
  bool sockets = false;
  /// Multicast does better than what goes from node to node otherwise. For selection, too.
  bool multicast_pays = false;
  /// And so do switches.
  bool aggregation_pays = false;
  /// Reductions have one order, whatever the algorithm, the nodes and the network: that of the
  /// ranks, from left to right.
  bool reproducible = false;
  /// Which ranks share a node; null: all do.
  std::shared_ptr<const Nodes> nodes;
  /// And which of a node's a NUMA domain: a part of the node's memory that is nearer to them. Null:
  /// nothing is known, and each node is one.
  std::shared_ptr<const Nodes> domains;

  /// Of a team of `ranks`: how many are on the rank's node, itself included.
  [[nodiscard]] Rank node_size(Rank rank, Rank ranks) const;
  [[nodiscard]] bool share_node(Rank a, Rank b) const {
    return !nodes || nodes->node_of(a) == nodes->node_of(b);
  }
  /// The same of NUMA domains.
  [[nodiscard]] Rank domain_size(Rank rank, Rank ranks) const;
  [[nodiscard]] bool share_domain(Rank a, Rank b) const {
    return domains ? domains->node_of(a) == domains->node_of(b) : share_node(a, b);
  }
  /// Whether the rank is the first of its node.
  [[nodiscard]] bool is_leader(Rank rank) const {
    return nodes ? nodes->members(nodes->node_of(rank)).front() == rank : rank == 0;
  }
  [[nodiscard]] bool one_node() const { return !nodes || nodes->count() <= 1; }
  /// Largest message that a send is cut into. On one node they are longer than puts: two ranks that
  /// send to each other then have more under way each, and who is ahead waits less for the other.
  [[nodiscard]] std::int64_t stream_bytes() const {
    return one_node() ? 2 * slot_bytes : slot_bytes;
  }
  bool operator==(const Limits& other) const;
};

/// Parameters of an algorithm; 0 means its default. What each means stands in its registry row.
struct Params {
  std::int32_t k = 0;              ///< radix or degree
  std::int64_t segment_bytes = 0;  ///< pipeline segment, at most Limits::slot_bytes
  /// Of an algorithm made of levels: names of the algorithms within a node and between the nodes'
  /// leaders; static text of the registry. Empty: the default.
  std::string_view node = {}, leaders = {};
  /// The same messages by send and recv instead of put and wait: for comparison.
  bool two_sided = false;
  /// What becomes of blocks that do not lie together: "pack", copied together, "gather", put as a
  /// list, or "selective", whichever costs less. Static text; empty: the default.
  std::string_view memory = {};
  /// Copies go block by block, though blocks touch: for comparison.
  bool copy_blocks = false;
  bool operator==(const Params&) const = default;
};

/// All that an algorithm sees.
struct Call {
  Shared shared;
  Local local;
  Rank rank = 0;
  Limits limits;
  Params params;
  /// Stages: stage n + 1 is emitted from the values stage n received (Builder::next_stage).
  std::int32_t stage = 0;
  std::span<const std::int64_t> learned;
  /// allgather, alltoall on a group: how many ranks member i stands for; empty: one. Its block is
  /// as many blocks long, and that from i to j weights[i] * weights[j] blocks.
  std::span<const Rank> weights = {};

  /// Blocks that the members before this one stand for (`weights`).
  [[nodiscard]] std::int64_t blocks_before(Rank member) const;
  /// The pipeline segment: the parameter if given, else the largest slot, cut to whole elements.
  [[nodiscard]] std::int64_t segment_bytes() const;
  /// Of what is multicast, and not reduced: it need not be whole elements.
  [[nodiscard]] std::int64_t multicast_segment_bytes() const;
};

}  // namespace carillon
