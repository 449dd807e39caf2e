// SPDX-License-Identifier: Apache-2.0
//
// Hands out runs of pages of an address range that it never touches. It stands below malloc, so it
// takes no memory: its notes are in an array of the caller's, an entry for each page, of which only
// those at the ends of runs are used. Not thread-safe.
//
//   pages   | free run | used | used run          | free run ...
//   notes   |F........F|U    .|U.................U|F
//
// Free runs stand in lists by the power of two of their length, the shorter lists are tried first:
// so pages that have been used before are used again before the untouched rest, which is one run.
#pragma once

#include <array>
#include <cstdint>

namespace carillon::heap {

/// Of the first and the last page of a run.
struct Note {
  std::uint32_t pages = 0;  ///< of the run; 0: no run begins or ends here
  std::uint32_t used = 0;
  std::uint32_t next = 0, previous = 0;  ///< page + 1 of the neighbours in its list; 0: none
};

class Pages {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// One free run. `notes` has an entry per page, all zero.
  Pages(Note* notes, std::uint32_t pages);

  /// The first page of a run of `count`, at a multiple of the power of two `alignment`; or kNone.
  std::uint32_t allocate(std::uint32_t count, std::uint32_t alignment);
  /// Of the used run that begins there; 0: none does.
  [[nodiscard]] std::uint32_t size_of(std::uint32_t first) const;
  void release(std::uint32_t first);
  /// Makes a used run so long where it stands, if there is room.
  bool resize(std::uint32_t first, std::uint32_t count);
  /// The pages that were never part of a used run are no more there.
  void cut_off_untouched();
  /// No page from this one on was ever part of a used run.
  [[nodiscard]] std::uint32_t untouched() const { return untouched_; }

  /// Calls visit(first, count) for each free run below untouched().
  template <typename Visit>
  void each_free(Visit visit) const {
    for (const std::uint32_t head : lists_) {
      for (std::uint32_t at = head; at != 0; at = notes_[at - 1].next) {
        const std::uint32_t end = at - 1 + notes_[at - 1].pages;
        if (at - 1 < untouched_) visit(at - 1, (end < untouched_ ? end : untouched_) - (at - 1));
      }
    }
  }

  /// The same for each used run.
  template <typename Visit>
  void each_used(Visit visit) const {
    for (std::uint32_t at = 0; at < untouched_; at += notes_[at].pages) {
      if (notes_[at].used != 0) visit(at, notes_[at].pages);
    }
  }

 private:
  void mark(std::uint32_t first, std::uint32_t count, bool used);
  void unmark(std::uint32_t first);
  void put(std::uint32_t first, std::uint32_t count);
  void take_out(std::uint32_t first);
  void carve(std::uint32_t free, std::uint32_t first, std::uint32_t count);

  Note* notes_;
  std::uint32_t pages_;
  std::uint32_t untouched_ = 0;
  std::array<std::uint32_t, 32> lists_ = {};  // page + 1 of the first run; 0: none
};

}  // namespace carillon::heap
