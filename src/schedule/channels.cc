// SPDX-License-Identifier: Apache-2.0
#include "schedule/channels.h"

#include <limits>

namespace carillon {

std::int64_t Links::key(Channel channel, Rank writer, Rank reader) const {
  return (std::int64_t{writer} * (ranks_ + 1) + reader + 1) * kChannels +
         static_cast<std::int64_t>(channel);
}

Link* Links::find(Channel channel, Rank writer, Rank reader) {
  // A pair has one place for either kind.
  const Channel kind = channel == Channel::kQueue ? Channel::kPair : channel;
  std::uint32_t& place = places_[key(kind, writer, reader)];
  if (place > 0) {
    Link& known = links_[place - 1];
    return known.channel == channel ? &known : nullptr;
  }
  Link& link = used_ < links_.size() ? links_[used_] : links_.emplace_back();
  place = static_cast<std::uint32_t>(++used_);
  link.begin(channel, writer, reader);
  return &link;
}

void Links::begin(Rank ranks, const Limits& limits) {
  ranks_ = ranks;
  limits_ = &limits;
  places_.clear();
  used_ = 0;
}

Letter& Links::letter(Link& link, std::int64_t number) {
  const auto index = static_cast<std::size_t>(number - link.first);
  while (link.letters.size() <= index) {
    Letter& letter = link.letters.push_back({});
    letter.readers_left = readers_of(link.channel, link.writer, ranks_, *limits_);
    if (has_readers(link.channel)) letter.waited_by.resize(static_cast<std::size_t>(ranks_));
  }
  return link.letters[index];
}

bool Links::take(const Link& link, Letter& letter, Rank rank) {
  if (taken(link, letter, rank)) return false;
  if (has_readers(link.channel)) {
    letter.waited_by[static_cast<std::size_t>(rank)] = true;
  } else {
    letter.waited = true;
  }
  return true;
}

const Letter* Links::first_released(const Link& link) {
  const bool any = !link.letters.empty() && link.letters.front().released;
  return any ? &link.letters.front() : nullptr;
}

void Links::drop_first(Link& link) {
  link.letters.pop_front();
  ++link.first;
}

std::string Links::describe_leftover(const Link& link) const {
  const std::string from = " from rank " + std::to_string(link.writer);
  if (!link.parcels.empty()) {
    return "send #" + std::to_string(link.parcels.front().number) + from + " to rank " +
           std::to_string(link.reader) + " (op " + std::to_string(link.parcels.front().send_op) +
           " there) was never received";
  }
  for (std::size_t i = 0; i < link.letters.size(); ++i) {
    const Letter& letter = link.letters[i];
    if (letter.released) continue;
    if (!letter.present) {  // the next call's messages would have the numbers of this one's
      return "message #" + std::to_string(link.first + static_cast<std::int64_t>(i)) + from +
             " is never put, but later ones of its channel are";
    }
    Rank reader = link.reader;
    if (has_readers(link.channel)) {
      reader = 0;
      while (reader == link.writer || !hears(link.channel, link.writer, reader, *limits_) ||
             taken(link, letter, reader)) {
        ++reader;
      }
    }
    return "message #" + std::to_string(link.first + static_cast<std::int64_t>(i)) + from +
           (has_readers(link.channel) ? " to " + std::string(readers_name(link.channel)) : "") +
           " (op " + std::to_string(letter.put_op) + " there) was never waited for by rank " +
           std::to_string(reader);
  }
  return {};
}

std::string Links::leftover() const {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::string text;
  for (std::size_t i = 0; i < used_; ++i) {
    const Link& link = links_[i];
    const std::int64_t at = key(link.channel, link.writer, link.reader);
    if (at > lowest) continue;
    std::string found = describe_leftover(link);
    if (found.empty()) continue;
    lowest = at;
    text = std::move(found);
  }
  return text;
}

}  // namespace carillon
