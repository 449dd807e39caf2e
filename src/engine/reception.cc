// SPDX-License-Identifier: Apache-2.0
#include "engine/reception.h"

#include <algorithm>
#include <vector>

namespace carillon {
namespace {

// The owner's word: 0, nobody yet; else
//   bit 0        locked
//   bits 1-15    which process of the node, counted from 1
//   bits 16-63   how often something was taken in: a word that stays the same is an idle owner's
constexpr std::uint64_t kLocked = 1;
constexpr int kCountShift = 16;

std::size_t process_of(std::uint64_t word) {
  return static_cast<std::size_t>((word & ((UINT64_C(1) << kCountShift) - 1)) >> 1) - 1;
}

std::uint64_t next_word(std::uint64_t word, std::size_t process) {
  return ((word >> kCountShift) + 1) << kCountShift | (process + 1) << 1;
}

}  // namespace

struct Reception::Head {
  shm::Counter owner;
  shm::Counter published;
  std::uint64_t lengths[kRing];
};

std::size_t Reception::head_bytes(std::size_t members) {
  const std::size_t bytes =
      sizeof(Head) + members * (2 * sizeof(shm::Counter) + sizeof(multicast::Group::Position));
  return (bytes + shm::kPageBytes - 1) / shm::kPageBytes * shm::kPageBytes;
}

Reception::Head& Reception::head() const { return *reinterpret_cast<Head*>(place_.memory); }

shm::Counter& Reception::released(std::size_t process) const {
  return reinterpret_cast<shm::Counter*>(place_.memory + sizeof(Head))[process];
}

shm::Counter& Reception::asked(std::size_t process) const {
  return released(place_.members + process);
}

multicast::Group::Position& Reception::position(std::size_t source) const {
  std::byte* const first = place_.memory + sizeof(Head) + 2 * place_.members * sizeof(shm::Counter);
  return reinterpret_cast<multicast::Group::Position*>(first)[source];
}

std::byte* Reception::slot(std::uint64_t number) const {
  return place_.memory + head_bytes(place_.members) + number % kRing * kMessageBytes;
}

bool Reception::has_room(std::uint64_t number) const {
  for (std::size_t i = 0; i < place_.processes; ++i) {
    // partner: release() of the process, which has read what is overwritten now
    if (released(i).value.load(std::memory_order_acquire) + kRing <= number) return false;
  }
  return true;
}

Result<const std::byte*> Reception::message(Rank writer, std::uint64_t number, std::size_t bytes) {
  if (number != next_) return nullptr;
  if (asked_ <= number) {
    asked_ = number + 1;
    asked(place_.own).value.store(asked_, std::memory_order_relaxed);  // partner: lock() of others
  }
  // partner: publish() of the owner
  if (head().published.value.load(std::memory_order_acquire) <= number) {
    const multicast::Nanoseconds now = clock_();
    Status status = begin(writer, number, bytes, now);
    if (status.ok() && receives_) status = progress(now);
    if (!status.ok()) return status;
    // partner: the same
    if (head().published.value.load(std::memory_order_acquire) <= number) return nullptr;
  } else if (!receives_) {
    look();  // who is always late need not be sent what others take in
  }
  const std::uint64_t length = head().lengths[number % kRing];
  if (length != bytes) return GroupStreams::differs(writer, length, bytes);
  return slot(number);
}

void Reception::release(std::uint64_t number) {
  next_ = number + 1;
  // partner: has_room() of whoever is the owner then
  released(place_.own).value.store(next_, std::memory_order_release);
}

// All before this message are published, as this process has read them, and it is not.
Status Reception::begin(Rank writer, std::uint64_t number, std::size_t bytes,
                        multicast::Nanoseconds now) {
  if (receives_ || !has_room(number)) return {};
  if (!lock(number, now)) {
    look();
    return {};
  }
  multicast::Group& group = streams_.group();
  const multicast::Member source = streams_.member(writer);
  const bool was_away = !in_step_;
  Status status = was_away ? take_over() : Status();
  // The owner before may have come to it since.
  if (status.ok() && head().published.value.load(std::memory_order_relaxed) == number) {
    receiving_ = std::make_unique<multicast::Receiving>();
    const auto posted = group.receive(source, {slot(number), kMessageBytes}, *receiving_);
    status = posted.ok() ? Status() : posted.status();
    receives_ = posted.ok() && posted.value();
    writer_ = writer;
    if (receives_ && was_away) group.expect(source, bytes);
  } else {
    learn(number);
  }
  unlock();
  return status;
}

// Becomes the owner, to take in message `number`, if nobody is, or the one that is has done nothing
// for a while.
bool Reception::lock(std::uint64_t number, multicast::Nanoseconds now) {
  if (lock_own()) return true;
  std::atomic<std::uint64_t>& owner = head().owner.value;
  std::uint64_t word = owner.load(std::memory_order_relaxed);
  if (word != seen_word_) {
    seen_word_ = word;
    seen_since_ = now;
  }
  // Stale, it only costs or saves a wait. partner: message() of the owner
  const bool away =
      word != 0 && asked(process_of(word)).value.load(std::memory_order_relaxed) <= number;
  const multicast::Nanoseconds patience =
      away ? std::min(patience_away_, patience_) : patience_come_;
  const bool idle = (word & kLocked) == 0 && now - seen_since_ >= patience;
  if (word != 0 && !idle) return false;
  const std::uint64_t own = next_word(word, place_.own);
  // partner: unlock() of the owner before, whose ring and positions are seen now
  if (!owner.compare_exchange_strong(word, own | kLocked, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
    return false;
  }
  if (word != 0) ++takeovers_;
  if (seen_word_ != 0) in_step_ = false;
  away_ = away ? word : 0;
  own_word_ = own;
  return true;
}

// False: another process has become the owner.
bool Reception::lock_own() {
  if (own_word_ == 0) return false;
  std::uint64_t word = own_word_;
  // partner: unlock(), of this process itself: nobody else has had the lock since
  if (head().owner.value.compare_exchange_strong(
          word, own_word_ | kLocked, std::memory_order_acquire, std::memory_order_relaxed)) {
    return true;
  }
  own_word_ = 0;
  return false;
}

void Reception::unlock() {
  own_word_ = next_word(own_word_, place_.own);
  // partner: the exchanges in lock() and lock_own()
  head().owner.value.store(own_word_, std::memory_order_release);
}

Status Reception::take_over() {
  std::vector<multicast::Group::Position> positions;
  positions.reserve(place_.members);
  for (std::size_t i = 0; i < place_.members; ++i) positions.push_back(position(i));
  in_step_ = true;
  stood_back_ = false;
  return streams_.group().take_over(positions);
}

void Reception::look() {
  // What another process has taken in is not to be seen from this; only who it is.
  const std::uint64_t word = head().owner.value.load(std::memory_order_relaxed);
  if (word == 0 || word == own_word_ || word == (own_word_ | kLocked)) return;
  own_word_ = 0;
  // What it had of a message comes to the other again.
  if (receives_) patience_come_ = std::min(2 * patience_come_, kPatienceMost);
  receives_ = in_step_ = false;
  if (!std::exchange(stood_back_, true)) streams_.group().stand_back();
}

Status Reception::progress(multicast::Nanoseconds now, bool arrived) {
  if (!receives_) return streams_.group().progress(now, arrived);
  if (!lock_own()) {
    look();
    return streams_.group().progress(now, arrived);
  }
  Status status = streams_.group().progress(now, arrived);
  if (status.ok() && receiving_->done()) status = publish();
  unlock();
  return status;
}

// Whether it was right to take over for this message from an owner that was away.
void Reception::learn(std::uint64_t number) {
  const std::uint64_t owner = std::exchange(away_, 0);
  if (owner == 0) return;
  // Stale, it only costs or saves a wait. partner: message() of the owner before
  const bool came = asked(process_of(owner)).value.load(std::memory_order_relaxed) > number;
  patience_away_ = came ? 2 * std::min(patience_away_, patience_) : kPatience;
}

Status Reception::publish() {
  if (!receiving_->status().ok()) return receiving_->status();
  const std::uint64_t number = head().published.value.load(std::memory_order_relaxed);
  const multicast::Member source = streams_.member(writer_);
  const std::uint64_t bytes = receiving_->received_bytes();
  multicast::Group::Position& has = position(source);
  has.sequence += streams_.group().config().packets(bytes);
  ++has.message;
  streams_.group().confirm(source, has);
  learn(number);
  patience_come_ = std::max(patience_, patience_come_ / 2);
  head().lengths[number % kRing] = bytes;
  // partner: message() of each process of the node
  head().published.value.store(number + 1, std::memory_order_release);
  receives_ = false;
  news_ = true;
  return {};
}

}  // namespace carillon
