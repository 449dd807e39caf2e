// SPDX-License-Identifier: Apache-2.0
//
// A machine to add times up on paper.
#pragma once

#include <cstdint>

#include "machine/machine.h"

namespace carillon::test {

using machine::Machine;

inline constexpr std::int64_t kNs = 1000;

// Costs that are all different, so that none can stand for another.
inline Machine paper() {
  Machine m;
  m.name = "paper";
  m.network = {.latency_ps = 1000 * kNs,
               .send_overhead_ps = 3 * kNs,
               .recv_overhead_ps = 5 * kNs,
               .gap_ps = 7 * kNs,
               .per_byte_fs = 100'000};
  m.one_sided = {.post_ps = 11 * kNs, .doorbell_ps = 13 * kNs, .poll_ps = 17 * kNs};
  m.two_sided = {.post_ps = 19 * kNs,
                 .match_ps = 23 * kNs,
                 .eager_bytes = 100,
                 .copy_in = true,
                 .copy_out = true,
                 .rendezvous_ps = 29 * kNs};
  m.memory = {.copy_ps = 31 * kNs, .copy_run_ps = 0, .copy_cached_fs = 50'000};
  m.shared_memory = {.latency_ps = 80 * kNs,
                     .overhead_ps = 10 * kNs,
                     .line_bytes = 56,
                     .line_ps = 2 * kNs,
                     .write_ps = 4 * kNs,
                     .per_byte_fs = 60'000};
  m.in_switch = {.ports = 4,
                 .window = 3,
                 .operand_bytes = 40,
                 .header_bytes = 20,
                 .send_ps = 37 * kNs,
                 .receive_ps = 41 * kNs,
                 .nic_ps = 43 * kNs,
                 .link_ps = 600 * kNs,
                 .cycle_ps = 1 * kNs,
                 .beat_bytes = 8,
                 .up_cycles = 47,
                 .level_cycles = 6,
                 .beat_cycles = 2,
                 .down_cycles = 53};
  return m;
}

}  // namespace carillon::test
