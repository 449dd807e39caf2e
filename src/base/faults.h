// SPDX-License-Identifier: Apache-2.0
//
// What is to go wrong on the network between nodes (CARILLON_FAULT): for tests and trials.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace carillon {

/// The shares are of all posts, or of all arrivals.
struct Faults {
  double refuse = 0;             ///< posts refused, as if there were no room
  double delay = 0;              ///< posts and arrivals that come late, and all behind them
  double reorder = 0;            ///< posts that others overtake
  double duplicate = 0;          ///< arrivals told twice
  double lose = 0;               ///< posts that are lost, and sent again when that is noticed
  double corrupt = 0;            ///< datagrams of multicasts that come with a wrong bit
  std::uint64_t break_post = 0;  ///< the connection of the so many-th post breaks; 0: none does
  std::uint64_t seed = 1;

  [[nodiscard]] bool any() const {
    return refuse > 0 || delay > 0 || reorder > 0 || duplicate > 0 || lose > 0 || corrupt > 0 ||
           break_post > 0;
  }
};

/// "refuse=0.1,delay=0.2,seed=7"; empty: no faults.
Result<Faults> parse_faults(std::string_view text);

}  // namespace carillon
