// SPDX-License-Identifier: Apache-2.0
//
// Calls for the simulator.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "algorithms/registry.h"
#include "predict/predict.h"
#include "predict/symmetry.h"
#include "sim/sim.h"

namespace carillon::test {

/// The call by an algorithm of the registry, with `tables` if it is an alltoallv.
inline Result<sim::Job> sim_job(const Algorithm& algorithm, const Shared& shared,
                                const Limits& limits, const Params& params = {},
                                const Tables& tables = {}) {
  const Result<Call> call =
      prepare(algorithm,
              {.shared = shared, .local = {.tables = tables}, .limits = limits, .params = params});
  if (!call.ok()) return call.status();
  return sim::Job{.call = call.value(),
                  .locals = {},
                  .emit = [&](const Call& c, Builder& b) { emit_prepared(algorithm, c, b); },
                  .symmetry = predict::symmetry_of(algorithm, call.value())};
}

/// A job of hand-written parts; the problem is of no consequence.
inline sim::Job hand_job(Rank ranks, Rank ppn,
                         const std::function<void(const Call&, Builder&)>& emit) {
  Call call{.shared = {.collective = Collective::kAllreduce, .ranks = ranks, .count = 8}};
  call.limits.nodes = predict::even_nodes(ranks, ppn);
  return {.call = call, .locals = {}, .emit = emit};
}

inline sim::Report simulated(const sim::Job& job, const machine::Machine& machine,
                             const sim::Options& options = {}) {
  Result<sim::Report> report = sim::simulate(job, machine, options);
  EXPECT_TRUE(report.ok()) << report.status().to_string();
  return report.ok() ? report.value() : sim::Report{};
}

}  // namespace carillon::test
