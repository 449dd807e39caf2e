// SPDX-License-Identifier: Apache-2.0
//
// bcast.switch: within the root's node, then one reduction in the switches between the nodes to
// which only the leader of the root's node gives something, so that the result is that; then within
// the other nodes.
//
// Source: Hu et al. 2013 (docs/switch-protocol.md).
//
// 5 ranks on nodes 3, 2; root 1:
//            0       1       2     |  3       4
//   start    .       a       .        .       .
//   node     a       a       a        .       .
//   switch   a       a       a        a       .
//   node     a       a       a        a       a
//
// Cost: that of a node's bcast twice, and 2 alpha + n beta between the nodes, whatever their
// number: the data cross each node's wire once. Restrictions: none. Switches combine words: the
// last one may overlap the one before it. Parameters: segment, within the nodes.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"

namespace carillon {
namespace {

Buffer part_of(Buffer buffer, Range range) {
  buffer.range = buffer.range.sub(range);
  return buffer;
}

// From the leader that gives to all others. `data` is where it stands, or is to stand.
void relay(Builder& b, const Buffer& data, std::int64_t bytes, bool gives) {
  const auto word = [&](const Buffer& words) {
    if (gives) {
      b.aggregate({}, words);
    } else {
      b.aggregate(words, {});
    }
  };
  if (bytes >= kAggregateUnit) {
    const std::int64_t even = bytes / kAggregateUnit * kAggregateUnit;
    word(part_of(data, {0, even}));
    if (even < bytes) word(part_of(data, {bytes - kAggregateUnit, kAggregateUnit}));
    return;
  }
  // Shorter than a word: its last byte fills it.
  const Buffer padded = Builder::scratch(b.allocate_scratch(kAggregateUnit));
  for (std::int64_t i = 0; gives && i < kAggregateUnit; ++i) {
    b.copy(part_of(padded, {i, 1}), part_of(data, {std::min(i, bytes - 1), 1}));
  }
  word(padded);
  if (!gives) b.copy(data, part_of(padded, {0, bytes}));
}

}  // namespace

void emit_bcast_switch(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const std::int64_t bytes = shared.block_bytes();
  const Levels levels("bcast.switch", call, b, shared.root);
  const std::span<const Rank> node = levels.members(levels.own());
  const bool has_root = std::find(node.begin(), node.end(), shared.root) != node.end();
  const Buffer whole = call.rank == shared.root ? b.input({0, bytes}) : b.output({0, bytes});
  const auto on_node = [&] {
    if (!levels.is_alone()) levels.on_node(Algorithm::kAfter, shared.count, whole, whole);
  };
  if (has_root) on_node();
  if (levels.nodes() > 1 && call.rank == node.front() && bytes > 0) {
    b.phase("switch");
    relay(b, whole, bytes, has_root);
  }
  if (!has_root) on_node();
}

}  // namespace carillon
