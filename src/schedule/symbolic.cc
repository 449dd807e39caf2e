// SPDX-License-Identifier: Apache-2.0
#include "schedule/symbolic.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace carillon {
namespace {

// A rank's counts are bytes of its input that are so far behind all others that no result has them.
constexpr std::int64_t kCountsIndex = std::int64_t{1} << 60;

Status broken(std::string reason) { return {Code::kInternal, std::move(reason)}; }

std::string piece_text(const Piece& piece) {
  return std::string(space_name(piece.space)) + "[" + std::to_string(piece.offset) + "+" +
         std::to_string(piece.length) + "]";
}

using Extent = SymbolicMemory::Extent;

bool before(const Extent& a, const Extent& b) {
  return a.region != b.region ? a.region < b.region : a.begin < b.begin;
}

void sort(std::vector<Extent>* extents) {
  if (!std::is_sorted(extents->begin(), extents->end(), before)) {
    std::sort(extents->begin(), extents->end(), before);
  }
}

bool overlap(const Extent& a, const Extent& b) {
  return a.region == b.region && a.begin < b.end && b.begin < a.end;
}

// Whether any of a overlaps any of b; each is sorted and disjoint in itself, or treated as such.
bool any_overlap(const std::vector<Extent>& a, const std::vector<Extent>& b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (overlap(a[i], b[j])) return true;
    const bool a_ends_first =
        a[i].region != b[j].region ? a[i].region < b[j].region : a[i].end <= b[j].end;
    a_ends_first ? ++i : ++j;
  }
  return false;
}

}  // namespace

void SymbolicMemory::begin(const TeamCall& call, std::span<const std::vector<std::byte>> inputs) {
  element_bytes_ = call.shared.element_bytes;
  inputs_ = inputs;
  expressions_.begin(call.shared.ranks);
  ordering_.begin(call.shared.ranks, call.shared.collective == Collective::kBarrier);
  free_.resize(letters_.size());
  std::iota(free_.begin(), free_.end(), Payload{0});
  for (Letter& letter : letters_) letter.bytes.clear();
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) add_rank(call, rank);
}

void SymbolicMemory::add_rank(const TeamCall& call, Rank rank) {
  const Local local = call.local(rank);
  const Layout layout(call.shared, local, rank);
  if (states_.size() <= static_cast<std::size_t>(rank)) states_.push_back({layout, {}, {}, {}});
  State& added = state(rank);
  added.begin(layout);
  const Place begin = layout.place(Space::kInput, 0);
  added.regions[static_cast<std::size_t>(begin.region)].assign(
      begin.offset, begin.offset + layout.input_bytes(), {expressions_.input(rank), -begin.offset});
  if (!has_tables(call.shared.collective)) {
    added.writable.assign(0, layout.output_bytes(), 1);
    return;
  }
  const Tables& tables = local.tables;
  added.counts = count_row(tables);
  added.regions[static_cast<std::size_t>(Region::kCounts)].assign(
      0, static_cast<std::int64_t>(added.counts.size() * sizeof(std::int64_t)),
      {expressions_.input(rank), kCountsIndex});
  for (std::size_t i = 0; i < tables.recv_bytes.size(); ++i) {
    added.writable.assign(tables.recv_offsets[i], tables.recv_offsets[i] + tables.recv_bytes[i], 1);
  }
}

Place SymbolicMemory::place(Rank rank, const Piece& piece) {
  return state(rank).layout.place(piece.space, piece.offset);
}

const IntervalMap<Symbol>& SymbolicMemory::output(Rank rank) const {
  return states_[static_cast<std::size_t>(rank)].regions[static_cast<std::size_t>(Region::kOutput)];
}

Status SymbolicMemory::begin_stage(Rank rank, const Schedule& schedule) {
  ordering_.begin_stage(rank, schedule.strands.size());
  return {};
}

Status SymbolicMemory::copy(Site site, std::span<const Piece> dst, std::span<const Piece> src) {
  Status status = check_copy(site.rank, dst, src);
  result_.clear();
  for (const Piece& piece : src) {
    if (status.ok()) status = read(site, piece, &result_);
  }
  return status.ok() ? write(site, dst, result_) : status;
}

Status SymbolicMemory::reduce(Site site, const Piece& dst, const Piece& left, const Piece& right) {
  for (const Piece* operand : {&left, &right}) {
    if (operand->space == Space::kSlot) continue;
    const Place a = place(site.rank, dst);
    const Place b = place(site.rank, *operand);
    const bool same = a.region == b.region && a.offset == b.offset;
    if (!same && overlap({a.region, a.offset, a.offset + dst.length},
                         {b.region, b.offset, b.offset + dst.length})) {
      return broken("the destination overlaps an operand without being equal to it");
    }
  }
  left_.clear();
  right_.clear();
  Status status = read(site, left, &left_);
  if (status.ok()) status = read(site, right, &right_);
  if (status.ok()) status = combine(left_, right_, &result_);
  return status.ok() ? write(site, {&dst, 1}, result_) : status;
}

Status SymbolicMemory::combine(std::span<const Run> left, std::span<const Run> right,
                               std::vector<Run>* result) {
  result->clear();
  std::size_t i = 0;
  std::size_t j = 0;
  std::int64_t in_left = 0;  // bytes of left[i] already used
  std::int64_t in_right = 0;
  while (i < left.size() && j < right.size()) {
    const std::int64_t length = std::min(left[i].length - in_left, right[j].length - in_right);
    const std::int64_t index = left[i].index + in_left;
    if (index != right[j].index + in_right) {
      return broken("the operands do not belong together: byte " + std::to_string(index) + " of " +
                    expressions_.text(left[i].node) + " meets byte " +
                    std::to_string(right[j].index + in_right) + " of " +
                    expressions_.text(right[j].node));
    }
    if (index % element_bytes_ != 0 || length % element_bytes_ != 0) {
      return broken("the operands hold parts of elements");
    }
    result->push_back({expressions_.reduce(left[i].node, right[j].node), index, length});
    in_left += length;
    in_right += length;
    if (in_left == left[i].length) {
      ++i;
      in_left = 0;
    }
    if (in_right == right[j].length) {
      ++j;
      in_right = 0;
    }
  }
  return {};
}

Status SymbolicMemory::capture(Site site, std::span<const Piece> src, Payload* payload) {
  result_.clear();
  for (const Piece& piece : src) {
    Status status = read(site, piece, &result_);
    if (!status.ok()) return status;
  }
  if (free_.empty()) {
    free_.push_back(static_cast<Payload>(letters_.size()));
    letters_.emplace_back();
  }
  *payload = free_.back();
  free_.pop_back();
  Letter& letter = letters_[*payload];
  fill(letter, result_);
  ordering_.publish(site, &letter.clock);
  return {};
}

void SymbolicMemory::follow(Payload message, Payload other) {
  merge(&letters_[message].clock, letters_[other].clock);
}

void SymbolicMemory::fill(Letter& letter, std::span<const Run> runs) {
  letter.length = 0;
  for (const Run& run : runs) {
    letter.bytes.assign(letter.length, letter.length + run.length,
                        {run.node, run.index - letter.length});
    letter.length += run.length;
  }
}

Status SymbolicMemory::combine(Payload left, Payload right) {
  Letter& into = letters_[left];
  const Letter& from = letters_[right];
  follow(left, right);
  left_.clear();
  right_.clear();
  Status status = look_up(0, {Space::kSlot, 0, into.length, left}, &left_);
  if (status.ok()) status = look_up(0, {Space::kSlot, 0, from.length, right}, &right_);
  if (status.ok()) status = combine(left_, right_, &result_);
  if (!status.ok()) return status;
  into.bytes.clear();
  fill(into, result_);
  return {};
}

Status SymbolicMemory::arrive(Site site, Payload payload) {
  ordering_.acquire(site, letters_[payload].clock);
  return {};
}

Status SymbolicMemory::deliver(Site site, std::span<const Piece> dst, Payload payload) {
  Status status = check_disjoint(site.rank, dst);
  if (!status.ok()) return status;
  const Letter& letter = letters_[payload];
  ordering_.acquire(site, letter.clock);
  result_.clear();
  status = read(site, {Space::kSlot, 0, letter.length, payload}, &result_);
  return status.ok() ? write(site, dst, result_) : status;
}

void SymbolicMemory::discard(Payload payload) {
  letters_[payload].bytes.clear();
  free_.push_back(payload);
}

Status SymbolicMemory::learn(Rank rank, Range scratch, std::vector<std::int64_t>* values) {
  std::vector<Run> runs;
  Status status = look_up(rank, {Space::kScratch, scratch.offset, scratch.length, 0}, &runs);
  if (!status.ok()) return status;
  std::vector<std::byte> bytes;
  for (const Run& run : runs) {
    const auto real = real_bytes(run);
    if (!real.ok()) return real.status();
    bytes.insert(bytes.end(), real.value().begin(), real.value().end());
  }
  values->resize(bytes.size() / sizeof(std::int64_t));
  std::memcpy(values->data(), bytes.data(), bytes.size());
  return {};
}

// What stages learn from: the counts, and the input if it is given.
Result<std::span<const std::byte>> SymbolicMemory::real_bytes(const Run& run) const {
  if (!expressions_.is_input(run.node)) return broken("a stage learns the result of a reduce");
  const auto length = static_cast<std::size_t>(run.length);
  if (run.index >= kCountsIndex) {
    return std::as_bytes(std::span(states_[run.node].counts))
        .subspan(static_cast<std::size_t>(run.index - kCountsIndex), length);
  }
  if (inputs_.empty()) return broken("a stage learns from the input; verify needs input bytes");
  const std::span<const std::byte> input(inputs_[run.node]);
  if (run.index + run.length > static_cast<std::int64_t>(input.size())) {
    return broken("the input given for rank " + std::to_string(run.node) + " is too short");
  }
  return input.subspan(static_cast<std::size_t>(run.index), length);
}

Status SymbolicMemory::note_access(Site site, const Piece& piece, bool write) {
  const std::int32_t other = ordering_.access(site, place(site.rank, piece), piece.length, write);
  if (other < 0) return {};
  return broken(std::string(write ? "writes " : "reads ") + piece_text(piece) +
                " in no order with strand " + std::to_string(other) + " of this rank, which " +
                (write ? "reads or writes" : "writes") + " it too");
}

Status SymbolicMemory::read(Site site, const Piece& piece, std::vector<Run>* runs) {
  Status status = piece.space == Space::kSlot ? Status() : note_access(site, piece, false);
  return status.ok() ? look_up(site.rank, piece, runs) : status;
}

Status SymbolicMemory::look_up(Rank rank, const Piece& piece, std::vector<Run>* runs) {
  std::int64_t shift = 0;  // from offsets of the piece to addresses of the map
  const IntervalMap<Symbol>* map = nullptr;
  if (piece.space == Space::kSlot) {
    map = &letters_[piece.payload].bytes;
  } else {
    const Place at = place(rank, piece);
    map = &state(rank).regions[static_cast<std::size_t>(at.region)];
    shift = at.offset - piece.offset;
  }
  const std::int64_t begin = piece.offset + shift;
  std::int64_t next = begin;  // the first byte not yet found
  map->each(begin, begin + piece.length,
            [&](std::int64_t from, std::int64_t to, const Symbol& symbol) {
              if (from != next) return;
              runs->push_back({symbol.node, from + symbol.delta, to - from});
              next = to;
            });
  if (next == begin + piece.length) return {};
  return broken("reads " + piece_text(piece) + ", where byte " + std::to_string(next - shift) +
                " has not been written");
}

Status SymbolicMemory::write(Site site, std::span<const Piece> dst, std::span<const Run> runs) {
  std::size_t i = 0;
  std::int64_t used = 0;  // bytes of runs[i]
  for (const Piece& piece : dst) {
    Status status = note_access(site, piece, true);
    if (!status.ok()) return status;
    State& owner = state(site.rank);
    if (piece.space == Space::kOutput &&
        owner.writable.first_gap(piece.offset, piece.offset + piece.length) <
            piece.offset + piece.length) {
      return broken("writes " + piece_text(piece) + ", of which not all belongs to the result");
    }
    const Place at = place(site.rank, piece);
    IntervalMap<Symbol>& map = owner.regions[static_cast<std::size_t>(at.region)];
    std::int64_t done = 0;
    while (done < piece.length && i < runs.size()) {
      const std::int64_t length = std::min(piece.length - done, runs[i].length - used);
      const std::int64_t begin = at.offset + done;
      map.assign(begin, begin + length, {runs[i].node, runs[i].index + used - begin});
      done += length;
      used += length;
      if (used < runs[i].length) continue;
      ++i;
      used = 0;
    }
  }
  return {};
}

Status SymbolicMemory::check_disjoint(Rank rank, std::span<const Piece> dst) {
  if (dst.size() < 2) return {};
  written_.clear();
  for (const Piece& piece : dst) {
    if (piece.length == 0) continue;
    const Place at = place(rank, piece);
    written_.push_back({at.region, at.offset, at.offset + piece.length});
  }
  sort(&written_);
  for (std::size_t i = 1; i < written_.size(); ++i) {
    if (overlap(written_[i - 1], written_[i])) return broken("two destinations overlap");
  }
  return {};
}

// A byte may be copied onto itself; otherwise no destination byte is also a source byte, because
// nothing says in which order the bytes of a copy move.
Status SymbolicMemory::check_copy(Rank rank, std::span<const Piece> dst,
                                  std::span<const Piece> src) {
  Status status = check_disjoint(rank, dst);
  if (!status.ok()) return status;
  written_.clear();
  read_.clear();
  std::size_t j = 0;
  std::int64_t used = 0;  // bytes of src[j]
  for (const Piece& piece : dst) {
    const Place to = place(rank, piece);
    std::int64_t done = 0;
    while (done < piece.length && j < src.size()) {
      const std::int64_t length = std::min(piece.length - done, src[j].length - used);
      if (src[j].space != Space::kSlot) {
        const Place from = place(rank, src[j]);
        const bool itself = from.region == to.region && from.offset + used == to.offset + done;
        if (!itself && length > 0) {
          written_.push_back({to.region, to.offset + done, to.offset + done + length});
          read_.push_back({from.region, from.offset + used, from.offset + used + length});
        }
      } else if (length > 0) {
        written_.push_back({to.region, to.offset + done, to.offset + done + length});
      }
      done += length;
      used += length;
      if (used < src[j].length) continue;
      ++j;
      used = 0;
    }
  }
  if (read_.empty()) return {};
  sort(&written_);
  sort(&read_);
  return any_overlap(written_, read_) ? broken("a destination overlaps a source") : Status();
}

}  // namespace carillon
