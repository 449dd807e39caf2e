// SPDX-License-Identifier: Apache-2.0
#include "api/served.h"

#include <algorithm>

namespace carillon {
namespace {

// Waking a thread, and the core that it takes for a moment, cost as much as copying so much.
constexpr std::int64_t kCopiedBytes = 65536;
// Reducing them takes about twice as long.
constexpr std::int64_t kReducedBytes = 32768;

// One rank's share: this rank has one for each rank.
bool has_block_per_rank(const ServedCall& call) {
  switch (call.collective) {
    case Collective::kAlltoall:
    case Collective::kAllgather:
    case Collective::kReduceScatterBlock: return true;
    case Collective::kGather:
    case Collective::kScatter: return call.is_root;
    default: return false;
  }
}

}  // namespace

std::int64_t moved_bytes(const ServedCall& call) {
  const std::int64_t blocks = has_block_per_rank(call) ? call.ranks : 1;
  return std::min(call.bytes, kNeverServed / blocks) * blocks;
}

std::int64_t served_from_bytes(Collective collective) {
  if (collective == Collective::kBarrier) return kNeverServed;
  return has_reduction(collective) ? kReducedBytes : kCopiedBytes;
}

}  // namespace carillon
