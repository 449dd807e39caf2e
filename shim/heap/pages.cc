// SPDX-License-Identifier: Apache-2.0
#include "pages.h"

#include <algorithm>
#include <bit>

namespace carillon::heap {
namespace {

// Of a list whose runs may be too short, so many are looked at.
constexpr int kLooks = 32;

std::size_t list_of(std::uint32_t count) {
  return static_cast<std::size_t>(std::bit_width(count)) - 1;
}

std::uint32_t aligned(std::uint32_t page, std::uint32_t alignment) {
  return (page + alignment - 1) & ~(alignment - 1);
}

}  // namespace

Pages::Pages(Note* notes, std::uint32_t pages) : notes_(notes), pages_(pages) {
  if (pages > 0) put(0, pages);
}

std::uint32_t Pages::allocate(std::uint32_t count, std::uint32_t alignment) {
  if (count == 0 || count > pages_ || alignment > pages_) return kNone;
  for (std::size_t list = list_of(count); list < lists_.size(); ++list) {
    int looks = 0;
    // Runs of longer lists are long enough, but for the alignment.
    for (std::uint32_t at = lists_[list]; at != 0 && looks < kLooks; ++looks) {
      const std::uint32_t free = at - 1;
      const std::uint64_t first = aligned(free, alignment);
      if (first + count <= std::uint64_t{free} + notes_[free].pages) {
        carve(free, static_cast<std::uint32_t>(first), count);
        return static_cast<std::uint32_t>(first);
      }
      at = notes_[free].next;
    }
  }
  return kNone;
}

std::uint32_t Pages::size_of(std::uint32_t first) const {
  // The last page of a run has a note, too: a run of one page, or one that begins here.
  const bool begins = first < pages_ && notes_[first].pages != 0 && notes_[first].used != 0 &&
                      notes_[first].next == 0;
  return begins ? notes_[first].pages : 0;
}

void Pages::release(std::uint32_t first) {
  std::uint32_t count = notes_[first].pages;
  unmark(first);
  const std::uint32_t after = first + count;
  if (after < pages_ && notes_[after].used == 0) {
    count += notes_[after].pages;
    take_out(after);
  }
  if (first > 0 && notes_[first - 1].used == 0) {
    const std::uint32_t before = first - notes_[first - 1].pages;
    count += first - before;
    take_out(before);
    first = before;
  }
  put(first, count);
}

bool Pages::resize(std::uint32_t first, std::uint32_t count) {
  const std::uint32_t now = notes_[first].pages;
  if (count == now) return true;
  const std::uint32_t after = first + now;
  const std::uint32_t behind = after < pages_ && notes_[after].used == 0 ? notes_[after].pages : 0;
  if (std::uint64_t{count} > std::uint64_t{now} + behind) return false;
  if (behind > 0) take_out(after);
  unmark(first);
  mark(first, count, true);
  if (now + behind > count) put(first + count, now + behind - count);
  untouched_ = std::max(untouched_, first + count);
  return true;
}

void Pages::cut_off_untouched() {
  if (untouched_ == pages_) return;
  const std::uint32_t first = pages_ - notes_[pages_ - 1].pages;  // of a free run, which ends there
  take_out(first);
  pages_ = untouched_;
  if (first < pages_) put(first, pages_ - first);
}

// A used run's last note tells itself from a first one by its `next`.
void Pages::mark(std::uint32_t first, std::uint32_t count, bool used) {
  const std::uint32_t last = first + count - 1;
  notes_[last] = {.pages = count, .used = used ? 1U : 0U, .next = 1};
  notes_[first] = {.pages = count, .used = used ? 1U : 0U};
}

void Pages::unmark(std::uint32_t first) {
  const std::uint32_t last = first + notes_[first].pages - 1;
  notes_[first] = {};
  notes_[last] = {};
}

void Pages::put(std::uint32_t first, std::uint32_t count) {
  mark(first, count, false);
  std::uint32_t& head = lists_[list_of(count)];
  notes_[first].next = head;
  if (head != 0) notes_[head - 1].previous = first + 1;
  head = first + 1;
}

void Pages::take_out(std::uint32_t first) {
  const Note note = notes_[first];
  if (note.next != 0) notes_[note.next - 1].previous = note.previous;
  if (note.previous != 0) {
    notes_[note.previous - 1].next = note.next;
  } else {
    lists_[list_of(note.pages)] = note.next;
  }
  unmark(first);
}

// Makes a used run out of a part of a free one.
void Pages::carve(std::uint32_t free, std::uint32_t first, std::uint32_t count) {
  const std::uint32_t end = free + notes_[free].pages;
  take_out(free);
  if (first > free) put(free, first - free);
  if (first + count < end) put(first + count, end - first - count);
  mark(first, count, true);
  untouched_ = std::max(untouched_, first + count);
}

}  // namespace carillon::heap
