// SPDX-License-Identifier: Apache-2.0
//
// How long an alltoall between nodes takes, by formulas: pairwise exchange against the layouts of
// Bruck's, and with which radix. Everything that varies is in Limits, so that all ranks decide
// alike; what a message costs is as in machines/edr.toml. docs/gainaru2016.md says how good it is.
#pragma once

#include "algorithms/registry.h"

namespace carillon {

/// Of alltoall.pairwise and alltoall.bruck_*, in nanoseconds.
double alltoall_model_ns(const AlgorithmChoice& choice, const Shared& shared, const Limits& limits);

/// The one of them that takes the least time; of Bruck's with radixes up to 8 and less than the
/// number of ranks, which would be a pairwise exchange.
AlgorithmChoice alltoall_by_model(const Shared& shared, const Limits& limits);

}  // namespace carillon
