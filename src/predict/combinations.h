// SPDX-License-Identifier: Apache-2.0
//
// Figures of a paper that does not say enough: by each of its candidates, and of the closest one
// what they come to at least and at most.
#pragma once

#include "predict/reproduce.h"

namespace carillon::predict {

/// Of a paper with candidates.
Result<Reproduction> try_candidates(
    const Paper& paper, const machine::Sheet& sheet,
    const std::function<void(std::size_t, std::size_t)>& on_progress);

}  // namespace carillon::predict
