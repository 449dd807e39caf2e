// SPDX-License-Identifier: Apache-2.0
//
// Some networks read one message at a time, and are looked at again as long as each look brings
// something: what has gathered is all taken before the servlet sleeps, whom each of those messages
// would wake at once.
#pragma once

#include <cstdint>

namespace carillon {

/// So many looks in a row: between two such rows the caller sees to what the program has posted.
inline constexpr int kMostLooks = 32;

/// Looks until nothing has come since the look before, as `seen()`, a count, tells, or `goes_on()`
/// does not hold any more; at least once.
template <typename Seen, typename Look, typename GoesOn>
void look_until_quiet(Seen seen, Look look, GoesOn goes_on) {
  for (int looks = 0; looks < kMostLooks; ++looks) {
    const std::uint64_t before = seen();
    look();
    if (seen() == before || !goes_on()) return;
  }
}

}  // namespace carillon
