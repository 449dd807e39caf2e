// SPDX-License-Identifier: Apache-2.0
//
// What reading any of our TOML files takes: the first error, with file and line, and values of a
// known type.
#pragma once

// What toml++ expects of a file it does not only assert: it says what is wrong with the file. An
// assertion would end the process, in builds that have them.
#define TOML_ASSERT(expression) static_assert(true)

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/embedded.h"
#include "base/status.h"
#include "base/whole_file.h"

namespace carillon::machine {

class TomlReader {
 public:
  TomlReader(std::string_view text, std::string file) : file_(std::move(file)) {
    try {
      root_ = toml::parse(text, file_);
    } catch (const toml::parse_error& error) {
      fail(error.source().begin.line, "{}", error.description());
    }
  }

  [[nodiscard]] const toml::table& root() const { return root_; }
  [[nodiscard]] const Status& status() const { return status_; }

  static unsigned line_of(const toml::node& node) { return node.source().begin.line; }

  /// The first error counts.
  template <typename... Args>
  void fail(unsigned line, fmt::format_string<Args...> format, Args&&... args) {
    if (!status_.ok()) return;
    status_ = Status(
        Code::kInvalidArgument,
        fmt::format("{}:{}: {}", file_, line, fmt::format(format, std::forward<Args>(args)...)));
  }
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  /// Fails for a key of `table`, which is `where`, that is not among `known`.
  void require_known(const toml::table& table, const std::string& where,
                     const std::set<std::string_view>& known) {
    for (const auto& [key, node] : table) {
      if (known.count(key.str()) > 0) continue;
      std::string list;
      for (const std::string_view one : known) {
        list += list.empty() ? "" : ", ";
        list += one;
      }
      fail(line_of(node), "{} has no {}; it may have {}", where, key.str(), list);
    }
  }

  /// The table's text of that key, or the default where there is none; null default: required.
  std::string text(const toml::table& table, std::string_view key, const std::string& where,
                   const char* fallback = nullptr) {
    const toml::node* const node = table.get(key);
    if (node == nullptr) {
      if (fallback == nullptr) fail(line_of(table), "{} needs {} = \"...\"", where, key);
      return fallback == nullptr ? "" : fallback;
    }
    if (const auto value = node->value<std::string>(); value && !value->empty()) return *value;
    fail(line_of(*node), "{}: {} must be text", where, key);
    return "";
  }

  /// The table's number of that key; fails if there is none or it is outside of least..most.
  double number(const toml::table& table, std::string_view key, const std::string& where,
                double least, double most) {
    const toml::node* const node = table.get(key);
    if (node == nullptr) {
      fail(line_of(table), "{} needs {} = a number", where, key);
      return least;
    }
    const auto value = node->value<double>();
    if (!node->is_number() || !value) {
      fail(line_of(*node), "{}: {} must be a number", where, key);
      return least;
    }
    if (!(*value >= least && *value <= most)) {
      fail(line_of(*node), "{}: {} is {}; it must be within {} and {}", where, key, *value, least,
           most);
      return least;
    }
    return *value;
  }
  /// The same of a whole number.
  std::int64_t whole(const toml::table& table, std::string_view key, const std::string& where,
                     std::int64_t least, std::int64_t most) {
    const double value =
        number(table, key, where, static_cast<double>(least), static_cast<double>(most));
    if (value != std::floor(value)) {
      fail(line_of(*table.get(key)), "{}: {} must be a whole number, not {}", where, key, value);
    }
    return static_cast<std::int64_t>(value);
  }

  /// The file's section of that name; null where there is none. Fails for what is no section.
  const toml::table* section(std::string_view name) {
    const toml::node* const node = root_.get(name);
    if (node == nullptr) return nullptr;
    if (!node->is_table()) fail(line_of(*node), "{} must be a section: [{}]", name, name);
    return node->as_table();
  }

 private:
  std::string file_;
  toml::table root_;
  Status status_;
};

/// A file's text and what to call it.
struct DataFile {
  std::string path, name, text;
};

/// One of the built-in files of `folder` by its name, or any file by its path (with a slash or
/// .toml in it). `kind`: what there is one of in a file.
inline Result<DataFile> find_file(const std::string& name_or_path,
                                  std::span<const EmbeddedFile> built_in, const std::string& folder,
                                  const std::string& kind) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml")) {
    Result<std::string> text = read_whole_file(name_or_path);
    if (!text.ok()) return text.status();
    return DataFile{name_or_path, std::filesystem::path(name_or_path).stem().string(),
                    std::move(text.value())};
  }
  std::string names;
  for (const EmbeddedFile& file : built_in) {
    const std::string name(file.name);
    if (name == name_or_path)
      return DataFile{folder + "/" + name + ".toml", name, std::string(file.text)};
    names += (names.empty() ? "" : ", ") + name;
  }
  return Status(Code::kInvalidArgument,
                fmt::format("there is no {} \"{}\"; there are {}, or give the path of a file", kind,
                            name_or_path, names));
}

}  // namespace carillon::machine
