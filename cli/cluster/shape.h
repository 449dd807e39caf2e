// SPDX-License-Identifier: Apache-2.0
//
// What a virtual cluster looks like: how many ranks each node has, and how fast its wire is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carillon::cli {

/// Each node is several processes and a share of the same cores: a slip of the finger should not.
inline constexpr int kMaxNodes = 64;

struct Shape {
  std::vector<int> ranks_per_node;

  [[nodiscard]] int nodes() const { return static_cast<int>(ranks_per_node.size()); }
  [[nodiscard]] int ranks() const;
};

/// "3,1,2": ranks of node 0, 1, 2; fails if it is not.
Shape parse_shape(const std::string& text);

/// "200mbit", "1.5gbit", "800kbit" in bits per second, as tc reads them; fails if it is not.
std::int64_t parse_rate(const std::string& text);

/// "3K", "256K" in bytes, for --burst; fails if that is not what a wire can have.
std::int64_t parse_burst(const std::string& text);

/// "1%", "0.1%" as a share, 0.01, of at most a half; `option` is what it was given to.
double parse_share(const std::string& option, const std::string& text);

/// "node3".
std::string node_name(int node);

}  // namespace carillon::cli
