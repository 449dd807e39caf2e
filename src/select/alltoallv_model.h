// SPDX-License-Identifier: Apache-2.0
//
// How long an alltoallv between nodes takes, by formulas: alltoallv.pairwise against
// alltoallv.bruck_two_phase, and with which radix, and alltoallv.merged. docs/gainaru2016.md says
// how good it is.
#pragma once

#include <algorithm>
#include <array>

#include "algorithms/registry.h"

namespace carillon {

struct BruckStep;

/// What the ranks of a team know alike of their tables: the most that a rank has said (TableFact).
struct AgreedTables {
  std::int64_t longest_bytes = 0;  ///< block
  std::int64_t total_bytes = 0;    ///< that a rank sends
  std::int64_t blocks = 0;         ///< of a rank that are not empty
  std::int64_t fresh_percent = 0;  ///< of the calls: how many bring tables that none had before
};

/// Of a message between nodes by send and recv (machines/edr.toml), in nanoseconds. What copies
/// cost is in Limits.
struct TableCosts {
  double send = 80, post = 60, take = 80;  ///< CPU: to send, to say where to, to receive
  double latency = 600;
  double gap = 7, per_byte = 0.08;                   ///< the NIC's
  double near_message = 40, near_per_byte = 0.0821;  ///< CPU, on both sides of one within a node
  /// Of bruck_two_phase, for each rank of the team: to make the schedule for new tables, and to
  /// find the one for old ones (measured: docs/gainaru2016.md). Taken for merged's, too.
  double make_per_rank = 300, find_per_rank = 17;

  /// Of a message by TCP: its CPU as `carillon calibrate --cluster` measures it; latency and rate
  /// are estimates.
  [[nodiscard]] TableCosts by_sockets() const {
    TableCosts costs = *this;
    costs.send = 9500;
    costs.take = 1000;
    costs.latency = 10'000;
    costs.per_byte = 0.8;
    return costs;
  }
};

/// What is done where nothing else pays.
AlgorithmChoice pairwise_exchange();

class AlltoallvModel {
 public:
  AlltoallvModel(Rank ranks, const Limits& limits, const TableCosts& costs);

  [[nodiscard]] double pairwise_ns(const AgreedTables& tables) const;
  [[nodiscard]] double bruck_ns(Rank radix, const AgreedTables& tables) const;
  /// Only if some node has several ranks, and there are several.
  [[nodiscard]] double merged_ns(const AgreedTables& tables) const;
  /// The longest blocks that bruck_two_phase exchanges by Bruck in its second phase, too; -1: none.
  [[nodiscard]] std::int64_t longest_by_bruck(Rank radix) const {
    return longest_[static_cast<std::size_t>(radix)];
  }
  /// Whether there is a radix for such blocks, or they are merged.
  [[nodiscard]] bool takes(std::int64_t longest_bytes) const {
    return longest_bytes <= longest_merged_ ||
           longest_bytes <= *std::max_element(longest_.begin(), longest_.end());
  }
  /// bruck_two_phase with the best radix, or merged, if it takes a tenth less than pairwise
  /// exchange.
  [[nodiscard]] AlgorithmChoice choose(const AgreedTables& tables) const;

 private:
  static constexpr Rank kMostRadix = 8;
  struct Blocks {
    double bytes = 0;          // of one, on average
    double filled = 1;         // the share of them that are not empty
    double longest_bytes = 0;  // that go along for each rank whose longest block is told
  };
  struct Message {
    double bytes, runs, writers;
  };
  [[nodiscard]] Message message(const BruckStep& step, const Blocks& blocks) const;
  [[nodiscard]] double stage_ns(Rank radix, const Blocks& blocks) const;
  [[nodiscard]] double bring_ns(const Blocks& blocks) const;
  [[nodiscard]] double within_node_ns(const Blocks& blocks) const;
  [[nodiscard]] double near_ns(double bytes) const;
  [[nodiscard]] double plans_ns(const AgreedTables& tables) const;
  [[nodiscard]] double copy_ns(double bytes, double runs) const;
  [[nodiscard]] double nic_ns(double bytes) const { return costs_.gap + costs_.per_byte * bytes; }

  [[nodiscard]] double filled_share(const AgreedTables& tables) const {
    return std::min(static_cast<double>(tables.blocks) / ranks_, 1.0);
  }

  Rank ranks_;
  double node_;                       // ranks of a node,
  double carried_;                    // and the nodes that each of them carries for
  std::int64_t longest_merged_ = -1;  // by merged, without a parameter; -1: none are
  ListCosts copies_;
  Rank ahead_;
  TableCosts costs_;
  std::array<std::int64_t, kMostRadix + 1> longest_{};  // by radix
};

}  // namespace carillon
