// SPDX-License-Identifier: Apache-2.0
#include "api/plans.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "schedule/uneven_tables.h"
#include "schedule/verify.h"

namespace carillon {
namespace {

constexpr std::size_t kMaxPlans = 4096;
constexpr std::size_t kMaxLaterPlans = 64;  // of which each holds tables, too

Result<std::shared_ptr<const Plan>> build(const Algorithm& algorithm, const Call& call) {
  auto schedule = emit(algorithm, call);
  if (!schedule.ok()) return schedule.status();
  auto plan = lower(schedule.value(), call);
  if (!plan.ok()) return plan.status();
  return std::make_shared<const Plan>(std::move(plan.value()));
}

// What all ranks know of tables, and what the others' then are; or tables of uneven blocks of
// `bytes`, 2 x `bytes` and none.
UnevenTables tables_of(const Call& call, Rank rank, std::int64_t bytes) {
  if (!emits_by_tables(call.shared.collective)) return {call.shared, bytes, rank};
  return UnevenTables::of_blocks(call.local.tables.send_bytes, rank);
}

// What is this rank's own is unknown of the others: they are taken to be in place where this one is
// and they may.
Status prove_with(const Algorithm& algorithm, const Call& call, std::int64_t table_bytes) {
  TeamCall team{.shared = call.shared, .limits = call.limits, .locals = {}};
  std::vector<UnevenTables> tables;
  tables.reserve(static_cast<std::size_t>(call.shared.ranks));
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    tables.push_back(tables_of(call, rank, table_bytes));
    team.locals.push_back({.in_place = call.local.in_place && in_place_allowed(call.shared, rank),
                           .tables = tables.back().view()});
  }
  const auto emit_rank = [&](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
    Call part = call;
    part.rank = rank;
    part.local = team.local(rank);
    if (stage == 0 && call.local.tables.send_bytes.empty()) part.local.tables = {};
    part.stage = stage;
    part.learned = learned;
    return emit(algorithm, part);
  };
  return verify(team, emit_rank).status;
}

// Proves the whole team's schedules (CARILLON_VERIFY=1). Those that send by the entries of tables
// are the same for all tables, so some tables will do: with blocks within a slot, and longer ones.
Status prove(const Algorithm& algorithm, const Call& call) {
  constexpr std::int64_t kShort = 8;
  Status status = prove_with(algorithm, call, kShort);
  const Collective collective = call.shared.collective;
  if (!status.ok() || !has_tables(collective) || emits_by_tables(collective)) return status;
  return prove_with(algorithm, call, call.limits.slot_bytes + kShort);
}

class Mix {
 public:
  explicit Mix(std::size_t start) : hash_(start) {}
  void add(std::int64_t value) {
    hash_ = (hash_ ^ std::hash<std::int64_t>()(value)) * 0x9E3779B97F4A7C15ULL;
    hash_ ^= hash_ >> 29;
  }
  [[nodiscard]] std::size_t value() const { return hash_; }

 private:
  std::size_t hash_;
};

// A send must not wait for its recv if it is no longer than a slot: it must be one message.
Limits limits_for(const Params& params, const Limits& agreed) {
  Limits limits = agreed;
  if (params.two_sided) limits.slot_bytes = std::min(limits.slot_bytes, limits.send_bytes);
  return limits;
}

// What was asked for with a radix beyond the team is done by something else: rank 0 says so, once
// for each size of team.
void tell_of_radix(const Rules& rules, const Shared& shared, Rank rank) {
  static std::mutex mutex;
  static std::set<std::string>& told = *new std::set<std::string>();
  for (const AlgorithmChoice& choice : rules.overrides) {
    if (rank != 0 || choice.algorithm->collective != shared.collective) continue;
    if (!choice.algorithm->traits.radix || choice.params.k <= std::max(shared.ranks, 2)) continue;
    const Status status = check(*choice.algorithm, shared, choice.params);
    if (status.ok()) continue;
    const std::lock_guard lock(mutex);
    const std::string text =
        "CARILLON_ALGORITHM: " + std::string(status.message()) + "; another algorithm does it";
    if (told.insert(text).second) log(LogLevel::kWarning, text);
  }
}

}  // namespace

std::size_t PlanCache::Hash::operator()(const Key& key) const {
  Mix mix(0);
  mix.add(static_cast<int>(key.shared.collective));
  mix.add(key.shared.ranks);
  mix.add(key.shared.root);
  mix.add(key.shared.count);
  mix.add(key.shared.element_bytes);
  mix.add(key.rank * 8 + (key.shared.commutative ? 4 : 0) + (key.in_place ? 2 : 0) +
          (key.same_settings ? 1 : 0));
  mix.add(key.limits.slot_bytes);
  mix.add(static_cast<std::int64_t>(std::hash<const void*>()(key.agreed.algorithm)));
  mix.add(key.agreed.params.k);
  mix.add(key.limits.nodes ? key.limits.nodes->count() : 1);
  for (const std::int64_t bytes : key.block_bytes) mix.add(bytes);
  return mix.value();
}

Result<std::unique_ptr<PlanCache>> PlanCache::create(const Config& settings) {
  auto rules = parse_rules(settings.algorithm);
  if (!rules.ok()) {
    return Status(rules.status().code(),
                  "CARILLON_ALGORITHM: " + std::string(rules.status().message()));
  }
  rules.value().surveys = survey_policy(settings.surveys);
  return std::make_unique<PlanCache>(std::move(rules.value()), settings.verify != 0);
}

AlgorithmChoice PlanCache::choose(const Shared& shared, const TeamTerms& terms) const {
  if (terms.agreed.algorithm != nullptr) return terms.agreed;
  return select(shared, terms.limits, rules_of(terms));
}

bool PlanCache::would_multicast(const Shared& shared, const TeamTerms& terms) const {
  Limits with = terms.limits;
  with.multicast_bytes = Limits().multicast_bytes;
  return choose(shared, {.limits = with, .same_settings = terms.same_settings, .agreed = {}})
      .algorithm->traits.multicast;
}

Result<PlannedCall> PlanCache::find(const Shared& shared, const Local& local, Rank rank,
                                    const TeamTerms& terms) {
  Key key{shared, local.in_place, rank, terms.limits, terms.same_settings, terms.agreed, {}};
  Local known{.in_place = local.in_place, .tables = {}};  // else the plan is for all tables
  if (emits_by_tables(shared.collective)) {
    key.block_bytes.assign(local.tables.send_bytes.begin(), local.tables.send_bytes.end());
    known.tables = local.tables;
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = cache_.find(key); found != cache_.end()) return found->second;
  tell_of_radix(rules_of(terms), shared, rank);
  const AlgorithmChoice choice = choose(shared, terms);
  const Call call{.shared = shared,
                  .local = known,
                  .rank = rank,
                  .limits = limits_for(choice.params, terms.limits),
                  .params = choice.params};
  if (verify_) {
    if (Status status = prove(*choice.algorithm, call); !status.ok()) return status;
  }
  auto plan = build(*choice.algorithm, call);
  if (!plan.ok()) return plan.status();
  if (cache_.size() >= kMaxPlans) cache_.clear();  // plans in use live on in their runs
  return cache_[key] = PlannedCall{plan.value(), choice.algorithm};
}

PlanCache::Numbers PlanCache::numbers_of(const Stage& stage) {
  const Tables& t = stage.tables;
  return {stage.learned, t.send_bytes, t.send_offsets, t.recv_bytes, t.recv_offsets};
}

bool PlanCache::LaterPlan::is_of(const Key& asked, const Stage& stage) const {
  if (key != asked || number != stage.number) return false;
  auto at = numbers.begin();
  for (const auto part : numbers_of(stage)) {
    const auto left = static_cast<std::size_t>(numbers.end() - at);
    if (left < part.size() || !std::equal(part.begin(), part.end(), at)) return false;
    at += static_cast<std::ptrdiff_t>(part.size());
  }
  return at == numbers.end();
}

Result<PlanCache::StagePlan> PlanCache::next_stage(const Algorithm& algorithm, const Shared& shared,
                                                   bool in_place, Rank rank, const TeamTerms& terms,
                                                   const Stage& stage) {
  const Key key{shared, in_place, rank, terms.limits, terms.same_settings, terms.agreed, {}};
  Mix mix(Hash()(key));
  mix.add(stage.number);
  for (const auto part : numbers_of(stage)) {
    for (const std::int64_t number : part) mix.add(number);
  }
  const std::lock_guard lock(mutex_);
  const auto found = later_.find(mix.value());
  if (found != later_.end() && found->second.is_of(key, stage)) {
    return StagePlan{found->second.plan, false};
  }
  const AlgorithmChoice choice = choose(shared, terms);
  auto plan = build(algorithm, {.shared = shared,
                                .local = {.in_place = in_place, .tables = stage.tables},
                                .rank = rank,
                                .limits = limits_for(choice.params, terms.limits),
                                .params = choice.params,
                                .stage = stage.number,
                                .learned = stage.learned});
  if (!plan.ok()) return plan.status();
  if (later_.size() >= kMaxLaterPlans) later_.clear();
  LaterPlan& later = later_[mix.value()];
  later = {.key = key, .number = stage.number, .numbers = {}, .plan = plan.value()};
  for (const auto part : numbers_of(stage)) {
    later.numbers.insert(later.numbers.end(), part.begin(), part.end());
  }
  return StagePlan{later.plan, true};
}

}  // namespace carillon
