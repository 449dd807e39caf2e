#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes protocol.h and sw_protocol_pkg.sv of protocol.toml, in the same folder. With --check it
# writes nothing and fails if they are not what it would make.
import sys
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
MADE = "Made by switch/protocol/generate.py from protocol.toml; edit that."


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def constant(name):
    return "k" + camel(name)


def check(definition):
    """What the definition must hold for the code below to be right."""
    enums = {e["name"]: e for e in definition["enum"]}
    for enum in enums.values():
        values = [row["value"] for row in enum["values"]]
        if len(set(values)) != len(values) or max(values) >= 1 << enum["bits"]:
            raise ValueError(f"enum {enum['name']}: values are not distinct or too large")
    bits = [flag["bit"] for flag in definition["flag"]]
    if len(set(bits)) != len(bits):
        raise ValueError("two flags have the same bit")
    for record in definition["record"]:
        for field in record["fields"]:
            where = f"{record['name']}.{field['name']}"
            if field["bits"] not in (8, 16, 32, 64):
                raise ValueError(f"{where}: {field['bits']} bits")
            if "enum" in field and enums[field["enum"]]["bits"] != field["bits"]:
                raise ValueError(f"{where}: its enum has another width")


# ---- C++

def cpp_type(field):
    return camel(field["enum"]) if "enum" in field else f"std::uint{field['bits']}_t"


def cpp_enum(enum):
    name = camel(enum["name"])
    lines = [f"/// {enum['text']}", f"enum class {name} : std::uint{enum['bits']}_t {{"]
    lines += [f"  {constant(row['name'])} = {row['value']},  ///< {row['text']}"
              for row in enum["values"]]
    lines += ["};", f"constexpr bool is_known({name} value) {{", "  switch (value) {"]
    lines += [f"    case {name}::{constant(row['name'])}:" for row in enum["values"]]
    lines[-1] += " return true;"
    lines += ["  }", "  return false;", "}"]
    lines += [f"constexpr std::string_view name_of({name} value) {{", "  switch (value) {"]
    lines += [f"    case {name}::{constant(row['name'])}: return \"{row['name']}\";"
              for row in enum["values"]]
    lines += ["  }", '  return "unknown";', "}", ""]
    return lines


def cpp_record(record):
    name = camel(record["name"])
    lines = [f"/// {record['text']}", f"struct {name} {{"]
    for field in record["fields"]:
        text = f"  ///< {field['text']}" if field["text"] else ""
        lines.append(f"  {cpp_type(field)} {field['name']} = {{}};{text}")
    lines += [f"  bool operator==(const {name}&) const = default;", "};"]
    total = sum(field["bits"] for field in record["fields"]) // 8
    lines.append(f"inline constexpr std::size_t k{name}Bytes = {total};")
    at = 0
    for field in record["fields"]:
        lines.append(f"inline constexpr std::size_t k{name}{camel(field['name'])}At = {at};")
        at += field["bits"] // 8
    variable = record["name"]
    lines.append(f"inline void store(std::byte* to, const {name}& {variable}) {{")
    for field in record["fields"]:
        value = f"{variable}.{field['name']}"
        if "enum" in field:
            value = f"static_cast<std::uint{field['bits']}_t>({value})"
        lines.append(f"  store_big(to + k{name}{camel(field['name'])}At, {value});")
    lines += ["}", f"inline {name} load_{variable}(const std::byte* from) {{",
              f"  {name} {variable};"]
    for field in record["fields"]:
        value = (f"load_big<std::uint{field['bits']}_t>("
                 f"from + k{name}{camel(field['name'])}At)")
        if "enum" in field:
            value = f"static_cast<{camel(field['enum'])}>({value})"
        lines.append(f"  {variable}.{field['name']} = {value};")
    lines += [f"  return {variable};", "}", ""]
    return lines


def cpp(definition):
    lines = ["// SPDX-License-Identifier: Apache-2.0", "//",
             "// The switch protocol: names, numbers and records (docs/switch-protocol.md).",
             f"// {MADE}",
             "// clang-format off", "#pragma once", "", "#include <cstddef>", "#include <cstdint>",
             "#include <string_view>", "", '#include "switch/protocol/big_endian.h"', "",
             "namespace carillon::aggregate {", ""]
    for row in definition["constant"]:
        lines += [f"/// {row['text']}",
                  f"inline constexpr std::uint32_t {constant(row['name'])} = {row['value']};"]
    lines.append("")
    for row in definition["flag"]:
        lines += [f"/// {row['text']}",
                  f"inline constexpr std::uint8_t k{camel(row['name'])}Flag = 1U << {row['bit']};"]
    every = sum(1 << row["bit"] for row in definition["flag"])
    lines += [f"inline constexpr std::uint8_t kAllFlags = {every:#x};", ""]
    for enum in definition["enum"]:
        lines += cpp_enum(enum)
    for record in definition["record"]:
        lines += cpp_record(record)
    lines += ["}  // namespace carillon::aggregate", ""]
    return "\n".join(lines)


# ---- SystemVerilog

# Names of fields that SystemVerilog reserves.
SV_RESERVED = {"type", "sequence"}


def sv_literal(bits, value):
    return f"{bits}'h{value:x}"


def sv_enum(enum):
    lines = [f"  // {enum['text']}", f"  typedef enum logic [{enum['bits'] - 1}:0] {{"]
    rows = enum["values"]
    for i, row in enumerate(rows):
        comma = "," if i + 1 < len(rows) else ""
        value = sv_literal(enum["bits"], row["value"])
        lines.append(f"    {camel(enum['name'])}{camel(row['name'])} = {value}{comma}"
                     f"  // {row['text']}")
    lines += [f"  }} {enum['name']}_e;", ""]
    return lines


def sv_record(record):
    """The first field of a packed struct is its uppermost: the order on the wire. A name that is
    reserved gets the record's in front."""
    lines = [f"  // {record['text']}", "  typedef struct packed {"]
    for field in record["fields"]:
        text = f"  // {field['text']}" if field["text"] else ""
        name = field["name"]
        if name in SV_RESERVED:
            name = f"{record['name']}_{name}"
        # Raw numbers, for an enum's value may be none of its names.
        lines.append(f"    logic [{field['bits'] - 1}:0] {name};{text}")
    total = sum(field["bits"] for field in record["fields"]) // 8
    lines += [f"  }} {record['name']}_t;",
              f"  parameter int unsigned {camel(record['name'])}Bytes = {total};", ""]
    return lines


def sv(definition):
    lines = ["// SPDX-License-Identifier: Apache-2.0", "//",
             "// The switch protocol: names, numbers and records (docs/switch-protocol.md).",
             f"// {MADE}", "package sw_protocol_pkg;", ""]
    for row in definition["constant"]:
        lines += [f"  // {row['text']}",
                  f"  parameter int unsigned {camel(row['name'])} = {row['value']};"]
    lines.append("")
    for row in definition["flag"]:
        lines += [f"  // {row['text']}",
                  f"  parameter int unsigned {camel(row['name'])}FlagBit = {row['bit']};"]
    lines.append("")
    for enum in definition["enum"]:
        lines += sv_enum(enum)
    for record in definition["record"]:
        lines += sv_record(record)
    lines += ["endpackage", ""]
    return "\n".join(lines)


def main():
    definition = tomllib.loads((FOLDER / "protocol.toml").read_text())
    check(definition)
    stale = []
    for name, text in (("protocol.h", cpp(definition)), ("sw_protocol_pkg.sv", sv(definition))):
        path = FOLDER / name
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            stale.append(name)
    if stale:
        print(f"not what protocol.toml says: {', '.join(stale)}; run switch/protocol/generate.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
