// SPDX-License-Identifier: Apache-2.0
//
// Which way messages go that are too long for a line, and what is learned of it: writers choose,
// readers say what taking them costs (message_ways.h).
#include <algorithm>
#include <optional>

#include "base/copy.h"
#include "base/lent_messages.h"
#include "engine/engine.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {
namespace {

// Shorter ones are not worth the choice.
constexpr std::int64_t kLeastUncached = 1024;

constexpr MessageWays::Clock::time_point kUnknown{};

}  // namespace

// Of one that stands in the pool, or was lent.
shm::Way Run::way_of(Came came) {
  if (came == Came::kLent) return shm::Way::kPrivate;
  if (came == Came::kHanded) return shm::Way::kHanded;
  return came == Came::kUncached ? shm::Way::kUncached : shm::Way::kCached;
}

bool Run::is_in_pool(Came came) {
  return came == Came::kCached || came == Came::kUncached || came == Came::kHanded;
}

// Those that read what is written to the channel, unless they are more than are named.
const Run::Readers& Run::readers_of(const Instruction& in) {
  Readers& readers = readers_[in.use];
  if (readers.count >= 0) return readers;
  const ChannelUse& channel = plan_->uses[in.use];
  const shm::Segment& segment = team_->engine().segment();
  shm::Endpoint& endpoint = team_->endpoint();
  readers.count = 0;
  const auto add = [&](const shm::Peer& peer) {
    if (++readers.count > kMostLentReaders) return;
    readers.node_ranks[static_cast<std::size_t>(readers.count - 1)] = peer.node_rank;
    readers.can_read = readers.can_read && segment.reads(peer.node_rank);
  };
  if (!is_shared_out(channel.flow)) {
    add(endpoint.peer(channel.peer));
    return readers;
  }
  for (int rank = 0; rank < endpoint.size() && readers.count <= kMostLentReaders; ++rank) {
    const shm::Peer& peer = endpoint.peer(rank);
    if (rank == team_->rank() || peer.remote != nullptr) continue;
    if (channel.flow == Flow::kOutDomain && !peer.in_domain) continue;
    add(peer);
  }
  return readers;
}

// Can it be read where it stands, and does nobody forbid it? All messages of a send go one way, so
// that its reader may read them with the first one.
bool Run::may_lend(const Instruction& in, const Strand& strand, const Readers& readers,
                   const Part& part) const {
  const Engine& engine = team_->engine();
  if (in.action == Action::kSend && part.offset != 0) return strand.lends;
  if (part.length < engine.lend_from_bytes(plan_->one_way) || !lasts(in)) return false;
  if (readers.count > kMostLentReaders || !readers.can_read) return false;
  return engine.settings().lend_bytes >= 0 || !reduces() ||
         team_->limits().node_size(team_->rank(), team_->size()) <= kMostLendingReducers;
}

// Of a message that would be copied, and that there is no room for; of a send with all after it.
bool Run::lends_instead(const Instruction& in, Strand& strand, const Part& part) {
  if (wants_room_ == 0 || in.piece_count != 0) return false;
  const bool sends = in.action == Action::kSend;
  const Part all{part.number, 0, sends ? length_of(in.a, in.length) : part.length};
  if (!may_lend(in, strand, readers_of(in), all)) return false;
  strand.lends = sends;
  wants_room_ = 0;
  return true;
}

// Of a message that is more than a line's. What there was no choice about teaches nothing.
Run::WayChosen Run::choose_way(const Instruction& in, Strand& strand, const Part& part,
                               shm::Taken taken) {
  using shm::Way;
  if (in.piece_count != 0) return {};
  Engine& engine = team_->engine();
  const Config& settings = engine.settings();
  if (part.length < kLeastUncached && settings.uncached_bytes <= 0 &&
      part.length < engine.lend_from_bytes(plan_->one_way)) {
    return {};
  }
  const Readers& readers = readers_of(in);
  const bool lends = may_lend(in, strand, readers, part);
  const bool stays = in.action == Action::kSend && part.offset != 0;  // as its first message
  if (lends && (settings.lend_bytes >= 0 || stays)) {
    strand.lends = in.action == Action::kSend;
    if (readers.count == 1) engine.message_ways().note_follows(readers.node_ranks[0], taken);
    return {.way = Way::kPrivate};
  }
  if (settings.uncached_bytes > 0 && part.length >= settings.uncached_bytes) {
    return {.way = Way::kUncached};
  }
  const bool learns = readers.count <= kMostLentReaders;
  const int reader = readers.count == 1 ? readers.node_ranks[0] : -1;
  const auto bytes = static_cast<std::uint64_t>(part.length);
  const MessageWays::Open open{.uncached = learns && kCopiesPastCaches &&
                                           settings.uncached_bytes < 0 &&
                                           part.length >= kLeastUncached,
                               .lent = lends,
                               .handed = reader >= 0 && part.length >= kLeastUncached &&
                                         engine.pool().can_hand(bytes, reader),
                               .invited = reader >= 0 && engine.pool().is_invited(bytes, reader),
                               .both = !plan_->one_way,
                               .readers = readers.node_ranks};
  if (!open.uncached && !open.lent && !open.handed) return {};
  MessageWays& ways = engine.message_ways();
  const auto standing = ways.standing(reader, taken, open);
  const MessageWays::Choice choice = standing ? *standing : decide_way(readers, taken, open);
  ways.note_sent(reader, taken, choice, open);
  if (in.action == Action::kSend && !stays) strand.lends = choice.way == Way::kPrivate;
  return {.way = choice.way, .learns = true, .invites = choice.invites};
}

MessageWays::Choice Run::decide_way(const Readers& readers, shm::Taken taken,
                                    MessageWays::Open open) const {
  Engine& engine = team_->engine();
  MessageWays& ways = engine.message_ways();
  shm::Way preferred = shm::Way::kCached;
  for (int i = 0; i < readers.count; ++i) {
    const int reader = readers.node_ranks[static_cast<std::size_t>(i)];
    preferred = std::max(
        preferred, ways.preferred(reader, taken, engine.segment().take_costs(reader, taken), open));
  }
  return ways.next(readers.count == 1 ? readers.node_ranks[0] : -1, taken, preferred, open);
}

// What the collective's readers do with such messages.
shm::Taken Run::how_taken(const Instruction& in, const Strand& strand, std::int64_t bytes) const {
  using shm::Taken;
  if (is_streamed(strand)) return reduces() ? Taken::kReducedStream : Taken::kCopiedStream;
  if (bytes < lent_from_bytes(plan_->one_way)) {
    return reduces() ? Taken::kShortReduced : Taken::kShortCopied;
  }
  const bool in_pieces = strand.loop != 0 || (in.action == Action::kSend && in.piece_count == 0 &&
                                              length_of(in.a, in.length) > plan_->stream_bytes);
  if (in_pieces) return reduces() ? Taken::kPiecesReduced : Taken::kPiecesCopied;
  return reduces() ? Taken::kReduced : Taken::kCopied;
}

bool Run::reduces() const {
  return binding_.reduction.kernel != nullptr || binding_.reduction.user != nullptr;
}

// Whether the clock is looked at as this message is taken, and since when it is counted. A piece of
// a stream counts from when the one before it was taken, from whomever: that is what it costs both
// ranks, whoever waits for whom. So the clock is looked at as that one is taken, too.
Run::Taking Run::begin_taking(const Strand& strand, const Arrival& arrival, std::int64_t bytes) {
  const auto [came, taken] = arrival;
  const bool shared = is_in_pool(came);
  ++takes_;
  if ((!shared && came != Came::kLent) || bytes < kLeastUncached) return {};
  if (!shared) return {.timed = true, .arrival = arrival, .begin = MessageWays::Clock::now()};
  const bool is_due = team_->engine().message_ways().take_is_due(taken, way_of(came));
  if (!shm::is_stream(taken)) {
    if (!is_due) return {};
    return {.timed = true, .arrival = arrival, .begin = MessageWays::Clock::now()};
  }
  const bool follows = taken_.collective == collective_ && taken_.strand == index_of(strand) &&
                       taken_.take + 1 == takes_ && taken_.came == came;
  return {.timed = is_due || follows, .arrival = arrival, .begin = follows ? taken_.at : kUnknown};
}

// What was done since the last piece of a stream is no part of what the next one costs.
void Run::leave_uncounted(const Strand& strand) {
  if (taken_.take == takes_ && taken_.collective == collective_ &&
      taken_.strand == index_of(strand)) {
    taken_.at = MessageWays::Clock::now();
  }
}

// As begin_taking, of one that is copied, and how.
Run::Taking Run::begin_copying(const Strand& strand, const Arrival& arrival, std::int64_t bytes) {
  Taking taking = begin_taking(strand, arrival, bytes);
  if (!is_in_pool(arrival.came) || bytes < kLeastUncached) return taking;
  taking.copies = true;
  taking.by_vectors =
      team_->engine().copy_choice().next_by_vectors(arrival.taken, way_of(arrival.came));
  return taking;
}

// What the put or send before it was not written together with.
void Run::copy_rest(const Instruction& in, Strand& strand) {
  using WaysClock = MessageWays::Clock;
  const std::int64_t done = strand.copied, left = in.length - done;
  std::byte* const to = at(in.dst, strand) + done;
  const std::byte* const from = at(in.a, strand) + done;
  strand.copied = 0;
  copied_bytes_ += static_cast<std::uint64_t>(in.length);
  if (left == 0 || to == from) return;
  MessageWays& ways = team_->engine().message_ways();
  const shm::Taken taken = how_taken((&in)[-1], strand, std::min(in.length, plan_->stream_bytes));
  const bool times = ways.copy_is_due(taken, left);
  const auto begin = times ? WaysClock::now() : kUnknown;
  copy_bytes(to, from, left);
  if (times) ways.note_copied(taken, WaysClock::now() - begin, left);
  leave_uncounted(strand);
}

void Run::learn_taking(const Strand& strand, const Taking& taking, const std::byte* data,
                       std::int64_t bytes) {
  const auto now = MessageWays::Clock::now();
  const auto [came, taken] = taking.arrival;
  const shm::Way way = way_of(came);
  auto took = now - taking.begin;
  if (came == Came::kLent) {
    const Lent* const lent = read_here(data);
    if (lent == nullptr) return;
    took += lent->took * bytes / lent->length;
  } else if (shm::is_stream(taken)) {
    taken_ = {collective_, index_of(strand), takes_, came, now};
    if (taking.begin == kUnknown) return;
  }
  Engine& engine = team_->engine();
  if (engine.learn_taking(taken, way, took, bytes) && taking.copies) {
    engine.copy_choice().note(taken, way, taking.by_vectors, took, bytes);
  }
}

}  // namespace carillon
