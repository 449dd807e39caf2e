// SPDX-License-Identifier: Apache-2.0
//
// Joining the node: the processes that start together find out which of them share a node, and
// these come to share one segment.
#pragma once

#include <sched.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "carillon/carillon.h"
#include "schedule/problem.h"
#include "transport/shm/segment.h"

namespace carillon {

struct NodePlace {
  std::shared_ptr<shm::Segment> segment;  ///< null: some process of the node could not join
  int rank = 0;                           ///< within the node, in the order of oob ranks
  int domain = -1;                        ///< of the node's NUMA domains; -1: not known
  bool has_domains = false;               ///< its processes run in several; the same at all of them
  int size = 1;
  bool oversubscribed = false;        ///< more ranks than cores they may run on
  bool spare_cores = false;           ///< for each rank there is another core
  cpu_set_t used_cores = {};          ///< those that ranks of the machine may run on
  std::uint64_t world = 0;            ///< random; equal on all processes that started together
  std::vector<std::int32_t> node_of;  ///< of each process, by oob rank: 0, 1, ...
};

/// Of the pools' large chunks.
inline std::uint64_t chunk_bytes(const Config& settings) {
  return static_cast<std::uint64_t>(Limits{.slot_bytes = settings.slot_bytes}.stream_bytes());
}

/// The processes of a job meet: the first that each does over oob, whether it can go on or not.
/// `alone`: what it has found before; if that is an error, it comes back, and the others get one
/// that names this process. Blocks, for timeout_s at most.
Status greet(const crl_oob_t& oob, const Status& alone, std::int64_t timeout_s);

/// After that. Collective over oob; blocks, for settings.join_timeout_s at most. `heap`: the
/// process's own, for the others of its node to map; it may have none. An error if the exchange
/// itself fails; a node that cannot be joined is not an error but a null segment, on all of its
/// processes.
Result<NodePlace> join_node(const crl_oob_t& oob, const shm::SegmentSizes& sizes,
                            const shm::ProcessHeap& heap, const Config& settings);

}  // namespace carillon
