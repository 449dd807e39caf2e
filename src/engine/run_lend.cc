// SPDX-License-Identifier: Apache-2.0
//
// Long messages within the node that are copied once: a put or send whose bytes keep their value
// tells where they are in the writer's private memory, and the wait or recv reads them there by
// process_vm_readv, if possible to where the schedule copies them anyway. The writer's run ends
// when its readers have them. Which messages go this way is the writer's choice alone; readers say
// what taking them costs.
#include <algorithm>
#include <string>

#include "base/lent_messages.h"
#include "engine/engine.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {
namespace {

// By one call of the system, in which nothing else moves on.
constexpr std::uint64_t kMostAtOnce = 1048576;

// To where they do not stay: they are to be in the cache when they are used.
constexpr std::int64_t kMostElsewhere = 131072;

}  // namespace

// Do the bytes that a put has keep their value until this run's end? A message's, if it has landed.
bool Run::lasts(const Instruction& in) const {
  return in.lasts &&
         (in.a.base < kBaseSlots || arrivals_[in.a.base - kBaseSlots].came == Came::kLanded);
}

// How many of a send's bytes are lent after this part. They are all where they stay.
std::uint64_t Run::bytes_behind(const Instruction& in, const Part& part) const {
  if (in.action != Action::kSend) return 0;
  return static_cast<std::uint64_t>(length_of(in.a, in.length) - part.offset - part.length);
}

// Where it was read to, if the message was lent and did not land.
const Run::Lent* Run::read_here(const std::byte* data) const {
  const auto found = std::find_if(lent_.begin(), lent_.end(), [&](const Lent& lent) {
    return data >= lent.bytes.data() && data < lent.bytes.data() + lent.bytes.size();
  });
  return found == lent_.end() ? nullptr : &*found;
}

// How many of the messages after this one land right behind it, as in a loop that does nothing but
// take messages to there, so that nothing looks early, and nothing writes later what has landed;
// those of a recv are announced with its first.
std::int64_t Run::landing_behind(const Instruction& in, const Strand& strand,
                                 const Landing& to) const {
  const auto length = static_cast<std::int64_t>(to.bytes.size());
  if (strand.loop == 0 || in.index_stride != 1 || in.a.stride != length) return 0;
  for (const Instruction* i = &plan_->code[strand.loop]; i->action != Action::kEndRepeat; ++i) {
    const bool lands = i->action == Action::kCopy && i->a.base == in.dst.base &&
                       i->dst.base == in.a.base && i->dst.offset == in.a.offset;
    const bool takes = lands || i->action == Action::kRelease || i == &in;
    if (!takes) return 0;
  }
  return strand.iterations - strand.iteration - 1;
}

// And how many of so many are there, and lent from one place: one call reads them all.
int Run::lent_after(std::uint16_t use, std::uint64_t number, const Received& received,
                    std::int64_t most) {
  int after = 0;
  while (after < most && after + 1 < shm::kWindow) {
    Received next;
    if (!poll(use, number + static_cast<std::uint64_t>(after) + 1, 0, &next)) break;
    const auto place = static_cast<std::uint64_t>((after + 1) * received.length);
    if (next.lent != received.lent + place || next.length != received.length) break;
    ++after;
  }
  return after;
}

// How many bytes one call reads from there on, and which messages after this one that makes.
std::int64_t Run::read_with(const Instruction& in, Strand& strand, std::uint64_t number,
                            const Landing& to, const Received& received) {
  const std::int64_t length = received.length;
  if (in.action != Action::kRecv) {
    strand.read_ahead = lent_after(in.use, number, received, landing_behind(in, strand, to));
    return length * (1 + strand.read_ahead);
  }
  const std::int64_t room = length_of(in.dst, in.length) - to.part.offset - length;
  const std::int64_t most = plan_->stream_bytes;
  std::int64_t behind = std::min(
      room, static_cast<std::int64_t>(std::min<std::uint64_t>(received.behind, kMostAtOnce)));
  if (behind < room) behind -= behind % most;
  strand.read_ahead = static_cast<int>((behind + most - 1) / most);
  return length + behind;
}

// The same where they do not stay: of those that the instruction waits for in its loop.
std::int64_t Run::read_elsewhere(const Instruction& in, const Strand& strand, std::uint64_t number,
                                 const Received& received, Lent& lent) {
  lent.ahead = 0;
  if (in.action == Action::kWait && strand.loop != 0 && in.index_stride == 1) {
    const std::int64_t behind = strand.iterations - strand.iteration - 1;
    const std::int64_t room = (kMostElsewhere - received.length) / received.length;
    lent.ahead = lent_after(in.use, number, received, std::min(behind, room));
  }
  return received.length * (1 + lent.ahead);
}

// Where the message that an instruction takes is read to, if it lands nowhere.
Run::Lent& Run::place_of_lent(const Instruction& in, const Strand& strand) {
  const auto place =
      in.action == Action::kWait ? in.dst.base - kBaseSlots : plan_->slot_bases + index_of(strand);
  if (lent_.size() <= place) lent_.resize(place + 1);
  return lent_[place];
}

// The message that `received` tells of. False: it has failed.
bool Run::read_lent(const Instruction& in, Strand& strand, std::uint64_t number, const Landing& to,
                    Received* received) {
  const auto length = static_cast<std::size_t>(received->length);
  const int peer = plan_->uses[in.use].peer;
  received->landed = to.bytes.size() == length;
  Lent* const lent = received->landed ? nullptr : &place_of_lent(in, strand);
  copied_bytes_ += length;
  ++takes_;
  if (int& ahead = lent == nullptr ? strand.read_ahead : lent->ahead; ahead > 0) {
    --ahead;
    received->data = lent == nullptr ? to.bytes.data() : lent->bytes.data() + lent->taken;
    if (lent != nullptr) lent->taken += received->length;
    return true;
  }
  const auto bytes = static_cast<std::size_t>(
      lent == nullptr ? read_with(in, strand, number, to, *received)
                      : read_elsewhere(in, strand, number, *received, *lent));
  if (done()) return false;  // of those after it, one is of another call, or withdrawn
  std::byte* into = to.bytes.data();
  if (lent != nullptr) {
    if (lent->bytes.size() < bytes) lent->bytes.resize(bytes);
    into = lent->bytes.data();
    lent->taken = received->length;
  }
  received->data = into;
  const auto begin = MessageWays::Clock::now();
  const Status status = team_->engine().segment().read_private(
      team_->endpoint().peer(peer).node_rank, received->lent, into, bytes);
  const auto took = MessageWays::Clock::now() - begin;
  // If it is there no more, the writer may have given up, and then that is why.
  if (!stands(in.use, number)) return false;
  if (status.code() == Code::kInvalidArgument) {
    fail_freed(peer);
    return false;
  }
  if (!status.ok()) {
    fail_unreachable(peer, status);
    return false;
  }
  if (lent != nullptr) {
    lent->took = took;
    lent->length = static_cast<std::int64_t>(bytes);
  } else {
    const auto read = static_cast<std::int64_t>(bytes);
    team_->engine().learn_taking(received->arrival.taken, shm::Way::kPrivate, took, read);
  }
  return true;
}

}  // namespace carillon
