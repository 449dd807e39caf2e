// SPDX-License-Identifier: Apache-2.0
//
// What carillon sim prints and writes.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "sim/replay.h"
#include "sim/sim.h"
#include "support/failure.h"
#include "support/json.h"

namespace carillon::cli {

/// A call that was simulated.
struct SimRow {
  Rank ranks = 1;
  std::int64_t bytes = 0;
  std::string algorithm = {};
  std::int32_t nodes = 1;
  sim::Report report = {};
  double wall_s = 0, cpu_s = 0;
  std::int64_t peak_rss_bytes = 0;  ///< of the process so far
};

/// Of this process until now.
std::int64_t peak_rss_bytes();

/// What is said of a sweep's row that cannot be: the rows before it have been printed.
Failure failed_row(const std::string& row, const Failure& why, std::size_t done, std::size_t rows);

/// What all rows have in common.
struct SimCommon {
  std::string collective, machine;
  double skew_us = 0;
  std::uint64_t seed = 1;
  bool sweep = false;
};

/// Prints rows: CSV as they come, JSON and tables at the end.
class SimOutput {
 public:
  enum class Form { kText, kJson, kCsv };
  SimOutput(Form form, SimCommon common);
  void add(const SimRow& row);
  void end();

 private:
  void print_csv_head();
  void print_json() const;
  void print_text() const;

  Form form_;
  SimCommon common_;
  std::vector<SimRow> rows_;
};

/// Of a call or a program.
Json path_json(const std::vector<sim::PathStep>& path);
void print_path(const std::vector<sim::PathStep>& path);

/// A file of spans in Chrome's trace format, written as they come.
class Timeline {
 public:
  explicit Timeline(const std::string& path);
  void add(const sim::Span& span);
  /// Of a program: above what its collectives do.
  void add(const sim::StepSpan& span);
  void end();

 private:
  void add(const std::string& event);

  std::string path_;
  std::ofstream file_;
  bool first_ = true;
};

}  // namespace carillon::cli
