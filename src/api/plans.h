// SPDX-License-Identifier: Apache-2.0
//
// From a problem to a plan: select, emit, (verify,) lower; once per shape, shared by all teams of
// the context, bounded.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "algorithms/registry.h"
#include "base/config.h"
#include "engine/plan.h"
#include "select/select.h"

namespace carillon {

struct PlannedCall {
  std::shared_ptr<const Plan> plan;
  const Algorithm* algorithm = nullptr;
};

class PlanCache {
 public:
  /// Reads the overrides of settings.algorithm.
  static Result<std::unique_ptr<PlanCache>> create(const Config& settings);

  /// The plan of this rank for the problem. `same_settings`: the team agrees on the overrides; if
  /// not, none is used. Any thread.
  Result<PlannedCall> find(const Shared& shared, bool in_place, Rank rank, const Limits& limits,
                           bool same_settings);
  /// The plan of a later stage; not cached.
  Result<std::shared_ptr<const Plan>> next_stage(const Algorithm& algorithm, const Shared& shared,
                                                 bool in_place, Rank rank, const Limits& limits,
                                                 bool same_settings, std::int32_t stage,
                                                 std::span<const std::int64_t> learned);

 private:
  struct Key {
    Shared shared;
    bool in_place;
    Rank rank;
    Limits limits;
    bool same_settings;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  PlanCache(Rules rules, bool verify) : rules_(std::move(rules)), verify_(verify) {}
  [[nodiscard]] AlgorithmChoice choose(const Shared& shared, const Limits& limits,
                                       bool same_settings) const;

  Rules rules_;
  bool verify_;
  std::mutex mutex_;
  std::unordered_map<Key, PlannedCall, Hash> cache_;
};

}  // namespace carillon
