// SPDX-License-Identifier: Apache-2.0
#include "transport/net/placed.h"

#include <cstring>

#include "transport/net/pair.h"

namespace carillon::net {

bool Parts::are_of(std::uint64_t bytes, std::uint32_t most) const {
  if (count == 0 || count > most || ends[count - 1] != bytes) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (ends[i] <= begin_of(i)) return false;
  }
  return true;
}

bool Parts::suit(const Parts& cuts) const {
  return std::includes(ends.begin(), ends.begin() + count, cuts.ends.begin(),
                       cuts.ends.begin() + cuts.count);
}

Parts Parts::with(const Parts& other) const {
  Parts all;
  const auto mine = std::span(ends).first(count);
  const auto its = std::span(other.ends).first(other.count);
  std::array<std::uint32_t, 2 * kMostParts> both;
  auto end = std::merge(mine.begin(), mine.end(), its.begin(), its.end(), both.begin());
  end = std::unique(both.begin(), end);
  all.count = static_cast<std::uint32_t>(
      std::min<std::ptrdiff_t>(end - both.begin(), std::ptrdiff_t{kMostParts}));
  std::copy_n(both.begin(), all.count, all.ends.begin());
  return all;
}

std::optional<Parts> cut(std::span<const wire::Piece> list, std::size_t most_entries) {
  Parts parts;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    bytes += list[i].bytes;
    const bool full = (i + 1) % most_entries == 0 || i + 1 == list.size();
    if (!full) continue;
    if (parts.count == kMostCuts || bytes > UINT32_MAX) return std::nullopt;
    parts.ends[parts.count++] = static_cast<std::uint32_t>(bytes);
  }
  return parts;
}

Slice::Slice(std::span<const wire::Piece> list, std::uint64_t begin, std::uint64_t end) {
  std::uint64_t at = 0;
  for (const wire::Piece& piece : list) {
    const std::uint64_t from = std::max(begin, at);
    const std::uint64_t to = std::min<std::uint64_t>(end, at + piece.bytes);
    if (from < to && count_ < pieces_.size()) {
      pieces_[count_++] = {piece.data + (from - at), to - from, piece.registration};
    }
    at += piece.bytes;
    if (at >= end) return;
  }
}

Parts Announcement::parts() const {
  Parts all;
  all.count = std::min(count, kMostCuts);
  std::copy_n(cuts, all.count, all.ends.begin());
  return all;
}

Parts Ready::parts() const {
  Parts all;
  all.count = std::min(count, kMostParts);
  std::copy_n(ends, all.count, all.ends.begin());
  return all;
}

void Placed::start(const Parts& these, bool stays, Pair& of, std::uint64_t message) {
  parts = these;
  posted = 0;
  told = false;
  in_place = stays;
  process = of.place().process;
  pair = &of;
  number = message;
}

}  // namespace carillon::net
