// SPDX-License-Identifier: Apache-2.0
//
// From a problem to a plan: select, emit, (verify,) lower; once per shape, shared by all teams of
// the context, bounded.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "algorithms/registry.h"
#include "base/config.h"
#include "engine/plan.h"
#include "select/select.h"

namespace carillon {

/// What plans depend on beside the problem, all alike on all ranks of the team. `same_settings`:
/// they agree on the overrides; if not, none is used. `agreed`: what surveys have come to
/// (surveys.h); without, selection decides.
struct TeamTerms {
  const Limits& limits;
  bool same_settings = true;
  AlgorithmChoice agreed;
};

struct PlannedCall {
  std::shared_ptr<const Plan> plan;
  const Algorithm* algorithm = nullptr;
};

class PlanCache {
 public:
  /// Reads the overrides of settings.algorithm.
  static Result<std::unique_ptr<PlanCache>> create(const Config& settings);

  PlanCache(Rules rules, bool verify) : rules_(std::move(rules)), verify_(verify) {}

  /// The plan of this rank for the problem. Any thread.
  Result<PlannedCall> find(const Shared& shared, const Local& local, Rank rank,
                           const TeamTerms& terms);
  /// Whether such a team, but with multicast, would use it.
  [[nodiscard]] bool would_multicast(const Shared& shared, const TeamTerms& terms) const;
  /// A later stage of what find found, for a call with these tables. Calls with the lengths of one
  /// before get its plan.
  struct Stage {
    const Tables& tables;
    std::int32_t number;
    std::span<const std::int64_t> learned;
  };
  struct StagePlan {
    std::shared_ptr<const Plan> plan;
    bool is_new;
  };
  Result<StagePlan> next_stage(const Algorithm& algorithm, const Shared& shared, bool in_place,
                               Rank rank, const TeamTerms& terms, const Stage& stage);
  /// Why such a team's alltoallvs are not surveyed; none: they are.
  [[nodiscard]] std::optional<Why> why_no_surveys(const Shared& shared,
                                                  const TeamTerms& terms) const {
    return carillon::why_no_surveys(shared, terms.limits, rules_of(terms));
  }
  /// What does it, if nothing is known of tables.
  [[nodiscard]] const Algorithm& algorithm_of(const Shared& shared, const TeamTerms& terms) const {
    return *choose(shared, terms).algorithm;
  }
  [[nodiscard]] const TableCosts& table_costs() const { return rules_.table_costs; }

 private:
  struct Key {
    Shared shared;
    bool in_place;
    Rank rank;
    Limits limits;
    bool same_settings;
    AlgorithmChoice agreed;
    std::vector<std::int64_t> block_bytes;  // emits_by_tables
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  // All numbers that a later stage's plan is made from.
  using Numbers = std::array<std::span<const std::int64_t>, 5>;
  static Numbers numbers_of(const Stage& stage);
  struct LaterPlan {
    Key key;
    std::int32_t number = 0;
    std::vector<std::int64_t> numbers;
    std::shared_ptr<const Plan> plan;
    [[nodiscard]] bool is_of(const Key& asked, const Stage& stage) const;
  };
  [[nodiscard]] const Rules& rules_of(const TeamTerms& terms) const {
    return terms.same_settings ? rules_ : default_rules();
  }
  [[nodiscard]] AlgorithmChoice choose(const Shared& shared, const TeamTerms& terms) const;

  Rules rules_;
  bool verify_;
  std::mutex mutex_;
  std::unordered_map<Key, PlannedCall, Hash> cache_;
  std::unordered_map<std::size_t, LaterPlan> later_;  // by the hash of all that they are made from
};

}  // namespace carillon
