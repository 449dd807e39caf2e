// SPDX-License-Identifier: Apache-2.0
#include "select/alltoallv_model.h"

#include <algorithm>

#include "algorithms/common/bruck_lengths.h"

namespace carillon {
namespace {

constexpr double kLeast = 0.9;  // of the time of pairwise exchange: the formulas are not exact

std::int64_t longest_of(Rank ranks, Rank radix, const Limits& limits) {
  const Call call{.shared = {.collective = Collective::kAlltoallv, .ranks = ranks},
                  .local = {},
                  .rank = 0,
                  .limits = limits,
                  .params = {.k = radix}};
  const BruckLengths lengths(call);
  return lengths.numbers_fit() ? lengths.most_block_bytes() : -1;
}

}  // namespace

AlltoallvModel::AlltoallvModel(Rank ranks, const Limits& limits, const TableCosts& costs)
    : ranks_(ranks),
      node_(limits.node_size(0, ranks)),
      copies_(limits.list_costs),
      ahead_(limits.large_slots),
      costs_(costs) {
  longest_.fill(-1);
  for (Rank radix = 2; radix <= kMostRadix && radix < ranks; ++radix) {
    longest_[static_cast<std::size_t>(radix)] = longest_of(ranks, radix, limits);
  }
}

// Only blocks that are not empty are messages.
double AlltoallvModel::pairwise_ns(const AgreedTables& tables) const {
  const double filled = filled_share(tables);
  if (filled == 0) return 0;
  const double bytes = static_cast<double>(tables.total_bytes) / (filled * ranks_);
  const double copy = copy_ns(bytes, 1);
  const double away = filled * (ranks_ - node_), near = filled * (node_ - 1);
  const double cpu = away * (costs_.send + costs_.post + costs_.take + 2 * copy) +
                     near * (costs_.near_message + costs_.near_per_byte * bytes + copy);
  return std::max(cpu, node_ * away * nic_ns(bytes)) + costs_.latency + filled * copy;
}

double AlltoallvModel::bruck_ns(Rank radix, const AgreedTables& tables) const {
  const double fresh = std::min(static_cast<double>(tables.fresh_percent) / 100, 1.0);
  const double mean = static_cast<double>(tables.total_bytes) / ranks_;
  const double lengths_ns =
      stage_ns(radix, {.bytes = kNumberBytes, .filled = 1, .longest_bytes = kNumberBytes});
  const double blocks_ns =
      mean == 0 ? 0 : stage_ns(radix, {.bytes = mean, .filled = filled_share(tables)});
  return lengths_ns + blocks_ns + ranks_ * (costs_.find_per_rank + fresh * costs_.make_per_rank);
}

AlgorithmChoice AlltoallvModel::choose(const AgreedTables& tables) const {
  AlgorithmChoice best{.algorithm = find_algorithm("alltoallv.pairwise"), .params = {}};
  AlgorithmChoice bruck{.algorithm = find_algorithm("alltoallv.bruck_two_phase"), .params = {}};
  double least = kLeast * pairwise_ns(tables);
  for (Rank radix = 2; radix <= kMostRadix && radix < ranks_; ++radix) {
    if (tables.longest_bytes > longest_by_bruck(radix)) continue;
    const double ns = bruck_ns(radix, tables);
    if (ns >= least) continue;
    least = ns;
    bruck.params.k = radix;
    best = bruck;
  }
  return best;
}

AlltoallvModel::Message AlltoallvModel::message(const BruckStep& step, const Blocks& blocks) const {
  const auto distance = static_cast<double>(step.distance());
  const double known = std::min(static_cast<double>(step.weight), ranks_ - distance);
  return {.bytes = step.count() * blocks.bytes + known * blocks.longest_bytes,
          .runs = step.count() * blocks.filled,
          .writers = std::min({node_, distance, ranks_ - distance})};
}

// All rounds. All ranks send alike: a message comes when the rank's own one arrives.
double AlltoallvModel::stage_ns(Rank radix, const Blocks& blocks) const {
  double now = 0, nic_free = 0;
  std::array<double, kMostRadix> arrival{};
  const auto send = [&](const BruckStep& step) {
    const Message sent = message(step, blocks);
    now += costs_.send + copy_ns(sent.bytes, sent.runs);
    nic_free = std::max(nic_free, now) + sent.writers * nic_ns(sent.bytes);
    arrival[static_cast<std::size_t>(step.digit)] = nic_free + costs_.latency;
  };
  const auto take = [&](const BruckStep& step) {
    const Message taken = message(step, blocks);
    now = std::max(now + costs_.post, arrival[static_cast<std::size_t>(step.digit)]) + costs_.take +
          copy_ns(taken.bytes, taken.runs);
  };
  for_each_bruck_round(ranks_, radix, [&](const BruckStep& first, Rank digits) {
    do_bruck_round(first, digits, std::min(digits, ahead_), send, take);
  });
  return now;
}

double AlltoallvModel::copy_ns(double bytes, double runs) const {
  if (bytes == 0) return 0;
  return static_cast<double>(copies_.copy_ps) / 1e3 +
         runs * static_cast<double>(copies_.run_ps) / 1e3 +
         bytes * static_cast<double>(copies_.byte_fs) / 1e6;
}

}  // namespace carillon
