// SPDX-License-Identifier: Apache-2.0
//
// What a row of the built-in table says (rows.cc, rows_of_blocks.cc, rows_of_prefixes.cc); rules.h
// says it to everybody else.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "select/rules.h"

namespace carillon {

// kCrowded: more ranks than cores. kNodes: several nodes; what one rank writes to all others is a
// message each there, which pays for few ranks or short blocks.
// kCrowdedNodes: both; there the fewest messages win, not the fewest steps. kSingles: several nodes
// of one rank each. kCrowdedSingles: these and crowded.
enum Where { kAnywhere, kCrowded, kNodes, kCrowdedNodes, kSingles, kCrowdedSingles };

struct Row {
  Where where;
  Rank max_ranks;
  std::int64_t max_bytes;
  std::string_view choice;
  bool by_model = false;
  std::int32_t min_nodes = 1;
  std::int64_t min_bytes = 0;
  Rank max_ppn = Rule::kAnyRanks;
  bool even_only = false;
  bool alike_only = false;
  Rank min_skew = 1;
  std::int32_t max_nodes = INT32_MAX;
  bool sockets_only = false;
};

/// In the order in which they are looked at: of barrier, bcast, reduce and allreduce, of scan and
/// exscan, and of the others.
std::span<const Row> rows_of_vectors();
std::span<const Row> rows_of_prefixes();
std::span<const Row> rows_of_blocks();

}  // namespace carillon
