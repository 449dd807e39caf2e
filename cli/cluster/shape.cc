// SPDX-License-Identifier: Apache-2.0
#include "cluster/shape.h"

#include <array>
#include <charconv>
#include <numeric>
#include <sstream>
#include <string_view>

#include "support/failure.h"
#include "support/options.h"

namespace carillon::cli {
namespace {

struct Unit {
  std::string_view name;
  double bits;
};
constexpr std::array kUnits = {Unit{"kbit", 1e3}, Unit{"mbit", 1e6}, Unit{"gbit", 1e9}};

// Slower, and the launcher's own messages time out; faster, and tc cannot count it.
constexpr double kMinRate = 100e3, kMaxRate = 100e9;

// A packet with its headers has to fit; and what fits into the queue is no burst.
constexpr std::int64_t kMinBurst = 2 << 10, kMaxBurst = 8 << 20;

// With more, connections would not come about.
constexpr double kMinPercent = 0.001, kMaxPercent = 50;

}  // namespace

int Shape::ranks() const {
  return std::accumulate(ranks_per_node.begin(), ranks_per_node.end(), 0);
}

Shape parse_shape(const std::string& text) {
  Shape shape;
  std::istringstream words(text + ",");  // so that a comma at the end is seen
  for (std::string word; std::getline(words, word, ',');) {
    int ranks = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, ranks);
    if (error != std::errc() || stop != end || ranks < 1 || ranks > kMaxRanksStarted) {
      fail("\"{}\" is not a shape; give the ranks of each node, as in --shape 3,1,2", text);
    }
    shape.ranks_per_node.push_back(ranks);
  }
  return shape;
}

std::int64_t parse_rate(const std::string& text) {
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    double number = 0;
    const char* const end = text.data() + text.size() - unit.name.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end) break;
    const double bits = number * unit.bits;
    if (!(bits >= kMinRate && bits <= kMaxRate)) {
      fail("a rate of {} is out of range; there can be 100kbit to 100gbit", text);
    }
    return static_cast<std::int64_t>(bits);
  }
  fail("\"{}\" is not a rate; write it as in --rate 200mbit (kbit, mbit or gbit per second)", text);
}

std::int64_t parse_burst(const std::string& text) {
  std::int64_t number = 0, unit = 1;
  const char* end = text.data() + text.size();
  if (text.ends_with('K')) unit = 1 << 10;
  if (text.ends_with('M')) unit = 1 << 20;
  if (unit > 1) --end;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number > 0 && number <= kMaxBurst / unit &&
      number * unit >= kMinBurst) {
    return number * unit;
  }
  fail("--burst \"{}\" is no burst of 2K to 8M; write it as in --burst 3K", text);
}

double parse_share(const std::string& option, const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size() - 1;
  if (text.ends_with('%')) {
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end && number >= kMinPercent && number <= kMaxPercent) {
      return number / 100;
    }
  }
  fail("{} \"{}\" is no share of 0.001% to 50%; write it as in {} 1%", option, text, option);
}

std::string node_name(int node) { return fmt::format("node{}", node); }

}  // namespace carillon::cli
