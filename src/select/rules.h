// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm is used when: an ordered table of rules, and what the user asked for instead.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/registry.h"
#include "select/alltoallv_model.h"

namespace carillon {

/// Holds for problems of up to max_ranks ranks and of min_bytes to max_bytes bytes: of the whole
/// vector for bcast, reduce and allreduce, of one rank's block for the others
/// (Shared::block_bytes). Those of algorithms that multicast, only where that pays
/// (Limits::multicast_pays).
struct Rule {
  static constexpr Rank kAnyRanks = INT32_MAX;
  static constexpr std::int64_t kAnyBytes = INT64_MAX;

  Collective collective = Collective::kBarrier;
  bool crowded_only = false;  ///< only where there are more ranks than cores
  bool nodes_only = false;    ///< only for teams of several nodes
  bool singles_only = false;  ///< only where each rank has a node for itself
  bool sockets_only = false;  ///< only where messages between nodes go through sockets
  Rank max_ranks = kAnyRanks;
  std::int64_t max_bytes = kAnyBytes;
  std::int32_t min_nodes = 1;
  std::int64_t min_bytes = 0;
  Rank max_ppn = kAnyRanks;  ///< ranks on the largest node
  bool even_only = false;    ///< only where all nodes have as many ranks
  bool alike_only = false;   ///< only where none has one where another has more than eight
  Rank min_skew = 1;         ///< only where one has so many times the ranks of another
  std::int32_t max_nodes = INT32_MAX;
  AlgorithmChoice choice;
  /// alltoall: instead of `choice` what alltoall_by_model says; alltoallv: `choice` as long as
  /// nothing is known of the tables, and then what Surveys say.
  bool by_model = false;
};

/// CARILLON_SURVEYS: which teams' alltoallvs are surveyed (surveys.h): where that can pay, all
/// between nodes, none.
enum class SurveyPolicy : std::uint8_t { kAuto, kOn, kOff };

/// "on", "off", else kAuto.
SurveyPolicy survey_policy(std::string_view text);

/// The table, of which the first rule holds that can do the problem; for every collective the last
/// ones can do any. Made when it is first asked for, which in an MPI program is its first
/// collective: MPI_Init has no use for it.
const std::vector<Rule>& rule_table();

/// What comes before the table, and beside it.
struct Rules {
  std::vector<AlgorithmChoice> overrides;  ///< first; of one collective the last one given
  TableCosts table_costs;
  SurveyPolicy surveys = SurveyPolicy::kAuto;
};

/// Nothing but the table.
const Rules& default_rules();

/// Overrides as CARILLON_ALGORITHM has them, separated by semicolons:
/// "allreduce=degree_k:k=4;bcast=binomial". Empty: none.
Result<Rules> parse_rules(std::string_view overrides);

}  // namespace carillon
