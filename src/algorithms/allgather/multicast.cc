// SPDX-License-Identifier: Apache-2.0
//
// allgather.multicast: gather within each node to its leader; each leader multicasts what its node
// has to the others, in turn, segment by segment; bcast of everything within each node. Where the
// ranks of a node do not follow one another, the leaders put the blocks in order.
//
// Source: Traff 2006 (see allgather.hierarchical) for the levels; the multicasts are this
// project's.
//
// 5 ranks on nodes 3, 2, blocks a b c d e:
//            0       1       2     |  3       4
//   start    a       b       c        d       e
//   node     abc     .       .        de      .
//   leaders  abcde   .       .        abcde   .
//   node     abcde   abcde   abcde    abcde   abcde
//
// Cost: alpha + R n beta in a node of R ranks (n: one block), N alpha + P n beta between N nodes of
// together P ranks, of which a node sends R n only, and one write of P n bytes that all of a node
// read.
// Restrictions: the team has multicast. Parameter: segment.
#include <algorithm>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"
#include "algorithms/common/node_order.h"

namespace carillon {
namespace {

// Segment i of all nodes, then segment i + 1: all leaders go by the same order, so that none waits
// for room in its window before it takes what the others have sent. `own` and the others' blocks
// lie where `all` says. Larger nodes go on when the smaller ones are done.
template <typename All>
void multicast_blocks(const Call& call, Builder& b, const Levels& levels, const Buffer& own,
                      const All& all) {
  const std::int64_t block = call.shared.block_bytes();
  std::vector<Rank> sizes;
  sizes.reserve(static_cast<std::size_t>(levels.nodes()));
  for (std::int32_t node = 0; node < levels.nodes(); ++node) sizes.push_back(levels.size(node));
  std::sort(sizes.begin(), sizes.end());
  std::int64_t done = 0;
  for (const Rank size : sizes) {
    const std::int64_t end = block * size;
    b.segments(end - done, call.multicast_segment_bytes(), [&](Range s) {
      s.offset += done;
      for (std::int32_t node = 0; node < levels.nodes(); ++node) {
        if (block * levels.size(node) < end) continue;
        if (node == levels.own()) {
          Buffer part = own;
          part.range = own.range.sub(s);
          b.multicast(Channel::kLeaders, part);
        } else {
          const Range first{block * levels.first(node)};
          b.receive(Channel::kLeaders, levels.members(node).front(), all(first.sub(s)));
        }
      }
    });
    done = end;
  }
}

}  // namespace

void emit_allgather_multicast(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const std::int64_t block = shared.block_bytes();
  const Levels levels("allgather.multicast", call, b);
  const NodeOrder all(call, b, levels);
  const std::int64_t first = block * levels.first(levels.own());
  if (levels.is_alone()) {
    b.copy(all({first, block}), b.input({0, block}));
  } else {
    levels.on_node(Algorithm::kBefore, shared.count, b.input({}), all({first}));
  }
  if (levels.is_leader()) {
    b.phase("leaders");
    multicast_blocks(call, b, levels, all({first}), all);
  }
  all.finish();
}

}  // namespace carillon
