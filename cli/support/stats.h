// SPDX-License-Identifier: Apache-2.0
//
// What the interposer says it took, by way of CARILLON_STATS=PREFIX and the file of rank 0.
#pragma once

#include <cstdint>
#include <string>

#include "support/process.h"

namespace carillon::cli {

/// A temporary folder for the files; gone with the object.
class StatsFile {
 public:
  StatsFile();
  ~StatsFile();
  StatsFile(const StatsFile&) = delete;
  StatsFile& operator=(const StatsFile&) = delete;

  /// The value of CARILLON_STATS.
  [[nodiscard]] std::string setting() const { return folder_ / "stats"; }
  /// Calls of "reduce_scatter_block" that rank 0 did with carillon; 0 if there is no file.
  [[nodiscard]] std::int64_t taken(const std::string& collective) const;

 private:
  Path folder_;
};

}  // namespace carillon::cli
