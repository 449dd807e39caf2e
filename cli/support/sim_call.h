// SPDX-License-Identifier: Apache-2.0
//
// An algorithm of the registry as the simulator wants to have it.
#pragma once

#include <memory>
#include <vector>

#include "algorithms/registry.h"
#include "sim/sim.h"
#include "support/calls.h"

namespace carillon::cli {

/// `ppn` ranks on each node, one after another; fewer on the last one.
inline std::shared_ptr<const Nodes> even_nodes(Rank ranks, Rank ppn) {
  std::vector<std::int32_t> node_of;
  node_of.reserve(static_cast<std::size_t>(ranks));
  for (Rank rank = 0; rank < ranks; ++rank) node_of.push_back(rank / ppn);
  return std::make_shared<Nodes>(node_of);
}

/// What the call of `shared` by this algorithm costs.
inline Result<sim::Report> simulate(const AlgorithmChoice& choice, const Shared& shared,
                                    const Limits& limits, const machine::Machine& machine,
                                    const sim::Options& options = {}) {
  const Algorithm& algorithm = *choice.algorithm;
  const EvenTables tables(shared, shared.block_bytes());
  Result<Call> call = prepare(algorithm, {.shared = shared,
                                          .local = {.tables = tables.view()},
                                          .limits = limits,
                                          .params = choice.params});
  if (!call.ok()) return call.status();
  const auto emit = [&](const Call& part, Builder& builder) {
    emit_prepared(algorithm, part, builder);
  };
  return sim::simulate({.call = call.value(), .locals = {}, .emit = emit}, machine, options);
}

}  // namespace carillon::cli
