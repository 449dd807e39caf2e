// SPDX-License-Identifier: Apache-2.0
//
// What this process has learned of reading others' memory, told to them.
#include "engine/engine.h"
#include "engine/team.h"

namespace carillon {

void Engine::learn_shared(shm::Taken taken, Lending::Clock::duration took, std::int64_t bytes) {
  lending_.note_shared(taken, took, bytes);
  tell_lending();
}

void Engine::learn_private(shm::Taken taken, Lending::Clock::duration took, std::int64_t bytes) {
  lending_.note_private(taken, took, bytes);
  tell_lending();
}

void Engine::tell_lending() {
  const shm::Reads reads = segment_->reads(node_rank_);
  shm::Reads now = shm::Reads::of_who_can();
  for (int way = 0; way < shm::kTakenWays; ++way) {
    const auto taken = static_cast<shm::Taken>(way);
    if (lending_.pays(taken)) now = now.rather(taken);
  }
  if (reads != now && reads.can()) segment_->set_reads(node_rank_, now);
}

}  // namespace carillon
