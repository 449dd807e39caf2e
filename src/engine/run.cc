// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"

#include <algorithm>
#include <cstring>

#include "engine/engine.h"
#include "engine/team.h"
#include "engine/wake.h"

namespace carillon {
namespace {

using shm::kInlineBytes;

constexpr int kTightPolls = 64;                 // polls before a pause goes between them
constexpr std::int64_t kReferenceBytes = 4096;  // shorter data is cheaper copied than waited for

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline void prefetch_for_write(const void* memory) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(memory)));
#else
  __builtin_prefetch(memory, 1);
#endif
}

// Small copies are most of the traffic of small collectives; a call would cost as much again.
inline void copy_bytes(void* to, const void* from, std::int64_t length) {
  if (length == 8) {
    std::memcpy(to, from, 8);
  } else if (length != 0) {
    std::memcpy(to, from, static_cast<std::size_t>(length));
  }
}

}  // namespace

void Run::prepare(Team& team, const Binding& binding) {
  team_ = &team;
  binding_ = binding;
  status_ = Status();
  state_ = State::kIdle;
  references_.clear();
  sent_.clear();
  if (!binding.tables.send_bytes.empty()) {  // the caller's arrays may change from now on
    const Tables& t = binding.tables;
    table_storage_.clear();
    for (const auto part : {t.send_bytes, t.send_offsets, t.recv_bytes, t.recv_offsets}) {
      table_storage_.insert(table_storage_.end(), part.begin(), part.end());
    }
    const std::span<const std::int64_t> all(table_storage_);
    const std::size_t n = t.send_bytes.size();
    binding_.tables = {all.subspan(0, n), all.subspan(n, n), all.subspan(2 * n, n),
                       all.subspan(3 * n, n)};
  }
}

void Run::set_plan(const std::shared_ptr<const Plan>& plan) {
  if (plan_ != plan) plan_ = plan;
  bases_.resize(kBaseSlots + plan_->slot_bases);
  uses_.resize(plan_->uses.size());
  landed_.resize(plan_->slot_bases);
  strands_.resize(plan_->strand_starts.size());
  const auto scratch = static_cast<std::size_t>(plan_->scratch_bytes);
  if (scratch_.size() < scratch) scratch_.resize(scratch);
  bases_[kBaseScratch] = scratch_.data();
  set_buffers();
}

void Run::bind_again(const void* input, void* output) {
  binding_.input = input;
  binding_.output = output;
  set_buffers();
}

void Run::set_buffers() {
  // The input is never written through: reads and writes share one table of bases.
  bases_[kBaseInput] = static_cast<std::byte*>(const_cast<void*>(binding_.input));
  bases_[kBaseOutput] = static_cast<std::byte*>(binding_.output);
  for (std::size_t i = 0; i < strands_.size(); ++i) {
    strands_[i] = Strand{.at = plan_->strand_starts[i]};
  }
}

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

std::int64_t Run::stream_messages(std::int64_t length) const {
  return std::max<std::int64_t>(1, (length + plan_->slot_bytes - 1) / plan_->slot_bytes);
}

void Run::begin(std::uint64_t collective) {
  collective_ = collective;
  copied_bytes_ = 0;
  state_ = State::kRunning;
  told_all_ = false;
  take_numbers();
}

void Run::next_stage(const std::shared_ptr<const Plan>& plan) {
  tell_all();
  set_plan(plan);
  told_all_ = false;
  take_numbers();
}

void Run::take_numbers() {
  shm::Endpoint& endpoint = team_->endpoint();
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const ChannelUse& channel = plan_->uses[i];
    std::int64_t count = channel.count;
    if (channel.table != Table::kNone) {
      count += stream_messages(length_of({.table = channel.table, .entry = channel.entry}, 0));
    }
    const auto numbers = static_cast<std::uint64_t>(count);
    std::uint64_t first = 0;
    shm::Peer& peer = endpoint.peer(channel.peer);
    switch (channel.flow) {
      case Flow::kOutPair: first = std::exchange(peer.out_next, peer.out_next + numbers); break;
      case Flow::kInPair: first = std::exchange(peer.in_next, peer.in_next + numbers); break;
      case Flow::kInAll: first = std::exchange(peer.all_in_next, peer.all_in_next + numbers); break;
      case Flow::kOutAll: first = endpoint.take_all_numbers(numbers); break;
    }
    uses_[i] = Use{.first = first, .count = count};
  }
}

bool Run::progress(int polls) {
  bool finished = true;
  // A strand that polls keeps the others from what the peer may be polling for.
  if (strands_.size() > 1) polls = 0;
  for (Strand& strand : strands_) {
    if (!strand.finished && !advance(strand, polls)) finished = false;
  }
  if (state_ == State::kDone) return true;  // it failed
  if (!finished) return false;
  if (!sent_.empty() && !sent()) return false;
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

bool Run::advance(Strand& strand, int polls) {
  for (;; ++strand.at) {
    const Instruction& in = plan_->code[strand.at];
    switch (in.action) {
      case Action::kPut:
        if (!put(in, strand)) return false;
        break;
      case Action::kWait:
        if (!wait(in, strand, polls)) return false;
        break;
      case Action::kRelease: release(in.use, number_of(in, strand)); break;
      case Action::kCopy: copy(in, strand); break;
      case Action::kReduce: reduce(in, strand); break;
      case Action::kSend:
        if (!send(in, strand)) return false;
        break;
      case Action::kRecv:
        if (!recv(in, strand, polls)) return false;
        break;
      case Action::kRepeat:
        strand.loop = strand.at + 1;
        strand.iteration = 0;
        strand.iterations = in.count;
        break;
      case Action::kEndRepeat:
        if (++strand.iteration < strand.iterations) {
          strand.at = strand.loop - 1;
        } else {
          strand.iteration = 0;
        }
        break;
      case Action::kEnd: strand.finished = true; return true;
    }
  }
}

bool Run::wait(const Instruction& in, const Strand& strand, int polls) {
  Received received;
  const std::uint64_t number = number_of(in, strand);
  if (!poll(in.use, number, polls, &received)) return false;
  if (received.length < in.length) [[unlikely]] {
    fail(Status(Code::kMismatch, "rank " + std::to_string(plan_->uses[in.use].peer) + " sent " +
                                     std::to_string(received.length) + " bytes where rank " +
                                     std::to_string(team_->rank()) + " expected " +
                                     std::to_string(in.length) +
                                     "; do all ranks call the collective with the same sizes?"));
    return false;
  }
  if (received.exposure != nullptr) {
    Landing landing;
    if (in.count > 0) {
      landing.bytes = {at(in.a, strand), static_cast<std::size_t>(in.count)};
      landing.extent = extent_of(landing.bytes, in.a, strand);
    }
    if (!fetch(in, strand, number, landing, &received)) return false;
  }
  landed_[in.dst.base - kBaseSlots] = received.landed ? 1 : 0;
  bases_[in.dst.base] = const_cast<std::byte*>(received.data);
  return true;
}

void Run::copy(const Instruction& in, const Strand& strand) {
  const std::int64_t length = length_of(in.dst, in.length);
  std::byte* const to = at(in.dst, strand);
  const std::byte* const from = at(in.a, strand);
  if (to == from) return;  // it has landed there
  copy_bytes(to, from, length);
  copied_bytes_ += static_cast<std::uint64_t>(length);
}

void Run::reduce(const Instruction& in, const Strand& strand) {
  std::byte* const dst = at(in.dst, strand);
  const std::byte* const left = at(in.a, strand);
  const std::byte* const right = at(in.b, strand);
  const auto count = static_cast<std::size_t>(in.count);
  const Reduction& reduction = binding_.reduction;
  if (reduction.kernel != nullptr) {
    reduction.kernel(dst, left, right, count);
    return;
  }
  // A user operator works in place on its right operand.
  if (dst == right) {
    reduction.user(reduction.user_arg, left, dst, count);
  } else if (dst != left) {
    std::memcpy(dst, right, static_cast<std::size_t>(in.length));
    reduction.user(reduction.user_arg, left, dst, count);
  } else {
    std::vector<std::byte> result(right, right + in.length);
    reduction.user(reduction.user_arg, left, result.data(), count);
    std::memcpy(dst, result.data(), result.size());
  }
}

// The bytes [offset, offset + length) of an instruction's piece list.
void Run::gather(std::byte* to, const Instruction& in, const Strand& strand, std::int64_t offset,
                 std::int64_t length) const {
  if (in.piece_count == 0) {
    copy_bytes(to, at(in.a, strand) + offset, length);
    return;
  }
  for (std::uint32_t i = 0; i < in.piece_count && length > 0; ++i) {
    const PlanPiece& piece = plan_->pieces[in.first_piece + i];
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const std::int64_t run = std::min(length, piece.length - offset);
    copy_bytes(to, at(piece.memory, strand) + offset, run);
    to += run;
    length -= run;
    offset = 0;
  }
}

void Run::scatter(const std::byte* from, const Instruction& in, const Strand& strand,
                  std::int64_t offset, std::int64_t length) const {
  if (in.piece_count == 0) {
    copy_bytes(at(in.dst, strand) + offset, from, length);
    return;
  }
  for (std::uint32_t i = 0; i < in.piece_count && length > 0; ++i) {
    const PlanPiece& piece = plan_->pieces[in.first_piece + i];
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const std::int64_t run = std::min(length, piece.length - offset);
    copy_bytes(at(piece.memory, strand) + offset, from, run);
    from += run;
    length -= run;
    offset = 0;
  }
}

bool Run::put(const Instruction& in, const Strand& strand) {
  return write_message(in, strand, number_of(in, strand), 0, in.length);
}

bool Run::write_message(const Instruction& in, const Strand& strand, std::uint64_t number,
                        std::int64_t offset, std::int64_t length) {
  shm::Endpoint& endpoint = team_->endpoint();
  const ChannelUse& channel = plan_->uses[in.use];
  const bool to_all = channel.flow == Flow::kOutAll;
  shm::Peer& peer = endpoint.peer(channel.peer);
  if (!to_all && peer.remote != nullptr) {
    return write_remote(in, strand, peer, number, offset, length);
  }
  if (to_all ? !endpoint.all_line_free(number) : !endpoint.pair_line_free(peer, number)) {
    return false;
  }
  // A pointer of its own: GCC 12 drops the index of (a ? b : c)[i] under -fsanitize=undefined.
  shm::Line* const lines = to_all ? endpoint.all_lines() : peer.out_lines;
  shm::Line& line = lines[number % shm::kWindow];
  auto kind = static_cast<std::uint8_t>(length);
  if (length <= static_cast<std::int64_t>(kInlineBytes)) {
    gather(line.payload, in, strand, offset, length);
  } else if (!write_large(in, strand, line, number, offset, length, &kind)) {
    return false;
  }
  // partner: the acquire load in poll() of each reader
  line.header.store(shm::make_header(static_cast<std::uint32_t>(number), endpoint.lag(collective_),
                                     kind, signature()),
                    std::memory_order_release);
  next_line_ = &lines[(number + 1) % shm::kWindow];
  if (to_all) {
    endpoint.use_all_line(number, collective_);
  } else {
    shm::Endpoint::use_pair_line(peer, number, collective_);
  }
  if (kind != shm::kReference) copied_bytes_ += static_cast<std::uint64_t>(length);
  wake_readers(*team_, to_all ? shm::Pool::kToAll : channel.peer);
  return true;
}

bool Run::write_remote(const Instruction& in, const Strand& strand, shm::Peer& peer,
                       std::uint64_t number, std::int64_t offset, std::int64_t length) {
  shm::Endpoint& endpoint = team_->endpoint();
  if (!endpoint.pair_line_free(peer, number)) return false;
  net::Pair& pair = *peer.remote;
  const bool two_sided = plan_->two_sided && in.action == Action::kSend;
  const auto exposure = two_sided ? std::nullopt : exposure_of(in, strand, offset, length);
  const auto bytes = exposure ? sizeof *exposure : static_cast<std::size_t>(length);
  std::byte* const to = pair.prepare(number, bytes, two_sided);
  net::Buffer* buffer = nullptr;
  if (to != nullptr) {
    if (exposure) {
      std::memcpy(to, &*exposure, sizeof *exposure);
    } else if (!pair.is_filled()) {
      gather(to, in, strand, offset, length);
      copied_bytes_ += static_cast<std::uint64_t>(length);
    }
    const std::uint32_t lag = endpoint.lag(collective_);
    const std::uint64_t header =
        shm::make_header(static_cast<std::uint32_t>(number), lag,
                         exposure ? shm::kExposed : std::uint8_t{0}, signature());
    if (two_sided) {
      pair.send(number, header, &buffer);
    } else {
      pair.post(number, header, &buffer);
    }
  }
  if (buffer == nullptr) {
    if (!pair.status().ok()) fail_unreachable(plan_->uses[in.use].peer, pair.status());
    return false;
  }
  if (exposure) references_.push_back({in.use, number});
  if (team_->only_in_flight()) pair.told_in_passing();
  shm::Endpoint::use_pair_line(peer, number, collective_);
  if (team_->engine().network()->puts_must_end()) sent_.push_back(buffer);
  return true;
}

bool Run::write_large(const Instruction& in, const Strand& strand, shm::Line& line,
                      std::uint64_t number, std::int64_t offset, std::int64_t length,
                      std::uint8_t* kind) {
  Engine& engine = team_->engine();
  const ChannelUse& channel = plan_->uses[in.use];
  const auto bytes = static_cast<std::uint64_t>(length);
  shm::ChunkRef ref{.offset = 0, .length = bytes};
  const std::byte* const source = in.piece_count == 0 ? at(in.a, strand) + offset : nullptr;
  if (in.stable && length >= kReferenceBytes && engine.in_heap(source, bytes)) {
    ref.offset = static_cast<std::uint64_t>(source - engine.segment().base());
    *kind = shm::kReference;
    references_.push_back({in.use, number});
  } else {
    const int reader = channel.flow == Flow::kOutAll ? shm::Pool::kToAll : channel.peer;
    ref.offset = engine.pool().take(bytes, {.endpoint = &team_->endpoint(),
                                            .peer = reader,
                                            .number = number,
                                            .collective = collective_,
                                            .acknowledged = uses_[in.use].count > shm::kWindow});
    if (ref.offset == 0) return false;
    gather(engine.segment().base() + ref.offset, in, strand, offset, length);
    *kind = shm::kChunk;
    next_chunk_ = {engine.pool().next_offset(bytes), bytes};
  }
  std::memcpy(line.payload, &ref, sizeof ref);
  return true;
}

bool Run::poll(std::uint16_t use, std::uint64_t number, int polls, Received* received) {
  const ChannelUse& channel = plan_->uses[use];
  shm::Peer& peer = team_->endpoint().peer(channel.peer);
  const shm::Line* const lines = channel.flow == Flow::kInAll ? peer.all_lines : peer.in_lines;
  const shm::Line& line = lines[number % shm::kWindow];
  const auto tag = static_cast<std::uint32_t>(number + 1);
  if (peer.remote != nullptr) polls = 0;  // nothing comes unless the network makes progress
  // partner: the release store in write_message of the peer, or in Pair::on_message
  std::uint64_t header = line.header.load(std::memory_order_acquire);
  for (int i = 0; shm::header_tag(header) != tag; ++i) {
    if (i >= polls) return false;
    if (i >= kTightPolls) pause_core();
    header = line.header.load(std::memory_order_acquire);
  }
  if (shm::header_signature(header) != signature()) [[unlikely]] {
    fail_mismatch(channel);
    return false;
  }
  shm::Endpoint::note_lag(peer, header, collective_);
  const std::uint8_t kind = shm::header_kind(header);
  if (kind <= kInlineBytes) {
    *received = {line.payload, kind};
    return true;
  }
  if (kind == shm::kExposed) {
    net::Exposure exposure;
    std::memcpy(&exposure, line.payload, sizeof exposure);
    *received = {.length = static_cast<std::int64_t>(exposure.bytes), .exposure = line.payload};
    return true;
  }
  shm::ChunkRef ref;
  std::memcpy(&ref, line.payload, sizeof ref);
  const std::byte* const data = kind == shm::kRemote
                                    ? reinterpret_cast<const std::byte*>(ref.offset)
                                    : team_->engine().segment().base() + ref.offset;
  *received = {data, static_cast<std::int64_t>(ref.length)};
  return true;
}

void Run::fail_mismatch(const ChannelUse& channel) {
  fail(Status(Code::kMismatch,
              "rank " + std::to_string(channel.peer) + " of a team of " +
                  std::to_string(team_->size()) + " sent data of another call than rank " +
                  std::to_string(team_->rank()) + " makes (its collective " +
                  std::to_string(collective_) +
                  " on the team); do all ranks call the same collectives in the same order, with "
                  "the same sizes, roots and operators?"));
}

void Run::fail_unreachable(int rank, const Status& why) {
  fail(Status(why.code(), "rank " + std::to_string(team_->rank()) + " cannot reach rank " +
                              std::to_string(rank) + " of a team of " +
                              std::to_string(team_->size()) + " (its collective " +
                              std::to_string(collective_) +
                              " on the team): " + std::string(why.message())));
}

void Run::fail(Status status) {
  status_ = std::move(status);
  state_ = State::kDone;
  // Somebody may still read what was exposed, or the network write where it was to: it all stays as
  // it is, as the team's memory does.
  if (fetches_) team_->engine().network()->keep(std::move(fetches_));
}

std::span<const std::int64_t> Run::learned() const {
  const Range range = plan_->learned;
  return {reinterpret_cast<const std::int64_t*>(scratch_.data() + range.offset),
          static_cast<std::size_t>(range.length / 8)};
}

}  // namespace carillon
