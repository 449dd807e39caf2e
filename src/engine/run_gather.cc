// SPDX-License-Identifier: Apache-2.0
//
// Lists that reach the network: a put to another node whose bytes lie where the network can read
// them is posted as the list it is. Until the network has read them, what overwrites them waits
// (Action::kFlush), and so does the end of the run. Where the network fills places, a recv has its
// list from here, too.
#include <algorithm>
#include <cstring>
#include <new>

#include "engine/engine.h"
#include "engine/pieces.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

Run::~Run() {
  if (scratch_block_.bytes > 0) scratch_memory_->release(scratch_block_);
}

// Scratch memory keeps its contents when it grows: a later stage may need more than the last.
std::byte* Run::reserve_scratch(std::size_t bytes) {
  net::Network* const network = team_->engine().network();
  const bool known = network != nullptr && team_->limits().gather_entries > 1 &&
                     network->wire().capabilities().registers_local;
  if (!known) {
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    return scratch_.data();
  }
  if (scratch_block_.bytes < bytes) {
    auto block = network->memory().allocate(bytes);
    if (!block.ok()) throw std::bad_alloc();
    if (scratch_block_.bytes > 0) {
      std::memcpy(block.value().data, scratch_block_.data, scratch_block_.bytes);
      network->memory().release(scratch_block_);
    }
    scratch_block_ = block.value();
    scratch_memory_ = &network->memory();
  }
  return scratch_block_.data;
}

// Lists of the last call are good if its memory was the same, and the network still knows it.
void Run::see_buffers() {
  if (!gathers_) gathers_ = std::make_unique<net::Gathers>();
  if (seen_.collective == collective_) return;
  const std::uint64_t changes = team_->engine().heap_changes();
  const bool same = seen_.input == bases_[kBaseInput] && seen_.output == bases_[kBaseOutput] &&
                    seen_.scratch == bases_[kBaseScratch] && seen_.heap_changes == changes &&
                    !seen_.registered_for_call;
  if (!same) gathers_->use_other_buffers();
  seen_ = {.input = bases_[kBaseInput],
           .output = bases_[kBaseOutput],
           .scratch = bases_[kBaseScratch],
           .collective = collective_,
           .heap_changes = changes};
}

// How the network knows these bytes of a message. False: it does not.
bool Run::find_registration(const Operand& memory, std::span<std::byte> bytes, const Strand& strand,
                            std::int64_t message_bytes, const wire::Registration** registration) {
  Engine& engine = team_->engine();
  const bool needed = engine.network()->wire().capabilities().registers_local;
  if (memory.base >= kBaseSlots) {
    // Only a pair's block keeps a message until it is released.
    const Rank writer = plan_->slot_writers[memory.base - kBaseSlots];
    const net::Pair* const pair = team_->endpoint().peer(writer).remote;
    *registration = pair == nullptr ? nullptr : pair->registration_of(bytes);
    return *registration != nullptr;
  }
  *registration = nullptr;
  if (!needed) return true;
  if (memory.base == kBaseScratch) {
    *registration = scratch_block_.registration;
    return true;
  }
  Result<const wire::Registration*> found = nullptr;
  if (engine.in_heap(bytes.data(), bytes.size())) {
    found = engine.heap_registration(bytes);
  } else {
    if (message_bytes < engine.register_from_bytes()) return false;
    seen_.registered_for_call = true;
    const auto piece = fetches().regions().find(bytes, extent_of(bytes, memory, strand));
    found = piece.ok() ? Result(piece.value().registration) : piece.status();
  }
  if (!found.ok()) {
    engine.stop_gathering(found.status());
    return false;
  }
  *registration = found.value();
  return true;
}

// The bytes of the part as the network takes them. False: it cannot.
bool Run::make_list(const Instruction& in, const Strand& strand, const Part& part,
                    net::GatheredPut& put) {
  const PlanGather& gather = plan_->gathers[in.gather - 1U];
  put.list.clear();
  put.list.emplace_back();  // the head
  put.made_for = 0;
  const auto length = [&](const PlanPiece& piece) { return length_of(piece.memory, piece.length); };
  const auto add = [&](const Operand& memory, std::int64_t start, std::int64_t run) {
    const std::span bytes(at(memory, strand) + start, static_cast<std::size_t>(run));
    const wire::Registration* registration = nullptr;
    if (!find_registration(memory, bytes, strand, part.length, &registration)) return false;
    wire::Piece& last = put.list.back();
    if (put.list.size() > 1 && last.data + last.bytes == bytes.data() &&
        last.registration == registration) {
      last.bytes += bytes.size();
    } else {
      put.list.push_back({bytes.data(), bytes.size(), registration});
    }
    return true;
  };
  const auto pieces = std::span(plan_->pieces).subspan(gather.first_run, gather.run_count);
  if (!for_each_run(pieces, part.offset, part.length, length, add)) return false;
  if (gather.fixed) put.made_for = gathers_->buffers();
  ++team_->engine().network()->counters().lists_made;
  return true;
}

// The put or recv, with its list, if that is to be posted. Null: its bytes are to be copied.
net::GatheredPut* Run::gathered(const Instruction& in, const Strand& strand, const Part& part) {
  const Engine& engine = team_->engine();
  const PlanGather& gather = plan_->gathers[in.gather - 1U];
  const Operand& one = in.action == Action::kRecv ? in.dst : in.a;
  if (part.length <= static_cast<std::int64_t>(shm::kInlineBytes) ||
      run_bytes(length_of(one, in.length), gather.run_count, part.length) <
          engine.gather_from_bytes()) {
    return nullptr;
  }
  see_buffers();
  net::GatheredPut& put = gathers_->put(in.gather - 1U);
  if (gather.fixed && put.made_for == gathers_->buffers()) return &put;
  return make_list(in, strand, part, put) ? &put : nullptr;
}

// To where a recv has its bytes, as the network fills places. False: they are to be copied there.
bool Run::list_of(const Instruction& in, const Strand& strand, const Part& part,
                  std::vector<wire::Piece>& to) {
  const net::GatheredPut* const list = in.gather != 0 ? gathered(in, strand, part) : nullptr;
  if (list == nullptr) return false;
  to.assign(list->list.begin() + 1, list->list.end());  // without a head
  return true;
}

// Who has given up may never call again, and where it must, to take what is sent to it, the network
// would keep what was lent to it for that rank. Word of it has arrived before this call if it was
// sent before; what comes later finds that rank still there (Team::may_be_sent_to). False: the run
// has failed.
bool Run::takes_lists(int rank) {
  net::Network& network = *team_->engine().network();
  if (looked_in_ != collective_ && network.wire().capabilities().manual_progress) {
    const wire::Counters& counters = network.wire().counters();
    std::uint64_t arrived = 0;
    do {
      arrived = counters.immediates;
    } while (network.progress().ok() && counters.immediates != arrived);
  }
  looked_in_ = collective_;
  if (team_->endpoint().gave_up(rank) == 0) return true;
  fail_given_up(rank);
  return false;
}

bool Run::write_list(const Instruction& in, shm::Peer& peer, const Part& part,
                     net::GatheredPut& put) {
  const net::Pair::Listed message{.number = part.number,
                                  .header = header_of(part.number, 0),
                                  .length = static_cast<std::uint64_t>(part.length),
                                  .two_sided = sends(in)};
  if (!peer.remote->post_list(message, put.list, &put.under_way)) return refused(in, *peer.remote);
  note_sent(peer, part.number);
  count_sent(part, true);
  return true;
}

bool Run::flushed(const Instruction& in) {
  if (!gathers_) return true;
  for (std::uint32_t i = 0; i < in.piece_count; ++i) {
    const std::size_t put = plan_->flushes[in.first_piece + i] - 1U;
    if (!gathers_->ended(put) && !stood_in(put)) return false;
  }
  flushing_since_ = {};
  return true;
}

// Does it wait for a put to this rank?
bool Run::flushes_for(const Instruction& in, int rank) const {
  for (std::uint32_t i = 0; i < in.piece_count; ++i) {
    const std::size_t put = plan_->flushes[in.first_piece + i] - 1U;
    if (plan_->gathers[put].peer == rank && gathers_ && gathers_->under_way(put)) return true;
  }
  return false;
}

}  // namespace carillon
