// SPDX-License-Identifier: Apache-2.0
#include "schedule/text.h"

namespace carillon {
namespace {

std::string by(std::int64_t stride) {
  return stride == 0 ? std::string() : " by " + std::to_string(stride);
}

// "1 #3", "1 all #3 by 1", "1 leaders #3"; a writer to several names no peer: "all #3".
std::string message_text(const Message& message, bool outgoing) {
  const bool several = has_readers(message.channel);
  std::string text;
  if (!several || !outgoing) text += std::to_string(message.peer) + " ";
  if (several) text += std::string(readers_name(message.channel)) + " ";
  return text + "#" + std::to_string(message.index) + by(message.index_stride);
}

std::string buffer_text(const Buffer& buffer) {
  if (buffer.space > Space::kCounts) return "?";
  std::string text(space_name(buffer.space));
  if (buffer.table != Table::kNone) return text + "(" + std::to_string(buffer.entry) + ")";
  if (buffer.space == Space::kSlot) text += "(" + message_text(buffer.message, false) + ")";
  return text + "[" + std::to_string(buffer.range.offset) + "+" +
         std::to_string(buffer.range.length) + by(buffer.range.stride) + "]";
}

std::string list_text(std::span<const Buffer> buffers) {
  std::string text;
  for (const Buffer& buffer : buffers) text += " " + buffer_text(buffer);
  return text;
}

}  // namespace

std::string op_text(const Schedule& schedule, std::size_t index) {
  if (index >= schedule.ops.size()) return "no op";
  const Op& op = schedule.ops[index];
  if (static_cast<int>(op.kind) >= kOpKinds) return "unknown op";
  std::string text(op_name(op.kind));
  const std::uint64_t end = std::uint64_t{op.first_buffer} + op.dst_count + op.src_count;
  if (end > schedule.buffers.size()) return text + " with buffers that do not exist";
  switch (op.kind) {
    case OpKind::kCopy:
    case OpKind::kReduce:
      return text + list_text(schedule.dst(op)) + " =" + list_text(schedule.src(op));
    case OpKind::kPut:
    case OpKind::kSignal:
    case OpKind::kSend:
    case OpKind::kMulticast:
      return text + " " + message_text(op.message, true) + list_text(schedule.src(op));
    case OpKind::kWait:
    case OpKind::kRecv:
    case OpKind::kReceive:
      return text + " " + message_text(op.message, false) + list_text(schedule.dst(op));
    case OpKind::kAggregate:
      return text + " #" + std::to_string(op.message.index) + list_text(schedule.dst(op)) + " =" +
             list_text(schedule.src(op));
    case OpKind::kRepeat: return text + " " + std::to_string(op.count);
  }
  return text;
}

namespace {

// Appends the ops of one strand, loops indented.
void append_ops(const Schedule& schedule, const Strand& strand, std::size_t* phase,
                std::string* text) {
  std::size_t loop_end = 0;
  const std::size_t end = std::size_t{strand.first_op} + strand.op_count;
  for (std::size_t i = strand.first_op; i < end && i < schedule.ops.size(); ++i) {
    const std::string indent = i < loop_end ? "  " : "";
    while (*phase < schedule.phases.size() && schedule.phases[*phase].first_op <= i) {
      *text += indent + "phase " + schedule.phases[(*phase)++].name + "\n";
    }
    const Op& op = schedule.ops[i];
    *text += indent + op_text(schedule, i);
    if (op.kind == OpKind::kRepeat) {
      *text += " {";
      loop_end = i + op.body + 1;
    }
    *text += '\n';
    if (i + 1 == loop_end) *text += "}\n";
  }
}

}  // namespace

std::string to_text(const Schedule& schedule) {
  std::string text = "schedule ranks " + std::to_string(schedule.ranks) + " rank " +
                     std::to_string(schedule.rank) + " scratch " +
                     std::to_string(schedule.scratch_bytes) + "\n";
  std::size_t phase = 0;
  for (std::size_t i = 0; i < schedule.strands.size(); ++i) {
    if (i > 0) text += "strand\n";
    append_ops(schedule, schedule.strands[i], &phase, &text);
  }
  for (; phase < schedule.phases.size(); ++phase) {
    text += "phase " + schedule.phases[phase].name + "\n";
  }
  const Range& learned = schedule.learned;
  if (learned != Range{}) {
    text += "learn " + buffer_text({.space = Space::kScratch, .range = learned}) + "\n";
  }
  return text;
}

std::string to_text(std::span<const Schedule> schedules) {
  std::string text;
  for (const Schedule& schedule : schedules) {
    if (!text.empty()) text += '\n';
    text += to_text(schedule);
  }
  return text;
}

}  // namespace carillon
