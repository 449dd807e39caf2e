// SPDX-License-Identifier: Apache-2.0
#include "schedule/channels.h"

namespace carillon {

std::uint64_t Links::key(Channel channel, Rank writer, Rank reader) const {
  const auto ranks = static_cast<std::uint64_t>(ranks_) + 1;
  return (static_cast<std::uint64_t>(writer) * ranks + static_cast<std::uint64_t>(reader + 1)) *
             kChannels +
         static_cast<std::uint64_t>(channel);
}

Link* Links::find(Channel channel, Rank writer, Rank reader) {
  const auto [it, inserted] = links_.try_emplace(key(channel, writer, reader));
  Link& link = it->second;
  if (!inserted) return &link;
  link.channel = channel;
  link.writer = writer;
  link.reader = reader;
  if (has_readers(channel)) return &link;
  const Channel other = channel == Channel::kPair ? Channel::kQueue : Channel::kPair;
  return links_.contains(key(other, writer, reader)) ? nullptr : &link;
}

Letter& Links::letter(Link& link, std::int64_t number) {
  const auto index = static_cast<std::size_t>(number - link.first);
  while (link.letters.size() <= index) {
    Letter letter;
    letter.readers_left = readers_of(link.channel, link.writer, ranks_, limits_);
    letter.waited.resize(has_readers(link.channel) ? static_cast<std::size_t>(ranks_) : 1);
    link.letters.push_back(std::move(letter));
  }
  return link.letters[index];
}

void Links::advance(Link& link) {
  while (!link.letters.empty() && link.letters.front().released) {
    link.letters.pop_front();
    ++link.first;
  }
}

bool Links::reads(const Link& link, Rank rank) const {
  return link.channel == Channel::kAll ? limits_.share_node(rank, link.writer)
                                       : hears(link.channel, link.writer, rank, limits_);
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
    if (!letter.present || letter.released) continue;
    Rank reader = link.reader;
    if (has_readers(link.channel)) {
      reader = 0;
      while (reader == link.writer || !reads(link, reader) ||
             letter.waited[static_cast<std::size_t>(reader)]) {
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
  std::uint64_t lowest = ~std::uint64_t{0};
  std::string text;
  for (const auto& [key, link] : links_) {
    if (key > lowest) continue;
    std::string found = describe_leftover(link);
    if (found.empty()) continue;
    lowest = key;
    text = std::move(found);
  }
  return text;
}

}  // namespace carillon
