// SPDX-License-Identifier: Apache-2.0
#include "api/plans.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "schedule/verify.h"

namespace carillon {
namespace {

constexpr std::size_t kMaxPlans = 4096;

Result<std::shared_ptr<const Plan>> build(const Algorithm& algorithm, const Call& call) {
  auto schedule = emit(algorithm, call);
  if (!schedule.ok()) return schedule.status();
  auto plan = lower(schedule.value(), call);
  if (!plan.ok()) return plan.status();
  return std::make_shared<const Plan>(std::move(plan.value()));
}

// Proves the whole team's schedules (CARILLON_VERIFY=1). What is this rank's own is unknown of the
// others: they are taken to be in place where this one is and they may.
Status prove(const Algorithm& algorithm, const Call& call) {
  if (call.shared.collective == Collective::kAlltoallv) return {};  // needs everybody's tables
  TeamCall team{.shared = call.shared, .limits = call.limits, .locals = {}};
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    team.locals.push_back(
        {.in_place = call.local.in_place && in_place_allowed(call.shared, rank), .tables = {}});
  }
  const auto emit_rank = [&](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
    Call part = call;
    part.rank = rank;
    part.local = team.local(rank);
    part.stage = stage;
    part.learned = learned;
    return emit(algorithm, part);
  };
  return verify(team, emit_rank).status;
}

// A send must not wait for its recv if it is no longer than a slot: it must be one message.
Limits limits_for(const Params& params, const Limits& agreed) {
  Limits limits = agreed;
  if (params.two_sided) limits.slot_bytes = std::min(limits.slot_bytes, limits.send_bytes);
  return limits;
}

}  // namespace

std::size_t PlanCache::Hash::operator()(const Key& key) const {
  std::size_t hash = 0;
  const auto mix = [&](std::int64_t value) {
    hash = (hash ^ std::hash<std::int64_t>()(value)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  };
  mix(static_cast<int>(key.shared.collective));
  mix(key.shared.ranks);
  mix(key.shared.root);
  mix(key.shared.count);
  mix(key.shared.element_bytes);
  mix(key.rank * 8 + (key.shared.commutative ? 4 : 0) + (key.in_place ? 2 : 0) +
      (key.same_settings ? 1 : 0));
  mix(key.limits.slot_bytes);
  mix(key.limits.nodes ? key.limits.nodes->count() : 1);
  return hash;
}

Result<std::unique_ptr<PlanCache>> PlanCache::create(const Config& settings) {
  auto rules = parse_rules(settings.algorithm);
  if (!rules.ok()) {
    return Status(rules.status().code(),
                  "CARILLON_ALGORITHM: " + std::string(rules.status().message()));
  }
  return std::unique_ptr<PlanCache>(new PlanCache(std::move(rules.value()), settings.verify != 0));
}

AlgorithmChoice PlanCache::choose(const Shared& shared, const Limits& limits,
                                  bool same_settings) const {
  return select(shared, limits, same_settings ? rules_ : default_rules());
}

Result<PlannedCall> PlanCache::find(const Shared& shared, bool in_place, Rank rank,
                                    const Limits& limits, bool same_settings) {
  const Key key{shared, in_place, rank, limits, same_settings};
  const std::lock_guard lock(mutex_);
  if (const auto found = cache_.find(key); found != cache_.end()) return found->second;
  const AlgorithmChoice choice = choose(shared, limits, same_settings);
  const Call call{.shared = shared,
                  .local = {.in_place = in_place, .tables = {}},
                  .rank = rank,
                  .limits = limits_for(choice.params, limits),
                  .params = choice.params};
  if (verify_) {
    if (Status status = prove(*choice.algorithm, call); !status.ok()) return status;
  }
  auto plan = build(*choice.algorithm, call);
  if (!plan.ok()) return plan.status();
  if (cache_.size() >= kMaxPlans) cache_.clear();  // plans in use live on in their runs
  return cache_[key] = PlannedCall{plan.value(), choice.algorithm};
}

Result<std::shared_ptr<const Plan>> PlanCache::next_stage(const Algorithm& algorithm,
                                                          const Shared& shared, bool in_place,
                                                          Rank rank, const Limits& limits,
                                                          bool same_settings, std::int32_t stage,
                                                          std::span<const std::int64_t> learned) {
  const AlgorithmChoice choice = choose(shared, limits, same_settings);
  return build(algorithm, {.shared = shared,
                           .local = {.in_place = in_place, .tables = {}},
                           .rank = rank,
                           .limits = limits_for(choice.params, limits),
                           .params = choice.params,
                           .stage = stage,
                           .learned = learned});
}

}  // namespace carillon
