// SPDX-License-Identifier: Apache-2.0
//
// Messages of a pair by send and recv. The tag says which pair's and line's they are, so that teams
// cannot take each other's.
#include <array>
#include <cstring>

#include "transport/net/network.h"
#include "transport/net/pair.h"

namespace carillon::net {
namespace {

constexpr int kEndTries = 1000;
constexpr int kLineBits = 3;
constexpr int kGenerationBits = wire::kTagBits - kLineBits - Network::kIdBits;
static_assert(shm::kWindow == 1 << kLineBits);
static_assert(shm::kGenerations <= UINT64_C(1) << (kGenerationBits - 1));

// The receiver's id of the pair names team, sender and direction; the generation, which of the
// teams that have had this id. Its first bit is for what is placed.
std::uint64_t tag_of(std::uint32_t id, std::uint64_t generation, unsigned line) {
  constexpr std::uint64_t kGenerations = (UINT64_C(1) << (kGenerationBits - 1)) - 1;
  return std::uint64_t{id} << (kGenerationBits + kLineBits) |
         (generation & kGenerations) << kLineBits | line;
}

}  // namespace

std::uint64_t placed_tag(std::uint32_t id, std::uint64_t generation, unsigned line) {
  return tag_of(id, generation, line) | UINT64_C(1) << (kGenerationBits + kLineBits - 1);
}

bool Pair::may_send() {
  if (sending_ == Sending::kUnused) {
    sending_ = Sending::kAsked;
    network_.ask(place_.process, {.kind = Note::kExpect,
                                  .id = place_.peer_id,
                                  .generation = place_.peer_generation,
                                  .block = {},
                                  .done = done_});
  }
  return sending_ == Sending::kReady;
}

bool Pair::send(std::uint64_t number, std::uint64_t header, Buffer** buffer) {
  write_head(header);
  const std::array piece = {
      wire::Piece{prepared_->data, kHeadBytes + prepared_bytes_, prepared_->registration}};
  return posted(send_list(number, piece, prepared_->operation), buffer);
}

Result<bool> Pair::send_list(std::uint64_t number, std::span<const wire::Piece> list,
                             wire::Operation& operation) {
  const auto peer = network_.peer_of(place_.process);
  if (!peer.ok()) return peer.status();
  const std::uint64_t tag = tag_of(place_.peer_id, place_.peer_generation, line_of(number));
  return network_.wire().send(peer.value(), list, tag, operation);
}

void Pair::on_expect() {
  if (receives_ || state_ == State::kFailed || !allocate_block()) return;
  receives_ = std::make_unique<Receive[]>(shm::kWindow);
  for (unsigned line = 0; line < shm::kWindow && state_ != State::kFailed; ++line) {
    auto buffer = network_.receive_buffers().take(kHeadBytes + place_.send_bytes);
    if (!buffer.ok()) {
      fail(buffer.status());
      return;
    }
    buffer.value()->owner = this;
    buffer.value()->held = true;
    receives_[line].buffer = buffer.value();
    post_receive(line);
  }
}

void Pair::post_receive(unsigned line) {
  Receive& receive = receives_[line];
  if (receive.buffer == nullptr || state_ == State::kFailed) return;
  const auto peer = network_.peer_of(place_.process);
  Result<bool> answer = peer.status();
  if (peer.ok()) {
    const Buffer& buffer = *receive.buffer;
    const std::array piece = {
        wire::Piece{buffer.data, kHeadBytes + place_.send_bytes, buffer.registration}};
    answer = network_.wire().recv(peer.value(), piece, tag_of(place_.id, place_.generation, line),
                                  receive.buffer->operation);
  }
  if (!answer.ok()) fail(answer.status());
  receive.posted = answer.ok() && answer.value();
  if (!receive.posted) later();
}

bool Pair::show(std::uint64_t number) {
  if (receives_ && state_ != State::kFailed) show_line(line_of(number));
  return state_ != State::kFailed;
}

// The buffer may hold anything: a peer sent it.
void Pair::show_line(unsigned line) {
  Receive& receive = receives_[line];
  if (!receive.posted || receive.shown || !receive.buffer->operation.done()) return;
  if (const Status& status = receive.buffer->operation.status(); !status.ok()) {
    fail(status);
    return;
  }
  network_.note_arrival(place_.process);
  const std::byte* const message = receive.buffer->data;
  std::uint64_t length = 0;
  std::uint64_t header = 0;
  std::memcpy(&length, message, sizeof length);
  std::memcpy(&header, message + 8, sizeof header);
  if (receive.buffer->operation.received_bytes() != kHeadBytes + length ||
      line_of(shm::header_tag(header) - 1) != line) {
    return on_garbage();
  }
  receive.shown = true;
  shm::Line& arrived = arrived_[line];
  const shm::ChunkRef where{reinterpret_cast<std::uint64_t>(message + kHeadBytes), length};
  std::memcpy(arrived.payload, &where, sizeof where);
  // partner: the acquire load in Run::poll; both sides run under the engine's lock
  arrived.header.store(shm::with_kind(header, shm::kRemote), std::memory_order_release);
}

void Pair::free_received(std::uint64_t number) {
  if (!receives_ || !receives_[line_of(number)].shown) return;  // it was put
  receives_[line_of(number)].shown = false;
  post_receive(line_of(number));
}

// The member has closed: its receives are posted for nothing, and their buffers are not free until
// something comes. True: they have their end, or have been refused it so often that the member may
// have gone.
bool Pair::end_receives() {
  if (sending_ != Sending::kReady) return true;
  for (unsigned& line = ended_receives_; line < shm::kWindow; ++line) {
    auto buffer = network_.buffers().take(kHeadBytes);
    const auto peer = network_.peer_of(place_.process);
    if (!buffer.ok() || !peer.ok()) return true;
    const std::array piece = {
        wire::Piece{buffer.value()->data, kHeadBytes, buffer.value()->registration}};
    const auto answer = network_.wire().send(peer.value(), piece,
                                             tag_of(place_.peer_id, place_.peer_generation, line),
                                             buffer.value()->operation);
    if (!answer.ok()) return true;
    if (!answer.value()) return ++end_tries_ > kEndTries;
  }
  return true;
}

}  // namespace carillon::net
