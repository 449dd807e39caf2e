// SPDX-License-Identifier: Apache-2.0
//
// The schedule: one rank's part of a collective, as data. Emitted by an algorithm, then verified,
// run, simulated and printed from this one form.
//
// Meaning. A schedule is one or more *strands*. The ops of a strand happen in program order;
// strands of a rank run concurrently and meet only by messages (a rank may signal itself).
// An op *blocks its strand* until it has happened:
//   copy    dst <- src, byte lists of equal total length; no dst byte is also a src byte, except
//           one that is copied onto itself.
//   reduce  dst <- left (op) right, element by element; dst is disjoint from each operand or
//           exactly the same bytes. The operand order is part of the schedule.
//   put     captures src (the bytes may be overwritten right after) and makes them one message,
//           to one peer (channel pair) or to every other rank of its node (channel all) or of
//           its NUMA domain (channel domain). Blocks only while the channel's window of unreleased
//           messages is full.
//   signal  a put of no bytes.
//   wait    until that message is there; from then on its bytes can be read as space slot.
//   send    two-sided: like put, of any length and to a tagged queue of its own.
//   recv    two-sided: until the matching send's bytes are in dst. Lengths must match.
//   multicast  captures src and makes them one message to all other ranks of a group (channels
//           team, leaders and nodes), over a network that copies it; it may have no bytes.
//           Blocks only while the group's window of this writer is full.
//   receive until a multicast's bytes are in dst. Lengths must match; the message is released then.
//   aggregate  captures src, until switches have combined what the leaders of all nodes gave, and
//           the result is in dst. In the order of the nodes, by a balanced binary tree (0 with 1, 2
//           with 3, then those); one without src is skipped. Any length, the same on all leaders;
//           src and dst are one range each or none; dst is exactly src or disjoint from it.
//   repeat  runs the `body` ops that follow `count` times; strides apply per iteration. Loops
//           do not nest.
// Messages of a channel are numbered 0, 1, 2... in the order of the emission, the same on both
// sides: the number is the message's identity, not the order of execution. A message is
// *released* (its window place given back) after its last use in the waiting strand's program
// order; a message waited for inside a loop is released in the same iteration.
// A schedule must not use both put/signal and send on the same directed pair. Multicasts of one
// writer to one group are sent, and received by each rank, in the order of their numbers; so are a
// leader's aggregates, which are not in loops nor in schedules of several stages.
//
// Schedules hold no pointers: indices and offsets only, so that another process can run one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/problem.h"

namespace carillon {

/// A byte range of a space. `stride` moves it per iteration of the enclosing loop.
struct Range {
  std::int64_t offset = 0;
  std::int64_t length = 0;
  std::int64_t stride = 0;

  /// The part of this range that `inner`, relative to its start, names.
  [[nodiscard]] Range sub(Range inner) const {
    return {offset + inner.offset, inner.length, stride + inner.stride};
  }
  bool operator==(const Range&) const = default;
};

/// counts: what this rank sends by the tables of an alltoallv, as numbers (count_row); only copied
/// from.
enum class Space : std::uint8_t { kInput, kOutput, kScratch, kSlot, kCounts };

/// pair: one writer, one reader. all: one writer, every other rank of the writer's node reads.
/// domain: the same of the writer's NUMA domain (Limits::domains).
/// queue: the two-sided one, for send and recv. team, leaders: the groups of multicast and receive,
/// all ranks of the team and the first rank of each of its nodes. nodes: one writer, all ranks of
/// the other nodes read, each node from one copy that it takes from the network.
enum class Channel : std::uint8_t { kPair, kAll, kDomain, kQueue, kTeam, kLeaders, kNodes };
inline constexpr int kChannels = 7;

/// Of multicast and receive.
constexpr bool is_group(Channel channel) {
  return channel == Channel::kTeam || channel == Channel::kLeaders || channel == Channel::kNodes;
}
/// Of put, signal and wait: written once, read by several ranks of the writer's node.
constexpr bool is_shared(Channel channel) {
  return channel == Channel::kAll || channel == Channel::kDomain;
}
/// To all readers there are: a writer's message names no peer.
constexpr bool has_readers(Channel channel) { return is_shared(channel) || is_group(channel); }
/// Whether the rank writes and reads messages of this group.
bool in_group(Channel channel, Rank rank, const Limits& limits);
/// Whether it reads what `writer`, another rank, writes to this channel of several readers.
bool hears(Channel channel, Rank writer, Rank rank, const Limits& limits);
/// Of a team of `ranks`: how many read the rank's messages on this channel.
Rank readers_of(Channel channel, Rank rank, Rank ranks, const Limits& limits);

/// Where the range of a buffer stands: in the buffer itself, or in the call's count tables
/// (alltoallv), at entry `entry`.
enum class Table : std::uint8_t { kNone, kSend, kRecv };

/// One message on a channel, from the reader's side: who wrote it, and its number there.
struct Message {
  Channel channel = Channel::kPair;
  Rank peer = 0;
  std::int32_t index = 0;
  std::int32_t index_stride = 0;  ///< per iteration of the enclosing loop
  bool operator==(const Message&) const = default;
};

/// A piece of memory an op reads or writes.
struct Buffer {
  Space space = Space::kInput;
  Table table = Table::kNone;
  std::int32_t entry = 0;  ///< of the table; `range` is then unused
  Range range;
  Message message;  ///< space slot: whose bytes; offsets are relative to the message
  bool operator==(const Buffer&) const = default;
};

enum class OpKind : std::uint8_t {
  kCopy,
  kReduce,
  kPut,
  kSignal,
  kWait,
  kSend,
  kRecv,
  kRepeat,
  kMulticast,
  kReceive,
  kAggregate,
};
inline constexpr int kOpKinds = 11;
/// put, signal, send, multicast.
constexpr bool is_outgoing(OpKind kind) {
  return kind == OpKind::kPut || kind == OpKind::kSignal || kind == OpKind::kSend ||
         kind == OpKind::kMulticast;
}
/// wait, recv, receive.
constexpr bool is_incoming(OpKind kind) {
  return kind == OpKind::kWait || kind == OpKind::kRecv || kind == OpKind::kReceive;
}

struct Op {
  OpKind kind = OpKind::kCopy;
  /// put, signal, send: peer is the reader (-1 where there are several); wait, recv, receive: the
  /// writer; aggregate: channel leaders, peer -1.
  Message message;
  std::uint32_t first_buffer = 0;  ///< destinations, then sources (reduce: dst, left, right)
  std::uint32_t dst_count = 0;
  std::uint32_t src_count = 0;
  std::int64_t count = 0;  ///< repeat: iterations
  std::uint32_t body = 0;  ///< repeat: how many of the following ops are its body
  bool operator==(const Op&) const = default;
};

struct Strand {
  std::uint32_t first_op = 0;
  std::uint32_t op_count = 0;
  bool operator==(const Strand&) const = default;
};

/// A label on the ops from first_op on, for readers.
struct Phase {
  std::uint32_t first_op = 0;
  std::string name;
  bool operator==(const Phase&) const = default;
};

struct Schedule {
  Rank ranks = 1;
  Rank rank = 0;
  std::int64_t scratch_bytes = 0;
  std::vector<Strand> strands;
  std::vector<Op> ops;
  std::vector<Buffer> buffers;
  std::vector<Phase> phases;
  /// When this stage is done, the int64 values in this scratch range are handed to the emit of
  /// the next one. Empty: the last stage. Scratch keeps its contents between stages.
  Range learned;

  [[nodiscard]] std::span<const Buffer> dst(const Op& op) const {
    return {buffers.data() + op.first_buffer, op.dst_count};
  }
  [[nodiscard]] std::span<const Buffer> src(const Op& op) const {
    return {buffers.data() + op.first_buffer + op.dst_count, op.src_count};
  }
  bool operator==(const Schedule&) const = default;
};

std::string_view op_name(OpKind kind);
std::string_view space_name(Space space);
/// "all", "domain", "team", "leaders" or "nodes": of channels with several readers.
std::string_view readers_name(Channel channel);

/// Does the rank only send messages, or only take them?
bool is_one_way(const Schedule& schedule);

/// After which op (index into ops) each `wait` op's message is released: the last op of the
/// waiting strand that reads it, or the wait itself. A message waited for outside a loop and read
/// inside one is released by the repeat as a whole: the entry is then the repeat's op index.
/// Entries of other ops are -1.
std::vector<std::int64_t> release_points(const Schedule& schedule);

}  // namespace carillon
