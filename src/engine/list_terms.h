// SPDX-License-Identifier: Apache-2.0
//
// What a process does with lists for other nodes, by its settings and its device. A team has what
// all of its members can do.
#pragma once

#include <algorithm>
#include <cstdint>

#include "schedule/problem.h"

namespace carillon {

struct ListTerms {
  std::int32_t gather_entries = 1;   ///< of the longest list that is put as it is; 1: none is
  std::int32_t request_entries = 1;  ///< that the device takes at once, beside a message's head
  /// What an entry costs, for ListCosts: as much as copying a run of so many bytes, or, where no
  /// list is worth it, more than any copy.
  std::int64_t entry_ps = ListCosts().entry_ps;

  /// The least of both, at the higher price.
  void agree(const ListTerms& other) {
    gather_entries = std::min(gather_entries, other.gather_entries);
    request_entries = std::min(request_entries, other.request_entries);
    entry_ps = std::max(entry_ps, other.entry_ps);
  }
  void give(Limits& limits) const {
    limits.gather_entries = gather_entries;
    limits.request_entries = request_entries;
    limits.list_costs.set_entry(entry_ps);
  }
};

}  // namespace carillon
