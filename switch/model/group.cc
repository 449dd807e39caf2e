// SPDX-License-Identifier: Apache-2.0
#include "switch/model/group.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "switch/protocol/arithmetic.h"

namespace carillon::aggregate {
namespace {

constexpr std::uint8_t kMessageFlags = kBurstFlag | kLastFlag;  // the same for all children

std::size_t slot_bytes(const Shape& shape) {
  return kHeaderBytes + shape.operand_bytes * (shape.children.size() + 1);
}

std::uint64_t bit(std::size_t child) { return std::uint64_t{1} << child; }

}  // namespace

std::uint64_t Shape::memory_bytes() const {
  return std::uint64_t{slots_of(window)} * slot_bytes(*this);
}

Group::Group(std::uint32_t job, std::uint32_t id, const SipKey& key, Shape shape,
             std::uint32_t first)
    : job_(job), id_(id), key_(key), shape_(std::move(shape)), slots_(slots_of(shape_.window)) {
  for (std::size_t child = 0; child < shape_.children.size(); ++child) {
    if (shape_.children[child] == Endpoint{}) continue;
    all_ |= bit(child);
    present_children_.push_back(shape_.children[child]);
  }
  // As if the round before the first were over.
  const auto slots = static_cast<std::uint32_t>(slots_.size());
  for (std::uint32_t i = 0; i < slots; ++i) {
    const std::uint32_t sequence = first - slots + i;
    slots_[sequence % slots].sequence = sequence;
  }
  const std::size_t last = shape_.places.empty() ? 0 : *std::ranges::max_element(shape_.places);
  operands_.resize(std::max(shape_.children.size(), last + 1));
  slot_bytes_ = slot_bytes(shape_);
  // Not touched before it is used: a system gives memory then only.
  memory_ = std::make_unique_for_overwrite<std::byte[]>(shape_.memory_bytes());
}

void Group::note_way(std::size_t child, const Endpoint& from) {
  shape_.children[child] = from;
  present_children_[static_cast<std::size_t>(std::popcount(all_ & (bit(child) - 1)))] = from;
}

std::span<std::byte> Group::packet_of(std::size_t index) const {
  return {memory_.get() + index * slot_bytes_, kHeaderBytes + shape_.operand_bytes};
}

std::byte* Group::operand_of(std::size_t index, std::size_t child) const {
  return memory_.get() + index * slot_bytes_ + kHeaderBytes + shape_.operand_bytes * (child + 1);
}

void Group::begin(Slot& slot, const Header& header) const {
  slot = {.state = State::kCollecting,
          .flags = static_cast<std::uint8_t>(header.flags & kMessageFlags),
          .op = header.op,
          .type = header.type,
          .count = header.count,
          .offset = header.offset,
          .sequence = header.sequence};
}

bool Group::matches(const Slot& slot, const Header& header) {
  return slot.flags == (header.flags & kMessageFlags) && slot.op == header.op &&
         slot.type == header.type && slot.count == header.count && slot.offset == header.offset;
}

Reason Group::contribute(const Packet& packet, Counters& counters, Output& output) {
  const Header& header = packet.header;
  const std::size_t index = header.sequence % slots_.size();
  if (header.slot != index) return Reason::kMismatch;
  if (header.count * type_bytes(header.type) > shape_.operand_bytes) return Reason::kTooLarge;
  Slot& slot = slots_[index];
  const std::uint32_t ahead = header.sequence - slot.sequence;
  const std::size_t child = header.child;
  if (ahead == slots_.size() && slot.state == State::kResult) {
    begin(slot, header);
  } else if (ahead != 0) {
    ++(static_cast<std::int32_t>(ahead) < 0 ? counters.stale : counters.premature);
    return Reason::kNone;
  } else if (slot.state == State::kResult) {
    if (slot.packet_bytes == 0) {  // of the round before the first
      ++counters.premature;
      return Reason::kNone;
    }
    ++counters.resent_results;
    output.send({&shape_.children[child], 1}, sent(slot, index));
    return Reason::kNone;
  } else if (slot.state == State::kSentUp) {
    ++counters.resent_partials;
    output.send({&shape_.parent, 1}, sent(slot, index));
    return Reason::kNone;
  } else if (!matches(slot, header)) {
    return Reason::kMismatch;
  } else if ((slot.arrived & bit(child)) != 0) {
    ++counters.duplicates;
    return Reason::kNone;
  }
  ++counters.operands;
  slot.arrived |= bit(child);
  if ((header.flags & kEmptyFlag) == 0) {
    slot.present |= bit(child);
    std::copy(packet.payload.begin(), packet.payload.end(), operand_of(index, child));
  }
  if (slot.arrived == all_) complete(slot, static_cast<std::uint16_t>(index), output);
  return Reason::kNone;
}

void Group::complete(Slot& slot, std::uint16_t index, Output& output) {
  std::ranges::fill(operands_, nullptr);
  for (std::size_t child = 0; child < shape_.children.size(); ++child) {
    if ((slot.present & bit(child)) == 0) continue;
    operands_[shape_.places.empty() ? child : shape_.places[child]] = operand_of(index, child);
  }
  const std::byte* const result = combine_ports(slot.op, slot.type, operands_, slot.count);
  const std::size_t bytes = result == nullptr ? 0 : slot.count * type_bytes(slot.type);
  slot.packet_bytes = kHeaderBytes + bytes;
  const auto datagram = packet_of(index).first(slot.packet_bytes);
  if (result != nullptr) std::copy_n(result, bytes, datagram.begin() + kHeaderBytes);
  const bool root = shape_.is_root();
  const Header header = {
      .version = kVersion,
      .kind = root ? Kind::kResult : Kind::kContribute,
      .flags = static_cast<std::uint8_t>(slot.flags | (result == nullptr ? kEmptyFlag : 0)),
      .op = slot.op,
      .type = slot.type,
      .count = slot.count,
      .job = job_,
      .group = id_,
      .sequence = slot.sequence,
      .offset = slot.offset,
      .slot = index,
      .child = root ? static_cast<std::uint16_t>(kAllChildren) : shape_.parent_child};
  seal(key_, header, datagram);
  slot.state = root ? State::kResult : State::kSentUp;
  if (root) {
    send_down(datagram, output);
  } else {
    output.send({&shape_.parent, 1}, datagram);
  }
}

void Group::take_result(const Packet& packet, std::span<const std::byte> datagram,
                        Counters& counters, Output& output) {
  const Header& header = packet.header;
  const std::size_t index = header.sequence % slots_.size();
  Slot& slot = slots_[index];
  if (header.slot != index || header.sequence != slot.sequence || slot.state != State::kSentUp) {
    // What was asked for twice comes twice.
    const bool known = header.sequence == slot.sequence && slot.state == State::kResult;
    ++(known ? counters.duplicates : counters.stale);
    return;
  }
  if (!matches(slot, header)) {
    ++counters.mismatched;
    return;
  }
  ++counters.results;
  // The same bytes for all switches and hosts below.
  std::copy(datagram.begin(), datagram.end(), packet_of(index).begin());
  slot.packet_bytes = datagram.size();
  slot.state = State::kResult;
  send_down(sent(slot, index), output);
}

void Group::take_refusal(const Packet& packet, std::span<const std::byte> datagram,
                         Counters& counters, Output& output) {
  const Header& header = packet.header;
  const std::size_t index = header.sequence % slots_.size();
  const Slot& slot = slots_[index];
  if (header.sequence != slot.sequence || slot.state != State::kSentUp ||
      (header.child != shape_.parent_child && header.child != kAllChildren)) {
    ++counters.stale;
    return;
  }
  if (!is_refusal_of(key_, sent(slot, index), datagram)) {
    ++counters.bad_tag;
    return;
  }
  ++counters.refusals;
  Header down = header;
  down.child = static_cast<std::uint16_t>(kAllChildren);
  std::array<std::byte, kHeaderBytes> refusal{};
  seal(key_, down, refusal);
  send_down(refusal, output);
}

}  // namespace carillon::aggregate
