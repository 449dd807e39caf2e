// SPDX-License-Identifier: Apache-2.0
//
// The catalogue of algorithms: one row each, the only list of them. Conformance tests, the CLI,
// selection and the docs are driven by it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "schedule/builder.h"

namespace carillon {

struct Algorithm {
  std::string_view id;           ///< "allreduce.ring": collective, dot, file name
  std::string_view description;  ///< one line
  Collective collective;
  /// Writes this rank's schedule. Pure: same call, same ops. Called by emit() below, which sees
  /// to parameters and to teams of one.
  void (*emit)(const Call& call, Builder& builder);
  bool needs_commutative = false;  ///< cannot run operators that do not commute
  /// Parameter k: 0 0 0 if the algorithm has none.
  struct KRange {
    std::int32_t min = 0, max = 0, fallback = 0;
  } k = {};
  bool has_segment = false;  ///< takes Params::segment_bytes
  struct Traits {
    bool weights = false;    ///< takes Call::weights
    bool radix = false;      ///< k is a radix: at most the number of ranks (of two and more)
    bool lists = false;      ///< takes Params::memory and Params::copy_blocks
    bool stages = false;     ///< may have several stages
    bool multicast = false;  ///< only where the team has it (Limits::multicast_bytes)
    bool in_switch = false;  ///< only where switches reduce (Limits::aggregates, Shared::in_switch)
    /// Reduces in the order of the ranks, from left to right, in any team (Limits::reproducible).
    bool left_to_right = false;
  } traits = {};
  /// An algorithm made of levels: the ids of what is done within a node, then between the leaders,
  /// then within a node again, or, if it multicasts, among all, by default; "" for nothing.
  /// Params::node and Params::leaders name others; k and segment go to those that have such a
  /// parameter.
  std::array<std::string_view, 3> levels = {};

  /// Takes Params::two_sided.
  [[nodiscard]] bool has_transfer() const {
    return !sends_by_tables(collective) && !traits.multicast && !traits.in_switch;
  }
  [[nodiscard]] bool has_levels() const { return !levels[kLeaders].empty(); }
  static constexpr std::size_t kBefore = 0, kLeaders = 1, kAfter = 2;
};

/// All algorithms, grouped by collective.
std::span<const Algorithm> algorithms();

/// Null if there is none of that id.
const Algorithm* find_algorithm(std::string_view id);

/// An algorithm and its parameters.
struct AlgorithmChoice {
  const Algorithm* algorithm = nullptr;
  Params params;
  bool operator==(const AlgorithmChoice&) const = default;
};
/// "allreduce.degree_k:k=4,segment=8192"; "allreduce=degree_k:k=4" is the same as
/// "allreduce.degree_k:k=4".
Result<AlgorithmChoice> parse_choice(std::string_view text);
/// What parse_choice reads as this choice.
std::string to_text(const AlgorithmChoice& choice);

/// What a level of such an algorithm does, and with which parameters.
AlgorithmChoice level_choice(const Algorithm& algorithm, std::size_t level, const Params& params);

/// Whether the algorithm can do this problem with these parameters; if not, says why and what
/// would do.
Status check(const Algorithm& algorithm, const Shared& shared, const Params& params,
             const Limits& limits = {});
/// The part of check that selection asks: the operator, the nodes and the radix. Says nothing but
/// yes or no.
bool suits(const AlgorithmChoice& choice, const Shared& shared, const Limits& limits);

/// check, then emit with defaults filled in, then Builder::finish.
Result<Schedule> emit(const Algorithm& algorithm, const Call& call);
/// The same in steps, for who emits the parts of many ranks: what is checked and filled in holds
/// for every `rank` and `local` that the prepared call is given afterwards.
Result<Call> prepare(const Algorithm& algorithm, const Call& call);
void emit_prepared(const Algorithm& algorithm, const Call& prepared, Builder& builder);

/// A call that a group of a call's ranks makes as a part of it.
struct GroupCall {
  Shared shared;  ///< ranks: the group's
  Rank rank = 0;  ///< in the group
  Members members;
  Buffer input, output;  ///< where they begin, in the memory of the call around it
  std::span<const Rank> weights = {};
  /// All ranks of the call, in their order: the algorithm sees the team's nodes.
  bool whole = false;
};
/// Emits the group's part of `call`, as emit would for a team of those ranks. Only on members.
void emit_on(const GroupCall& group, const AlgorithmChoice& choice, const Call& call,
             Builder& builder);

}  // namespace carillon
