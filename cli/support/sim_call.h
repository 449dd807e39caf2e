// SPDX-License-Identifier: Apache-2.0
//
// An algorithm of the registry as the simulator wants to have it.
#pragma once

#include "predict/predict.h"
#include "support/calls.h"

namespace carillon::cli {

using predict::even_nodes;

/// What the call of `shared` by this algorithm costs; of an alltoallv, with even tables.
inline Result<sim::Report> simulate(const AlgorithmChoice& choice, const Shared& shared,
                                    const Limits& limits, const machine::Machine& machine,
                                    const sim::Options& options = {}) {
  const EvenTables tables(shared, shared.block_bytes());
  return predict::simulate(choice, shared, limits, machine, options, {.tables = tables.view()});
}

}  // namespace carillon::cli
