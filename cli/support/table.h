// SPDX-License-Identifier: Apache-2.0
//
// Plain text tables: numbers to the right, the rest to the left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carillon::cli {

class Table {
 public:
  /// A heading that begins with '>' is of a column of numbers.
  explicit Table(std::vector<std::string> headings);
  void add(std::vector<std::string> cells);
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::string line(const std::vector<std::string>& cells) const;
  std::vector<std::string> headings_;
  std::vector<bool> numbers_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

/// "0.12", "8.5", "105": microseconds with three significant digits or so.
std::string short_number(double value);
/// "8", "4096", "64 KiB", "1 MiB".
std::string short_bytes(std::int64_t bytes);

}  // namespace carillon::cli
