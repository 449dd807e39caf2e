// SPDX-License-Identifier: Apache-2.0
//
// Messages of a pair that are placed (placed.h).
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/copy.h"
#include "transport/net/network.h"
#include "transport/net/pair.h"

namespace carillon::net {
std::size_t Pair::most_placed() const {
  return std::min(network_.wire().capabilities().max_pieces, place_.gather_entries);
}

std::optional<Parts> Pair::told_cut(ListUse use, std::span<const wire::Piece> list) {
  auto parts = cut(list, most_placed());
  if (!parts || parts->count > 1) tell_of_list(use, list.size(), parts ? parts->count : 0);
  return parts;
}

bool Pair::may_announce(std::uint64_t number) {
  if (state_ != State::kOpen) {
    open();
    return false;
  }
  const auto peer = network_.peer_of(place_.process);
  const Result<bool> met = peer.ok() ? network_.wire().meet(peer.value()) : peer.status();
  if (!met.ok()) fail(met.status());
  const auto& placing = placings_[line_of(number)];
  return met.ok() && met.value() && (!placing || placing->state == Placing::State::kNone);
}

bool Pair::announce(const Listed& message, std::span<const wire::Piece> list, Buffer* packed,
                    std::vector<Buffer*>* under_way) {
  const auto parts = cut(list, most_placed());
  Announcement announcement{.bytes = message.length, .count = parts->count};
  std::copy_n(parts->ends.begin(), parts->count, announcement.cuts);
  std::byte* const to = prepare(message.number, sizeof announcement, false);
  if (to == nullptr) return false;
  std::memcpy(to, &announcement, sizeof announcement);
  const auto holder =
      packed != nullptr ? Result<Buffer*>(packed) : network_.placed_buffers().take(kHeadBytes);
  if (!holder.ok()) {
    fail(holder.status());
    return false;
  }
  Buffer* told = nullptr;
  if (!post(message.number, shm::with_kind(message.header, shm::kAnnounced), &told)) return false;
  auto& placing = placings_[line_of(message.number)];
  if (!placing) placing = std::make_unique<Placing>();
  placing->state = Placing::State::kAnnounced;
  placing->number = message.number;
  placing->bytes = message.length;
  placing->list.assign(list.begin(), list.end());
  placing->packed = packed != nullptr;
  placing->parts = *parts;
  placing->posted = 0;
  hold(*placing, holder.value());
  under_way->push_back(placing->holder);
  network_.watch_placed(*this);
  if (packed == nullptr) ++network_.counters().gathered;
  return true;
}

Result<Buffer*> Pair::stand_in(const Buffer& under_way) {
  for (const auto& placing : placings_) {
    if (!placing || placing->holder != &under_way) continue;
    if (placing->state != Placing::State::kAnnounced) break;
    auto buffer = network_.placed_buffers().take(placing->bytes);
    if (!buffer.ok()) return buffer;
    std::byte* to = buffer.value()->data;
    for (const wire::Piece& piece : placing->list) {
      copy_memory(to, piece.data, piece.bytes);
      to += piece.bytes;
    }
    network_.counters().copied_bytes += placing->bytes;
    network_.counters().sent_copied_bytes += placing->bytes;
    end_placing(*placing, {});
    placing->state = Placing::State::kAnnounced;
    placing->list.push_back({buffer.value()->data, placing->bytes, buffer.value()->registration});
    placing->packed = true;
    hold(*placing, buffer.value());
    return buffer;
  }
  return nullptr;
}

// The parts' operations are not the buffer's, but the pair's: a team that fails waits for them,
// even if nobody's memory is lent.
void Pair::hold(Placing& placing, Buffer* buffer) {
  placing.holder = buffer;
  buffer->owner = this;
  buffer->held = true;
  buffer->lends = true;
  buffer->operation.begin();
}

// The reader may have posted receives by now: they are filled with nothing.
void Pair::withdraw_announced() {
  for (const auto& placing : placings_) {
    if (!placing || placing->state != Placing::State::kAnnounced) continue;
    end_placing(*placing, {});
    placing->state = Placing::State::kWithdrawn;
  }
}

void Pair::end_placing(Placing& placing, const Status& status) {
  placing.state = Placing::State::kNone;
  placing.list.clear();
  if (placing.holder == nullptr) return;
  std::exchange(placing.holder, nullptr)->operation.finish(status);
}

// Whoever awaits what the pair has announced is to be answered also when the pair is gone, or what
// others send there would wait for it.
void Pair::leave_announced() {
  for (unsigned line = 0; line < shm::kWindow; ++line) {
    if (!placings_[line] || placings_[line]->state == Placing::State::kNone) continue;
    Placing& placing = *placings_[line];
    const bool answered = placing.state == Placing::State::kAwaited;
    end_placing(placing, {});
    if (answered || peer_closed_) continue;
    network_.note_unsent({.id = place_.id,
                          .process = place_.process,
                          .line = line,
                          .number = placing.number,
                          .bytes = placing.bytes,
                          .tag = placed_tag(place_.peer_id, place_.peer_generation, line),
                          .ready = block_.data + BlockLayout::ready(line)});
  }
}

// The block may hold anything: a peer wrote it.
void Pair::on_ready(unsigned line) {
  if (block_.data == nullptr || !placings_[line]) return;
  Placing& placing = *placings_[line];
  const bool awaited =
      placing.state == Placing::State::kAnnounced || placing.state == Placing::State::kWithdrawn;
  Ready ready;
  std::memcpy(&ready, block_.data + BlockLayout::ready(line), sizeof ready);
  if (!awaited || !ready.answers(placing.number)) return;  // told again
  if (!ready.is_of(placing.bytes, placing.parts)) return on_garbage();
  const bool withdrawn = placing.state == Placing::State::kWithdrawn;
  placing.parts = ready.parts();
  placing.posted = 0;
  placing.state = withdrawn ? Placing::State::kNone : Placing::State::kAwaited;
  network_.take_turn(place_.process,
                     {.first = ready.first,
                      .pair = withdrawn ? nullptr : this,
                      .line = line,
                      .tag = placed_tag(place_.peer_id, place_.peer_generation, line),
                      .count = ready.count});
}

Result<bool> Pair::send_part(unsigned line, std::uint32_t part, std::uint64_t tag) {
  Placing& placing = *placings_[line];
  if (placing.state != Placing::State::kAwaited) return network_.send_nothing(place_.process, tag);
  const auto peer = network_.peer_of(place_.process);
  if (!peer.ok()) return peer.status();
  const Slice slice(placing.list, placing.parts.begin_of(part), placing.parts.ends[part]);
  auto posted =
      network_.wire().send_placed(peer.value(), slice.pieces(), tag, placing.operations[part]);
  if (!posted.ok()) fail(posted.status());
  if (!posted.ok() || !posted.value()) return posted;
  ++placing.posted;
  if (!placing.packed) {
    ++network_.counters().gathered_posts;
    network_.counters().gathered_entries += slice.pieces().size();
  }
  return true;
}

bool Pair::settle_placed() {
  bool over = true;
  for (const auto& placing : placings_) {
    using enum Placing::State;
    if (!placing || placing->state == kNone || placing->state == kWithdrawn) continue;
    const bool awaited = placing->state == kAwaited;
    const auto sent = std::span(placing->operations).first(awaited ? placing->posted : 0);
    const bool all_posted = awaited && placing->posted == placing->parts.count;
    Status status = state_ == State::kFailed ? status_ : Status();
    bool done = all_posted || !status.ok();
    for (const wire::Operation& one : sent) {
      done = done && one.done();
      if (one.done() && !one.status().ok() && status.ok()) status = one.status();
    }
    if (!done) {
      over = false;
      continue;
    }
    if (!status.ok()) fail(status);
    end_placing(*placing, status);
    if (!awaited) placing->state = kWithdrawn;
  }
  return over;
}

Result<bool> Pair::post_receives(std::uint64_t number, Placed& placed) {
  const auto peer = network_.peer_of(place_.process);
  if (!peer.ok()) return peer.status();
  const std::uint64_t tag = placed_tag(place_.id, place_.generation, line_of(number));
  while (placed.posted < placed.parts.count) {
    const auto first = network_.number_placed(place_.process, placed);
    if (!first) return false;  // another message's are being posted
    const Slice slice(placed.to, placed.parts.begin_of(placed.posted),
                      placed.parts.ends[placed.posted]);
    auto posted = network_.wire().recv_placed(peer.value(), slice.pieces(), tag,
                                              placed.operations[placed.posted]);
    if (!posted.ok() || !posted.value()) return posted;
    if (placed.posted == 0) placed.first = *first;
    ++placed.posted;
    network_.count_placed(place_.process, placed);
  }
  return true;
}

Result<bool> Pair::tell_ready(std::uint64_t number, Placed& placed) {
  Ready ready{.number = static_cast<std::uint32_t>(number),
              .first = placed.first,
              .count = placed.parts.count};
  std::copy_n(placed.parts.ends.begin(), ready.count, ready.ends);
  const auto buffer = network_.buffers().take(sizeof ready);
  const auto peer = network_.peer_of(place_.process);
  if (!buffer.ok() || !peer.ok()) return buffer.ok() ? peer.status() : buffer.status();
  std::memcpy(buffer.value()->data, &ready, sizeof ready);
  const std::array piece = {
      wire::Piece{buffer.value()->data, sizeof ready, buffer.value()->registration}};
  const unsigned line = line_of(number);
  auto posted =
      network_.wire().put(peer.value(), piece, out_.at(BlockLayout::ready(line)),
                          Network::immediate(Network::Kind::kStatus, 1 + line, place_.peer_id),
                          buffer.value()->operation);
  if (posted.ok() && posted.value()) buffer.value()->owner = this;
  return posted;
}

Result<bool> Pair::receive_placed(std::uint64_t number, Placed& placed) {
  if (state_ == State::kFailed) return status_;
  if (state_ != State::kOpen) {
    open();
    return false;
  }
  if (!placed.told) {
    auto ready = post_receives(number, placed);
    if (ready.ok() && ready.value()) ready = tell_ready(number, placed);
    if (!ready.ok() || !ready.value()) return ready;
    placed.told = true;
  }
  if (!placed.all_done()) return false;
  network_.note_arrival(place_.process);
  std::uint64_t bytes = 0;
  for (const wire::Operation& one : std::span(placed.operations).first(placed.posted)) {
    if (!one.status().ok()) return one.status();
    bytes += one.received_bytes();
  }
  if (bytes == placed.parts.ends[placed.parts.count - 1]) return true;
  return Status(Code::kPeerDead, "network: process " + std::to_string(place_.process) +
                                     " of the job has not sent what it had announced");
}

}  // namespace carillon::net
