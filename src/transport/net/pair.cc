// SPDX-License-Identifier: Apache-2.0
#include "transport/net/pair.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "transport/net/exposure.h"
#include "transport/net/network.h"

namespace carillon::net {
namespace {

// Where lines of a member are looked for that has not sent any yet.
const shm::Line kNoLines[shm::kWindow] = {};

// A status as it travels. Each word counts upwards and is good by itself.
struct StatusWords {
  std::uint64_t done = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t call = 0;
  std::uint64_t closed = 0;  // generation: nothing will come any more
  std::uint64_t sent = 0;    // how many messages
  std::uint64_t check = 0;   // of these
};

// Each step spreads a changed bit over the whole word: what has changed in part does not cancel
// out.
std::uint64_t check_of(const StatusWords& words) {
  std::uint64_t sum = 0;
  for (const std::uint64_t word :
       {words.done, words.acknowledged, words.call, words.closed, words.sent}) {
    sum = (sum ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    sum ^= sum >> 32;
  }
  return sum;
}

std::uint64_t with_generation(std::uint64_t generation, std::uint64_t count) {
  return generation << shm::kDoneBits | count;
}

// `word` if it is of this generation and later than what is known.
void raise(std::atomic<std::uint64_t>& known, std::uint64_t word) {
  // partner: the acquire loads in Endpoint; both sides run under the engine's lock
  if (word > known.load(std::memory_order_relaxed)) known.store(word, std::memory_order_release);
}

}  // namespace

Pair::Pair(Network& network, const PairPlace& place) : network_(network), place_(place) {
  told_.done.store(with_generation(place.peer_generation, 0), std::memory_order_relaxed);
  done_ = with_generation(place.generation, 0);
  network_.name_pair(place.id, this);
}

Pair::~Pair() {
  leave_announced();
  network_.forget(*this);
  // What could not be told yet, a note will tell.
  if (status_pending_ && !closing_ && state_ != State::kFailed) note_giving_up();
  if (block_.data != nullptr && closing_ && peer_closed_) network_.memory().release(block_);
}

void Pair::attach(shm::Peer& peer) {
  peer_ = &peer;
  peer.remote = this;
  peer.in_lines = kNoLines;
  peer.shared_lines = {{kNoLines, kNoLines}};
  peer.progress = &told_;
  peer.out_acks = &acks_;
  peer.generation = place_.peer_generation;
}

void Pair::fail(const Status& status) {
  if (state_ == State::kFailed) return;
  state_ = State::kFailed;
  status_ = status;
}

bool Pair::allocate_block() {
  if (block_.data != nullptr) return true;
  auto block = network_.memory().allocate(layout().bytes());
  if (!block.ok()) {
    fail(block.status());
    return false;
  }
  block_ = block.value();
  std::memset(block_.data, 0, BlockLayout::kLines);
  arrived_ = std::make_unique<shm::Line[]>(shm::kWindow);
  peer_->in_lines = arrived_.get();
  return true;
}

void Pair::open() {
  ask();
  if (state_ == State::kOpening && !opening_since_) {
    opening_since_ = std::chrono::steady_clock::now();
  }
}

void Pair::ask() {
  if (state_ != State::kUnused || !allocate_block()) return;
  if (const Status broken = network_.trouble_with(place_.process); !broken.ok()) {
    fail(broken);
    return;
  }
  state_ = State::kOpening;
  network_.ask(place_.process, {.kind = Note::kOpen,
                                .id = place_.peer_id,
                                .generation = place_.peer_generation,
                                .block = block_.remote,
                                .done = done_});
}

double Pair::opening_s() const {
  if (state_ != State::kOpening || !opening_since_) return 0;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - *opening_since_).count();
}

void Pair::on_opened(const Note& note) {
  if (state_ == State::kFailed || !allocate_block()) return;
  out_ = note.block;
  state_ = State::kOpen;
  if (status_pending_) later();
}

std::byte* Pair::prepare(std::uint64_t number, std::uint64_t length, bool two_sided) {
  if (state_ != State::kOpen) {
    open();
    return nullptr;
  }
  if (two_sided && !may_send()) return nullptr;
  if (filled_ && prepared_number_ == number && prepared_bytes_ == length) {
    return prepared_->data + kHeadBytes;
  }
  if (std::exchange(filled_, false)) prepared_->held = false;
  auto buffer = network_.buffers().take(kHeadBytes + length);
  if (!buffer.ok()) {
    fail(buffer.status());
    return nullptr;
  }
  prepared_ = buffer.value();
  prepared_bytes_ = length;
  prepared_number_ = number;
  return prepared_->data + kHeadBytes;
}

void Pair::write_head(std::uint64_t header) {
  std::memcpy(prepared_->data, &prepared_bytes_, sizeof prepared_bytes_);
  std::memcpy(prepared_->data + 8, &header, sizeof header);
}

// What the network answered to a message.
bool Pair::posted(const Result<bool>& answer, Buffer** buffer) {
  if (!answer.ok()) fail(answer.status());
  prepared_->owner = this;
  filled_ = !answer.ok() || !answer.value();
  prepared_->held = filled_;
  if (filled_) return false;
  sent_ = std::max(sent_, prepared_number_ + 1);
  *buffer = prepared_;
  return true;
}

bool Pair::post(std::uint64_t number, std::uint64_t header, Buffer** buffer) {
  const auto line = static_cast<unsigned>(number % shm::kWindow);
  write_head(header);
  const auto peer = network_.peer_of(place_.process);
  Result<bool> answer = peer.status();
  if (peer.ok()) {
    const bool is_long = prepared_bytes_ > shm::kInlineBytes;
    const auto kind = is_long ? Network::Kind::kLong : Network::Kind::kShort;
    const std::array piece = {
        wire::Piece{prepared_->data, kHeadBytes + prepared_bytes_, prepared_->registration}};
    answer =
        network_.wire().put(peer.value(), piece, out_.at(layout().message(line, is_long)),
                            Network::immediate(kind, number, place_.peer_id), prepared_->operation);
  }
  return posted(answer, buffer);
}

Result<bool> Pair::get(wire::RemoteMemory from, std::span<const wire::Piece> to,
                       wire::Operation& operation) {
  if (state_ == State::kFailed) return status_;
  const auto peer = network_.peer_of(place_.process);
  if (!peer.ok()) return peer.status();
  return network_.wire().get(peer.value(), from, to, operation);
}

void Pair::note_acknowledged(std::uint64_t count, bool awaited) {
  acknowledged_ = count;
  const std::uint64_t untold = acknowledged_ - told_acknowledged_;
  if (untold >= kTellEvery || (awaited && untold > 0)) tell(done_, call_, false);
}

void Pair::tell(std::uint64_t done, std::uint64_t call, bool covers_all) {
  done_ = done;
  call_ = call;
  if (covers_all) untold_ = 0;
  if (!is_used() || state_ == State::kFailed || status_pending_) return;
  if (peer_closed_ && !closing_) return;  // it may have gone
  if (post_status()) return;
  status_pending_ = true;
  if (state_ == State::kOpen) later();
}

void Pair::later() {
  if (!std::exchange(retrying_, true)) network_.retry_later(*this);
}

bool Pair::retry() {
  if (status_pending_ && (state_ == State::kFailed || post_status())) status_pending_ = false;
  bool all_posted = true;
  for (unsigned line = 0; receives_ && line < shm::kWindow; ++line) {
    if (!receives_[line].posted) post_receive(line);
    all_posted = all_posted && receives_[line].posted;
  }
  retrying_ = status_pending_ || (!all_posted && state_ != State::kFailed);
  return !retrying_;
}

// Where puts may overtake each other, an older status could land on a newer one, and what that one
// said would be lost. So there the next one waits until the last has landed.
bool Pair::status_under_way() {
  if (last_status_ == nullptr || !network_.overtakes()) return false;
  if (!last_status_->operation.done()) return true;
  std::exchange(last_status_, nullptr)->held = false;
  return false;
}

bool Pair::post_status() {
  if (state_ != State::kOpen || status_under_way()) return false;
  StatusWords words{.done = done_,
                    .acknowledged = with_generation(place_.generation, acknowledged_),
                    .call = call_,
                    .closed = closing_ ? place_.generation : 0,
                    .sent = sent_};
  const auto buffer = network_.buffers().take(sizeof words);
  const auto peer = network_.peer_of(place_.process);
  Result<bool> posted = buffer.ok() ? peer.status() : buffer.status();
  if (buffer.ok() && peer.ok()) {
    words.check = check_of(words);
    std::memcpy(buffer.value()->data, &words, sizeof words);
    const std::array piece = {
        wire::Piece{buffer.value()->data, sizeof words, buffer.value()->registration}};
    posted = network_.wire().put(peer.value(), piece, out_,
                                 Network::immediate(Network::Kind::kStatus, 0, place_.peer_id),
                                 buffer.value()->operation);
    if (posted.ok() && posted.value()) buffer.value()->owner = this;
    if (posted.ok() && posted.value() && network_.puts_must_end()) {
      if (last_status_ != nullptr) last_status_->held = false;
      last_status_ = buffer.value();
      last_status_->held = true;
    }
  }
  if (!posted.ok()) fail(posted.status());
  if (posted.ok() && !posted.value()) return false;
  told_acknowledged_ = acknowledged_;
  if (posted.ok()) ++network_.counters().statuses;
  return true;
}

bool Pair::close(std::uint64_t done) {
  if (!is_used() || state_ == State::kFailed) return true;
  if (!closing_) {
    closing_ = true;
    tell(done, call_, true);
  }
  return peer_closed_ && end_receives() && !status_pending_;
}

void Pair::on_garbage() {
  fail({Code::kMismatch, "network: a member of the team sent what is no message of carillon"});
}

// The block may hold anything: a peer wrote it.
void Pair::on_message(std::uint32_t number, bool is_long) {
  if (block_.data == nullptr) return;
  const unsigned line = number % shm::kWindow;
  shm::Line& arrived = arrived_[line];
  const std::uint32_t last = shm::header_tag(arrived.header.load(std::memory_order_relaxed));
  const std::uint32_t next = last == 0 ? line : last - 1 + shm::kWindow;
  if (number != Network::low_bits(next)) return;  // told again
  const std::byte* const message = block_.data + layout().message(line, is_long);
  const std::byte* const payload = message + kHeadBytes;
  std::uint64_t length = 0;
  std::uint64_t header = 0;
  std::memcpy(&length, message, sizeof length);
  std::memcpy(&header, message + 8, sizeof header);
  if (length > (is_long ? place_.slot_bytes : shm::kInlineBytes) ||
      shm::header_tag(header) - 1 != next) {
    return on_garbage();
  }
  auto kind = static_cast<std::uint8_t>(length);
  if (shm::header_kind(header) == shm::kExposed) {
    Exposure exposure;
    if (is_long || length != sizeof exposure) return on_garbage();
    std::memcpy(&exposure, payload, sizeof exposure);
    if (exposure.bytes == 0 || exposure.bytes > place_.slot_bytes) return on_garbage();
    kind = shm::kExposed;
  } else if (shm::header_kind(header) == shm::kAnnounced) {
    Announcement announced;
    if (is_long || length != sizeof announced) return on_garbage();
    std::memcpy(&announced, payload, sizeof announced);
    if (!announced.is_sound(place_.slot_bytes)) return on_garbage();
    kind = shm::kAnnounced;
  }
  if (!is_long) {
    std::memcpy(arrived.payload, payload, length);
    if (kind != shm::kAnnounced) network_.counters().copied_bytes += length;
  } else {
    const shm::ChunkRef where{reinterpret_cast<std::uint64_t>(payload), length};
    std::memcpy(arrived.payload, &where, sizeof where);
    kind = shm::kRemote;
  }
  // partner: the acquire load in Run::poll; both sides run under the engine's lock
  arrived.header.store(shm::with_kind(header, kind), std::memory_order_release);
}

void Pair::on_status() {
  if (block_.data == nullptr) return;
  StatusWords words;
  std::memcpy(&words, block_.data, sizeof words);
  if (words.check != check_of(words)) return;  // the next one is landing, and will be told
  if (words.done >> shm::kDoneBits == place_.peer_generation) {
    raise(told_.done, words.done);
    told_sent_ = std::max(told_sent_, words.sent);
  }
  if (words.closed == place_.peer_generation) peer_closed_ = true;
  const std::uint64_t count = words.acknowledged & shm::kDoneMask;
  if (words.acknowledged >> shm::kDoneBits == place_.peer_generation && count <= peer_->out_next) {
    raise(acks_.pair, count);
  }
  told_.call.store(words.call, std::memory_order_relaxed);
}

void Pair::on_gave_up(std::uint64_t done) {
  if (done >> shm::kDoneBits == place_.peer_generation) raise(told_.done, done);
}

void Pair::give_up(std::uint64_t word) {
  done_ = word;
  if (is_used()) {
    tell(word, call_, true);
  } else {
    note_giving_up();
  }
}

void Pair::note_giving_up() {
  network_.ask(place_.process, {.kind = Note::kGaveUp,
                                .id = place_.peer_id,
                                .generation = place_.peer_generation,
                                .block = {},
                                .done = done_,
                                .own_id = place_.id});
}

}  // namespace carillon::net
