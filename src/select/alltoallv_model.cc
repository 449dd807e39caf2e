// SPDX-License-Identifier: Apache-2.0
#include "select/alltoallv_model.h"

#include <algorithm>
#include <cmath>

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

AlgorithmChoice pairwise_exchange() {
  return {.algorithm = find_algorithm("alltoallv.pairwise"), .params = {}};
}

AlltoallvModel::AlltoallvModel(Rank ranks, const Limits& limits, const TableCosts& costs)
    : ranks_(ranks),
      node_(limits.node_size(0, ranks)),
      carried_(limits.one_node() ? 0 : std::ceil((limits.nodes->count() - 1) / node_)),
      copies_(limits.list_costs),
      ahead_(limits.large_slots),
      costs_(limits.sockets ? costs.by_sockets() : costs) {
  longest_.fill(-1);
  if (!limits.one_node() && limits.nodes->largest() > 1) {
    longest_merged_ = find_algorithm("alltoallv.merged")->k.fallback;
  }
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
  const double cpu =
      away * (costs_.send + costs_.post + costs_.take + 2 * copy) + near * near_ns(bytes);
  return std::max(cpu, node_ * away * nic_ns(bytes)) + costs_.latency + filled * copy;
}

double AlltoallvModel::bruck_ns(Rank radix, const AgreedTables& tables) const {
  const double mean = static_cast<double>(tables.total_bytes) / ranks_;
  const double lengths_ns =
      stage_ns(radix, {.bytes = kNumberBytes, .filled = 1, .longest_bytes = kNumberBytes});
  const double blocks_ns =
      mean == 0 ? 0 : stage_ns(radix, {.bytes = mean, .filled = filled_share(tables)});
  return lengths_ns + blocks_ns + plans_ns(tables);
}

double AlltoallvModel::merged_ns(const AgreedTables& tables) const {
  const double filled = filled_share(tables);
  const Blocks blocks{.bytes = static_cast<double>(tables.total_bytes) / ranks_, .filled = filled};
  double now = bring_ns({.bytes = kNumberBytes}) + plans_ns(tables);
  if (filled == 0) return now;
  now += bring_ns(blocks) + within_node_ns(blocks);
  const double straight = copy_ns(blocks.bytes / filled, 1);
  return now + filled * ((node_ - 1) * near_ns(blocks.bytes / filled) + straight);
}

AlgorithmChoice AlltoallvModel::choose(const AgreedTables& tables) const {
  AlgorithmChoice best = pairwise_exchange();
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
  if (tables.longest_bytes > longest_merged_ || merged_ns(tables) >= least) return best;
  return {.algorithm = find_algorithm("alltoallv.merged"), .params = {}};
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

// To the carriers of a node, from them to those of others.
double AlltoallvModel::bring_ns(const Blocks& blocks) const {
  const double bytes = node_ * node_ * blocks.bytes;
  const double cpu = carried_ * (costs_.send + costs_.post + costs_.take + 2 * copy_ns(bytes, 1));
  const double nic = std::min(node_ * carried_, ranks_ / node_ - 1) * nic_ns(bytes);
  return within_node_ns(blocks) + std::max(cpu, nic) + costs_.latency;
}

// What a carrier is given by the others of its node, or gives them.
double AlltoallvModel::within_node_ns(const Blocks& blocks) const {
  const double row = carried_ * node_ * blocks.bytes;
  return (node_ - 1) * near_ns(row) + copy_ns(row, carried_ * node_ * blocks.filled);
}

double AlltoallvModel::near_ns(double bytes) const {
  return costs_.near_message + costs_.near_per_byte * bytes + copy_ns(bytes, 1);
}

double AlltoallvModel::plans_ns(const AgreedTables& tables) const {
  const double fresh = std::min(static_cast<double>(tables.fresh_percent) / 100, 1.0);
  return ranks_ * (costs_.find_per_rank + fresh * costs_.make_per_rank);
}

double AlltoallvModel::copy_ns(double bytes, double runs) const {
  if (bytes == 0) return 0;
  return static_cast<double>(copies_.copy_ps) / 1e3 +
         runs * static_cast<double>(copies_.run_ps) / 1e3 +
         bytes * static_cast<double>(copies_.byte_fs) / 1e6;
}

}  // namespace carillon
