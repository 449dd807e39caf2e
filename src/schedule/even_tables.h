// SPDX-License-Identifier: Apache-2.0
//
// EvenTables: tables of blocks of one length, for calls that no program makes.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/problem.h"

namespace carillon {

/// Tables by which every rank sends `bytes` bytes to every other, one after
/// another. Empty for collectives without tables.
class EvenTables {
 public:
  EvenTables(const Shared& shared, std::int64_t bytes) {
    if (!has_tables(shared.collective)) return;
    for (Rank peer = 0; peer < shared.ranks; ++peer) {
      bytes_.push_back(bytes);
      offsets_.push_back(peer * bytes);
    }
  }
  [[nodiscard]] Tables view() const { return {bytes_, offsets_, bytes_, offsets_}; }

 private:
  std::vector<std::int64_t> bytes_, offsets_;
};

}  // namespace carillon
