// SPDX-License-Identifier: Apache-2.0
//
// What a collective call asks for: Shared (equal on all ranks by MPI's rules), Local (this rank's
// own), and the Limits and Params agreed once per team. An algorithm's `emit` sees nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

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
};
inline constexpr int kCollectives = 10;

/// "allreduce"; the same word in algorithm ids, the CLI and the docs.
std::string_view collective_name(Collective collective);
/// False if no collective has that name.
bool collective_from_name(std::string_view name, Collective* collective);
/// True for bcast, reduce, gather and scatter.
bool has_root(Collective collective);
/// True for reduce, allreduce and reduce_scatter_block.
bool has_reduction(Collective collective);

/// What MPI makes equal on all ranks. Selection sees this and nothing else (design rule: all
/// ranks decide alike).
///
/// `count` elements of `element_bytes` are one *block*: the whole vector for bcast, reduce and
/// allreduce; one rank's share for allgather, gather, scatter, reduce_scatter_block and alltoall;
/// unused for barrier and alltoallv. Collectives without a reduction may use element_bytes = 1.
struct Shared {
  Collective collective = Collective::kBarrier;
  Rank ranks = 1;
  Rank root = 0;
  std::int64_t count = 0;
  std::int32_t element_bytes = 1;
  bool commutative = true;

  [[nodiscard]] std::int64_t block_bytes() const { return count * element_bytes; }
  bool operator==(const Shared&) const = default;
};

/// Byte counts and offsets of alltoallv, one entry per peer, in the packed input and output.
struct Tables {
  std::span<const std::int64_t> send_bytes, send_offsets, recv_bytes, recv_offsets;
};

/// This rank's own part of the call.
struct Local {
  /// The input is where MPI_IN_PLACE says: inside the output (inside the input for scatter).
  /// May differ between ranks for the collectives where only the root may ask for it.
  bool in_place = false;
  Tables tables;
};

/// Bytes of this rank's input and output space (0 where the rank has none: the output of a
/// non-root in reduce, the input of a non-root in bcast). At the root of bcast the user's one
/// buffer is the input and there is no output; elsewhere it is the output.
std::int64_t input_bytes(const Shared& shared, const Local& local, Rank rank);
std::int64_t output_bytes(const Shared& shared, const Local& local, Rank rank);

/// In place, input byte x is output byte x + in_place_shift.
std::int64_t in_place_shift(const Shared& shared, Rank rank);
/// Whether MPI lets this rank ask for in-place in this collective. (alltoallv in place reaches
/// emit as a call with a staged input, because its scratch would depend on the tables.)
bool in_place_allowed(const Shared& shared, Rank rank);

/// What the team's transports guarantee, agreed over the team so that all ranks emit matching
/// parts.
struct Limits {
  std::int64_t slot_bytes = 65536;      ///< largest put; larger data goes in segments
  std::int64_t send_bytes = INT64_MAX;  ///< largest message that can be sent and received
  std::int32_t inline_bytes = 56;       ///< a put up to this size costs one cache line
  std::int32_t window = 4;              ///< messages in flight per channel before a put must wait
  std::int32_t large_slots = 2;         ///< puts above inline_bytes a rank is guaranteed in flight
  /// More ranks than cores: fewer, larger exchanges pay. For selection; schedules do not depend
  /// on it.
  bool crowded = false;
  /// Which ranks share a node; null: all do.
  std::shared_ptr<const Nodes> nodes;

  /// Of a team of `ranks`: how many are on the rank's node, itself included.
  [[nodiscard]] Rank node_size(Rank rank, Rank ranks) const;
  [[nodiscard]] bool share_node(Rank a, Rank b) const {
    return !nodes || nodes->node_of(a) == nodes->node_of(b);
  }
  [[nodiscard]] bool one_node() const { return !nodes || nodes->count() <= 1; }
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
};

}  // namespace carillon
