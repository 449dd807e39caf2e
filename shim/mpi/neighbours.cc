// SPDX-License-Identifier: Apache-2.0
#include "neighbours.h"

#include <algorithm>
#include <memory>
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
  for (int i = 0; i < dimensions; ++i) {
    int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
    host().Cart_shift(comm, i, 1, &below, &above);
    found.sources.ranks.insert(found.sources.ranks.end(), {below, above});
    const auto at = static_cast<std::size_t>(i);
    if (periods[at] != 0 && sizes[at] <= 2) found.left = Reason::kBothWays;
  }
  found.destinations = found.sources;
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

// By two edges of this process to itself.
template <typename HostCall>
bool reverses(MPI_Comm comm, HostCall call_host) {
  const int in[] = {1, 2};
  int out[] = {0, 0};
  return call_host(comm, in, out) == MPI_SUCCESS && out[0] == in[1] && out[1] == in[0];
}

struct Orders {
  bool alltoall = false, alltoallv = false, alltoallw = false;
};

Orders g_orders;

bool host_reverses(Collective collective) {
  switch (collective) {
    case Collective::kNeighborAlltoall: return g_orders.alltoall;
    case Collective::kNeighborAlltoallv: return g_orders.alltoallv;
    case Collective::kNeighborAlltoallw: return g_orders.alltoallw;
    default: return false;  // the same comes twice
  }
}

void sort(Neighbours::End& end) {
  for (int i = 0; i < static_cast<int>(end.ranks.size()); ++i) {
    if (end.ranks[static_cast<std::size_t>(i)] != MPI_PROC_NULL) end.order.push_back(i);
  }
  const auto rank_of = [&end](int i) { return end.ranks[static_cast<std::size_t>(i)]; };
  std::stable_sort(end.order.begin(), end.order.end(),
                   [&](int one, int other) { return rank_of(one) < rank_of(other); });
  const auto same = [&](int one, int other) { return rank_of(one) == rank_of(other); };
  end.once = std::adjacent_find(end.order.begin(), end.order.end(), same) == end.order.end();
}

}  // namespace

bool find_orders_of_blocks() {
  const int self[] = {0, 0}, ones[] = {1, 1}, offsets[] = {0, 1};
  const MPI_Aint bytes[] = {0, sizeof(int)};
  const MPI_Datatype types[] = {MPI_INT, MPI_INT};
  MPI_Comm comm{};
  if (host().Dist_graph_create_adjacent(process().self, 2, self, ones, 2, self, ones, MPI_INFO_NULL,
                                        0, &comm) != MPI_SUCCESS) {
    return false;
  }
  g_orders.alltoall = reverses(comm, [](MPI_Comm on, const int* in, int* out) {
    return host().Neighbor_alltoall(in, 1, MPI_INT, out, 1, MPI_INT, on);
  });
  g_orders.alltoallv = reverses(comm, [&](MPI_Comm on, const int* in, int* out) {
    return host().Neighbor_alltoallv(in, ones, offsets, MPI_INT, out, ones, offsets, MPI_INT, on);
  });
  g_orders.alltoallw = reverses(comm, [&](MPI_Comm on, const int* in, int* out) {
    return host().Neighbor_alltoallw(in, ones, bytes, types, out, ones, bytes, types, on);
  });
  return host().Comm_free(&comm) == MPI_SUCCESS;
}

Neighbours find_neighbours(MPI_Comm comm, int rank) {
  Neighbours found;
  int topology = MPI_UNDEFINED;
  host().Topo_test(comm, &topology);
  if (topology == MPI_CART) {
    find_in_grid(comm, found);
  } else if (topology == MPI_GRAPH) {
    find_in_graph(comm, rank, found);
  } else if (topology == MPI_DIST_GRAPH) {
    find_in_distributed_graph(comm, found);
  } else {
    found.left = Reason::kSuspect;
  }
  sort(found.sources);
  sort(found.destinations);
  found.backwards = found.sources;
  const auto rank_of = [&found](int i) { return found.sources.ranks[static_cast<std::size_t>(i)]; };
  std::vector<int>& order = found.backwards.order;
  for (auto first = order.begin(); first != order.end();) {
    const auto next =
        std::find_if(first, order.end(), [&](int i) { return rank_of(i) != rank_of(*first); });
    std::reverse(first, next);
    first = next;
  }
  return found;
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
