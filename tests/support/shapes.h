// SPDX-License-Identifier: Apache-2.0
//
// Shapes of teams: how many ranks, and on which nodes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedule/nodes.h"

namespace carillon::test {

struct Shape {
  std::string name;  ///< "3,1,2": ranks per node; "rr:2": round robin over 2 nodes
  std::shared_ptr<const Nodes> nodes;
  [[nodiscard]] Rank ranks() const { return nodes->ranks(); }
};

/// Nodes of these many ranks, one after another.
inline Shape blocked(const std::vector<Rank>& sizes) {
  Shape shape;
  std::vector<std::int32_t> node_of;
  std::int32_t node = 0;
  for (const Rank size : sizes) {
    shape.name += (node == 0 ? "" : ",") + std::to_string(size);
    node_of.insert(node_of.end(), static_cast<std::size_t>(size), node++);
  }
  shape.nodes = std::make_shared<Nodes>(node_of);
  return shape;
}

/// Rank r on node r modulo `nodes`.
inline Shape round_robin(Rank ranks, std::int32_t nodes) {
  std::vector<std::int32_t> node_of;
  for (Rank rank = 0; rank < ranks; ++rank) node_of.push_back(rank % nodes);
  return {"rr:" + std::to_string(nodes), std::make_shared<Nodes>(node_of)};
}

/// All on one node, one rank each, even and uneven ones, five with a rank alone on the first or the
/// last (which lanes join to another), and such whose ranks do not follow one another.
inline std::vector<Shape> shapes() {
  std::vector<Shape> list;
  for (const std::vector<Rank>& sizes : {std::vector<Rank>{5},
                                         {1, 1},
                                         {1, 1, 1, 1, 1},
                                         {2, 2},
                                         {3, 1, 2},
                                         {1, 4},
                                         {5, 1, 1},
                                         {4, 4},
                                         {1, 7},
                                         {2, 3, 3},
                                         {2, 2, 3, 3},
                                         {1, 2, 2, 2, 2},
                                         {2, 2, 3, 2, 1}}) {
    list.push_back(blocked(sizes));
  }
  list.push_back(round_robin(5, 2));
  list.push_back(round_robin(7, 3));
  list.push_back(round_robin(6, 3));
  const std::vector<std::int32_t> mixed{1, 0, 0, 1, 2, 0};
  list.push_back({"1,0,0,1,2,0", std::make_shared<Nodes>(mixed)});
  return list;
}

}  // namespace carillon::test
