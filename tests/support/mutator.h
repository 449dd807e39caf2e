// SPDX-License-Identifier: Apache-2.0
//
// Small damages to a schedule's text.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace carillon::test {

using Lines = std::vector<std::string>;

// A damaged schedule: the lines of a stage of one rank, and what was done to them.
struct Mutant {
  Rank rank = 0;
  std::int32_t stage = 0;
  std::string what;
  Lines lines;
};

inline Lines lines_of(const std::string& text) {
  Lines lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

inline std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

inline bool is_op(const std::string& line) {
  for (const char* const other : {"schedule", "strand", "phase", "}", "learn"}) {
    if (line.starts_with(other)) return false;
  }
  return line.find('{') == std::string::npos;
}

// The mutants of one rank's schedule of a stage.
class Mutator {
 public:
  Mutator(Rank rank, std::int32_t stage, const std::string& text)
      : rank_(rank), stage_(stage), lines_(lines_of(text)) {}

  std::vector<Mutant> all() {
    for (std::size_t i = 1; i < lines_.size(); ++i) {
      if (is_op(lines_[i])) damage_op(i);
      if (!lines_[i].starts_with("phase")) change_numbers(i);
    }
    reorder_strands();
    return std::move(mutants_);
  }

 private:
  void add(std::string what, Lines lines) {
    mutants_.push_back({rank_, stage_, std::move(what), std::move(lines)});
  }
  void add_line(const std::string& what, std::size_t at, std::string line) {
    Lines lines = lines_;
    lines[at] = std::move(line);
    add(what + " '" + lines_[at] + "' to '" + lines[at] + "'", lines);
  }

  void damage_op(std::size_t i) {
    Lines lines = lines_;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    add("drop '" + lines_[i] + "'", lines);
    lines = lines_;
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i), lines_[i]);
    add("duplicate '" + lines_[i] + "'", lines);
    for (std::size_t j = i + 1; j < std::min(i + 4, lines_.size()); ++j) {
      lines = lines_;
      std::swap(lines[i], lines[j]);
      add("swap '" + lines_[i] + "' and '" + lines_[j] + "'", lines);
    }
    swap_buffers(i);
    change_spaces(i);
  }

  // The last two buffers of a list: operands of a reduce, order of a gather list.
  void swap_buffers(std::size_t i) {
    const std::string& line = lines_[i];
    const std::size_t end = line.rfind("] ");
    if (end == std::string::npos) return;
    const std::size_t begin = std::max(line.find("= ") + 1, line.rfind("] ", end - 1) + 1);
    const std::size_t start = line.find_first_not_of(' ', std::min(begin, end));
    if (line.find("= ", start) != std::string::npos) return;
    const std::string left = line.substr(start, end + 1 - start);
    const std::string right = line.substr(end + 2);
    if (left.find(' ') == std::string::npos || line.find("reduce") != std::string::npos) {
      add_line("swap operands", i, line.substr(0, start) + right + " " + left);
    }
  }

  void change_spaces(std::size_t i) {
    const std::pair<std::string, std::string> changes[] = {
        {"input[", "output["}, {"output[", "scratch["}, {"scratch[", "output["}};
    for (const auto& [from, to] : changes) {
      for (auto at = lines_[i].find(from); at != std::string::npos;
           at = lines_[i].find(from, at + 1)) {
        std::string line = lines_[i];
        add_line("space", i, line.replace(at, from.size(), to));
      }
    }
  }

  // Every number of the line: offsets, lengths, strides, peers, message indices, loop counts.
  void change_numbers(std::size_t i) {
    const std::string& line = lines_[i];
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (std::isdigit(static_cast<unsigned char>(line[at])) == 0) continue;
      std::size_t end = at;
      while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])) != 0) ++end;
      const long value = std::stol(line.substr(at, end - at));
      std::set<long> values{value + 1, value - 1, value + 8, value - 8, 2 * value, 0};
      values.erase(value);
      for (const long changed : values) {
        if (changed < 0) continue;
        add_line("change", i, line.substr(0, at) + std::to_string(changed) + line.substr(end));
      }
      at = end;
    }
  }

  void reorder_strands() {
    const auto strand = std::find(lines_.begin(), lines_.end(), "strand");
    if (strand == lines_.end()) return;
    Lines merged = lines_;
    merged.erase(merged.begin() + (strand - lines_.begin()));
    add("merge strands", merged);
    Lines turned{lines_.front()};
    turned.insert(turned.end(), strand + 1, lines_.end());
    turned.insert(turned.end(), lines_.begin() + 1, strand);
    add("run strands one after the other", turned);
  }

  Rank rank_;
  std::int32_t stage_;
  Lines lines_;
  std::vector<Mutant> mutants_;
};

}  // namespace carillon::test
