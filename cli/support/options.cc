// SPDX-License-Identifier: Apache-2.0
#include "support/options.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string_view>

#include "base/config.h"
#include "base/trace_file.h"
#include "select/rules.h"
#include "support/failure.h"
#include "support/settings.h"

namespace carillon::cli {
namespace {

template <typename Number>
bool parse_number(std::string_view text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

// The words of a list; after its last comma there is one, too.
std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream text(list + ',');
  for (std::string word; std::getline(text, word, ',');) words.push_back(word);
  return words;
}

}  // namespace

Arguments cut_program(const Command& command, Arguments* arguments) {
  std::size_t at = 0;
  for (; at < arguments->size() && (*arguments)[at].starts_with('-'); ++at) {
    const std::string& word = (*arguments)[at];
    if (word == "--") break;
    if (word == "-h" || word == "--help") return {};
    if (command.takes_value(word)) ++at;  // "-n 4"; "-n4" and "--ranks=4" are one word
  }
  at = std::min(at, arguments->size());
  const bool marked = at < arguments->size() && (*arguments)[at] == "--";
  const auto cut = arguments->begin() + static_cast<std::ptrdiff_t>(at);
  Arguments program(cut + (marked ? 1 : 0), arguments->end());
  arguments->erase(cut, arguments->end());
  if (program.empty()) throw Failure("which program?", kWrongUse);
  return program;
}

void require_settings(bool first_rank) {
  const Config config = value_or_fail(read_config());
  if (Result<Rules> rules = parse_rules(config.algorithm); !rules.ok()) {
    fail("CARILLON_ALGORITHM={}: {}", config.algorithm, rules.status().message());
  }
  require_forms(config);
  require_interposer_settings();
  require_files(config, first_rank);
}

void warn_of_unknown_settings() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("CARILLON_")) continue;
    // Of carillon cluster.
    if (name == "CARILLON_NODE" || name == "CARILLON_NODES") continue;
    if (name == "CARILLON_NODE_PROCESSES") continue;
    const auto known = all_settings();
    if (std::any_of(known.begin(), known.end(), [&](const Setting& s) { return s.name == name; })) {
      continue;
    }
    std::fprintf(stderr,
                 "carillon: warning: there is no setting %.*s; carillon info --config lists them\n",
                 static_cast<int>(name.size()), name.data());
  }
}

void require_trace(const std::string& file) {
  if (const Status status = empty_trace_file(file); !status.ok()) fail("{}", status.message());
}

void require_recording(const std::string& file) {
  std::error_code error;
  const bool was_there = std::filesystem::exists(file, error);
  const bool can_write = std::ofstream(file, std::ios::app).is_open();
  if (!can_write) fail("the recording {} cannot be written; choose another file", file);
  if (!was_there) std::filesystem::remove(file, error);
}

std::vector<std::int64_t> parse_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  if (text.empty()) fail("no sizes given; give some, as in --sizes 8,4096,64K,1M");
  for (const std::string& word : words_of(text)) {
    std::string_view digits = word;
    std::int64_t unit = 1;
    if (digits.ends_with('K') || digits.ends_with('k')) unit = 1024;
    if (digits.ends_with('M') || digits.ends_with('m')) unit = 1024 * 1024;
    if (digits.ends_with('G') || digits.ends_with('g')) unit = 1024 * 1024 * 1024;
    if (unit > 1) digits.remove_suffix(1);
    std::int64_t value = 0;
    if (!parse_number(digits, &value) || value < 0 || value > (std::int64_t{1} << 30) / unit) {
      fail("\"{}\" is not a size; give bytes from 0 to 1 GiB, as in --sizes 8,4096,64K,1M", word);
    }
    sizes.push_back(value * unit);
  }
  return sizes;
}

RankRange parse_ranks(const std::string& text, int max) {
  RankRange range;
  const std::size_t dash = text.find('-');
  const std::string_view whole(text);
  const std::string_view last = dash == std::string::npos ? whole : whole.substr(dash + 1);
  if (!parse_number(whole.substr(0, dash), &range.first) || !parse_number(last, &range.last) ||
      range.first < 1 || range.last < range.first) {
    fail("\"{}\" is not a range of ranks; write 1-24 or 7", text);
  }
  if (range.last > max) fail("{} ranks are too many here; at most {}", range.last, max);
  return range;
}

Rank NodesOption::ranks() const { return std::accumulate(sizes.begin(), sizes.end(), Rank{0}); }

std::shared_ptr<const Nodes> NodesOption::nodes(Rank ranks) const {
  std::vector<std::int32_t> node_of;
  for (Rank rank = 0; round_robin > 0 && rank < ranks; ++rank) {
    node_of.push_back(rank % round_robin);
  }
  for (std::size_t node = 0; node < sizes.size(); ++node) {
    node_of.insert(node_of.end(), static_cast<std::size_t>(sizes[node]),
                   static_cast<std::int32_t>(node));
  }
  return std::make_shared<Nodes>(node_of);
}

std::string NodesOption::text() const {
  if (round_robin > 0) return fmt::format("rr:{}", round_robin);
  return fmt::format("{}", fmt::join(sizes, ","));
}

NodesOption parse_nodes(const std::string& text, int max) {
  NodesOption option;
  const auto number = [&](std::string_view digits) {
    std::int32_t value = 0;
    if (!parse_number(digits, &value) || value < 1 || value > max) {
      fail(
          "\"{}\" does not say which ranks share a node; write 3,1,2 (so many on each) or rr:2 "
          "(round robin over two), at most {}",
          text, max);
    }
    return value;
  };
  if (text.starts_with("rr:")) {
    option.round_robin = number(std::string_view(text).substr(3));
    return option;
  }
  for (const std::string& word : words_of(text)) {
    option.sizes.push_back(number(word));
    if (option.ranks() > max) fail("{} ranks are too many here; at most {}", option.ranks(), max);
  }
  return option;
}

}  // namespace carillon::cli
