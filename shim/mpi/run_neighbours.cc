// SPDX-License-Identifier: Apache-2.0
//
// The neighbourhood collectives: an alltoallv in which most blocks are empty. What goes to one rank
// more than once goes as one block.
#include "block_side.h"
#include "neighbours.h"
#include "run.h"

namespace carillon::shim {
namespace {

// Bytes and offsets by rank, as carillon takes them.
struct RankTable {
  std::int64_t* bytes;
  std::int64_t* offsets;

  void fill(int size, const BlockSide& side, const Neighbours::End& end) const {
    std::fill_n(bytes, size, 0);
    std::fill_n(offsets, size, 0);
    for_each_block(end, [&](int rank, int block) {
      if (bytes[rank] == 0) offsets[rank] = side.offsets()[block];
      bytes[rank] += side.bytes()[block];
    });
  }
};

// False: arguments for the host to judge. Without lists, blocks are of one length and lie one after
// the other, or all neighbours get the same block.
bool look_at_end(BlockSide& side, const Buffer& buffer, Blocks blocks, const Side& rule,
                 bool has_lists, const Neighbours::End& end) {
  if (buffer.count < 0) return false;  // though it may have no neighbour
  if (end.ranks.empty()) return true;
  if (has_lists && (blocks.counts == nullptr || blocks.offsets == nullptr)) return false;
  if (rule.block_per_rank) blocks.stride = buffer.count;
  if (!side.look_at(buffer, blocks, end)) return false;
  if (!end.once && side.total() > 0) side.stage();
  return true;
}

}  // namespace

Outcome run_neighbours(Collective collective, Communicator& communicator, const Call& call,
                       Flight* flight) {
  const Neighbours& neighbours = neighbours_of(communicator);
  const Reason left = neighbours.left_of(collective, communicator.grid_orders);
  if (left != Reason::kNone) return leave(left);
  const Neighbours::End& sources = neighbours.sources_of(collective);
  const int size = communicator.size;
  std::int64_t* const tables = tables_of(communicator, flight);
  std::int64_t* const in_blocks = tables + 4 * size;
  const auto ins = static_cast<int>(neighbours.destinations.ranks.size());
  const auto outs = static_cast<int>(sources.ranks.size());
  const Held<Sides> held(flight, in_blocks, ins, in_blocks + 2 * ins, outs);
  Sides& sides = *held;
  const Rule& rule = rule_of(collective);
  const bool typed = collective == Collective::kNeighborAlltoallw;
  const bool in_lists = typed || collective == Collective::kNeighborAlltoallv;
  const bool out_lists = in_lists || collective == Collective::kNeighborAllgatherv;
  if ((typed && ins > 0 && call.in_blocks.types == nullptr) ||
      (typed && outs > 0 && call.out_blocks.types == nullptr) ||
      !look_at_end(sides.in, call.in, call.in_blocks, rule.in, in_lists, neighbours.destinations) ||
      !look_at_end(sides.out, call.out, call.out_blocks, rule.out, out_lists, sources)) {
    return leave(Reason::kSuspect);
  }
  const bool alias = call.in.address == call.out.address && call.in.address != MPI_BOTTOM;
  if (alias && sides.in.total() > 0) sides.in.stage();
  const RankTable in{tables, tables + size}, out{tables + 2 * size, tables + 3 * size};
  in.fill(size, sides.in, neighbours.destinations);
  out.fill(size, sides.out, sources);
  const auto carillon = [&communicator, &sides, in, out](crl_request_h* request) {
    const crl_team_h team = communicator.team;
    const void* const from = sides.in.base();
    void* const to = sides.out.base();
    return request == nullptr
               ? crl_alltoallv(team, from, in.bytes, in.offsets, to, out.bytes, out.offsets)
               : crl_ialltoallv(team, from, in.bytes, in.offsets, to, out.bytes, out.offsets,
                                request);
  };
  return run_sides(collective, communicator, sides, flight, carillon);
}

}  // namespace carillon::shim
