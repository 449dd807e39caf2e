// SPDX-License-Identifier: Apache-2.0
//
// Which ranks of a call do the same, so that the simulator need not emit the part of each.
#pragma once

#include "algorithms/registry.h"
#include "sim/sim.h"

namespace carillon::predict {

/// Of a call as prepare() has made it. Nothing where it is not known: that costs time only.
/// sim_symmetry_test compares it with what the algorithms emit.
sim::Symmetry symmetry_of(const Algorithm& algorithm, const Call& call);

}  // namespace carillon::predict
