// SPDX-License-Identifier: Apache-2.0
//
// The catalogue of algorithms: one row each, the only list of them. Conformance tests, the CLI,
// selection and the docs are driven by it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "schedule/builder.h"

namespace carillon {

struct Algorithm {
  std::string_view id;           ///< "allreduce.ring": collective, dot, file name
  std::string_view description;  ///< one line
  Collective collective;
  /// Writes this rank's schedule. Pure: same call, same ops. Called by emit() below, which sees
  /// to parameters and to teams of one.
  void (*emit)(const Call& call, Builder& builder);
  bool needs_commutative = false;  ///< cannot run operators that do not commute
  /// Parameter k: 0 0 0 if the algorithm has none.
  struct KRange {
    std::int32_t min = 0, max = 0, fallback = 0;
  } k = {};
  bool has_segment = false;  ///< takes Params::segment_bytes
};

/// All algorithms, grouped by collective.
std::span<const Algorithm> algorithms();

/// Null if there is none of that id.
const Algorithm* find_algorithm(std::string_view id);

/// An algorithm and its parameters.
struct AlgorithmChoice {
  const Algorithm* algorithm = nullptr;
  Params params;
};
/// "allreduce.degree_k:k=4,segment=8192"; "allreduce=degree_k:k=4" is the same as
/// "allreduce.degree_k:k=4".
Result<AlgorithmChoice> parse_choice(std::string_view text);

/// Whether the algorithm can do this problem with these parameters; if not, says why and what
/// would do.
Status check(const Algorithm& algorithm, const Shared& shared, const Params& params);

/// check, then emit with defaults filled in, then Builder::finish.
Result<Schedule> emit(const Algorithm& algorithm, const Call& call);

}  // namespace carillon
