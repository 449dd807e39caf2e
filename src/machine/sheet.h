// SPDX-License-Identifier: Apache-2.0
//
// A machine file (docs/machines.md): a machine, and for each of its numbers where it comes from and
// what it may be at least and at most.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "machine/fields.h"

namespace carillon::machine {

/// A number of the file, in the file's unit.
struct Number {
  const Field* field = nullptr;
  double value = 0, min = 0, max = 0;
  bool estimate = false;  ///< no source gives it
  std::string source;     ///< or the reason for the estimate

  [[nodiscard]] bool has_range() const { return min < max; }
};

/// Where a level of switches comes from.
struct LevelSource {
  bool estimate = false;
  std::string source;
};

struct Sheet {
  Machine machine;
  std::string title;
  std::vector<Number> numbers;  ///< as fields() orders them; those the file leaves out are missing
  std::vector<LevelSource> level_sources;  ///< of machine.topology.levels

  /// Null if the file leaves it out.
  [[nodiscard]] const Number* find(std::string_view field) const;
  /// Of a byte above all levels of machine.topology, at most. More than a file may say of one below
  /// them is refused: times have no room for it.
  [[nodiscard]] double top_ns_per_byte() const;
  static double most_ns_per_byte();
};

/// Reads the text of a machine file; errors begin with `file` and the line.
Result<Sheet> parse_sheet(std::string_view text, const std::string& file, const std::string& name);

/// One of machines/ by its name, or any machine file by its path (with a slash or .toml in it).
Result<Sheet> load_sheet(const std::string& name_or_path);
/// The same without the sources.
Result<Machine> load(const std::string& name_or_path);

/// The names that load() knows.
std::vector<std::string> machine_names();

}  // namespace carillon::machine
