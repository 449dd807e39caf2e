// SPDX-License-Identifier: Apache-2.0
//
// What each op does to the channels, and how its buffers are found.
#include <algorithm>

#include "schedule/check.h"
#include "schedule/machine_impl.h"
#include "schedule/streams.h"

namespace carillon {
namespace {

// For error messages only.
std::string name_of(std::int64_t number) { return "message #" + std::to_string(number); }

std::int64_t total(std::span<const Piece> pieces) {
  std::int64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.length;
  return sum;
}

}  // namespace

Status Machine::execute(std::size_t id, const Op& op, Block* block) {
  StrandState& strand = strands_[id];
  const Site site{strand.rank, strand.index};
  const Schedule& schedule = *rank_of(strand).schedule;
  dst_.clear();
  src_.clear();
  if (op.dst_count + op.src_count > 0) {
    Status status = resolve_list(strand, schedule.dst(op), &dst_);
    if (status.ok()) status = resolve_list(strand, schedule.src(op), &src_);
    if (!status.ok()) return status;
  }
  if (op.kind == OpKind::kCopy) return at(strand, memory_.copy(site, dst_, src_));
  if (op.kind == OpKind::kReduce) {
    stats_.reduced_bytes += dst_[0].length;
    return at(strand, memory_.reduce(site, dst_[0], src_[0], src_[1]));
  }
  if (op.kind == OpKind::kAggregate) return aggregate(id, op, block);
  Link* const link = link_of(strand, op.kind, op.message);
  if (link == nullptr) {
    return error(strand, "send/recv and put/wait are both used between these two ranks");
  }
  Status status = transfer(id, op, *link, block);
  // One that waits for a large slot is woken by the end of its own message.
  if (*block != Block::kNone && *block != Block::kLargeSlot) link->blocked.push_back(id);
  return status;
}

Status Machine::transfer(std::size_t id, const Op& op, Link& link, Block* block) {
  const std::int64_t number = number_of(strands_[id], op.message, is_outgoing(op.kind));
  switch (op.kind) {
    case OpKind::kPut:
    case OpKind::kMulticast:
    case OpKind::kSignal: return put(id, link, number, block);
    case OpKind::kWait: return wait(id, link, number, block);
    case OpKind::kSend: return send(id, link, number, block);
    case OpKind::kRecv: return recv(id, link, number, block);
    case OpKind::kReceive: return receive(id, link, number, block);
    default: return {};
  }
}

Status Machine::put(std::size_t id, Link& link, std::int64_t number, Block* block) {
  StrandState& strand = strands_[id];
  if (number < link.first) return error(strand, name_of(number) + " is put a second time");
  if (number >= link.first + call_.limits.window) {
    *block = Block::kWindow;
    return {};
  }
  const bool grouped = is_group(link.channel);
  if (grouped && number > link.send_turn) {
    *block = Block::kTurn;
    return {};
  }
  Letter& letter = links_.letter(link, number);
  if (letter.present) return error(strand, name_of(number) + " is put a second time");
  letter.length = total(src_);
  letter.large = !grouped && letter.length > call_.limits.inline_bytes;
  if (letter.large && !take_large_slot(id)) {
    *block = Block::kLargeSlot;
    return {};
  }
  Status status = memory_.capture({strand.rank, strand.index}, src_, &letter.payload);
  if (!status.ok()) return at(strand, status);
  letter.present = true;
  letter.writer = id;
  if (grouped) ++link.send_turn;
  letter.put_op = strand.pc;
  ++stats_.messages;
  stats_.message_bytes += letter.length;
  wake(link.blocked);
  return {};
}

Status Machine::wait(std::size_t id, Link& link, std::int64_t number, Block* block) {
  StrandState& strand = strands_[id];
  if (number < link.first) return error(strand, name_of(number) + " is waited for a second time");
  const auto index = static_cast<std::size_t>(number - link.first);
  if (index >= link.letters.size() || !link.letters[index].present) {
    *block = Block::kMessage;
    return {};
  }
  Letter& letter = link.letters[index];
  if (!Links::take(link, letter, strand.rank)) {
    return error(strand, name_of(number) + " is waited for a second time");
  }
  strand.open.push_back({strand.pc, &link, number, letter.payload, letter.length});
  return at(strand, memory_.arrive({strand.rank, strand.index}, letter.payload));
}

// Like a wait whose message is copied out, and released, at once. What comes before it must have
// been received.
Status Machine::receive(std::size_t id, Link& link, std::int64_t number, Block* block) {
  StrandState& strand = strands_[id];
  if (number < link.first) return error(strand, name_of(number) + " is received a second time");
  const auto index = static_cast<std::size_t>(number - link.first);
  for (std::size_t i = 0; i <= index; ++i) {
    if (i == link.letters.size() || !link.letters[i].present) {
      *block = Block::kMessage;
      return {};
    }
    if (i < index && !Links::taken(link, link.letters[i], strand.rank)) {
      *block = Block::kTurn;
      return {};
    }
  }
  Letter& letter = link.letters[index];
  if (Links::taken(link, letter, strand.rank)) {
    return error(strand, name_of(number) + " is received a second time");
  }
  if (letter.length != total(dst_)) {
    return error(strand, "the multicast (op " + std::to_string(letter.put_op) + " of rank " +
                             std::to_string(link.writer) + ") has " +
                             std::to_string(letter.length) + " bytes, the receive takes " +
                             std::to_string(total(dst_)));
  }
  Links::take(link, letter, strand.rank);
  Status status = memory_.deliver({strand.rank, strand.index}, dst_, letter.payload);
  if (!status.ok()) return at(strand, status);
  wake(link.blocked);  // those behind it
  release(link, number);
  return {};
}

Status Machine::send(std::size_t id, Link& link, std::int64_t number, Block* block) {
  StrandState& strand = strands_[id];
  if (number < link.send_turn) return error(strand, "the send is done a second time");
  if (number > link.send_turn) {
    *block = Block::kTurn;
    return {};
  }
  const std::int64_t fragments = fragments_of(strand, total(src_));
  if (fragments == 0) return pass(link, &link.send_turn);
  if (link.parcels.empty() || link.parcels.back().number != number) {
    Parcel parcel{.number = number,
                  .writer = id,
                  .send_op = strand.pc,
                  .length = total(src_),
                  .fragments = fragments};
    Status status = memory_.capture({strand.rank, strand.index}, src_, &parcel.payload);
    if (!status.ok()) return at(strand, status);
    stats_.messages += parcel.fragments;
    stats_.message_bytes += parcel.length;
    link.parcels.push_back(parcel);
  }
  Parcel& parcel = link.parcels.back();
  bool progress = false;
  while (parcel.sent < parcel.fragments && *block == Block::kNone) {
    if (link.in_flight >= call_.limits.window) {
      *block = Block::kWindow;
    } else if (is_large_fragment(parcel, parcel.sent) && !take_large_slot(id)) {
      *block = Block::kLargeSlot;
    } else {
      ++parcel.sent;
      ++link.in_flight;
      progress = true;
    }
  }
  if (*block == Block::kNone) ++link.send_turn;
  if (progress) wake(link.blocked);
  return {};
}

Status Machine::recv(std::size_t id, Link& link, std::int64_t number, Block* block) {
  StrandState& strand = strands_[id];
  if (number < link.recv_turn) return error(strand, "the recv is done a second time");
  if (number > link.recv_turn) {
    *block = Block::kTurn;
    return {};
  }
  if (fragments_of(strand, total(dst_)) == 0) return pass(link, &link.recv_turn);
  if (link.parcels.empty() || link.parcels.front().sent == link.parcels.front().taken) {
    *block = Block::kMessage;
    return {};
  }
  const Parcel& parcel = link.parcels.front();
  if (parcel.length != total(dst_)) {
    return error(strand, "the matching send (op " + std::to_string(parcel.send_op) + " of rank " +
                             std::to_string(link.writer) + ") has " +
                             std::to_string(parcel.length) + " bytes, the recv takes " +
                             std::to_string(total(dst_)));
  }
  return receive_fragments(id, link, block);
}

// Of the send or recv that the strand is at.
std::int64_t Machine::fragments_of(const StrandState& strand, std::int64_t bytes) {
  const Schedule& schedule = *rank_of(strand).schedule;
  const Op& op = schedule.ops[strand.pc];
  const bool by_table = has_table(is_incoming(op.kind) ? schedule.dst(op) : schedule.src(op));
  return stream_messages(bytes, by_table, call_.limits.stream_bytes());
}

// A send or recv that is no message: the next one may be done.
Status Machine::pass(Link& link, std::int64_t* turn) {
  ++*turn;
  wake(link.blocked);
  return {};
}

Status Machine::receive_fragments(std::size_t id, Link& link, Block* block) {
  StrandState& strand = strands_[id];
  Parcel& parcel = link.parcels.front();
  while (parcel.taken < parcel.sent) {
    if (is_large_fragment(parcel, parcel.taken)) give_large_slot(parcel.writer);
    ++parcel.taken;
    --link.in_flight;
  }
  wake(link.blocked);
  if (parcel.taken < parcel.fragments) {
    *block = Block::kMessage;
    return {};
  }
  Status status = memory_.deliver({strand.rank, strand.index}, dst_, parcel.payload);
  if (!status.ok()) return at(strand, status);
  memory_.discard(parcel.payload);
  link.parcels.pop_front();
  ++link.recv_turn;
  return {};
}

bool Machine::take_large_slot(std::size_t id) {
  std::int32_t& in_use = large_in_use(strands_[id]);
  if (in_use >= call_.limits.large_slots) return false;
  ++in_use;
  return true;
}

void Machine::give_large_slot(std::size_t id) {
  --large_in_use(strands_[id]);
  if (strands_[id].block == Block::kLargeSlot) wake(id);
}

bool Machine::is_large_fragment(const Parcel& parcel, std::int64_t fragment) const {
  const std::int64_t most = call_.limits.stream_bytes();
  return std::min(most, parcel.length - fragment * most) > call_.limits.inline_bytes;
}

void Machine::release(const OpenSlot& slot) { release(*slot.link, slot.number); }

void Machine::release(Link& link, std::int64_t number) {
  Letter& letter = links_.letter(link, number);
  if (--letter.readers_left > 0) return;
  letter.released = true;
  memory_.discard(letter.payload);
  // Readers tell how many they have released without a gap: of a slot behind one that is still
  // held, its writer does not hear.
  while (const Letter* const first = Links::first_released(link)) {
    if (first->large) give_large_slot(first->writer);
    Links::drop_first(link);
  }
  wake(link.blocked);
}

Status Machine::resolve_list(const StrandState& strand, std::span<const Buffer> buffers,
                             std::vector<Piece>* pieces) {
  for (const Buffer& buffer : buffers) {
    const Range range = resolve(buffer, rank_of(strand).local.tables, strand.iteration);
    pieces->push_back({buffer.space, range.offset, range.length, 0});
    if (buffer.space != Space::kSlot) continue;
    Status status = resolve_slot(strand, buffer, &pieces->back());
    if (!status.ok()) return status;
  }
  return {};
}

Status Machine::resolve_slot(const StrandState& strand, const Buffer& buffer, Piece* piece) {
  const std::int64_t number = number_of(strand, buffer.message, false);
  const auto open = std::find_if(strand.open.begin(), strand.open.end(), [&](const OpenSlot& slot) {
    return slot.number == number && slot.link->writer == buffer.message.peer &&
           slot.link->channel == buffer.message.channel;
  });
  const auto name = [&] {
    return "the slot of " + name_of(number) + " of rank " + std::to_string(buffer.message.peer);
  };
  if (open == strand.open.end()) {
    return error(strand, name() +
                             " is read, but this strand has not waited for it or has "
                             "released it already");
  }
  piece->payload = open->payload;
  if (piece->offset + piece->length <= open->length) return {};
  return error(strand, name() + " is read up to byte " +
                           std::to_string(piece->offset + piece->length) + ", but it has only " +
                           std::to_string(open->length));
}

Link* Machine::link_of(const StrandState& strand, OpKind kind, const Message& message) {
  const bool outgoing = is_outgoing(kind);
  const Rank writer = outgoing ? strand.rank : message.peer;
  const Rank reader = outgoing ? message.peer : strand.rank;
  return links_.find(message.channel, writer, has_readers(message.channel) ? -1 : reader);
}

std::int64_t Machine::number_of(const StrandState& strand, const Message& message,
                                bool outgoing) const {
  const RankState& state = ranks_[static_cast<std::size_t>(strand.rank)];
  const Bases& bases = outgoing ? state.sent : state.received;
  const std::int64_t number = message.index + message.index_stride * strand.iteration;
  if (bases.empty()) return number;
  const auto base = bases.find(base_key(message.channel, message.peer));
  return base == bases.end() ? number : number + base->second;
}

}  // namespace carillon
