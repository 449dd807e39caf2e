// SPDX-License-Identifier: Apache-2.0
//
// Which way messages within the node that are too long for a line come to their readers soonest
// (shm::Way): by shared memory, copied there as every copy is or past the writer's cache, in a
// chunk that stays the writer's or one that it hands over; or read in the sender's private memory.
// That depends on how far apart the cores are, on whose caches the bytes are in, and on what is
// done with them: bytes that are reduced are read where they are in shared memory, but private ones
// are copied first; and pieces of a stream are written while those before them are taken. It is
// learned as messages come, each way now and then: readers tell what taking costs them, and each
// writer, who knows what it costs to write, decides for the messages to each reader.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/lent_messages.h"
#include "engine/mean_cost.h"
#include "transport/shm/layout.h"

namespace carillon {

class MessageWays {
 public:
  using Clock = MeanCost::Clock;
  using Way = shm::Way;
  using Taken = shm::Taken;

  /// Those that a message may go; kCached is always one.
  struct Open {
    bool uncached = false, lent = false, handed = false;
    bool invited = false;  // kHanded, by the reader
    bool both = false;     // the writer takes messages in the meantime, as its readers do
    std::array<int, kMostLentReaders> readers = {};  // all of them, by their ranks of the node

    [[nodiscard]] bool has(Way way) const {
      switch (way) {
        case Way::kCached: break;
        case Way::kUncached: return uncached;
        case Way::kPrivate: return lent;
        case Way::kHanded: return handed;
      }
      return true;
    }
    bool operator==(const Open&) const = default;
  };

  struct Choice {
    Way way = Way::kCached;
    bool invites = false;  ///< kHanded, not only since the reader would have it so
  };

  /// Of a node with so many ranks, each of which has a pool with so many bytes for short messages,
  /// and so many for long ones (shm::Pool).
  explicit MessageWays(int ranks = 0, std::int64_t short_bytes = 0, std::int64_t long_bytes = 0)
      : cold_to_write_{short_bytes, long_bytes},
        cold_to_take_{short_bytes * pools_read(ranks), long_bytes * pools_read(ranks)},
        sent_(static_cast<std::size_t>(ranks) + 1),
        readers_(static_cast<std::size_t>(ranks)) {}

  /// The way that the next message to this rank of the node should go, which takes it so and at
  /// such costs. kHanded, where that is open, until it is known to be worse, or if the reader would
  /// have it so: it is good only if both do it. Another than these only once both have been seen.
  /// What is preferred stays so until another is clearly better: to have memory of both ways in the
  /// caches is worse than either.
  Way preferred(int reader, Taken taken, const shm::TakeCosts& costs, Open open) {
    Reader& it = reader_of(reader, taken);
    const std::array<std::int64_t, shm::kWays> total = totals(taken, costs);
    const std::int64_t cached = total[index(Way::kCached)], lent = total[index(Way::kPrivate)];
    const std::int64_t uncached = total[index(Way::kUncached)];
    const std::int64_t handed = total[index(Way::kHanded)];
    if (cached != 0 && uncached != 0) {
      it.uncached = better(uncached, cached, it.uncached, kOfUncached);
    }
    const std::int64_t kept = it.uncached ? uncached : cached;
    if (kept != 0 && handed != 0) it.handed = better(handed, kept, it.handed, kOfHanded);
    const bool hands = open.handed && (it.handed || open.invited);
    const std::int64_t shared = hands ? handed : kept;
    if (shared != 0 && lent != 0) {
      const bool both_take = open.both || hands || shm::is_stream(taken);
      it.lent = better(lent, shared, it.lent, both_take ? kOfBoth : kOfWriter);
    }
    const Way way = it.lent && open.lent           ? Way::kPrivate
                    : hands                        ? Way::kHanded
                    : it.uncached && open.uncached ? Way::kUncached
                                                   : Way::kCached;
    for (std::size_t other = 0; other < shm::kWays; ++other) {
      const bool worse = total[index(way)] != 0 && 2 * total[other] > 3 * total[index(way)];
      it.turns[other] = total[other] == 0 ? kOften : worse ? kSeldom : kNowAndThen;
    }
    return way;
  }

  /// The way that it goes: the preferred one, but that its readers learn how the others are, some
  /// messages go those, at first more of them. Many one after another, as pieces of a stream that
  /// stand side by side are read by one call, and as the first ones find the caches cold. `reader`:
  /// -1: several.
  [[nodiscard]] Choice next(int reader, Taken taken, Way preferred, Open open) const {
    const std::uint64_t turn = sent_[place(reader)][index(taken)].messages / kTurnMessages;
    for (const Way way : kAllWays) {
      if (way == preferred || !open.has(way)) continue;
      const std::uint64_t later =
          reader < 0 ? kNowAndThen
                     : readers_[static_cast<std::size_t>(reader)][index(taken)].turns[index(way)];
      // Of some nothing is ever told: of messages that nobody takes in a way that is measured.
      const std::uint64_t one_in =
          later == kOften ? std::clamp(std::bit_floor(turn) / kOften, kOften, kNowAndThen)
                          : std::min(later, std::max(kOften, std::bit_floor(turn)));
      // The first turn goes as preferred.
      const std::uint64_t its_turn = way == Way::kCached ? shm::kWays : index(way);
      if ((turn & (one_in - 1)) == its_turn) return {way, way == Way::kHanded};
    }
    const bool hands = preferred == Way::kHanded;
    return {preferred, hands && readers_[static_cast<std::size_t>(reader)][index(taken)].handed};
  }
  /// One goes that way that could have gone these.
  void note_sent(int reader, Taken taken, Choice choice, Open open) {
    Sent& sent = sent_[place(reader)][index(taken)];
    sent.stands_until = (sent.messages / kStandingMessages + 1) * kStandingMessages;
    ++sent.messages;
    sent.choice = choice;
    sent.open = open;
  }
  /// One goes as the one before it, whatever is better.
  void note_follows(int reader, Taken taken) { ++sent_[place(reader)][index(taken)].messages; }
  /// The way of the one before it, if the next one goes that way without more ado: what is
  /// preferred is not looked at for each. Not if that one could go others, or to others: of those
  /// that come in turn, one kind would decide for the other.
  [[nodiscard]] std::optional<Choice> standing(int reader, Taken taken, Open open) const {
    const Sent& sent = sent_[place(reader)][index(taken)];
    if (sent.messages >= sent.stands_until || open != sent.open) return {};
    return sent.choice;
  }

  /// Is it time to look at the clock for one more message as it is copied to shared memory, or
  /// taken from there? All kinds are counted apart, since they may come in turn.
  bool write_is_due(Taken taken, Way way) {
    if (shm::is_stream(taken)) return false;
    Written& written = written_[form(taken)];
    return is_due(written.costs[index(way)], written.seen, taken);
  }
  bool take_is_due(Taken taken, Way way) {
    return is_due(taken_[index(taken)][index(way)], takes_seen_[index(taken)], taken);
  }
  /// Took so long to copy a message that is taken so to shared memory, that way.
  void note_written(Taken taken, Way way, Clock::duration took, std::int64_t bytes) {
    if (is_cold(way == Way::kHanded ? cold_to_hand_ : cold_to_write_, bytes)) return;
    written_[form(taken)].costs[index(way)].note(took, bytes);
  }
  /// The bytes of some messages are copied by their writer, too (Instruction::paired). Is the next
  /// one written together with that copy? Some are not, so that what the copy costs alone is known:
  /// it has to be made whichever way the message goes.
  bool next_together(Taken taken, std::int64_t bytes) {
    Copied& copied = copied_[form(taken)];
    return bytes >= kLeastTogether && copied.alone.is_known() && ++copied.seen % kEveryAlone != 0;
  }
  bool copy_is_due(Taken taken, std::int64_t bytes) {
    Copied& copied = copied_[form(taken)];
    return bytes >= kLeastTogether && is_due(copied.alone, copied.seen_alone, taken);
  }
  /// Took so long to make that copy alone.
  void note_copied(Taken taken, Clock::duration took, std::int64_t bytes) {
    copied_[form(taken)].alone.note(took, bytes);
  }
  /// As note_written, of one that was written together with it.
  void note_together(Taken taken, Way way, Clock::duration took, std::int64_t bytes) {
    const std::int64_t alone_ns = copied_[form(taken)].alone.known_fs() * bytes / 1000000;
    note_written(taken, way, std::max(took - std::chrono::nanoseconds(alone_ns), took / 4), bytes);
  }
  /// Took so long to take one that came that way: to a copy of its own or into a sum.
  /// False: that says nothing, as of the first ones.
  bool note_taken(Taken taken, Way way, Clock::duration took, std::int64_t bytes) {
    if (way != Way::kPrivate &&
        is_cold(way == Way::kHanded ? cold_to_be_handed_ : cold_to_take_, bytes)) {
      return false;
    }
    taken_[index(taken)][index(way)].note(took, bytes);
    return true;
  }

  /// What a byte of messages costs this process that come this way and that it takes so; 0: it does
  /// not know.
  [[nodiscard]] std::uint32_t take_cost(Taken taken, Way way) const {
    return taken_[index(taken)][index(way)].known_fs();
  }
  /// Is it so different from what it has told before that it is to tell it?
  static bool is_news(std::uint32_t now, std::uint32_t told) {
    return (now > told ? now - told : told - now) > told / kNews;
  }

 private:
  static std::size_t index(Taken taken) { return static_cast<std::size_t>(taken); }
  static std::size_t index(Way way) { return static_cast<std::size_t>(way); }
  static std::size_t place(int reader) { return static_cast<std::size_t>(reader + 1); }
  // Whole ones, pieces of a stream, short ones, other pieces.
  static std::size_t form(Taken taken) { return index(taken) / 2; }

  struct Written {
    std::array<MeanCost, shm::kWays> costs;
    std::uint64_t seen = 0;
  };
  struct Copied {
    MeanCost alone;
    std::uint64_t seen = 0, seen_alone = 0;
  };
  struct Sent {
    std::uint64_t messages = 0;
    std::uint64_t stands_until = 0;  // so many
    Choice choice;                   // of the last one
    Open open;                       // to it
  };
  /// What is preferred for messages to a reader that are taken so, and one in how many turns is for
  /// each other way.
  struct Reader {
    bool uncached = false, lent = false, handed = true;
    std::array<std::uint64_t, shm::kWays> turns{kOften, kOften, kOften, kOften};
  };
  // A way is better, and stays so, up to so many sixteenths of the other's cost.
  struct Share {
    std::int64_t to_begin, to_stay;
  };

  Reader& reader_of(int reader, Taken taken) {
    return readers_[static_cast<std::size_t>(reader)][index(taken)];
  }
  static bool better(std::int64_t cost, std::int64_t than, bool is, const Share& most) {
    return 16 * cost < (is ? most.to_stay : most.to_begin) * than;
  }
  // What a byte costs by each way; 0: not known. Readers of a stream tell what it costs both.
  [[nodiscard]] std::array<std::int64_t, shm::kWays> totals(Taken taken,
                                                            const shm::TakeCosts& costs) const {
    std::array<std::int64_t, shm::kWays> total = {};
    if (shm::is_stream(taken)) {
      std::copy(costs.begin(), costs.end(), total.begin());
      return total;
    }
    for (const Way way : {Way::kCached, Way::kUncached, Way::kHanded}) {
      const std::int64_t written = written_[form(taken)].costs[index(way)].known_fs();
      const std::int64_t took = costs[index(way)];
      if (written == 0 || took == 0) continue;
      total[index(way)] = by_shared_memory(written, took, false);
    }
    total[index(Way::kPrivate)] = costs[index(Way::kPrivate)];
    return total;
  }
  // One in so many, but in no rhythm: messages come in rounds, whose writers and ways are to be
  // seen all. (Multiples of the golden ratio are spread evenly, and so is every n-th of them.)
  static bool is_due(const MeanCost& mean, std::uint64_t& seen, Taken taken) {
    if (!mean.is_known()) return true;
    seen += 0x9E3779B97F4A7C15;
    return seen <= UINT64_MAX / (form(taken) == form(Taken::kShortCopied) ? kEveryShort : kEvery);
  }
  static std::int64_t pools_read(int ranks) { return std::clamp(ranks - 1, 1, 15); }
  // Shared memory that is used for the first time costs several times as much: the kernel makes its
  // pages. A pool's chunks are used in turn.
  static bool is_cold(std::array<std::int64_t, 2>& cold_bytes, std::int64_t bytes) {
    std::int64_t& left = cold_bytes[bytes <= static_cast<std::int64_t>(shm::kSmallBytes) ? 0 : 1];
    if (left <= 0) return false;
    left -= bytes;
    return true;
  }

  // Reading the clock twice takes as long as copying 1 KiB.
  static constexpr std::uint64_t kEvery = 4, kEveryShort = 16;
  static constexpr std::uint64_t kEveryAlone = 64;
  static constexpr std::int64_t kLeastTogether = 16384;  // shorter ones are in the nearest cache
  static constexpr std::array kAllWays = {Way::kCached, Way::kUncached, Way::kPrivate,
                                          Way::kHanded};
  static_assert(kAllWays.size() == shm::kWays);
  // As long as few are handed over, these find the caches cold.
  static constexpr Share kOfHanded{.to_begin = 16, .to_stay = 18};
  static constexpr Share kOfUncached{.to_begin = 14, .to_stay = 16};
  // A whole message that is lent keeps its writer, too, which none of the costs has; but one that
  // is to read as long itself would not be done before.
  static constexpr Share kOfBoth{.to_begin = 15, .to_stay = 17};
  static constexpr Share kOfWriter{.to_begin = 11, .to_stay = 13};
  static constexpr std::uint32_t kNews = 32;  // each time, the line is fetched by every writer
  static constexpr std::uint64_t kTurnMessages = 32, kStandingMessages = 16;
  static_assert(kTurnMessages % kStandingMessages == 0);
  // One turn in so many: of what is not known yet, of what is half as good or worse, of others.
  static constexpr std::uint64_t kOften = 8, kSeldom = 512, kNowAndThen = 128;
  static_assert(shm::kWays < kOften);

  std::array<std::int64_t, 2> cold_to_write_, cold_to_take_;
  // Few chunks go to and fro.
  std::array<std::int64_t, 2> cold_to_hand_ = {1 << 18, 1 << 20};
  std::array<std::int64_t, 2> cold_to_be_handed_ = cold_to_hand_;
  std::vector<std::array<Sent, shm::kTakenKinds>> sent_;
  std::vector<std::array<Reader, shm::kTakenKinds>> readers_;
  std::array<Written, shm::kTakenKinds / 2> written_;
  std::array<Copied, shm::kTakenKinds / 2> copied_;
  std::array<std::array<MeanCost, shm::kWays>, shm::kTakenKinds> taken_;
  std::array<std::uint64_t, shm::kTakenKinds> takes_seen_ = {};
};

}  // namespace carillon
