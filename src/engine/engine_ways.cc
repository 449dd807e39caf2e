// SPDX-License-Identifier: Apache-2.0
//
// What this process has learned of taking messages that come one way or another, told to those who
// write them.
#include "engine/engine.h"
#include "engine/team.h"

namespace carillon {

bool Engine::learn_taking(shm::Taken taken, shm::Way way, MessageWays::Clock::duration took,
                          std::int64_t bytes) {
  if (!message_ways_.note_taken(taken, way, took, bytes)) return false;
  const std::uint32_t cost = message_ways_.take_cost(taken, way);
  const shm::TakeCosts told = segment_->take_costs(node_rank_, taken);
  if (MessageWays::is_news(cost, told[static_cast<std::size_t>(way)])) {
    segment_->set_take_cost(node_rank_, taken, way, cost);
  }
  return true;
}

}  // namespace carillon
