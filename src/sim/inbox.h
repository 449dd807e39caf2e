// SPDX-License-Identifier: Apache-2.0
//
// Inboxes: messages that have come to a rank and that it has not waited for yet. A rank usually has
// none or a few, in a list whose places all ranks share. One that has many (all of an all-to-all)
// gets a bit per peer, for those that came before now and of which nothing else need be known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "schedule/schedule.h"

namespace carillon::sim {

/// In the number of a message that has been granted: its request has had the number without it.
inline constexpr std::int32_t kGranted = 1 << 28;

/// What identifies a message to its reader. Numbers are below 2^29.
class MessageKey {
 public:
  MessageKey() = default;
  MessageKey(std::uint32_t peer, Channel channel, std::int32_t number)
      : value_(static_cast<std::uint64_t>(peer) << 32 |
               static_cast<std::uint64_t>(static_cast<std::uint32_t>(number)) << 3 |
               static_cast<std::uint64_t>(channel)) {}
  [[nodiscard]] std::uint32_t peer() const { return static_cast<std::uint32_t>(value_ >> 32); }
  [[nodiscard]] std::uint64_t value() const { return value_; }
  /// Whether it is the first one of a pair.
  [[nodiscard]] bool is_plain() const { return static_cast<std::uint32_t>(value_) == 0; }
  bool operator==(const MessageKey&) const = default;

 private:
  std::uint64_t value_ = ~std::uint64_t{0};  // of no message
};

struct Arrived {
  std::int64_t time = 0;    ///< from when it can be read
  std::uint32_t flags = 0;  ///< of its event
  std::uint32_t path = 0;   ///< tracing: what led to it
};

/// A rank's inbox; where its messages are, Inboxes knows.
struct Inbox {
  struct Crowd {
    std::vector<std::uint64_t> bits;               // of the peers
    std::multimap<std::uint64_t, Arrived> others;  // of one key in the order in which they came
  };
  std::uint32_t first = 0;
  std::uint32_t count : 31 = 0;
  /// It has had messages that are more than a bit. Of one key they must not be overtaken by bits.
  std::uint32_t mixed : 1 = 0;
  std::unique_ptr<Crowd> crowd;
};

class Inboxes {
 public:
  explicit Inboxes(std::size_t ranks) : ranks_(ranks), places_(1) {}

  /// `now`: the rank will not look for anything before that.
  void put(Inbox* inbox, MessageKey key, const Arrived& arrived, std::int64_t now) {
    if (arrived.flags != 0) inbox->mixed = 1;
    if (inbox->crowd && arrived.time <= now && mark(inbox, key, arrived)) return;
    if (inbox->count >= kFew) move_to_crowd(inbox, now);
    std::uint32_t place = free_;
    if (place != 0) {
      free_ = places_[place].next;
    } else {
      place = static_cast<std::uint32_t>(places_.size());
      places_.emplace_back();
    }
    places_[place] = {key, arrived, 0};
    std::uint32_t* end = &inbox->first;
    while (*end != 0) end = &places_[*end].next;
    *end = place;
    ++inbox->count;
  }

  /// The message, if it is there; of several with this key the first that came. It is taken out if
  /// it can be read at `by`.
  std::optional<Arrived> take(Inbox* inbox, MessageKey key, std::int64_t by) {
    if (inbox->crowd) {
      if (auto found = take_from_crowd(inbox->crowd.get(), key, by)) return found;
    }
    for (std::uint32_t* link = &inbox->first; *link != 0; link = &places_[*link].next) {
      if (places_[*link].key != key) continue;
      if (places_[*link].arrived.time > by) return places_[*link].arrived;
      return take_at(inbox, link);
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint32_t kFew = 24;
  struct Place {
    MessageKey key;
    Arrived arrived;
    std::uint32_t next = 0;  // place; 0: none
  };

  Arrived take_at(Inbox* inbox, std::uint32_t* link) {
    const std::uint32_t place = *link;
    *link = places_[place].next;
    places_[place].next = free_;
    free_ = place;
    --inbox->count;
    return places_[place].arrived;
  }

  void move_to_crowd(Inbox* inbox, std::int64_t now) {
    if (!inbox->crowd) inbox->crowd = std::make_unique<Inbox::Crowd>();
    Inbox::Crowd& crowd = *inbox->crowd;
    for (std::uint32_t* link = &inbox->first; *link != 0;) {
      const Place& place = places_[*link];
      if (place.arrived.time > now) {
        link = &places_[*link].next;
        continue;
      }
      const MessageKey key = place.key;
      const Arrived arrived = take_at(inbox, link);
      if (!mark(inbox, key, arrived)) crowd.others.emplace(key.value(), arrived);
    }
  }

  // Peers beyond the team's ranks are those of a later call of a program.
  [[nodiscard]] bool has_bit(MessageKey key) const { return key.is_plain() && key.peer() < ranks_; }

  // Sets the peer's bit, if that tells all of the message.
  bool mark(Inbox* inbox, MessageKey key, const Arrived& arrived) const {
    if (!has_bit(key) || inbox->mixed != 0 || arrived.path != 0) return false;
    if (inbox->crowd->bits.empty()) inbox->crowd->bits.resize((ranks_ + 63) / 64);
    std::uint64_t& word = inbox->crowd->bits[key.peer() / 64];
    const std::uint64_t bit = std::uint64_t{1} << key.peer() % 64;
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }

  [[nodiscard]] std::optional<Arrived> take_from_crowd(Inbox::Crowd* crowd, MessageKey key,
                                                       std::int64_t by) const {
    if (has_bit(key) && !crowd->bits.empty()) {
      std::uint64_t& word = crowd->bits[key.peer() / 64];
      const std::uint64_t bit = std::uint64_t{1} << key.peer() % 64;
      if ((word & bit) != 0) {
        word &= ~bit;
        return Arrived{};
      }
    }
    const auto row = crowd->others.lower_bound(key.value());
    if (row == crowd->others.end() || row->first != key.value()) return std::nullopt;
    const Arrived arrived = row->second;
    if (arrived.time <= by) crowd->others.erase(row);
    return arrived;
  }

  std::size_t ranks_;
  std::vector<Place> places_;  // place 0 is none
  std::uint32_t free_ = 0;
};

}  // namespace carillon::sim
