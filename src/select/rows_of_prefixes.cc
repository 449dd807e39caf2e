// SPDX-License-Identifier: Apache-2.0
//
// The built-in table, continued (rows.cc says what it goes by): prefixes. scan and exscan have the
// same algorithms, which send the same messages, and the same rows.
#include <array>

#include "select/row_makers.h"

namespace carillon {
namespace {

using namespace rows;

// The first row that holds and can do the problem (operator) wins.
constexpr std::array kExscanRows = {
    // Chains, whose segments are the shorter the more ranks and the fewer bytes.
    Row{kCrowded, 3, kAnyBytes, "exscan.chain"},
    Row{kCrowded, kAnyRanks, 4 * kKiB, "exscan.recursive_doubling"},
    Row{kCrowded, kAnyRanks, kAnyBytes, "exscan.chain:segment=16384"},
    Row{kAnywhere, 2, kAnyBytes, "exscan.chain"},
    Row{kAnywhere, 3, 2 * kKiB, "exscan.chain"},
    Row{kAnywhere, kAnyRanks, 4 * kKiB, "exscan.recursive_doubling"},
    Row{kSingles, 12, 8 * kKiB, "exscan.recursive_doubling"},
    Row{kSingles, 24, 16 * kKiB, "exscan.recursive_doubling"},
    Row{kSingles, 24, 64 * kKiB, "exscan.chain:segment=2048"},
    Row{kSingles, kAnyRanks, 32 * kKiB, "exscan.recursive_doubling"},
    Row{kSingles, kAnyRanks, 64 * kKiB, "exscan.chain:segment=2048"},
    on_many_nodes(8, Row{kNodes, kAnyRanks, 8 * kKiB, "exscan.recursive_doubling"}),
    on_many_nodes(16, Row{kNodes, kAnyRanks, 16 * kKiB, "exscan.recursive_doubling"}),
    Row{kNodes, 12, 64 * kKiB, "exscan.chain:segment=2048"},
    Row{kNodes, kAnyRanks, 32 * kKiB, "exscan.chain:segment=1024"},
    Row{kAnywhere, kAnyRanks, 16 * kKiB, "exscan.chain:segment=512"},
    Row{kNodes, 24, 64 * kKiB, "exscan.chain:segment=2048"},
    Row{kAnywhere, kAnyRanks, 64 * kKiB, "exscan.chain:segment=1024"},
    Row{kAnywhere, 24, kAnyBytes, "exscan.chain:segment=4096"},
    Row{kAnywhere, kAnyRanks, kAnyBytes, "exscan.chain:segment=2048"},
};

// The row of exscan as one of scan: what is left of "exscan.chain" without its first letters.
constexpr Row of_scan(Row row) {
  row.choice.remove_prefix(std::string_view("ex").size());
  return row;
}

constexpr auto kPrefixRows = [] {
  std::array<Row, 2 * kExscanRows.size()> both{};
  for (std::size_t i = 0; i < kExscanRows.size(); ++i) {
    both[i] = kExscanRows[i];
    both[kExscanRows.size() + i] = of_scan(kExscanRows[i]);
  }
  return both;
}();

}  // namespace

std::span<const Row> rows_of_prefixes() { return kPrefixRows; }

}  // namespace carillon
