// SPDX-License-Identifier: Apache-2.0
//
// What a team learns of the tables of its alltoallvs, for no rank knows those of others. At the
// 2nd, 4th, 8th, ..., 64th call, and then at every 64th, the ranks tell each other what their
// tables are like (alltoallv.survey), and all conclude alike which algorithm suits the calls until
// the next survey. A call with other tables is done right all the same: alltoallv.bruck_two_phase
// itself finds out where a block is long, on all ranks at once, which end its use until the next
// survey.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "select/alltoallv_model.h"
#include "select/decisions.h"

namespace carillon {

class Surveys {
 public:
  Surveys(Rank ranks, const Limits& limits, const TableCosts& costs);

  /// How the next call is done. Once for each call, in the same order on all ranks.
  const AlgorithmChoice& next(const Tables& tables);
  /// TableFact::kNote of that call.
  [[nodiscard]] std::int64_t note() const { return note_; }
  /// What a first stage of these algorithms has brought, the same on all ranks.
  void learn(const AlgorithmChoice& choice, std::span<const std::int64_t> learned);
  /// The second stage has its plan: a new one, or one of an earlier call.
  void count_plan(const AlgorithmChoice& choice, bool is_new) {
    if (choice != survey_) ++(is_new ? new_plans_ : old_plans_);
  }

  /// How many calls were done why, so far.
  [[nodiscard]] const std::array<std::uint64_t, kWhys>& calls() const { return counts_; }

 private:
  [[nodiscard]] bool is_due() const;
  [[nodiscard]] Why reason(const AgreedTables& tables) const;
  [[nodiscard]] std::int64_t fresh_percent(std::uint64_t tables_hash) const;

  Rank ranks_;
  AlltoallvModel model_;
  const Algorithm *bruck_, *merged_;
  AlgorithmChoice survey_, usual_;
  Why why_ = Why::kUnknown;  // the usual one
  std::uint64_t calls_ = 0;
  std::array<std::uint64_t, kWhys> counts_{};
  std::int64_t note_ = 0;
  std::array<std::uint64_t, 8> seen_{};  // hashes of tables at surveys, and of the first call's
  std::size_t oldest_seen_ = 0;
  std::int64_t new_plans_ = 0, old_plans_ = 0;  // since the last survey
};

/// Whether surveys can pay on such a team: if all blocks are of a few bytes, in tables that repeat,
/// bruck_two_phase or merged takes less time than pairwise exchange.
bool surveys_pay(Rank ranks, const Limits& limits, const TableCosts& costs);

}  // namespace carillon
