// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a machine as a machine file has them: one table of section, key and unit, the only
// list of them. Reading, describing and documenting machine files is driven by it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "machine/machine.h"

namespace carillon::machine {

enum class Unit : std::uint8_t { kNs, kNsPerByte, kBytes, kCount, kRatio, kFlag };

struct Field {
  std::string_view section;  ///< "network"
  std::string_view key;      ///< "latency_ns": the unit is the end of the key
  Unit unit;
  bool required;  ///< otherwise, where a file leaves it out, what Machine has
  std::string_view meaning;
  std::int64_t (*get)(const Machine&);  ///< in the machine's units
  void (*set)(Machine&, std::int64_t);

  /// "network.latency_ns"
  [[nodiscard]] std::string name() const;
  /// How many of the machine's units are one of the file's.
  [[nodiscard]] double scale() const;
  /// What the value must be within, in the file's unit: more or less is a slip.
  [[nodiscard]] double least() const;
  [[nodiscard]] double most() const;
  /// Whether only powers of two can be its values.
  [[nodiscard]] bool is_power_of_two() const;
  /// In the file's unit.
  [[nodiscard]] double value(const Machine& machine) const;
  /// Sets it to a value in the file's unit, rounded to the machine's.
  void set_value(Machine& machine, double value) const;
};

/// All of them, by section, in the order of a file.
std::span<const Field> fields();
/// Null if there is no field of that name.
const Field* find_field(std::string_view name);

/// Sections that a file may leave out: the machine then has none of it, or nobody asks.
bool section_is_optional(std::string_view section);

}  // namespace carillon::machine
