// SPDX-License-Identifier: Apache-2.0
#include "select/surveys.h"

#include <algorithm>
#include <bit>

namespace carillon {
namespace {

constexpr std::uint64_t kInterval = 64;   // calls between surveys, in the long run
constexpr std::int64_t kEnoughPlans = 7;  // to say how many are new
constexpr std::int64_t kAll = 100;        // percent

std::uint64_t hash_of(const Tables& tables) {
  std::uint64_t hash = 1;
  for (const auto part :
       {tables.send_bytes, tables.send_offsets, tables.recv_bytes, tables.recv_offsets}) {
    for (const std::int64_t number : part) {
      hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

AgreedTables agreed(std::span<const std::int64_t> learned) {
  std::array<std::int64_t, kTableFacts> most{};
  for (std::size_t i = 0; i < learned.size(); ++i) {
    most[i % kTableFacts] = std::max(most[i % kTableFacts], learned[i]);
  }
  const auto fact = [&](TableFact which) { return most[static_cast<std::size_t>(which)]; };
  return {.longest_bytes = fact(TableFact::kLongest),
          .total_bytes = fact(TableFact::kTotal),
          .blocks = fact(TableFact::kBlocks),
          .fresh_percent = fact(TableFact::kNote)};
}

bool is_pairwise(const AlgorithmChoice& choice) {
  return choice.algorithm->id == "alltoallv.pairwise";
}

}  // namespace

Surveys::Surveys(Rank ranks, const Limits& limits, const TableCosts& costs)
    : ranks_(ranks),
      model_(ranks, limits, costs),
      bruck_(find_algorithm("alltoallv.bruck_two_phase")),
      merged_(find_algorithm("alltoallv.merged")) {
  survey_.algorithm = find_algorithm("alltoallv.survey");
  usual_ = pairwise_exchange();
}

bool Surveys::is_due() const {
  return calls_ > 1 &&
         (calls_ <= kInterval ? std::has_single_bit(calls_) : calls_ % kInterval == 0);
}

// Without enough plans to go by: whether the tables have been seen before, at an earlier survey.
std::int64_t Surveys::fresh_percent(std::uint64_t tables_hash) const {
  const std::int64_t plans = new_plans_ + old_plans_;
  if (plans >= kEnoughPlans) return kAll * new_plans_ / plans;
  return std::find(seen_.begin(), seen_.end(), tables_hash) == seen_.end() ? kAll : 0;
}

// Of what the model has chosen.
Why Surveys::reason(const AgreedTables& tables) const {
  if (usual_.algorithm == bruck_) return Why::kPays;
  if (usual_.algorithm == merged_) return Why::kMerged;
  if (!model_.takes(0)) return Why::kNoRadix;
  if (!model_.takes(tables.longest_bytes)) return Why::kLongBlocks;
  AgreedTables repeated = tables;
  repeated.fresh_percent = 0;
  return is_pairwise(model_.choose(repeated)) ? Why::kSlower : Why::kNewTables;
}

const AlgorithmChoice& Surveys::next(const Tables& tables) {
  ++calls_;
  const bool due = is_due();
  ++counts_[static_cast<std::size_t>(due ? Why::kSurvey : why_)];
  if (!due && calls_ > 1) return usual_;
  const std::uint64_t hash = hash_of(tables);
  note_ = fresh_percent(hash);
  seen_[oldest_seen_++ % seen_.size()] = hash;
  new_plans_ = old_plans_ = 0;
  return due ? survey_ : usual_;
}

void Surveys::learn(const AlgorithmChoice& choice, std::span<const std::int64_t> learned) {
  if (choice == survey_) {
    const AgreedTables tables = agreed(learned);
    usual_ = model_.choose(tables);
    why_ = reason(tables);
    return;
  }
  if (choice.algorithm != bruck_) return;
  // First come all ranks' longest blocks.
  const auto longest = learned.first(std::min(learned.size(), static_cast<std::size_t>(ranks_)));
  const bool is_long = std::any_of(longest.begin(), longest.end(), [&](std::int64_t bytes) {
    return bytes > model_.longest_by_bruck(choice.params.k);
  });
  if (!is_long) return;
  usual_ = pairwise_exchange();
  why_ = Why::kGrown;
}

bool surveys_pay(Rank ranks, const Limits& limits, const TableCosts& costs) {
  const AgreedTables least{.longest_bytes = 1, .total_bytes = ranks, .blocks = ranks};
  return !is_pairwise(AlltoallvModel(ranks, limits, costs).choose(least));
}

}  // namespace carillon
