// SPDX-License-Identifier: Apache-2.0
//
// An algorithm of the registry as the closed forms want to know it.
#pragma once

#include <algorithm>
#include <string>

#include "algorithms/registry.h"
#include "machine/model.h"

namespace carillon::cli {

/// "degree_k:k=4" of allreduce, or "allreduce.degree_k:k=4".
inline Result<AlgorithmChoice> algorithm_of(const std::string& collective,
                                            const std::string& text) {
  const std::string prefix = collective + ".";
  return parse_choice(text.starts_with(prefix) ? text : prefix + text);
}

/// The problem that commands try algorithms on: elements of 8 bytes where that can be.
inline Shared example_problem(Collective collective, Rank ranks, std::int64_t bytes) {
  const std::int32_t element = has_reduction(collective) && bytes % 8 == 0 ? 8 : 1;
  return {
      .collective = collective, .ranks = ranks, .count = bytes / element, .element_bytes = element};
}

inline machine::ModelCall model_call(const AlgorithmChoice& choice, Rank ranks,
                                     std::int64_t bytes) {
  const Shared shared = example_problem(choice.algorithm->collective, ranks, bytes);
  const Call call{.shared = shared, .params = choice.params};
  return {.algorithm = std::string(choice.algorithm->id),
          .ranks = ranks,
          .bytes = bytes,
          .element_bytes = shared.element_bytes,
          .k = choice.params.k != 0 ? choice.params.k : choice.algorithm->k.fallback,
          .segment_bytes = call.segment_bytes(),
          .two_sided = choice.params.two_sided};
}

}  // namespace carillon::cli
