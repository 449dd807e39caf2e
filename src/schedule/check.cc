// SPDX-License-Identifier: Apache-2.0
#include "schedule/check.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "schedule/layout.h"
#include "schedule/streams.h"
#include "schedule/text.h"

namespace carillon {
namespace {

// Far above any real size and far below overflow: sums and products of a few of these are exact.
constexpr std::int64_t kMaxValue = std::int64_t{1} << 48;
constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();

bool sane(std::int64_t value) { return value >= 0 && value <= kMaxValue; }

class Checker {
 public:
  Checker(const Schedule& schedule, const Call& call)
      : schedule_(schedule),
        call_(call),
        input_bytes_(input_bytes(call.shared, call.local, call.rank)),
        output_bytes_(output_bytes(call.shared, call.local, call.rank)) {}

  Status run() {
    check_header();
    check_phases();
    check_strands();
    for (const Strand& strand : schedule_.strands) {
      if (!status_.ok()) return status_;
      check_strand(strand);
    }
    return status_;
  }

 private:
  void fail(const std::string& reason) {
    if (!status_.ok()) return;
    std::string where = "rank " + std::to_string(call_.rank);
    if (op_ >= 0) {
      where += ", op " + std::to_string(op_) + " (" +
               op_text(schedule_, static_cast<std::size_t>(op_)) + ")";
    }
    status_ = Status(Code::kInternal, where + ": " + reason);
  }
  void require(bool condition, const char* reason) {
    if (!condition) fail(reason);
  }

  void check_header() {
    require(schedule_.ranks == call_.shared.ranks, "a schedule for a team of another size");
    require(schedule_.rank == call_.rank, "the schedule of another rank");
    require(sane(schedule_.scratch_bytes), "scratch of an impossible size");
    const Range& learned = schedule_.learned;
    require(sane(learned.offset) && sane(learned.length) && learned.stride == 0 &&
                learned.offset + learned.length <= schedule_.scratch_bytes,
            "the values learned lie outside scratch");
    require(learned.length % 8 == 0 && learned.offset % 8 == 0,
            "the values learned are not whole, aligned int64");
    require(learned.length > 0 || learned == Range{}, "an empty range is learned");
  }

  void check_phases() {
    std::uint32_t last = 0;
    for (const Phase& phase : schedule_.phases) {
      require(phase.first_op >= last && phase.first_op <= schedule_.ops.size(),
              "the phases are not in the order of the ops");
      last = phase.first_op;
      const bool plain = std::all_of(phase.name.begin(), phase.name.end(),
                                     [](char c) { return c > ' ' && c <= '~'; });
      require(plain && !phase.name.empty(), "a phase name is not one printable word");
    }
  }

  void check_strands() {
    std::uint64_t next = 0;
    require(!schedule_.strands.empty(), "there is no strand");
    for (const Strand& strand : schedule_.strands) {
      require(strand.first_op == next, "the strands do not follow one another");
      next += strand.op_count;
    }
    require(next == schedule_.ops.size(), "the strands do not cover the ops");
  }

  void check_strand(const Strand& strand) {
    const std::size_t end = std::size_t{strand.first_op} + strand.op_count;
    std::size_t loop_end = 0;
    for (std::size_t i = strand.first_op; i < end && status_.ok(); ++i) {
      op_ = static_cast<std::int64_t>(i);
      const Op& op = schedule_.ops[i];
      const bool in_loop = i < loop_end;
      if (op.kind == OpKind::kRepeat) {
        require(!in_loop, "a loop inside a loop");
        require(op.body > 0 && i + op.body < end, "the loop body does not fit its strand");
        require(op.count > 0 && op.count <= kMaxIndex, "an impossible number of rounds");
        loop_end = i + op.body + 1;
        rounds_ = op.count;
      } else {
        require(op.count == 0 && op.body == 0, "only a loop has rounds");
        if (!in_loop) rounds_ = 1;
      }
      check_op(op, in_loop);
    }
    op_ = -1;
  }

  void check_op(const Op& op, bool in_loop) {
    require(static_cast<int>(op.kind) < kOpKinds, "the kind of op is unknown");
    const std::uint64_t end = std::uint64_t{op.first_buffer} + op.dst_count + op.src_count;
    require(end <= schedule_.buffers.size(), "the buffers do not exist");
    if (!status_.ok()) return;
    check_shape(op);
    check_message(op, in_loop);
    for (const Buffer& buffer : schedule_.dst(op)) {
      require(buffer.space == Space::kOutput || buffer.space == Space::kScratch,
              "only output and scratch can be written");
      check_buffer(op, buffer, in_loop);
    }
    for (const Buffer& buffer : schedule_.src(op)) check_buffer(op, buffer, in_loop);
    // How the lists of a copy fit together, and where a message is cut, must not depend on tables.
    require((op.dst_count <= 1 && op.src_count <= 1) ||
                (!has_table(schedule_.dst(op)) && !has_table(schedule_.src(op))),
            "an entry of a count table beside other buffers");
    if (status_.ok()) check_lengths(op);
  }

  void check_shape(const Op& op) {
    const std::uint32_t dst = op.dst_count;
    const std::uint32_t src = op.src_count;
    switch (op.kind) {
      case OpKind::kCopy: return require(dst > 0 && src > 0, "a copy from or to nothing");
      case OpKind::kReduce:
        return require(dst == 1 && src == 2, "a reduce has one destination and two operands");
      case OpKind::kPut: return require(dst == 0 && src > 0, "a put has sources only");
      case OpKind::kMulticast: return require(dst == 0, "a multicast has sources only");
      case OpKind::kReceive: return require(src == 0, "a receive has destinations only");
      case OpKind::kAggregate:
        return require(dst <= 1 && src <= 1, "an aggregate has one range of each kind at most");
      case OpKind::kSend: return require(dst == 0, "a send has sources only");
      case OpKind::kRecv: return require(src == 0, "a recv has destinations only");
      case OpKind::kSignal:
      case OpKind::kWait:
      case OpKind::kRepeat: return require(dst == 0 && src == 0, "this op takes no buffers");
    }
  }

  void check_message(const Op& op, bool in_loop) {
    const Message& message = op.message;
    switch (op.kind) {
      case OpKind::kCopy:
      case OpKind::kReduce:
      case OpKind::kRepeat: return require(message == Message{}, "this op has no message");
      case OpKind::kSend:
      case OpKind::kRecv:
        require(message.channel == Channel::kQueue, "send and recv use the queue channel");
        break;
      case OpKind::kPut:
      case OpKind::kSignal:
      case OpKind::kWait:
        require(message.channel == Channel::kPair || is_shared(message.channel),
                "put, signal and wait use the channels pair, all and domain");
        break;
      case OpKind::kMulticast:
      case OpKind::kReceive:
        require(is_group(message.channel), "multicast and receive use the channels of groups");
        break;
      case OpKind::kAggregate: return check_aggregate(message, in_loop);
    }
    if (is_group(message.channel)) check_group(message);
    if (is_outgoing(op.kind) && has_readers(message.channel)) {
      require(message.peer == -1, "a message to all names a peer");
      require(readers_of(message.channel, call_.rank, call_.shared.ranks, call_.limits) > 0,
              nobody_reads(message.channel));
    } else {
      check_peer(message);
    }
    check_index(message, in_loop);
  }

  void check_aggregate(const Message& message, bool in_loop) {
    require(message.channel == Channel::kLeaders && message.peer == -1 && message.index >= 0 &&
                message.index_stride == 0,
            "an aggregate is of all leaders");
    require(call_.limits.aggregates, "the team has no switch that reduces");
    require(call_.shared.in_switch || !has_reduction(call_.shared.collective),
            "switches do not compute this operator on this type");
    require(!call_.limits.one_node(), "an aggregate on one node");
    require(call_.limits.is_leader(call_.rank), "an aggregate at a rank that is no leader");
    require(!in_loop && schedule_.learned.length == 0 && call_.stage == 0,
            "an aggregate in a loop or a schedule of several stages");
  }

  void check_group(const Message& message) {
    require(call_.limits.multicast_bytes > 0, "the team has no multicast");
    require(in_group(message.channel, call_.rank, call_.limits), "this rank is not in the group");
  }

  void check_peer(const Message& message) {
    require(message.peer >= 0 && message.peer < call_.shared.ranks, "the peer is not in the team");
    if (!has_readers(message.channel) || !status_.ok()) return;
    require(message.peer != call_.rank, "a rank does not read its own message to all");
    if (is_group(message.channel)) {
      require(in_group(message.channel, message.peer, call_.limits),
              "the peer is not in the group");
      require(hears(message.channel, message.peer, call_.rank, call_.limits),
              "a multicast to nodes does not come to the writer's own");
      return;
    }
    require(hears(message.channel, message.peer, call_.rank, call_.limits),
            message.channel == Channel::kAll ? "a message to all does not leave its node"
                                             : "a message to a domain does not leave it");
  }

  static const char* nobody_reads(Channel channel) {
    if (channel == Channel::kAll) return "a message to all on a node of one rank";
    if (channel == Channel::kDomain) return "a message to a domain of one rank";
    return "a multicast in a group of one rank";
  }

  void check_index(const Message& message, bool in_loop) {
    require(message.index >= 0 && message.index_stride >= 0, "a negative message number");
    require(in_loop || message.index_stride == 0, "a stride outside a loop");
    require(message.index + message.index_stride * (rounds_ - 1) < kMaxIndex,
            "a message number that is too large");
  }

  void check_buffer(const Op& op, const Buffer& buffer, bool in_loop) {
    require(buffer.space <= Space::kCounts, "the space is unknown");
    require(buffer.space != Space::kCounts || op.kind == OpKind::kCopy,
            "only copy can refer to the counts");
    if (buffer.table != Table::kNone) return check_entry(op, buffer);
    require(buffer.entry == 0, "an entry without a table");
    if (buffer.space != Space::kSlot) {
      require(buffer.message == Message{}, "only a slot belongs to a message");
    }
    const Range& range = buffer.range;
    require(sane(range.offset) && sane(range.length) && range.stride >= -kMaxValue &&
                range.stride <= kMaxValue,
            "a buffer with a negative or impossible offset or length");
    require(in_loop || range.stride == 0, "a stride outside a loop");
    if (!status_.ok()) return;
    const __int128 last = __int128{range.offset} + __int128{range.stride} * (rounds_ - 1);
    require(last >= 0, "a buffer that strides below 0");
    if (buffer.space == Space::kSlot) {
      require(buffer.message.channel == Channel::kPair || is_shared(buffer.message.channel),
              "a slot of a message that is received");
      check_peer(buffer.message);
      check_index(buffer.message, in_loop);
      require(last + range.length <= call_.limits.slot_bytes, "this is past the end of any slot");
      return;
    }
    const __int128 end = std::max<__int128>(last, range.offset) + range.length;
    if (end > size_of(buffer.space)) {
      fail(std::string(space_name(buffer.space)) + " has " + std::to_string(size_of(buffer.space)) +
           " bytes only");
    }
  }

  void check_entry(const Op& op, const Buffer& buffer) {
    const Tables& tables = call_.local.tables;
    require(op.kind == OpKind::kCopy || op.kind == OpKind::kSend || op.kind == OpKind::kRecv,
            "only copy, send and recv can refer to the count tables");
    require(sends_by_tables(call_.shared.collective), "this call has no count tables");
    require((buffer.table == Table::kSend && buffer.space == Space::kInput) ||
                (buffer.table == Table::kRecv && buffer.space == Space::kOutput),
            "the send table describes the input, the receive table the output");
    require(buffer.range == Range{} && buffer.message == Message{},
            "a table entry with a range of its own");
    const auto entries =
        buffer.table == Table::kSend ? tables.send_bytes.size() : tables.recv_bytes.size();
    require(buffer.entry >= 0 && std::cmp_less(buffer.entry, entries), "no such table entry");
  }

  [[nodiscard]] std::int64_t size_of(Space space) const {
    if (space == Space::kInput) return input_bytes_;
    if (space == Space::kCounts) return counts_bytes();
    return space == Space::kOutput ? output_bytes_ : schedule_.scratch_bytes;
  }

  [[nodiscard]] std::int64_t counts_bytes() const {
    const bool tables = call_.shared.collective == Collective::kAlltoallv;
    return tables ? (call_.shared.ranks + static_cast<std::int64_t>(kTableFacts)) * 8 : 0;
  }

  [[nodiscard]] std::int64_t total(std::span<const Buffer> buffers) const {
    std::int64_t sum = 0;
    for (const Buffer& buffer : buffers) {
      sum += resolve(buffer, call_.local.tables, 0).length;
      if (!sane(sum)) break;
    }
    return sum;
  }

  void check_lengths(const Op& op) {
    const std::int64_t src = total(schedule_.src(op));
    const std::int64_t dst = total(schedule_.dst(op));
    require(sane(src) && sane(dst), "an impossible total length");
    if (op.kind == OpKind::kCopy) require(src == dst, "lists of different lengths");
    if (op.kind == OpKind::kPut && src > call_.limits.slot_bytes) {
      fail(std::to_string(src) + " bytes; a slot holds " + std::to_string(call_.limits.slot_bytes));
    }
    if (op.kind == OpKind::kMulticast && src > call_.limits.multicast_bytes) {
      fail(std::to_string(src) + " bytes; a multicast takes " +
           std::to_string(call_.limits.multicast_bytes));
    }
    if (op.kind == OpKind::kAggregate) {
      require(op.dst_count == 0 || op.src_count == 0 || src == dst,
              "operands and result of different lengths");
      const std::int64_t element = aggregate_unit(call_.shared);
      require(src % element == 0 && dst % element == 0, "a part of an element");
      if (op.dst_count + op.src_count == 2) check_apart(schedule_.dst(op)[0], schedule_.src(op)[0]);
    }
    if (op.kind == OpKind::kPut) require(src > 0, "a put of nothing (a signal is one)");
    if (op.kind == OpKind::kReduce) {
      const auto operands = schedule_.src(op);
      require(operands[0].range.length == dst && operands[1].range.length == dst,
              "operands of different lengths");
      require(dst % call_.shared.element_bytes == 0, "a part of an element");
      require(has_reduction(call_.shared.collective), "this collective has no operator");
    }
  }

  // A result comes piece by piece, the first ones while others of the operand are still to go.
  void check_apart(const Buffer& result, const Buffer& operand) {
    if (operand.space == Space::kSlot) return;
    const Layout layout(call_.shared, call_.local, call_.rank);
    const Place to = layout.place(result.space, result.range.offset);
    const Place from = layout.place(operand.space, operand.range.offset);
    const std::int64_t distance = std::abs(to.offset - from.offset);
    require(to.region != from.region || distance == 0 || distance >= operand.range.length,
            "the result overlaps the operand without being equal to it");
  }

  const Schedule& schedule_;
  const Call& call_;
  const std::int64_t input_bytes_;
  const std::int64_t output_bytes_;
  std::int64_t op_ = -1;     // the op under examination, for messages
  std::int64_t rounds_ = 1;  // of the loop around it
  Status status_;
};

}  // namespace

Status check_schedule(const Schedule& schedule, const Call& call) {
  return Checker(schedule, call).run();
}

Range resolve(const Buffer& buffer, const Tables& tables, std::int64_t iteration) {
  const auto entry = static_cast<std::size_t>(buffer.entry);
  switch (buffer.table) {
    case Table::kSend: return {tables.send_offsets[entry], tables.send_bytes[entry]};
    case Table::kRecv: return {tables.recv_offsets[entry], tables.recv_bytes[entry]};
    case Table::kNone: break;
  }
  return {buffer.range.offset + buffer.range.stride * iteration, buffer.range.length};
}

}  // namespace carillon
