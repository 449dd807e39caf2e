// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/copy.h"
#include "engine/engine.h"
#include "engine/lines-inl.h"
#include "engine/pieces.h"
#include "engine/team.h"

namespace carillon {
namespace {

using shm::kInlineBytes;

constexpr std::int64_t kReferenceBytes = 4096;  // shorter data is cheaper copied than waited for
// A sum is written by every call anew, where its readers' caches have it of the last one: as long
// as they do, to tell them takes longer than another copy.
constexpr std::int64_t kSumReferenceBytes = 196608;

inline void prefetch_for_write(const void* memory) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(memory)));
#else
  __builtin_prefetch(memory, 1);
#endif
}

}  // namespace

std::int64_t Run::length_of(const Operand& operand, std::int64_t length) const {
  if (operand.table == Table::kNone) return length;
  const Tables& t = binding_.tables;
  const auto& bytes = operand.table == Table::kSend ? t.send_bytes : t.recv_bytes;
  return bytes[static_cast<std::size_t>(operand.entry)];
}

std::byte* Run::at(const Operand& operand, const Strand& strand) const {
  std::byte* const base = bases_[operand.base];
  if (operand.table != Table::kNone) {
    const Tables& t = binding_.tables;
    const auto& offsets = operand.table == Table::kSend ? t.send_offsets : t.recv_offsets;
    return base + offsets[static_cast<std::size_t>(operand.entry)];
  }
  return base + operand.offset + strand.iteration * operand.stride;
}

void Run::begin(std::uint64_t collective) {
  reset(collective);
  begin_strands();
  take_numbers();
}

void Run::reset(std::uint64_t collective) {
  collective_ = collective;
  copied_bytes_ = wants_room_ = 0;
  sent_copied_bytes_ = 0;
  set_state(State::kRunning);
  told_all_ = false;
  reads_in_place_ = false;
  breakdown_ = team_->engine().breakdown();
  if (breakdown_ != nullptr) [[unlikely]]
    begin_measuring();
}

bool Run::progress(int polls) {
  if (breakdown_ == nullptr) [[likely]]
    return advance_all(polls, NoClock());
  LapClock clock(*breakdown_, lap_ns_);
  clock.charge(Work::kWait);
  const bool done = advance_all(polls, clock);
  clock.charge(Work::kWait);
  return done;
}

template <typename Clock>
bool Run::advance_all(int polls, Clock clock) {
  bool finished = true;
  const bool waits = polls > 0;
  wants_room_ = 0;
  // A strand that polls keeps the others from what the peer may be polling for.
  if (strands_.size() > 1) polls = 0;
  for (Strand& strand : strands_) {
    if (!strand.finished && !advance(strand, polls, clock)) finished = false;
    if (done()) return true;  // it failed
  }
  // What comes before the caller looks again may have been there for long.
  if (!waits && !finished) taken_.collective = 0;
  return finished && end();
}

// The strands are finished: what else must be before the run is.
bool Run::end() {
  if (!handed_.empty()) keep_all_handed();
  // Readers of several messages look as they release each. Who has told all may be of no concern to
  // a writer that gives up a later call.
  if (reads_in_place_ && !told_all_ && !sources_stand()) return true;
  if ((!sent_.empty() || gathers_) && !sent()) return false;
  if (references_.empty() || references_released()) {
    if (fetches_) {
      if (!told_awaited()) return false;
      fetches_->finish();
    }
    prefetch_next_writes();
    return true;
  }
  // The readers may be waiting like this run: what they wrote is released before its end, too.
  if (!told_all_ && team_->oldest(collective_)) tell_all();
  return false;
}

// Where the next call is likely to write: it need not wait then until those lines have come from
// the reader's cache, which is a third of its time if it is short.
void Run::prefetch_next_writes() {
  constexpr std::uint64_t kMost = 8192;
  if (next_line_ != nullptr) prefetch_for_write(next_line_);
  if (next_chunk_.length == 0) return;
  const std::byte* const chunk = team_->engine().segment().base() + next_chunk_.offset;
  const std::uint64_t bytes = std::min(next_chunk_.length, kMost);
  for (std::uint64_t i = 0; i < bytes; i += shm::kCacheLine) prefetch_for_write(chunk + i);
  next_chunk_.length = 0;
}

template <typename Clock>
bool Run::advance(Strand& strand, int polls, Clock& clock) {
  const Instruction* const code = plan_->code.data();
  for (std::uint32_t at = strand.at;; strand.at = ++at) {
    const Instruction& in = code[at];
    switch (in.action) {
      case Action::kPut:
        if (!put(in, strand, clock)) return false;
        clock.charge(Work::kPost);
        break;
      case Action::kWait:
        if (!wait(in, strand, polls)) return false;
        clock.charge(Work::kWait);
        break;
      case Action::kRelease:
        if (!release(in.use, number_of(in, strand))) return false;
        clock.charge(Work::kPost);
        break;
      case Action::kFlush:
        if (!flushed(in)) return false;
        clock.charge(Work::kWait);
        break;
      case Action::kCopy:
        copy(in, strand);
        clock.charge(in.work);
        break;
      case Action::kReduce:
        reduce(in, strand);
        clock.charge(Work::kReduce);
        break;
      case Action::kSend:
        if (!send(in, strand, clock)) return false;
        clock.charge(Work::kPost);
        break;
      case Action::kRecv:
        if (!recv(in, strand, polls, clock)) return false;
        break;
      case Action::kMulticast:
      case Action::kReceive:
        if (!(in.action == Action::kReceive ? receive(in, strand) : multicast(in, strand))) {
          return false;
        }
        clock.charge(in.action == Action::kReceive ? Work::kWait : Work::kPost);
        break;
      case Action::kAggregate:
        if (!aggregate(in, strand)) return false;
        clock.charge(Work::kWait);
        break;
      case Action::kRepeat:
        strand.loop = at + 1;
        strand.iteration = 0;
        strand.iterations = in.count;
        break;
      case Action::kEndRepeat:
        if (++strand.iteration < strand.iterations) {
          at = strand.loop - 1;
        } else {
          strand.iteration = 0;
          strand.loop = 0;
        }
        break;
      case Action::kEnd: strand.finished = true; return true;
    }
  }
}

// What waits for a message that fits its line, and finds it, is most of the waiting there is.
inline bool Run::wait(const Instruction& in, Strand& strand, int polls) {
  const std::uint64_t number = number_of(in, strand);
  const ChannelUse& channel = plan_->uses[in.use];
  shm::Peer& peer = team_->endpoint().peer(channel.peer);
  const shm::Line& line = incoming_line(channel, number);
  std::uint64_t header = 0;
  if (!comes(line, peer, number, polls, &header, uses_[in.use].patience)) return false;
  if (!suits(in, header)) [[unlikely]]
    return take_message(in, strand, number);
  shm::Endpoint::note_lag(peer, header, collective_);
  arrivals_[in.dst.base - kBaseSlots].came = Came::kSomehow;
  bases_[in.dst.base] = const_cast<std::byte*>(line.payload);
  return true;
}

// Of any message that has come.
bool Run::take_message(const Instruction& in, Strand& strand, std::uint64_t number) {
  Received received;
  if (!poll(in.use, number, 0, &received)) return false;
  if (received.length < in.length || received.announcement != nullptr) [[unlikely]] {
    fail(Status(Code::kMismatch, "rank " + std::to_string(plan_->uses[in.use].peer) + " sent " +
                                     std::to_string(received.length) + " bytes where rank " +
                                     std::to_string(team_->rank()) + " expected " +
                                     std::to_string(in.length) +
                                     "; do all ranks call the collective with the same sizes?"));
    return false;
  }
  if (received.lent != 0 || received.exposure != nullptr) {
    Landing landing;
    if (in.count > 0) {
      landing.bytes = {at(in.a, strand), static_cast<std::size_t>(in.count)};
      landing.extent = extent_of(landing.bytes, in.a, strand);
    }
    const bool there = received.lent != 0 ? read_lent(in, strand, number, landing, &received)
                                          : fetch(in, strand, number, landing, &received);
    if (!there) return false;
  }
  if (received.handed.bytes != 0) note_handed(in.use, number, received.handed);
  Arrival& arrival = arrivals_[in.dst.base - kBaseSlots];
  arrival = received.arrival;
  if (received.landed) arrival.came = Came::kLanded;
  bases_[in.dst.base] = const_cast<std::byte*>(received.data);
  return true;
}

template <typename Clock>
bool Run::put(const Instruction& in, Strand& strand, Clock& clock) {
  return write_message(in, strand, {number_of(in, strand), 0, in.length}, clock);
}

template <typename Clock>
bool Run::write_message(const Instruction& in, Strand& strand, const Part& part, Clock& clock) {
  const auto& [number, offset, length] = part;
  shm::Endpoint& endpoint = team_->endpoint();
  const ChannelUse& channel = plan_->uses[in.use];
  const bool to_several = is_shared_out(channel.flow);
  shm::Peer& peer = endpoint.peer(channel.peer);
  if (!to_several && peer.remote != nullptr) {
    return write_remote(in, strand, peer, part, clock);
  }
  if (!line_is_free(endpoint, channel, peer, number)) return false;
  // A pointer of its own: GCC 12 drops the index of (a ? b : c)[i] under -fsanitize=undefined.
  shm::Line* const lines =
      to_several ? endpoint.shared_lines(audience_of(channel.flow)) : peer.out_lines;
  shm::Line& line = lines[number % shm::kWindow];
  auto kind = static_cast<std::uint8_t>(length);
  if (length <= static_cast<std::int64_t>(kInlineBytes)) {
    if (in.piece_count == 0) [[likely]] {
      clock.charge(Work::kPost);
      copy_bytes(line.payload, at(in.a, strand) + offset, length);
      clock.charge(Work::kPack);
    } else {
      pack(line.payload, in, strand, part, clock);
    }
  } else if (!write_large(in, strand, line, part, &kind, clock)) {
    return false;
  }
  if (reads_in_place_ && !sources_stand()) return false;
  publish(channel, peer, line, number, kind);
  next_line_ = &lines[(number + 1) % shm::kWindow];
  if (kind != shm::kReference && kind != shm::kLent)
    copied_bytes_ += static_cast<std::uint64_t>(length);
  return true;
}

template <typename Clock>
bool Run::write_large(const Instruction& in, Strand& strand, shm::Line& line, const Part& part,
                      std::uint8_t* kind, Clock& clock) {
  const auto& [number, offset, length] = part;
  Engine& engine = team_->engine();
  const auto bytes = static_cast<std::uint64_t>(length);
  shm::ChunkRef ref{.offset = 0, .length = bytes, .taken = how_taken(in, strand, length)};
  const std::byte* const source = in.piece_count == 0 ? at(in.a, strand) + offset : nullptr;
  const bool is_sum = reduces() && in.a.base == kBaseOutput;
  const bool may_stay = lasts(in) && length >= (is_sum ? kSumReferenceBytes : kReferenceBytes);
  if (const auto shared = may_stay ? engine.shared_offset(source, bytes) : std::nullopt) {
    ref.offset = *shared;
    engine.traffic().in_place_bytes += bytes;
    *kind = shm::kReference;
    references_.push_back({in.use, number});
    std::memcpy(line.payload, &ref, sizeof ref);
    return true;
  }
  const WayChosen chosen = choose_way(in, strand, part, ref.taken);
  ref.invites = chosen.invites ? 1 : 0;
  if (chosen.way == shm::Way::kPrivate || !take_chunk(in, strand, part, chosen.way, &ref, kind)) {
    if (chosen.way != shm::Way::kPrivate && !lends_instead(in, strand, part)) return false;
    const shm::LentRef lent{reinterpret_cast<std::uint64_t>(source), bytes, bytes_behind(in, part),
                            ref.taken};
    *kind = shm::kLent;
    engine.traffic().lent_bytes += bytes;
    references_.push_back({in.use, number});
    std::memcpy(line.payload, &lent, sizeof lent);
    return true;
  }
  fill_chunk(engine.segment().base() + ref.offset, in, strand, part, ref.taken, chosen, clock);
  engine.traffic().copied_bytes += bytes;
  if (chosen.way == shm::Way::kUncached) engine.traffic().uncached_bytes += bytes;
  if (chosen.way == shm::Way::kHanded) engine.traffic().handed_bytes += bytes;
  // Nor where one of before would have gone: this one may stand there, and be read from memory.
  next_chunk_ = chosen.way == shm::Way::kCached
                    ? shm::ChunkRef{engine.pool().next_offset(bytes), bytes}
                    : shm::ChunkRef{};
  std::memcpy(line.payload, &ref, sizeof ref);
  return true;
}

// Room in the pool for a message. False: there is none now.
bool Run::take_chunk(const Instruction& in, const Strand& strand, const Part& part, shm::Way way,
                     shm::ChunkRef* ref, std::uint8_t* kind) {
  shm::Pool& pool = team_->engine().pool();
  if (way == shm::Way::kHanded) {
    const int reader = readers_of(in).node_ranks[0];
    const shm::Pool::Handed chunk = pool.hand(ref->length, reader);
    ref->offset = chunk.offset;
    ref->chunk_bytes = chunk.bytes;
    *kind = shm::kHandedChunk;
    return true;
  }
  const ChannelUse& channel = plan_->uses[in.use];
  ref->offset =
      pool.take(ref->length, {.endpoint = &team_->endpoint(),
                              .peer = reader_of(channel),
                              .number = part.number,
                              .collective = collective_,
                              .strand = index_of(strand),
                              .acknowledged = uses_[in.use].count > most_untold(channel)});
  *kind = way == shm::Way::kUncached ? shm::kUncachedChunk : shm::kChunk;
  if (ref->offset == 0 && pool.is_used_up()) [[unlikely]]
    wants_room_ = ref->length;
  return ref->offset != 0;
}

template <typename Clock>
void Run::fill_chunk(std::byte* to, const Instruction& in, Strand& strand, const Part& part,
                     shm::Taken taken, const WayChosen& chosen, Clock& clock) {
  using WaysClock = MessageWays::Clock;
  MessageWays& ways = team_->engine().message_ways();
  // Of a send, as long as all its messages so far were: the copy makes the rest.
  const bool together = in.paired && part.offset == strand.copied &&
                        chosen.way != shm::Way::kUncached && !shm::is_stream(taken) &&
                        ways.next_together(taken, part.length);
  const bool times = chosen.learns && ways.write_is_due(taken, chosen.way);
  const auto begin = times ? WaysClock::now() : WaysClock::time_point();
  if (chosen.way == shm::Way::kUncached) {  // never a list
    clock.charge(Work::kPost);
    copy_past_caches(to, at(in.a, strand) + part.offset, static_cast<std::size_t>(part.length));
    clock.charge(Work::kPack);
  } else if (together) {
    clock.charge(Work::kPost);
    const std::byte* const from = at(in.a, strand) + part.offset;
    std::byte* const also = at((&in)[1].dst, strand) + part.offset;
    const auto copy_both = chosen.way == shm::Way::kHanded ? copy_to_both_by_vectors : copy_to_both;
    copy_both(to, also, from, static_cast<std::size_t>(part.length));
    strand.copied += part.length;
    clock.charge(Work::kPack);
  } else {
    pack(to, in, strand, part, clock);
  }
  // With the time until others can see it: that of stores that are on their way, too.
  if (!times) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto took = WaysClock::now() - begin;
  if (together) return ways.note_together(taken, chosen.way, took, part.length);
  ways.note_written(taken, chosen.way, took, part.length);
}

const shm::Line& Run::incoming_line(const ChannelUse& channel, std::uint64_t number) const {
  const shm::Peer& peer = team_->endpoint().peer(channel.peer);
  const shm::Line* const lines =
      is_shared_in(channel.flow) ? peer.shared_lines[audience_of(channel.flow)] : peer.in_lines;
  return lines[number % shm::kWindow];
}

bool Run::poll(std::uint16_t use, std::uint64_t number, int polls, Received* received) {
  const ChannelUse& channel = plan_->uses[use];
  shm::Peer& peer = team_->endpoint().peer(channel.peer);
  const shm::Line& line = incoming_line(channel, number);
  std::uint64_t header = 0;
  if (!comes(line, peer, number, polls, &header, uses_[use].patience)) return false;
  if (shm::header_signature(header) != signature()) [[unlikely]] {
    fail_mismatch(channel);
    return false;
  }
  shm::Endpoint::note_lag(peer, header, collective_);
  const std::uint8_t kind = shm::header_kind(header);
  if (kind <= kInlineBytes) {
    *received = {.data = line.payload, .length = kind};
    return true;
  }
  if (kind == shm::kLent) {
    shm::LentRef lent;
    std::memcpy(&lent, line.payload, sizeof lent);
    if (lent.length <= kInlineBytes ||
        lent.length > static_cast<std::uint64_t>(plan_->stream_bytes)) [[unlikely]] {
      fail(team_->damaged(channel.peer, *this,
                          "a message of " + std::to_string(lent.length) + " bytes"));
      return false;
    }
    *received = {.length = static_cast<std::int64_t>(lent.length),
                 .arrival = {Came::kLent, shm::known(lent.taken)},
                 .lent = lent.address,
                 .behind = lent.behind};
    return true;
  }
  if (kind == shm::kWithdrawn) {
    fail_given_up(channel.peer);
    return false;
  }
  if (!shm::is_known(kind, peer.remote != nullptr)) [[unlikely]] {
    fail(team_->damaged(channel.peer, *this, "a message of kind " + std::to_string(kind)));
    return false;
  }
  if (kind == shm::kReference) reads_in_place_ = uses_[use].in_place = true;
  if (kind == shm::kAnnounced) {
    net::Announcement announced;
    std::memcpy(&announced, line.payload, sizeof announced);
    *received = {.length = static_cast<std::int64_t>(announced.bytes),
                 .announcement = line.payload};
    return true;
  }
  if (kind == shm::kExposed) {
    net::Exposure exposure;
    std::memcpy(&exposure, line.payload, sizeof exposure);
    *received = {.length = static_cast<std::int64_t>(exposure.bytes), .exposure = line.payload};
    return true;
  }
  shm::ChunkRef ref;
  received->data = find_chunk(line, kind, &ref, &received->arrival);
  if (kind == shm::kHandedChunk) received->handed = {ref.offset, ref.chunk_bytes, ref.invites != 0};
  received->length = static_cast<std::int64_t>(ref.length);
  if (received->data == nullptr) [[unlikely]] {
    fail_place(channel.peer, ref);
    return false;
  }
  return true;
}

// Where the bytes are that a line of this kind tells of, and how they came; null: in no such place.
const std::byte* Run::find_chunk(const shm::Line& line, std::uint8_t kind, shm::ChunkRef* ref,
                                 Arrival* arrival) const {
  std::memcpy(ref, line.payload, sizeof *ref);
  const Came came = kind == shm::kChunk           ? Came::kCached
                    : kind == shm::kUncachedChunk ? Came::kUncached
                    : kind == shm::kHandedChunk   ? Came::kHanded
                                                  : Came::kSomehow;
  *arrival = {came, shm::known(ref->taken)};
  if (kind == shm::kRemote) return reinterpret_cast<const std::byte*>(ref->offset);
  if (kind == shm::kHandedChunk) {  // to be written, too: where nothing else is
    const shm::Segment& segment = team_->engine().segment();
    const bool is_chunk = ref->length <= ref->chunk_bytes && ref->offset % shm::kCacheLine == 0 &&
                          segment.holds_in_pool(ref->offset, ref->chunk_bytes);
    return is_chunk ? segment.base() + ref->offset : nullptr;
  }
  return team_->engine().at_shared_offset(ref->offset, ref->length);
}

// Sends (run_two_sided.cc) are written like puts.
template bool Run::write_message(const Instruction&, Strand&, const Part&, NoClock&);
template bool Run::write_message(const Instruction&, Strand&, const Part&, LapClock&);

}  // namespace carillon
