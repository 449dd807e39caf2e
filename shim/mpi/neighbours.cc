// SPDX-License-Identifier: Apache-2.0
#include "neighbours.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "communicator.h"
#include "process.h"

namespace carillon::shim {
namespace {

// Of each dimension first who is below, then who is above.
void find_in_grid(MPI_Comm comm, Neighbours& found) {
  int dimensions = 0;
  host().Cartdim_get(comm, &dimensions);
  const auto count = static_cast<std::size_t>(dimensions);
  std::vector<int> sizes(count), periods(count), place(count);
  if (dimensions > 0) {
    host().Cart_get(comm, dimensions, sizes.data(), periods.data(), place.data());
  }
  int rings_of_one = 0, rings_of_two = 0;
  for (int i = 0; i < dimensions; ++i) {
    int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
    host().Cart_shift(comm, i, 1, &below, &above);
    found.sources.ranks.insert(found.sources.ranks.end(), {below, above});
    const auto at = static_cast<std::size_t>(i);
    rings_of_one += periods[at] != 0 && sizes[at] == 1 ? 1 : 0;
    rings_of_two += periods[at] != 0 && sizes[at] == 2 ? 1 : 0;
  }
  found.destinations = found.sources;
  if (rings_of_one > 1) {
    found.twice = Neighbours::Twice::kInDimensions;
  } else if (rings_of_one + rings_of_two > 0) {
    found.twice = Neighbours::Twice::kInDimension;
  }
}

void find_in_graph(MPI_Comm comm, int rank, Neighbours& found) {
  int count = 0;
  host().Graph_neighbors_count(comm, rank, &count);
  found.sources.ranks.resize(static_cast<std::size_t>(count));
  if (count > 0) host().Graph_neighbors(comm, rank, count, found.sources.ranks.data());
  found.destinations = found.sources;
}

void find_in_distributed_graph(MPI_Comm comm, Neighbours& found) {
  int ins = 0, outs = 0, weighted = 0;
  host().Dist_graph_neighbors_count(comm, &ins, &outs, &weighted);
  found.sources.ranks.resize(static_cast<std::size_t>(ins));
  found.destinations.ranks.resize(static_cast<std::size_t>(outs));
  std::vector<int> in_weights(found.sources.ranks.size() + 1);
  std::vector<int> out_weights(found.destinations.ranks.size() + 1);
  host().Dist_graph_neighbors(comm, ins, found.sources.ranks.data(), in_weights.data(), outs,
                              found.destinations.ranks.data(), out_weights.data());
}

// The collectives in which it matters which block is whose: in the others the same comes twice.
constexpr Collective kExchanges[] = {Collective::kNeighborAlltoall, Collective::kNeighborAlltoallv,
                                     Collective::kNeighborAlltoallw};
constexpr unsigned bit_of(std::size_t exchange, Neighbours::Twice twice) {
  return 1U << (2 * exchange + (twice == Neighbours::Twice::kInDimensions ? 1 : 0));
}

struct Orders {
  bool reversed[std::size(kExchanges)] = {};  // on a graph
  std::uint16_t in_grids = 0;
};

Orders g_orders;

bool host_reverses(Collective collective) {
  const auto* const found = std::find(std::begin(kExchanges), std::end(kExchanges), collective);
  return found != std::end(kExchanges) && g_orders.reversed[found - std::begin(kExchanges)];
}

using Numbers = std::vector<int>;

// What this process, which alone is its own neighbour, gets for its blocks 0, 1, 2 and so on.
Numbers get_from_host(Collective exchange, MPI_Comm comm, int blocks) {
  const auto count = static_cast<std::size_t>(blocks);
  Numbers in(count), out(count, -1);
  std::iota(in.begin(), in.end(), 0);
  const Numbers ones(count, 1);
  std::vector<MPI_Aint> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<MPI_Aint>(i * sizeof(int));
  const std::vector<MPI_Datatype> types(count, MPI_INT);
  const int* const each = ones.data();
  const int* const at = in.data();  // the offsets are the same numbers
  const auto call = [&] {
    switch (exchange) {
      case Collective::kNeighborAlltoall:
        return host().Neighbor_alltoall(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, comm);
      case Collective::kNeighborAlltoallv:
        return host().Neighbor_alltoallv(in.data(), each, at, MPI_INT, out.data(), each, at,
                                         MPI_INT, comm);
      default:
        return host().Neighbor_alltoallw(in.data(), each, bytes.data(), types.data(), out.data(),
                                         each, bytes.data(), types.data(), comm);
    }
  };
  return call() == MPI_SUCCESS ? out : Numbers();
}

// By two edges of this process to itself.
bool find_orders_in_graphs() {
  const int self[] = {0, 0}, ones[] = {1, 1};
  MPI_Comm comm{};
  if (host().Dist_graph_create_adjacent(process().self, 2, self, ones, 2, self, ones, MPI_INFO_NULL,
                                        0, &comm) != MPI_SUCCESS) {
    return false;
  }
  for (std::size_t i = 0; i < std::size(kExchanges); ++i) {
    g_orders.reversed[i] = get_from_host(kExchanges[i], comm, 2) == Numbers{1, 0};
  }
  return host().Comm_free(&comm) == MPI_SUCCESS;
}

// By a grid of this process, in one dimension or two.
bool find_orders_in_grids(Neighbours::Twice twice) {
  const bool one = twice == Neighbours::Twice::kInDimension;
  const int sizes[] = {1, 1}, periods[] = {1, 1}, dimensions = one ? 1 : 2;
  MPI_Comm comm{};
  if (host().Cart_create(process().self, dimensions, sizes, periods, 0, &comm) != MPI_SUCCESS) {
    return false;
  }
  const Numbers standard = one ? Numbers{1, 0} : Numbers{1, 0, 3, 2};
  for (std::size_t i = 0; i < std::size(kExchanges); ++i) {
    if (get_from_host(kExchanges[i], comm, 2 * dimensions) != standard) continue;
    g_orders.in_grids |= static_cast<std::uint16_t>(bit_of(i, twice));
  }
  return host().Comm_free(&comm) == MPI_SUCCESS;
}

// `swapped`: of each pair of blocks the second comes first.
void sort(Neighbours::End& end, bool swapped = false) {
  for (int i = 0; i < static_cast<int>(end.ranks.size()); ++i) {
    const int block = swapped ? i ^ 1 : i;
    if (end.ranks[static_cast<std::size_t>(block)] != MPI_PROC_NULL) end.order.push_back(block);
  }
  const auto rank_of = [&end](int i) { return end.ranks[static_cast<std::size_t>(i)]; };
  std::stable_sort(end.order.begin(), end.order.end(),
                   [&](int one, int other) { return rank_of(one) < rank_of(other); });
  const auto same = [&](int one, int other) { return rank_of(one) == rank_of(other); };
  end.once = std::adjacent_find(end.order.begin(), end.order.end(), same) == end.order.end();
}

// Of each rank, its blocks.
void reverse_blocks(Neighbours::End& end) {
  const auto rank_of = [&end](int i) { return end.ranks[static_cast<std::size_t>(i)]; };
  for (auto first = end.order.begin(); first != end.order.end();) {
    const auto next =
        std::find_if(first, end.order.end(), [&](int i) { return rank_of(i) != rank_of(*first); });
    std::reverse(first, next);
    first = next;
  }
}

}  // namespace

bool find_orders_of_blocks() {
  g_orders = {};
  return find_orders_in_graphs() && find_orders_in_grids(Neighbours::Twice::kInDimension) &&
         find_orders_in_grids(Neighbours::Twice::kInDimensions);
}

std::uint16_t grid_orders() { return g_orders.in_grids; }

Neighbours find_neighbours(MPI_Comm comm, int rank) {
  Neighbours found;
  int topology = MPI_UNDEFINED;
  host().Topo_test(comm, &topology);
  const bool is_grid = topology == MPI_CART;
  if (is_grid) {
    find_in_grid(comm, found);
  } else if (topology == MPI_GRAPH) {
    find_in_graph(comm, rank, found);
  } else if (topology == MPI_DIST_GRAPH) {
    find_in_distributed_graph(comm, found);
  } else {
    found.has_topology = false;
  }
  sort(found.destinations);
  sort(found.sources, is_grid);  // what is sent downwards comes from above
  found.backwards = found.sources;
  if (!is_grid) reverse_blocks(found.backwards);
  return found;
}

Reason Neighbours::left_of(Collective collective, std::uint16_t orders) const {
  if (!has_topology) return Reason::kSuspect;
  if (twice == Twice::kNo) return Reason::kNone;
  for (std::size_t i = 0; i < std::size(kExchanges); ++i) {
    if (kExchanges[i] == collective && (orders & bit_of(i, twice)) == 0) return Reason::kOwnOrder;
  }
  return Reason::kNone;
}

const Neighbours::End& Neighbours::sources_of(Collective collective) const {
  return sources.once || !host_reverses(collective) ? sources : backwards;
}

const Neighbours& neighbours_of(Communicator& communicator) {
  if (communicator.neighbours == nullptr) {
    auto found =
        std::make_unique<Neighbours>(find_neighbours(communicator.handle, communicator.rank));
    const std::size_t blocks = found->sources.ranks.size() + found->destinations.ranks.size();
    communicator.tables.resize(4 * static_cast<std::size_t>(communicator.size) + 2 * blocks);
    communicator.neighbours = std::move(found);
  }
  return *communicator.neighbours;
}

}  // namespace carillon::shim
