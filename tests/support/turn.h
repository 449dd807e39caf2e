// SPDX-License-Identifier: Apache-2.0
//
// Of what takes long a test does a part, and another one with another CARILLON_TEST_TURN: 0 to any
// number, 0 unless given. CI takes it from the commit, so that commits together go through all.
// CARILLON_TEST_WHOLE=1: all of it. Scripts have turns only if they are told one.
#pragma once

#include <cstdlib>
#include <vector>

namespace carillon::test {

/// Whether the number-th thing is done, of things of which one in `share` is.
inline bool has_turn(int share, unsigned long number) {
  if (std::getenv("CARILLON_TEST_WHOLE") != nullptr) return true;
  const char* const turn = std::getenv("CARILLON_TEST_TURN");
  number += turn == nullptr ? 0 : std::strtoul(turn, nullptr, 10);
  return number % static_cast<unsigned long>(share) == 0;
}

/// Of these things the first, and those that have their turn.
template <typename Thing>
std::vector<Thing> with_turns(int share, const std::vector<Thing>& things) {
  std::vector<Thing> chosen;
  for (const Thing& thing : things) {
    const auto number = static_cast<unsigned long>(&thing - things.data());
    if (number == 0 || has_turn(share, number)) chosen.push_back(thing);
  }
  return chosen;
}

}  // namespace carillon::test
