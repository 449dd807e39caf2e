// SPDX-License-Identifier: Apache-2.0
//
// Ways to move data by segments that cannot deadlock when a rank is guaranteed no more than two
// large messages in flight. The rule behind all of them: ranks go through the same rounds, a
// message is put and released in the same round, and within a round a rank puts before it waits.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/builder.h"

namespace carillon {

/// Both directions of one step: puts and takes segments alternately, though the lengths differ.
/// put(Range) and take(Range) get ranges relative to the start of what is sent or received.
template <typename Put, typename Take>
void exchange(Builder& b, std::int64_t put_bytes, std::int64_t take_bytes, std::int64_t segment,
              Put put, Take take) {
  const std::int64_t common = std::min(put_bytes, take_bytes) / segment * segment;
  b.segments(common, segment, [&](Range s) {
    put(s);
    take(s);
  });
  // The round in which the shorter one ends, then what is left of the longer one.
  const std::int64_t put_end = std::min(put_bytes, common + segment);
  const std::int64_t take_end = std::min(take_bytes, common + segment);
  if (put_end > common) put(Range{common, put_end - common});
  if (take_end > common) take(Range{common, take_end - common});
  b.segments(put_bytes - put_end, segment, [&](Range s) { put(Range{put_end, 0}.sub(s)); });
  b.segments(take_bytes - take_end, segment, [&](Range s) { take(Range{take_end, 0}.sub(s)); });
}

/// Software pipeline: first(s0); step(s0, s1); step(s1, s2); ... last(sn).
template <typename First, typename Step, typename Last>
void pipeline(Builder& b, std::int64_t bytes, std::int64_t segment, First first, Step step,
              Last last) {
  if (bytes == 0) return;
  const std::int64_t full = bytes / segment;
  const std::int64_t rest = bytes % segment;
  first(Range{0, std::min(bytes, segment)});
  if (full > 1) {
    b.segments((full - 1) * segment, segment, [&](Range s) {
      step(s, Range{s.offset + segment, s.length, s.stride});
    });
  }
  if (full > 0 && rest > 0) step(Range{(full - 1) * segment, segment}, Range{full * segment, rest});
  last(rest > 0 ? Range{full * segment, rest} : Range{(full - 1) * segment, segment});
}

/// put(s), then take(s), for every segment, where put(s) is to all others. The puts run ahead of
/// the takes: in a strand of their own or, where take(s) overwrites what put(s) reads
/// (`overwrites`), by one segment. Where a put to all is one large message per rank, ranks that
/// put before they take would wait for one another: the puts have a strand of their own always.
template <typename Put, typename Take>
void put_ahead(Builder& b, std::int64_t bytes, std::int64_t segment, bool overwrites, Put put,
               Take take) {
  if (b.put_all_is_large(std::min(bytes, segment))) {
    if (overwrites) b.enter_staged();
    b.segments(bytes, segment, put);
    b.strand();
    b.segments(bytes, segment, take);
    if (overwrites) b.leave();
    return;
  }
  if (overwrites || bytes <= segment) {
    const auto step = [&](Range now, Range next) {
      put(next);
      take(now);
    };
    pipeline(b, bytes, segment, put, step, take);
    return;
  }
  b.segments(bytes, segment, put);
  b.strand();
  b.segments(bytes, segment, take);
}

/// A run of bytes made of several buffers, end to end.
class Pieces {
 public:
  /// Buffers that touch become one, or stay pieces of their own.
  enum class Touching : std::uint8_t { kApart, kOne };
  explicit Pieces(Touching touching = Touching::kApart) : touching_(touching) {}

  void add(const Buffer& buffer) {
    if (buffer.range.length == 0) return;
    if (touching_ == Touching::kOne && length_ > 0 && continues(buffers_.back(), buffer)) {
      buffers_.back().range.length += buffer.range.length;
    } else {
      if (length_ > 0) breaks_.push_back(length_);
      buffers_.push_back(buffer);
    }
    length_ += buffer.range.length;
  }
  [[nodiscard]] std::int64_t length() const { return length_; }
  /// Where one buffer ends and the next begins.
  [[nodiscard]] const std::vector<std::int64_t>& breaks() const { return breaks_; }
  /// The bytes of `range`; one with a stride must stay within one buffer.
  [[nodiscard]] BufferList slice(Range range) const {
    BufferList list;
    std::int64_t start = 0;
    for (const Buffer& buffer : buffers_) {
      const std::int64_t end = start + buffer.range.length;
      const std::int64_t from = std::max(range.offset, start);
      const std::int64_t to = std::min(range.offset + range.length, end);
      if (from < to) {
        Buffer part = buffer;
        part.range = buffer.range.sub(Range{from - start, to - from, range.stride});
        list.add(part);
      }
      start = end;
    }
    return list;
  }

 private:
  Touching touching_;
  std::vector<Buffer> buffers_;
  std::vector<std::int64_t> breaks_;
  std::int64_t length_ = 0;
};

/// Builder::segments for pieces: the same segments, but those with a break inside stand outside
/// of loops. `breaks` need not be sorted.
template <typename Body>
void segments_around(Builder& b, std::int64_t bytes, std::int64_t segment,
                     std::vector<std::int64_t> breaks, Body body) {
  breaks.push_back(bytes);
  std::sort(breaks.begin(), breaks.end());
  auto next = breaks.begin();
  for (std::int64_t done = 0; done < bytes;) {
    while (*next <= done) ++next;
    const bool last = *next == bytes;
    const std::int64_t clear = last ? bytes - done : (*next - done) / segment * segment;
    if (clear > 0) {
      b.segments(clear, segment, [&](Range s) { body(Range{done, 0}.sub(s)); });
      done += clear;
    } else {
      const std::int64_t length = std::min(segment, bytes - done);
      body(Range{done, length});
      done += length;
    }
  }
}

/// exchange for pieces: as segments_around cuts them, in rounds as long as both sides last.
template <typename Put, typename Take>
void exchange_around(Builder& b, const Pieces& out, const Pieces& in, std::int64_t segment, Put put,
                     Take take) {
  std::vector<std::int64_t> breaks = out.breaks();
  breaks.insert(breaks.end(), in.breaks().begin(), in.breaks().end());
  const std::int64_t shorter = std::min(out.length(), in.length());
  const bool equal = out.length() == in.length();
  const std::int64_t common = equal ? shorter : shorter / segment * segment;
  std::erase_if(breaks, [&](std::int64_t at) { return at >= common; });
  segments_around(b, common, segment, breaks, [&](Range s) {
    put(s);
    take(s);
  });
  if (equal) return;
  // The round in which the shorter one ends, then what is left of the longer one.
  const auto last = [&](const Pieces& pieces, auto body) {
    const std::int64_t end = std::min(pieces.length(), common + segment);
    if (end > common) body(Range{common, end - common});
    return std::max(end, common);
  };
  const auto rest = [&](const Pieces& pieces, std::int64_t from, auto body) {
    std::vector<std::int64_t> later;
    for (const std::int64_t at : pieces.breaks()) {
      if (at > from) later.push_back(at - from);
    }
    segments_around(b, pieces.length() - from, segment, later, [&](Range s) {
      body(Range{from, 0}.sub(s));
    });
  };
  const std::int64_t put_end = last(out, put);
  const std::int64_t take_end = last(in, take);
  rest(out, put_end, put);
  rest(in, take_end, take);
}

}  // namespace carillon
