// SPDX-License-Identifier: Apache-2.0
//
// Long messages within the node that are copied once: a put whose bytes keep their value tells
// where they are in the writer's private memory, and the wait reads them there by process_vm_readv,
// if possible to where the schedule copies them anyway. The writer's run ends when its readers have
// them. Which messages go this way is the writer's choice alone; readers say what they prefer.
#include <string>

#include "engine/engine.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {
namespace {

// More readers would wait for each other in the kernel, which shared memory serves at once.
constexpr int kMostReaders = 2;
// One message in so many goes the other way, so that readers learn how that is.
constexpr std::uint64_t kTrials = 64;

}  // namespace

// Can all readers of the message read this process's memory, and do they prefer that?
bool Run::may_lend(const Instruction& in, const ChannelUse& channel, std::uint64_t number) const {
  if (in.action != Action::kPut || in.piece_count != 0) return false;
  if (in.a.base >= kBaseSlots && landed_[in.a.base - kBaseSlots] == 0) return false;
  const Engine& engine = team_->engine();
  shm::Endpoint& endpoint = team_->endpoint();
  bool preferred = engine.settings().lend_bytes > 0;
  const auto can = [&](int rank) {
    const shm::Reads reads = engine.segment().reads(endpoint.peer(rank).node_rank);
    preferred = preferred || reads.prefers(how_taken()) != (number % kTrials == 0);
    return reads.can();
  };
  if (!is_shared_out(channel.flow)) return can(channel.peer) && preferred;
  int readers = 0;
  for (int rank = 0; rank < endpoint.size(); ++rank) {
    const shm::Peer& peer = endpoint.peer(rank);
    if (rank == team_->rank() || peer.remote != nullptr) continue;
    if (channel.flow == Flow::kOutDomain && !peer.in_domain) continue;
    if (++readers > kMostReaders || !can(rank)) return false;
  }
  return preferred;
}

// What the collective's readers do with most of its messages.
shm::Taken Run::how_taken() const {
  const Reduction& reduction = binding_.reduction;
  const bool reduces = reduction.kernel != nullptr || reduction.user != nullptr;
  return reduces ? shm::Taken::kReduced : shm::Taken::kCopied;
}

// The operand is a long message's, or part of it, that comes from shared memory or has been read
// in the sender's, to where it does not stay.
bool Run::times_taking(const Operand& from, const std::byte* data, std::int64_t bytes) const {
  const Engine& engine = team_->engine();
  if (from.base < kBaseSlots || bytes < engine.lend_from_bytes()) return false;
  return engine.segment().contains(data) || read_here(from) != nullptr;
}

// Where it was read to, if the message was lent and did not land.
const Run::Lent* Run::read_here(const Operand& from) const {
  const auto place = static_cast<std::size_t>(from.base - kBaseSlots);
  if (place >= lent_.size() || lent_[place].bytes.empty()) return nullptr;
  return bases_[from.base] == lent_[place].bytes.data() ? &lent_[place] : nullptr;
}

void Run::learn_taking(const Operand& from, const Lending::Clock::time_point& begin,
                       std::int64_t bytes) const {
  Engine& engine = team_->engine();
  auto took = Lending::Clock::now() - begin;
  const Lent* const lent = read_here(from);
  if (lent == nullptr) {
    engine.learn_shared(how_taken(), took, bytes);
  } else {
    took += lent->took * bytes / lent->length;
    engine.learn_private(how_taken(), took, bytes);
  }
}

// How many of the messages after this one are there, lent, and land right behind it: one call reads
// them all. Only in a loop that does nothing but take messages, so that nothing looks early.
int Run::lent_after(const Instruction& in, const Strand& strand, std::uint64_t number,
                    const Received& received) {
  if (strand.loop == 0 || in.index_stride != 1) return 0;
  for (const Instruction* i = &plan_->code[strand.loop]; i->action != Action::kEndRepeat; ++i) {
    const bool takes = i->action == Action::kCopy || i->action == Action::kRelease || i == &in;
    if (!takes) return 0;
  }
  Strand later = strand;
  const std::byte* const landing = at(in.a, strand);
  int after = 0;
  while (++later.iteration < strand.iterations && after + 1 < shm::kWindow) {
    const std::int64_t place = (after + 1) * received.length;
    Received next;
    if (!poll(in.use, number + static_cast<std::uint64_t>(after) + 1, 0, &next)) break;
    const bool follows = next.lent == received.lent + static_cast<std::uint64_t>(place) &&
                         next.length == received.length && at(in.a, later) == landing + place;
    if (!follows) break;
    ++after;
  }
  return after;
}

// The message that `received` tells of. False: it has failed.
bool Run::read_lent(const Instruction& in, Strand& strand, std::uint64_t number, const Landing& to,
                    Received* received) {
  const auto length = static_cast<std::size_t>(received->length);
  const int peer = plan_->uses[in.use].peer;
  std::byte* into = to.bytes.data();
  received->landed = to.bytes.size() == length;
  if (!received->landed) {
    const auto place = static_cast<std::size_t>(in.dst.base - kBaseSlots);
    if (lent_.size() <= place) lent_.resize(place + 1);
    if (lent_[place].bytes.size() < length) lent_[place].bytes.resize(length);
    into = lent_[place].bytes.data();
  }
  received->data = into;
  copied_bytes_ += length;
  if (strand.read_ahead > 0) {
    --strand.read_ahead;
    return true;
  }
  strand.read_ahead = received->landed ? lent_after(in, strand, number, *received) : 0;
  if (done()) return false;  // of those, one is of another call, or withdrawn
  const std::size_t bytes = length * static_cast<std::size_t>(1 + strand.read_ahead);
  const auto begin = Lending::Clock::now();
  const Status status = team_->engine().segment().read_private(
      team_->endpoint().peer(peer).node_rank, received->lent, into, bytes);
  const auto took = Lending::Clock::now() - begin;
  // If it is there no more, the writer may have given up, and then that is why.
  if (!stands(in.use, number)) return false;
  if (!status.ok()) {
    fail_unreachable(peer, status);
    return false;
  }
  if (received->landed) {
    team_->engine().learn_private(how_taken(), took, static_cast<std::int64_t>(bytes));
  } else {
    Lent& lent = lent_[static_cast<std::size_t>(in.dst.base - kBaseSlots)];
    lent.took = took;
    lent.length = static_cast<std::int64_t>(bytes);
  }
  return true;
}

}  // namespace carillon
