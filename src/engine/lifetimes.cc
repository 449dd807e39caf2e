// SPDX-License-Identifier: Apache-2.0
#include "engine/lifetimes.h"

#include <algorithm>
#include <cstdlib>

namespace carillon {
namespace {

bool is_slot_of(const Buffer& buffer, const Message& message) {
  return buffer.space == Space::kSlot && buffer.message == message;
}

}  // namespace

Lifetimes::Lifetimes(const Schedule& schedule, const Call& call)
    : schedule_(schedule),
      in_place_(call.local.in_place),
      shift_(in_place_shift(call.shared, schedule.rank)),
      places_(schedule.ops.size()),
      releases_(release_points(schedule)) {
  for (std::size_t s = 0; s < schedule.strands.size(); ++s) {
    const Strand& strand = schedule.strands[s];
    std::size_t loop = 0;
    std::size_t loop_end = 0;
    for (std::size_t i = strand.first_op; i < std::size_t{strand.first_op} + strand.op_count; ++i) {
      const Op& op = schedule.ops[i];
      if (op.kind == OpKind::kRepeat) {
        loop = i + 1;
        loop_end = i + op.body + 1;
      }
      const bool inside = op.kind != OpKind::kRepeat && i < loop_end;
      places_[i] = {s, inside ? loop : 0, inside ? schedule.ops[loop - 1].count : 1};
    }
  }
}

// The caller's bytes that the buffer is in any round; nothing for scratch and slots.
std::optional<Lifetimes::Bytes> Lifetimes::bytes_of(const Buffer& buffer,
                                                    std::int64_t rounds) const {
  if (buffer.space != Space::kInput && buffer.space != Space::kOutput) return std::nullopt;
  Bytes bytes{.output = buffer.space == Space::kOutput, .all = buffer.table != Table::kNone};
  const std::int64_t moved = buffer.range.stride * (rounds - 1);
  bytes.begin = buffer.range.offset + std::min<std::int64_t>(moved, 0);
  bytes.end = buffer.range.offset + buffer.range.length + std::max<std::int64_t>(moved, 0);
  if (in_place_ && !bytes.output) {
    bytes.output = true;
    bytes.begin += shift_;
    bytes.end += shift_;
  }
  return bytes;
}

bool Lifetimes::meet(const Bytes& a, const Bytes& b) {
  return a.output == b.output && (a.all || b.all || (a.begin < b.end && b.begin < a.end));
}

bool Lifetimes::writes(std::size_t op, const Bytes& bytes) const {
  const auto dst = schedule_.dst(schedule_.ops[op]);
  return std::any_of(dst.begin(), dst.end(), [&](const Buffer& buffer) {
    const auto written = bytes_of(buffer, places_[op].rounds);
    return written && meet(*written, bytes);
  });
}

// Does the op write (or, `reading`, read) what lands, in the round in which it does?
bool Lifetimes::disturbs(std::size_t op, const Buffer& landing, bool reading) const {
  const std::int64_t rounds = places_[op].rounds;
  const auto meets = [&](const Buffer& buffer) {
    // Side by side in one round, they are in all.
    const std::int64_t seen = buffer.range.stride == landing.range.stride ? 1 : rounds;
    const auto bytes = bytes_of(buffer, seen);
    return bytes && meet(*bytes, *bytes_of(landing, seen));
  };
  const auto dst = schedule_.dst(schedule_.ops[op]);
  const auto src = schedule_.src(schedule_.ops[op]);
  return std::any_of(dst.begin(), dst.end(), meets) ||
         (reading && std::any_of(src.begin(), src.end(), meets));
}

bool Lifetimes::lasts(std::size_t put, const Buffer& source,
                      std::optional<std::size_t> except) const {
  const Place& place = places_[put];
  const auto bytes = bytes_of(source, place.rounds);
  if (!bytes) return false;
  // What is excepted brings those bytes in each round: then they must be others each time.
  if (except && place.rounds > 1) {
    const std::int64_t brought = schedule_.dst(schedule_.ops[*except])[0].range.length;
    if (std::abs(source.range.stride) < brought) return false;
  }
  for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
    const bool same_strand = places_[i].strand == place.strand;
    const bool same_loop = place.loop != 0 && same_strand && places_[i].loop == place.loop;
    const bool earlier = same_strand && i < put && !same_loop;
    if (!earlier && i != except && writes(i, *bytes)) return false;
  }
  return true;
}

std::optional<std::size_t> Lifetimes::first_copy(std::size_t wait) const {
  const Message& message = schedule_.ops[wait].message;
  for (std::size_t i = wait + 1; i < schedule_.ops.size(); ++i) {
    const Op& op = schedule_.ops[i];
    const bool moves_on = op.kind == OpKind::kWait || op.kind == OpKind::kRecv ||
                          op.kind == OpKind::kRepeat || places_[i].loop != places_[wait].loop ||
                          places_[i].strand != places_[wait].strand;
    if (moves_on) return std::nullopt;
    if (op.kind == OpKind::kCopy && op.src_count == 1 && op.dst_count == 1 &&
        is_slot_of(schedule_.src(op)[0], message)) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> Lifetimes::landing(std::size_t wait) const {
  const auto copy = first_copy(wait);
  if (!copy) return std::nullopt;
  const Op& op = schedule_.ops[*copy];
  const Range& read = schedule_.src(op)[0].range;
  const Buffer& to = schedule_.dst(op)[0];
  if (read.offset != 0 || read.stride != 0 || to.space != Space::kOutput ||
      to.table != Table::kNone) {
    return std::nullopt;
  }
  auto last = std::max(static_cast<std::size_t>(releases_[wait]), *copy);
  if (schedule_.ops[last].kind == OpKind::kRepeat) last += schedule_.ops[last].body;
  for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
    const bool elsewhere = places_[i].strand != places_[wait].strand;
    const bool meanwhile = i > wait && i <= last && i != *copy;
    if (elsewhere ? writes(i, *bytes_of(to, places_[wait].rounds))
                  : meanwhile && disturbs(i, to, i < *copy)) {
      return std::nullopt;
    }
  }
  return copy;
}

}  // namespace carillon
