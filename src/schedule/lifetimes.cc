// SPDX-License-Identifier: Apache-2.0
#include "schedule/lifetimes.h"

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
      layout_(call.shared, call.local, schedule.rank),
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
  landings_.resize(schedule.ops.size());
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    if (schedule.ops[i].kind == OpKind::kWait) landings_[i] = find_landing(i);
  }
}

// The bytes that the buffer is in any round; nothing for slots.
std::optional<Lifetimes::Bytes> Lifetimes::bytes_of(const Buffer& buffer,
                                                    std::int64_t rounds) const {
  if (buffer.space == Space::kSlot) return std::nullopt;
  const carillon::Place place = layout_.place(buffer.space, buffer.range.offset);
  const std::int64_t moved = buffer.range.stride * (rounds - 1);
  return Bytes{.region = place.region,
               .all = buffer.table != Table::kNone,
               .begin = place.offset + std::min<std::int64_t>(moved, 0),
               .end = place.offset + buffer.range.length + std::max<std::int64_t>(moved, 0)};
}

// The same, of the caller's memory only.
std::optional<Lifetimes::Bytes> Lifetimes::callers_bytes_of(const Buffer& buffer,
                                                            std::int64_t rounds) const {
  return buffer.space == Space::kScratch ? std::nullopt : bytes_of(buffer, rounds);
}

bool Lifetimes::meet(const Bytes& a, const Bytes& b) {
  return a.region == b.region && (a.all || b.all || (a.begin < b.end && b.begin < a.end));
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
  const auto bytes = callers_bytes_of(source, place.rounds);
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

bool Lifetimes::lasts_landed(std::size_t put, const Buffer& slot, std::size_t copy) const {
  Buffer landed = schedule_.dst(schedule_.ops[copy])[0];
  landed.range = landed.range.sub(slot.range);
  return lasts(put, landed, copy);
}

// What lands early is written from the wait on.
std::span<const Buffer> Lifetimes::written_by(std::size_t op) const {
  return schedule_.dst(schedule_.ops[landings_[op].value_or(op)]);
}

// Does the op write, in some round that comes after the put's, what the put has captured in its
// own? Ops of other strands may always come after it.
bool Lifetimes::overwrites(std::size_t op, std::size_t put) const {
  const Place& mine = places_[op];
  const Place& its = places_[put];
  const bool same_loop = its.loop != 0 && mine.loop == its.loop && mine.strand == its.strand;
  const std::int64_t first = op > put ? 0 : 1;  // so many rounds later at least
  const auto meets = [&](const Buffer& written, const Buffer& source) {
    if (!same_loop || written.range.stride != source.range.stride) {
      const auto a = bytes_of(written, mine.rounds);
      const auto b = bytes_of(source, its.rounds);
      return a && b && meet(*a, *b);
    }
    auto a = bytes_of(written, 1);
    const auto b = bytes_of(source, 1);
    if (!a || !b) return false;
    // They move alike: what counts is how many rounds lie between them.
    const std::int64_t stride = written.range.stride;
    for (std::int64_t later = first; later < mine.rounds; ++later) {
      Bytes moved = *a;
      moved.begin += later * stride;
      moved.end += later * stride;
      if (meet(moved, *b)) return true;
      const bool leaves = stride > 0 ? moved.begin >= b->end : moved.end <= b->begin;
      if (stride == 0 || leaves) return false;
    }
    return false;
  };
  const auto sources = schedule_.src(schedule_.ops[put]);
  const auto written = written_by(op);
  return std::any_of(written.begin(), written.end(), [&](const Buffer& to) {
    return std::any_of(sources.begin(), sources.end(),
                       [&](const Buffer& source) { return meets(to, source); });
  });
}

std::vector<std::size_t> Lifetimes::overwriters(std::size_t put) const {
  std::vector<std::size_t> found;
  if (schedule_.ops[put].src_count == 0) return found;  // a recv
  bool waited = false;  // the strand has, after the put and its loop
  for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
    const bool same_strand = places_[i].strand == places_[put].strand;
    const bool same_loop =
        same_strand && places_[put].loop != 0 && places_[i].loop == places_[put].loop;
    if (same_strand && !same_loop && (i < put || waited)) continue;
    if (!overwrites(i, put)) continue;
    found.push_back(i);
    if (same_strand && !same_loop) waited = true;
  }
  return found;
}

bool Lifetimes::is_hasty(std::size_t send) const {
  const std::size_t strand = places_[send].strand;
  const auto first =
      schedule_.ops.begin() + static_cast<std::ptrdiff_t>(schedule_.strands[strand].first_op);
  const auto count = [&](std::size_t end, auto is) {
    return std::count_if(first, schedule_.ops.begin() + static_cast<std::ptrdiff_t>(end),
                         [&](const Op& op) { return is(op.kind); });
  };
  const std::vector<std::size_t> after = overwriters(send);
  return std::any_of(after.begin(), after.end(), [&](std::size_t op) {
    return op <= send || places_[op].strand != strand ||
           count(op, is_incoming) < count(send + 1, is_outgoing);
  });
}

std::optional<std::size_t> Lifetimes::first_copy(std::size_t wait) const {
  const Message& message = schedule_.ops[wait].message;
  for (std::size_t i = wait + 1; i < schedule_.ops.size(); ++i) {
    const Op& op = schedule_.ops[i];
    // With a message it may hear that another strand has read what is about to be overwritten.
    const bool moves_on = is_incoming(op.kind) || op.kind == OpKind::kAggregate ||
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

std::optional<std::size_t> Lifetimes::find_landing(std::size_t wait) const {
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
