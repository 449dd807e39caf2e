// SPDX-License-Identifier: Apache-2.0
#include "groups.h"

#include <algorithm>
#include <set>

namespace mpi_test {
namespace {

using Ints = std::vector<int>;

void find_neighbours(Group& group) {
  int topology = MPI_UNDEFINED, weighted = 0;
  MPI_Topo_test(group.comm, &topology);
  if (topology == MPI_UNDEFINED) return;
  group.has_topology = true;
  if (topology == MPI_CART) {
    int dimensions = 0;
    MPI_Cartdim_get(group.comm, &dimensions);
    for (int i = 0; i < dimensions; ++i) {
      int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
      MPI_Cart_shift(group.comm, i, 1, &below, &above);
      group.sources.insert(group.sources.end(), {below, above});
    }
    group.destinations = group.sources;
  } else if (topology == MPI_GRAPH) {
    int count = 0;
    MPI_Graph_neighbors_count(group.comm, group.rank, &count);
    group.sources.resize(static_cast<std::size_t>(count));
    if (count > 0) MPI_Graph_neighbors(group.comm, group.rank, count, group.sources.data());
    group.destinations = group.sources;
  } else {
    int ins = 0, outs = 0;
    MPI_Dist_graph_neighbors_count(group.comm, &ins, &outs, &weighted);
    group.sources.resize(static_cast<std::size_t>(ins));
    group.destinations.resize(static_cast<std::size_t>(outs));
    Ints in_weights(static_cast<std::size_t>(ins) + 1),
        out_weights(static_cast<std::size_t>(outs) + 1);
    group.sources.reserve(1);
    group.destinations.reserve(1);
    MPI_Dist_graph_neighbors(group.comm, ins, group.sources.data(), in_weights.data(), outs,
                             group.destinations.data(), out_weights.data());
  }
}

bool has_twice(const Ints& ranks) {
  std::multiset<int> all(ranks.begin(), ranks.end());
  all.erase(MPI_PROC_NULL);
  return std::set<int>(all.begin(), all.end()).size() != all.size();
}

MPI_Comm make_grid(const Group& parent, Random& random) {
  const int dimensions = random.between(1, 3);
  Ints sizes(static_cast<std::size_t>(dimensions), 0), periods;
  MPI_Dims_create(parent.size, dimensions, sizes.data());
  for (int i = 0; i < dimensions; ++i) periods.push_back(random.below(2));
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Cart_create(parent.comm, dimensions, sizes.data(), periods.data(), random.below(2), &made);
  return made;
}

// Some rows of a grid.
MPI_Comm make_part_of_grid(const Group& parent, Random& random) {
  MPI_Comm grid = make_grid(parent, random), made = MPI_COMM_NULL;
  const Ints remain = {random.below(2), random.below(2), random.below(2)};
  MPI_Cart_sub(grid, remain.data(), &made);
  MPI_Comm_free(&grid);
  return made;
}

int edges(std::uint64_t seed, int from, int to, bool symmetric) {
  if (symmetric && from > to) std::swap(from, to);
  const std::uint64_t any =
      mix(seed, static_cast<std::uint64_t>(from) + 1, static_cast<std::uint64_t>(to) + 1) % 8;
  return any < 4 ? 0 : any < 7 ? 1 : 2;
}

MPI_Comm make_graph(const Group& parent, std::uint64_t seed) {
  Ints index, all;
  for (int i = 0; i < parent.size; ++i) {
    for (int k = 0; k < parent.size; ++k)
      all.insert(all.end(), static_cast<std::size_t>(edges(seed, i, k, true)), k);
    index.push_back(static_cast<int>(all.size()));
  }
  all.push_back(0);  // Open MPI takes no list for a wrong one
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Graph_create(parent.comm, parent.size, index.data(), all.data(), 0, &made);
  return made;
}

MPI_Comm make_distributed_graph(const Group& parent, std::uint64_t seed, bool adjacent) {
  Ints from, to;
  for (int i = 0; i < parent.size; ++i) {
    from.insert(from.end(), static_cast<std::size_t>(edges(seed, i, parent.rank, false)), i);
    to.insert(to.end(), static_cast<std::size_t>(edges(seed, parent.rank, i, false)), i);
  }
  from.push_back(0);  // Open MPI takes no list for a wrong one
  to.push_back(0);
  const Ints ones(from.size() + to.size() + 1, 1);
  const int ins = static_cast<int>(from.size()) - 1, outs = static_cast<int>(to.size()) - 1;
  MPI_Comm made = MPI_COMM_NULL;
  if (adjacent) {
    MPI_Dist_graph_create_adjacent(parent.comm, ins, from.data(), ones.data(), outs, to.data(),
                                   ones.data(), MPI_INFO_NULL, 0, &made);
  } else {
    MPI_Dist_graph_create(parent.comm, 1, &parent.rank, &outs, to.data(), ones.data(),
                          MPI_INFO_NULL, 0, &made);
  }
  return made;
}

// Of some ranks, in another order.
MPI_Comm make_of_group(const Group& parent, Random& random, bool among_members) {
  Ints ranks;
  for (int i = 0; i < parent.size; ++i) {
    if (random.chance(70))
      ranks.insert(ranks.begin() + random.below(static_cast<int>(ranks.size()) + 1), i);
  }
  MPI_Group all{}, some{};
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_group(parent.comm, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  if (!among_members) {
    MPI_Comm_create(parent.comm, some, &made);
  } else if (std::find(ranks.begin(), ranks.end(), parent.rank) != ranks.end()) {
    MPI_Comm_create_group(parent.comm, some, 5, &made);
  }
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return made;
}

MPI_Comm make_merged(const Group& parent, Random& random) {
  MPI_Comm made = MPI_COMM_NULL;
  const bool high_first = random.chance(50);
  if (parent.size < 2) {
    MPI_Comm_dup(parent.comm, &made);
    return made;
  }
  const int lower = parent.size / 2, side = parent.rank < lower ? 0 : 1;
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
  MPI_Comm_split(parent.comm, side, 0, &half);
  MPI_Intercomm_create(half, 0, parent.comm, side == 0 ? lower : 0, 7, &inter);
  MPI_Intercomm_merge(inter, (side == 1) == high_first ? 0 : 1, &made);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  return made;
}

MPI_Comm make_copy(const Group& parent, int how) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  switch (how) {
    case 0: MPI_Comm_dup(parent.comm, &made); break;
    case 1: MPI_Comm_dup_with_info(parent.comm, MPI_INFO_NULL, &made); break;
    default: MPI_Comm_idup(parent.comm, &made, &request); MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return made;
}

constexpr const char* kNames[kGroupKinds] = {
    "dup",      "dup_with_info", "idup",       "split",    "reversed", "split_type",  "cart",
    "cart_sub", "graph",         "dist_graph", "adjacent", "create",   "create_group"};

}  // namespace

Group look_at_group(MPI_Comm comm, const std::string& name) {
  Group group;
  group.comm = comm;
  group.name = name;
  if (comm == MPI_COMM_NULL) return group;
  MPI_Comm_rank(comm, &group.rank);
  MPI_Comm_size(comm, &group.size);
  find_neighbours(group);
  int twice = has_twice(group.sources) || has_twice(group.destinations) ? 1 : 0, any = 0;
  PMPI_Allreduce(&twice, &any, 1, MPI_INT, MPI_MAX, comm);
  group.twice = any != 0;
  return group;
}

Group make_group(const Group& parent, int kind, std::uint64_t seed) {
  Random random(seed);
  MPI_Comm made = MPI_COMM_NULL;
  switch (kind) {
    case 0:
    case 1:
    case 2: made = make_copy(parent, kind); break;
    case 3: MPI_Comm_split(parent.comm, parent.rank % 2, 0, &made); break;
    case 4: MPI_Comm_split(parent.comm, 0, -parent.rank, &made); break;
    case 5: MPI_Comm_split_type(parent.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made); break;
    case 6: made = make_grid(parent, random); break;
    case 7: made = make_part_of_grid(parent, random); break;
    case 8: made = make_graph(parent, seed); break;
    case 9:
    case 10: made = make_distributed_graph(parent, seed, kind == 10); break;
    case 11: made = make_of_group(parent, random, random.chance(50)); break;
    default: made = make_merged(parent, random);
  }
  return look_at_group(made, kNames[kind]);
}

std::vector<Group> make_groups(std::uint64_t seed) {
  std::vector<Group> groups = {look_at_group(MPI_COMM_WORLD, "world"),
                               look_at_group(MPI_COMM_SELF, "self")};
  for (int kind = 0; kind < kGroupKinds; ++kind) {
    groups.push_back(make_group(groups[0], kind, mix(seed, static_cast<std::uint64_t>(kind) + 50)));
  }
  return groups;
}

void free_group(Group& group) {
  if (group.comm != MPI_COMM_NULL && group.comm != MPI_COMM_WORLD && group.comm != MPI_COMM_SELF) {
    MPI_Comm_free(&group.comm);
  }
}

}  // namespace mpi_test
