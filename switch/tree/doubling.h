// SPDX-License-Identifier: Apache-2.0
//
// What switches that reduce are compared with: allreduces of the hosts alone, by recursive doubling
// (doubling_host.h), over switches that pass frames on.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "switch/tree/doubling_host.h"
#include "switch/tree/forwarding.h"

namespace carillon::tree {

enum class Fabric : std::uint8_t {
  kHardwareTree,  ///< the same switches in the same tree; of up to kForwardEntries hosts
  kTree,          ///< these, as a model (forwarding.h)
  kFatTree  ///< as many links up as down at each switch, which all are busy at once: full bisection
};

struct DoublingConfig {
  std::uint32_t hosts = 2;
  machine::Machine machine;  ///< as of TreeConfig, with what hosts' messages cost
  Messages messages = Messages::kWrites;
  Fabric fabric = Fabric::kTree;
  ForwardTiming timing;  ///< of the models
  int threads = 1;
};

/// Cycles from the begin on all hosts to the last one's result. An error: it is not the
/// reference's, or does not come.
Result<Cycles> allreduce_by_hosts(const DoublingConfig& config, const Message& message);

}  // namespace carillon::tree
