// SPDX-License-Identifier: Apache-2.0
//
// Where a team keeps the calls that it has prepared. A repeated call comes through here: what is
// rare stands apart, so that the rest is short.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "api/objects.h"

namespace carillon {

using CallPlace = std::unique_ptr<PreparedCall>;

[[gnu::noinline]] inline bool is_for_tables(const PreparedCall& call, const Tables& tables) {
  return std::equal(call.block_bytes.begin(), call.block_bytes.end(), tables.send_bytes.begin(),
                    tables.send_bytes.end());
}

inline bool holds(const CallPlace& place, const CallKey& key, const Tables* tables) {
  if (place == nullptr || !(place->key == key)) return false;
  return !emits_by_tables(key.collective) || is_for_tables(*place, *tables);
}

struct FoundCall {
  CallPlace& place;
  bool prepared;  // the call is in there
};

[[gnu::noinline]] inline crl_team::Places& make_places(std::unique_ptr<crl_team::Places>& places) {
  places = std::make_unique<crl_team::Places>();
  return *places;
}

using TwoCallPlaces = std::array<CallPlace, 2>;

[[gnu::noinline]] inline FoundCall older_place(TwoCallPlaces& places, const CallKey& key,
                                               const Tables* tables) {
  CallPlace& older = places[1];
  if (holds(older, key, tables)) return {older, true};
  std::swap(places[0], older);
  return {places[0], false};
}

// Where the call is prepared, or is to be: in the place of the older of the two that have the same
// hash. Two, so that two calls do not displace each other in turn.
inline FoundCall place_of(crl_team& team, const CallKey& key, const Tables* tables) {
  // Roots in turn get places in turn; types and operators next to each other differ, too.
  const std::uint64_t hash = (key.count * 0x9E3779B97F4A7C15ULL >> 61) +
                             static_cast<std::uint32_t>(key.root) + std::uint64_t{3} * key.dtype +
                             key.op + key.op_id;
  std::unique_ptr<crl_team::Places>& made = team.prepared[static_cast<std::size_t>(key.collective)];
  crl_team::Places& of_collective = made ? *made : make_places(made);
  TwoCallPlaces& places = of_collective[hash % crl_team::kHashes];
  if (holds(places[0], key, tables)) [[likely]]
    return {places[0], true};
  return older_place(places, key, tables);
}

}  // namespace carillon
