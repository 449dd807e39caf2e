// SPDX-License-Identifier: Apache-2.0
#include "machine/sheet.h"

#include <bit>
#include <cmath>
#include <map>

#include "base/embedded.h"
#include "machine/toml_reader.h"

namespace carillon::machine {
namespace {

class SheetReader {
 public:
  SheetReader(std::string_view text, const std::string& file) : toml_(text, file) {}

  Result<Sheet> read(const std::string& name) {
    sheet_.machine.name = name;
    if (toml_.status().ok()) read_all();
    if (!toml_.status().ok()) return toml_.status();
    return std::move(sheet_);
  }

 private:
  void read_all() {
    const toml::table& root = toml_.root();
    std::set<std::string_view> known = {"title", "sources"};
    for (const Field& field : fields()) known.insert(field.section);
    toml_.require_known(root, "the file", known);
    sheet_.title = toml_.text(root, "title", "the file");
    read_sources();
    std::string_view section;
    for (const Field& field : fields()) {
      if (field.section != section) check_section(section = field.section);
      read_field(field);
    }
    read_levels();
    sheet_.machine.datagram.known = root.contains("datagram");
    sheet_.machine.multicast.known = root.contains("multicast");
    const Node& node = sheet_.machine.node;
    if (node.ranks > node.cores) {
      toml_.fail(line_of_section("node"), "node.ranks is {}, but a node has {} cores", node.ranks,
                 node.cores);
    }
  }

  unsigned line_of_section(std::string_view section) {
    const toml::node* const node = toml_.root().get(section);
    return node == nullptr ? 1 : TomlReader::line_of(*node);
  }

  void read_sources() {
    const toml::table* const table = toml_.root()["sources"].as_table();
    if (table == nullptr) {
      toml_.fail(1, "there is no section [sources]; add NAME = \"where numbers come from\" there");
      return;
    }
    for (const auto& [key, node] : *table) {
      sources_[std::string(key.str())] = toml_.text(*table, key.str(), "sources");
    }
  }

  void check_section(std::string_view section) {
    const toml::node* const node = toml_.root().get(section);
    if (node == nullptr) {
      if (!section_is_optional(section)) toml_.fail(1, "section [{}] is missing", section);
      return;
    }
    if (!node->is_table()) {
      toml_.fail(TomlReader::line_of(*node), "{} must be a section: [{}]", section, section);
      return;
    }
    std::set<std::string_view> known;
    for (const Field& field : fields()) {
      if (field.section == section) known.insert(field.key);
    }
    if (section == "topology") known.insert("levels");
    toml_.require_known(*node->as_table(), fmt::format("section [{}]", section), known);
  }

  void read_field(const Field& field) {
    const toml::table* const section = toml_.root()[field.section].as_table();
    if (section == nullptr) return;
    const toml::node* const node = section->get(field.key);
    if (node == nullptr) {
      if (field.required) {
        toml_.fail(TomlReader::line_of(*section),
                   "{} is missing ({}); add {} = {{value = ..., source = \"...\"}}", field.name(),
                   field.meaning, field.key);
      }
      return;
    }
    const toml::table* const table = node->as_table();
    if (table == nullptr) {
      toml_.fail(TomlReader::line_of(*node),
                 "{} must say where it comes from: {} = {{value = ..., source = \"...\"}}",
                 field.name(), field.key);
      return;
    }
    Number number = read_number(field, *table);
    if (!toml_.status().ok()) return;
    field.set_value(sheet_.machine, number.value);
    sheet_.numbers.push_back(std::move(number));
  }

  Number read_number(const Field& field, const toml::table& table) {
    const std::string name = field.name();
    toml_.require_known(table, name, {"value", "min", "max", "source", "estimate"});
    Number number{.field = &field};
    const toml::node* const value = table.get("value");
    if (field.unit == Unit::kFlag && value != nullptr) {
      if (!value->is_boolean()) {
        toml_.fail(TomlReader::line_of(*value), "{} must be true or false", name);
      }
      number.value = value->value_or(false) ? 1 : 0;
    } else {
      number.value = toml_.number(table, "value", name, field.least(), field.most());
      if ((field.unit == Unit::kCount || field.unit == Unit::kBytes) &&
          number.value != static_cast<double>(static_cast<std::int64_t>(number.value))) {
        toml_.fail(TomlReader::line_of(table), "{} must be a whole number", name);
      }
    }
    number.min = number.max = number.value;
    if (table.contains("min") || table.contains("max")) {
      number.min = toml_.number(table, "min", name, field.least(), number.value);
      number.max = toml_.number(table, "max", name, number.value, field.most());
    }
    for (const double one : {number.value, number.min, number.max}) {
      if (!field.is_power_of_two() || std::has_single_bit(static_cast<std::uint64_t>(one)))
        continue;
      toml_.fail(TomlReader::line_of(table), "{} must be a power of two, not {}", name, one);
    }
    read_source(name, table, &number.source, &number.estimate);
    if (number.estimate && !number.has_range() && field.unit != Unit::kFlag) {
      toml_.fail(TomlReader::line_of(table), "{} is an estimate: it needs min and max", name);
    }
    return number;
  }

  void read_source(const std::string& name, const toml::table& table, std::string* text,
                   bool* estimate) {
    *estimate = table.contains("estimate");
    if (*estimate == table.contains("source")) {
      toml_.fail(TomlReader::line_of(table),
                 "{} must have either a source (one of [sources]) or an estimate (why so much)",
                 name);
      return;
    }
    *text = toml_.text(table, *estimate ? "estimate" : "source", name);
    if (*estimate || !toml_.status().ok()) return;
    const auto found = sources_.find(*text);
    if (found == sources_.end()) {
      toml_.fail(TomlReader::line_of(table), "{}: there is no source \"{}\" in [sources]", name,
                 *text);
      return;
    }
    *text = found->second;
  }

  // [[topology.levels]]
  void read_levels() {
    const toml::node* const node = toml_.root()["topology"]["levels"].node();
    if (node == nullptr) return;
    const toml::array* const levels = node->as_array();
    if (levels == nullptr || !levels->is_homogeneous<toml::table>()) {
      toml_.fail(TomlReader::line_of(*node), "the levels must be sections: [[topology.levels]]");
      return;
    }
    for (const toml::node& one : *levels) {
      const toml::table& level = *one.as_table();
      toml_.require_known(level, "the level", {"radix", "oversubscription", "source", "estimate"});
      const std::int64_t radix = toml_.whole(level, "radix", "the level", 1, 1 << 20);
      const double over = level.contains("oversubscription")
                              ? toml_.number(level, "oversubscription", "the level", 1, 1000)
                              : 1;
      LevelSource& from = sheet_.level_sources.emplace_back();
      read_source("the level", level, &from.source, &from.estimate);
      sheet_.machine.topology.levels.push_back(
          {static_cast<std::int32_t>(radix), std::llround(over * 1000)});
    }
    if (const double top = sheet_.top_ns_per_byte(); top > Sheet::most_ns_per_byte()) {
      toml_.fail(TomlReader::line_of(*node),
                 "the levels: a byte takes {:g} ns above them, which is network.ns_per_byte times "
                 "all oversubscriptions; the most is {}",
                 top, Sheet::most_ns_per_byte());
    }
  }

  TomlReader toml_;
  Sheet sheet_;
  std::map<std::string, std::string> sources_;
};

}  // namespace

const Number* Sheet::find(std::string_view field) const {
  for (const Number& number : numbers) {
    if (number.field->name() == field) return &number;
  }
  return nullptr;
}

double Sheet::top_ns_per_byte() const {
  const Number* const number = find("network.ns_per_byte");
  double ns = number == nullptr ? 0 : number->max;
  for (const Level& level : machine.topology.levels) {
    ns *= static_cast<double>(level.oversubscription_permille) / 1000;
  }
  return ns;
}

double Sheet::most_ns_per_byte() { return find_field("network.ns_per_byte")->most(); }

Result<Sheet> parse_sheet(std::string_view text, const std::string& file, const std::string& name) {
  return SheetReader(text, file).read(name);
}

Result<Sheet> load_sheet(const std::string& name_or_path) {
  Result<DataFile> file = find_file(name_or_path, machine_files(), "machines", "machine");
  if (!file.ok()) return file.status();
  return parse_sheet(file.value().text, file.value().path, file.value().name);
}

Result<Machine> load(const std::string& name_or_path) {
  Result<Sheet> sheet = load_sheet(name_or_path);
  if (!sheet.ok()) return sheet.status();
  return std::move(sheet.value().machine);
}

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : machine_files()) names.emplace_back(file.name);
  return names;
}

}  // namespace carillon::machine
