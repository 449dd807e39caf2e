// SPDX-License-Identifier: Apache-2.0
//
// From what was measured on a machine to its machine file: `carillon calibrate`.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace carillon::machine {

/// Messages back and forth between two ranks, each a bcast.binomial of the two.
struct PingPong {
  static constexpr std::array<std::int64_t, 3> kBytes{8, 4096, 65536};
  struct Point {
    double one_way_ns = 0;  ///< half of there and back
    double root_ns = 0;     ///< the root's call
  };
  std::array<Point, kBytes.size()> points;
};

/// A copy, or a reduction: per call, and per byte of operands that fit the cache or do not.
struct MemoryCost {
  double call_ns = 0, cached_ns_per_byte = 0, ns_per_byte = 0;
};

struct Measured {
  std::string where;  ///< the machine and the day
  std::int32_t cores = 1;
  std::int64_t cache_bytes = 1 << 20;
  MemoryCost copy, reduce;
  double copy_run_ns = 0;           ///< of copy.call_ns, what each run of a list costs
  std::int32_t nodes_per_host = 1;  ///< nodes that share those cores
  PingPong node;                    ///< ranks of one node
  PingPong one_sided;               ///< ranks of two nodes, by remote write,
  PingPong two_sided;               ///< and by send and receive
  /// The same by two ranks on one core, which they yield to each other.
  PingPong node_one_core, one_sided_one_core;
  /// One way of messages that are lent, like node; 0: not measured.
  static constexpr std::array<std::int64_t, 2> kLentBytes{16384, 65536};
  std::array<double, kLentBytes.size()> lent_ns{};
  /// Each of kBurst messages of 8 bytes one way, and then the other way, like one_sided_one_core:
  /// no more than a channel holds, so that the cores are yielded once per burst. 0: not measured.
  static constexpr int kBurst = 8;
  double burst_one_core_ns = 0;
  /// One way of longer messages, like one_sided_one_core; 0: not measured.
  static constexpr std::array<std::int64_t, 2> kLongBytes{262144, 1048576};
  std::array<double, kLongBytes.size()> long_one_core_ns{};
};

/// The text of a machine file on which ping-pongs take as long as was measured.
std::string calibrated_file(const Measured& measured);

}  // namespace carillon::machine
