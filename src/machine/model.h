// SPDX-License-Identifier: Apache-2.0
//
// Closed forms: how long a collective takes on a machine, by formulas for its algorithm instead of
// its schedules. One rank per node, all nodes at one switch, everybody starts at once, nothing else
// on the network; there they agree with the simulator to the picosecond. Derived in
// docs/machines.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "machine/machine.h"

namespace carillon::machine {

struct ModelCall {
  std::string algorithm;  ///< "bcast.knomial"
  std::int32_t ranks = 2;
  std::int64_t bytes = 8;              ///< the vector, or the block of a rank
  std::int32_t element_bytes = 1;      ///< blocks are of whole elements
  std::int32_t k = 0;                  ///< radix or degree, of an algorithm that has one
  std::int32_t window = 4;             ///< messages in flight per channel
  std::int64_t segment_bytes = 65536;  ///< longest message
  std::int64_t inline_bytes = 56;      ///< up to here all may be sent before any is received,
  std::int32_t large_slots = 2;        ///< and so many longer ones
  bool two_sided = false;              ///< by send and receive instead of remote write
};

/// An algorithm that has a closed form.
struct ModelRow {
  std::string_view id;
  std::string_view formula;  ///< for a person; docs/machines.md says what the letters are
  std::int32_t least_k = 0;  ///< 0: it has no parameter k
  /// The time until the last rank has ended. Called with a call that has been checked.
  std::int64_t (*time_ps)(const Machine& machine, const ModelCall& call);
  /// The longest message of the call.
  std::int64_t (*longest)(const ModelCall& call);
};

std::span<const ModelRow> models();
/// Null if there is none for that algorithm.
const ModelRow* find_model(std::string_view algorithm);

/// How long it takes, or why no closed form says so.
Result<std::int64_t> model_ps(const Machine& machine, const ModelCall& call);

struct BestK {
  std::int32_t k = 0;
  std::int64_t time_ps = 0;
};
/// The k that takes the least time, the smallest of them, of those up to `most` that make a
/// difference; up to 64 of algorithms that are computed rank by rank. Of one without a parameter:
/// k 0.
Result<BestK> best_k(const Machine& machine, ModelCall call, std::int32_t most = 1024);

}  // namespace carillon::machine
