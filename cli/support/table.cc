// SPDX-License-Identifier: Apache-2.0
#include "support/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace carillon::cli {

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    numbers_.push_back(heading.starts_with('>'));
    if (numbers_.back()) heading.erase(0, 1);
    widths_.push_back(heading.size());
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(headings_.size());
  for (std::size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], cells[i].size());
  rows_.push_back(std::move(cells));
}

std::string Table::line(const std::vector<std::string>& cells) const {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text += "  ";
    text += numbers_[i] ? fmt::format("{:>{}}", cells[i], widths_[i])
                        : fmt::format("{:<{}}", cells[i], widths_[i]);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string Table::text() const {
  std::string text = line(headings_);
  for (const auto& row : rows_) text += line(row);
  return text;
}

std::string short_number(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

std::string short_bytes(std::int64_t bytes) {
  constexpr std::int64_t kKiB = 1024;
  if (bytes >= kKiB * kKiB && bytes % (kKiB * kKiB) == 0) {
    return fmt::format("{} MiB", bytes / kKiB / kKiB);
  }
  if (bytes >= 16 * kKiB && bytes % kKiB == 0) return fmt::format("{} KiB", bytes / kKiB);
  return fmt::format("{}", bytes);
}

}  // namespace carillon::cli
