// SPDX-License-Identifier: Apache-2.0
//
// A plan: a schedule lowered to what one rank's engine runs. Buffers have become (base, offset)
// pairs, put and signal a single line write, lists single pieces, releases explicit. A plan holds
// no pointers and no team: it is shared by all teams of the same size and rank.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine/breakdown.h"
#include "schedule/schedule.h"
#include "transport/shm/layout.h"

namespace carillon {

/// Index into Run's table of base pointers.
enum Base : std::uint32_t { kBaseInput, kBaseOutput, kBaseScratch, kBaseCounts, kBaseSlots };

struct Operand {
  std::uint32_t base = 0;  ///< kBaseSlots + n: the n-th wait's message
  Table table = Table::kNone;
  std::int32_t entry = 0;
  std::int64_t offset = 0;
  std::int64_t stride = 0;  ///< bytes per iteration of the loop around it
};

enum class Action : std::uint8_t {
  kPut,      ///< a piece list (a) to one line, or through a chunk
  kWait,     ///< until the message is there; its address goes to base `dst.base`
  kRelease,  ///< counts the message as released and tells the writer
  kFlush,    ///< until the network no longer reads what these puts (Plan::flushes) name
  kCopy,
  kReduce,
  kSend,  ///< a stream of messages
  kRecv,
  kMulticast,  ///< a piece list (a) to a group
  kReceive,    ///< a multicast, into a piece list (dst)
  kAggregate,  ///< of all leaders, by switches: `a` to dst, `count` elements
  kRepeat,     ///< `count` iterations of the instructions up to kEndRepeat
  kEndRepeat,
  kEnd,  ///< of the strand
};

struct Instruction {
  Action action = Action::kEnd;
  /// put, send: the source keeps its value until the end; if it is a message: if that has landed.
  bool lasts = false;
  /// put, send: the next instruction copies the same bytes; copy: it is that one. What goes by the
  /// pool is written together with the copy: the bytes are read once.
  bool paired = false;
  Work work = Work::kRotate;  ///< copy: which kind of copy
  std::uint16_t use = 0;      ///< index into Plan::uses
  /// put, send: which of Plan::gathers, counted from 1; 0: the bytes are copied when it is done.
  /// recv: the same of where they go.
  std::uint16_t gather = 0;
  std::int32_t index = 0;  ///< message number on the channel, within the collective
  std::int32_t index_stride = 0;
  /// put, send, recv with several pieces: into Plan::pieces; flush: into Plan::flushes
  /// aggregate: 1 if there is an operand `a`
  std::uint32_t first_piece = 0;
  /// 0: the one piece is `a` (put, send) or `dst` (recv). aggregate: 1 if the result is wanted.
  std::uint32_t piece_count = 0;
  std::int64_t length = 0;  ///< bytes; wait: the least the message must have
  /// reduce: elements; repeat: iterations; wait: bytes of `a`, where the message may land at once
  std::int64_t count = 0;
  Operand dst, a, b;
};

struct PlanPiece {
  Operand memory;
  std::int64_t length = 0;
};

/// A put or send to another node whose bytes the network may take from where they stand: what
/// overwrites them later has a kFlush before it, and so has what releases a message they are of. Or
/// a recv from there, whose places the network may fill.
struct PlanGather {
  std::uint32_t first_run = 0;  ///< into Plan::pieces
  std::uint32_t run_count = 0;
  Rank peer = 0;
  /// In calls with the same buffers the runs are in the same places.
  bool fixed = false;
  /// What overwrites the bytes may come before the reader, doing likewise, asks for them.
  bool hasty = false;
};

enum class Flow : std::uint8_t {
  kOutPair,
  kInPair,
  kOutAll,
  kInAll,
  kOutDomain,
  kInDomain,
  kOutTeam,
  kInTeam,
  kOutLeaders,
  kInLeaders,
  kOutNodes,
  kInNodes,
  kSwitch,
};
/// To several ranks of the node, which are the audience.
constexpr bool is_shared_out(Flow flow) {
  return flow == Flow::kOutAll || flow == Flow::kOutDomain;
}
constexpr bool is_shared_in(Flow flow) { return flow == Flow::kInAll || flow == Flow::kInDomain; }
/// Between ranks of one node, or of one and others: as the ranks are.
constexpr bool stays_on_node(Flow flow) {
  return flow == Flow::kOutPair || flow == Flow::kInPair || is_shared_out(flow) ||
         is_shared_in(flow);
}
constexpr shm::Audience audience_of(Flow flow) {
  const bool all = flow == Flow::kOutAll || flow == Flow::kInAll;
  return all ? shm::Audience::kNode : shm::Audience::kDomain;
}
/// Of multicasts: the group, channel team, leaders or nodes.
constexpr Channel group_of(Flow flow) {
  if (flow == Flow::kOutNodes || flow == Flow::kInNodes) return Channel::kNodes;
  return flow == Flow::kOutTeam || flow == Flow::kInTeam ? Channel::kTeam : Channel::kLeaders;
}

/// A channel that the schedule uses, and how many messages it carries.
struct ChannelUse {
  Flow flow = Flow::kOutPair;
  Rank peer = 0;
  std::int64_t count = 0;
  /// The one send or recv of table-given length on it, whose count is known only at the call.
  Table table = Table::kNone;
  std::int32_t entry = 0;
  bool streams = false;  ///< some of it is sent and received
};
/// Of so many messages on a channel of the node the writer hears only when the collective has been
/// completed. Those of sends are the longest there are, and each has a chunk of the pool until
/// then: as many bytes of them as of puts.
constexpr std::int64_t most_untold(const ChannelUse& use) {
  return use.streams ? shm::kWindow / 2 : shm::kWindow;
}

struct Plan {
  std::vector<Instruction> code;
  std::vector<std::uint32_t> strand_starts;
  std::vector<PlanPiece> pieces;
  std::vector<ChannelUse> uses;
  std::vector<PlanGather> gathers;
  std::vector<std::uint16_t> flushes;  ///< Instruction::gather of puts
  std::vector<Rank> slot_writers;      ///< by base - kBaseSlots
  std::uint32_t slot_bases = 0;
  std::int64_t scratch_bytes = 0;
  std::int64_t stream_bytes = 0;                   ///< largest message of a send
  std::int64_t input_bytes = 0, output_bytes = 0;  ///< of the call; 0 where tables say
  /// Its sends and recvs are meant as such: between nodes they are not put.
  bool two_sided = false;
  /// The rank only takes messages, or only sends them: while one writes another reads.
  bool one_way = false;
  /// Tables give the lengths of all its messages.
  bool by_tables = false;
  /// Some message that the rank writes may be longer than a line's payload.
  bool posts_long = false;
  Range learned;  ///< not empty: another stage follows
  /// It is one strand without loops and lists, with no more messages on a channel than that has
  /// lines: it may go the short way where all are on one node (run_brief-inl.h).
  bool brief = false;
};

/// Sets what follows from the rest: `brief`, and `paired` of instructions.
void complete(Plan& plan);

/// Lowers a schedule. `element_bytes` is that of the call (for reduce).
Result<Plan> lower(const Schedule& schedule, const Call& call);

}  // namespace carillon
