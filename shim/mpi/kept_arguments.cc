// SPDX-License-Identifier: Apache-2.0
#include "kept_arguments.h"

#include "neighbours.h"

namespace carillon::shim {
namespace {

// Whether one side of a call means anything on this rank.
bool counts(const Rule& rule, const Communicator& communicator, const Call& call, bool output) {
  const bool in_place =
      output ? rule.in_place == InPlace::kOutput : rule.in_place == InPlace::kInput;
  if (in_place && (output ? call.out : call.in).address == MPI_IN_PLACE) return false;
  return counts_at((output ? rule.out : rule.in).at, call.root == communicator.rank);
}

// How many blocks the lists of a side have.
int blocks_of(Collective collective, Communicator& communicator, bool output) {
  if (rule_of(collective).kind != Kind::kNeighbours) return communicator.size;
  const Neighbours& all = neighbours_of(communicator);
  const auto& ranks = output ? all.sources_of(collective).ranks : all.destinations.ranks;
  return static_cast<int>(ranks.size());
}

void copy(std::vector<std::byte>& kept, const void*& list, bool wide, int count) {
  if (list == nullptr) return;
  const auto* const bytes = static_cast<const std::byte*>(list);
  kept.reserve(1);  // hosts refuse a null even for a list of no blocks, as of a graph's ends
  kept.assign(
      bytes, bytes + static_cast<std::size_t>(count) * (wide ? sizeof(std::int64_t) : sizeof(int)));
  list = kept.data();
}

}  // namespace

KeptArguments::KeptArguments(Collective collective, Communicator& communicator, const Call& call)
    : call_(call) {
  const Rule& rule = rule_of(collective);
  const bool reduces = rule.kind == Kind::kReduction || rule.kind == Kind::kReduceScatter;
  if (reduces) {
    if (const Reduction* const reduction = find_reduction(call.op, call.in.type)) {
      reduction_.emplace(*reduction);
    }
  }
  const bool in = counts(rule, communicator, call, false);
  const bool out = counts(rule, communicator, call, true);
  // The counts of a reduce_scatter mean the same in place.
  if (in || rule.kind == Kind::kReduceScatter) {
    const int blocks = blocks_of(collective, communicator, false);
    keep(in_, call_.in_blocks, blocks);
    if (!reduces) hold(call_.in, call_.in_blocks, blocks);
  }
  if (out) {
    const int blocks = blocks_of(collective, communicator, true);
    keep(out_, call_.out_blocks, blocks);
    if (!reduces) hold(call_.out, call_.out_blocks, blocks);
  }
}

void KeptArguments::keep(Lists& lists, Blocks& blocks, int count) {
  copy(lists.counts, blocks.counts, blocks.wide, count);
  copy(lists.offsets, blocks.offsets, blocks.wide_offsets, count);
  if (blocks.types == nullptr) return;
  lists.types.reserve(1);
  lists.types.assign(blocks.types, blocks.types + count);
  blocks.types = lists.types.data();
}

void KeptArguments::hold(const Buffer& buffer, const Blocks& blocks, int count) {
  if (blocks.types == nullptr) {
    types_.emplace_back(find_type(buffer.type));
    return;
  }
  for (int i = 0; i < count; ++i) {
    if (blocks.count(i) > 0) types_.emplace_back(find_type(blocks.types[i]));
  }
}

}  // namespace carillon::shim
