// SPDX-License-Identifier: Apache-2.0
//
// The ranks of one node: forked by the program that is started there, each with a way to the
// others.
#pragma once

#include <netinet/in.h>

#include <functional>
#include <string>
#include <vector>

#include "bootstrap.h"

namespace carillon::bench {

struct Place {
  int nodes = 2, ranks_per_node = 1;
  int node = 0;             ///< this one; -1: all ranks are here, and count as `nodes` nodes
  sockaddr_in rank_0 = {};  ///< where it waits for the others
  [[nodiscard]] int ranks() const { return nodes * ranks_per_node; }
};

/// NODES RANKS_PER_NODE NODE ADDRESS PORT. Each node's own number is in its environment.
Place parse_place(char** words);
/// Of a list.
std::vector<std::string> words_of(const char* list, char separator = ',');
std::vector<std::size_t> numbers_of(const char* list);

/// Runs the body in each rank of this node; the exit status.
int run_ranks(Place place, const std::function<void(Bootstrap&)>& body);

}  // namespace carillon::bench
