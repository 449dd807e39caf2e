// SPDX-License-Identifier: Apache-2.0
//
// What this process has learned of taking messages from shared memory and from others' memory, told
// to those who write them.
#include "engine/engine.h"
#include "engine/team.h"

namespace carillon {

void Engine::learn_shared(shm::Taken taken, Lending::Clock::duration took, std::int64_t bytes) {
  lending_.note_shared(taken, took, bytes);
  tell_costs(taken);
}

void Engine::learn_private(shm::Taken taken, Lending::Clock::duration took, std::int64_t bytes) {
  lending_.note_private(taken, took, bytes);
  tell_costs(taken);
}

void Engine::tell_costs(shm::Taken taken) {
  const shm::TakeCosts costs = lending_.take_costs(taken);
  if (Lending::is_news(costs, segment_->take_costs(node_rank_, taken))) {
    segment_->set_take_costs(node_rank_, taken, costs);
  }
}

}  // namespace carillon
