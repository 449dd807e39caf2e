// SPDX-License-Identifier: Apache-2.0
//
// Who a rank's neighbours are, on a communicator with a topology.
#pragma once

#include <cstdint>
#include <vector>

#include "call.h"

namespace carillon::shim {

struct Communicator;

struct Neighbours {
  /// Those it sends to, or receives from, as MPI orders their blocks.
  struct End {
    std::vector<int> ranks;  // MPI_PROC_NULL: nobody is there
    std::vector<int> order;  // of the blocks that are somebody's: by rank, each rank's as they come
    bool once = true;        // nobody is there twice
  };
  End sources, destinations;
  End backwards;  // the sources, the blocks of each in reverse order

  /// As the host has it for this collective, where somebody is a source twice on a graph: which of
  /// the blocks is the first one's differs between hosts, and in MPICH between collectives.
  [[nodiscard]] const End& sources_of(Collective collective) const;

  bool has_topology = true;
  /// Of a grid, with periods of one or two, who is both below and above some rank; the same on all
  /// ranks. In several dimensions that is the rank itself.
  enum class Twice : std::uint8_t { kNo, kInDimension, kInDimensions };
  Twice twice = Twice::kNo;

  /// Why the collective is left to the host. `orders`: grid_orders of all ranks.
  [[nodiscard]] Reason left_of(Collective collective, std::uint16_t orders) const;
};

/// visit(rank, block) for each block that is somebody's, by rank.
template <typename Visit>
void for_each_block(const Neighbours::End& end, Visit visit) {
  for (const int block : end.order) visit(end.ranks[static_cast<std::size_t>(block)], block);
}

/// In MPI_Init, before anything of the host's is pending: what sources_of and grid_orders have to
/// know. False: the host refuses.
[[nodiscard]] bool find_orders_of_blocks();
/// A bit for each collective, and for each way in which a rank may be a neighbour twice on a grid:
/// set if the host's blocking function has the standard's order of blocks there. On a grid that is
/// the only order that carillon has, and a program is not to get other data than without.
std::uint16_t grid_orders();

/// Local. `rank`: this one's.
Neighbours find_neighbours(MPI_Comm comm, int rank);
/// The same, kept; gives the communicator's tables room for the blocks of neighbours behind those
/// of the ranks. By who calls a collective on it.
const Neighbours& neighbours_of(Communicator& communicator);

}  // namespace carillon::shim
