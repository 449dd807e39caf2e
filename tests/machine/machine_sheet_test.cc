// SPDX-License-Identifier: Apache-2.0
//
// Machine files: those of machines/ are complete, and everything that cannot be is refused with
// file and line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/embedded.h"
#include "machine/port.h"
#include "machine/sheet.h"

namespace carillon::machine {
namespace {

using testing::HasSubstr;

// machines/edr.toml with one thing replaced by another.
std::string edr(const std::string& from = "", const std::string& to = "") {
  for (const EmbeddedFile& file : machine_files()) {
    if (file.name != "edr") continue;
    std::string text(file.text);
    if (from.empty()) return text;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
  ADD_FAILURE() << "there is no machines/edr.toml";
  return "";
}

std::string error_of(const std::string& text) {
  const Result<Sheet> sheet = parse_sheet(text, "my.toml", "my");
  return sheet.ok() ? "no error" : std::string(sheet.status().message());
}

// A whole line of the file, by its beginning.
std::string line(const std::string& text, const std::string& start) {
  const std::size_t at = text.find("\n" + start) + 1;
  return text.substr(at, text.find('\n', at) - at);
}

TEST(MachineFiles, AllLoad) {
  for (const char* const name :
       {"clan_via", "infinihost_pcix", "infinihost_pcie", "qdr", "fdr", "edr", "hdr", "hu2013"}) {
    EXPECT_THAT(machine_names(), testing::Contains(name));
  }
  for (const std::string& name : machine_names()) {
    Result<Sheet> sheet = load_sheet(name);
    ASSERT_TRUE(sheet.ok()) << sheet.status().message();
    EXPECT_EQ(sheet.value().machine.name, name);
    for (const Number& number : sheet.value().numbers) {
      EXPECT_LE(number.min, number.value) << name << " " << number.field->name();
      EXPECT_LE(number.value, number.max) << name << " " << number.field->name();
      EXPECT_FALSE(number.source.empty());
    }
  }
}

TEST(MachineFiles, ValuesArriveInTheMachinesUnits) {
  Result<Sheet> sheet = load_sheet("edr");
  ASSERT_TRUE(sheet.ok());
  EXPECT_EQ(sheet.value().machine.network.latency_ps, 600'000);
  EXPECT_EQ(sheet.value().machine.network.per_byte_fs, 80'000);
  EXPECT_TRUE(sheet.value().machine.one_sided.stage_puts);
  const Number* const latency = sheet.value().find("network.latency_ns");
  ASSERT_NE(latency, nullptr);
  EXPECT_EQ(latency->max, 800);
  EXPECT_THAT(latency->source, HasSubstr("ib_iface.c"));
  EXPECT_FALSE(latency->estimate);
  // A section that is left out, and a key.
  EXPECT_EQ(sheet.value().find("bus.ns_per_byte"), nullptr);
  EXPECT_EQ(sheet.value().machine.network.send_queue, Machine{}.network.send_queue);
}

TEST(MachineFiles, LevelsAreRead) {
  const Result<Sheet> sheet = parse_sheet(edr() +
                                              "[[topology.levels]]\nradix = 18\n"
                                              "oversubscription = 2.5\nestimate = \"so\"\n",
                                          "my.toml", "my");
  ASSERT_TRUE(sheet.ok()) << sheet.status().message();
  ASSERT_EQ(sheet.value().machine.topology.levels.size(), 1u);
  EXPECT_EQ(sheet.value().machine.topology.levels[0].radix, 18);
  EXPECT_EQ(sheet.value().machine.topology.levels[0].oversubscription_permille, 2500);
  EXPECT_THAT(error_of(edr() + "[[topology.levels]]\nradix = 2.5\nestimate = \"so\"\n"),
              HasSubstr("the level: radix must be a whole number, not 2.5"));
  EXPECT_EQ(error_of(edr() + "[[topology.levels]]\nradix = 2.0\nestimate = \"so\"\n"), "no error");
}

// Of edr's 0.1 ns at most a byte takes 1e5 ns above two levels, and 1e8 above three.
TEST(MachineFiles, LevelsLeaveRoomForTimes) {
  const std::string level =
      "[[topology.levels]]\nradix = 2\noversubscription = 1000\nestimate = \"so\"\n";
  EXPECT_EQ(error_of(edr() + level + level), "no error");
  EXPECT_THAT(error_of(edr() + level + level + level),
              HasSubstr(": the levels: a byte takes 1e+08 ns above them"));
}

TEST(MachineFiles, SwitchesThatReduce) {
  const std::string lines =
      "[switch]\nports = {value = 16, source = \"osu\"}\nwindow = {value = 64, source = \"osu\"}\n";
  EXPECT_THAT(error_of(edr() + lines), HasSubstr("switch.operand_bytes is missing"));
  EXPECT_THAT(error_of(edr() + "[switch]\nports = {value = 1, source = \"osu\"}\n"),
              HasSubstr("switch.ports: value is 1; it must be within 2"));
  EXPECT_THAT(error_of(edr() + "[switch]\nradix = {value = 4, source = \"osu\"}\n"),
              HasSubstr("section [switch] has no radix"));
  EXPECT_EQ(load("edr").value().in_switch.ports, 0) << "it has none";
  const Machine machine = load("hu2013").value();
  EXPECT_EQ(machine.in_switch.ports, 16);
  EXPECT_EQ(machine.in_switch.cycle_ps, 6'400);
  EXPECT_EQ(machine.in_switch.link_ps, 200'000);
  const Sheet sheet = load_sheet("hu2013").value();
  ASSERT_NE(sheet.find("switch.send_ns"), nullptr);
  EXPECT_TRUE(sheet.find("switch.send_ns")->estimate);
  ASSERT_NE(sheet.find("switch.up_cycles"), nullptr);
  EXPECT_FALSE(sheet.find("switch.up_cycles")->estimate);
}

// hu2013 with one of the values of [switch] replaced by another, and the end of its range.
std::string switch_with(const std::string& key, const std::string& value) {
  std::string text;
  for (const EmbeddedFile& file : machine_files()) {
    if (file.name == "hu2013") text = file.text;
  }
  const std::string start = key + " = {value = ";
  const std::size_t at = text.find("\n" + start, text.find("[switch]")) + 1;
  EXPECT_NE(at, 0U) << key;
  const std::string end = ", source = \"protocol\"}";
  return text.replace(at, text.find('\n', at) - at, start + value + end);
}

// Sums of a packet's costs have room in 64 bits, and switches are as the protocol has them.
TEST(MachineFiles, SwitchesAreWithinTheProtocolsLimits) {
  struct Limit {
    std::string key, most, beyond;
  };
  const Limit limits[] = {
      {"ports", "64", "65"},
      {"window", "1024", "2048"},
      {"operand_bytes", "8192", "8193"},
      {"header_bytes", "8192", "8193"},
      {"cycle_ns", "100000", "100001"},
      {"up_cycles", "65536", "65537"},
      {"level_cycles", "65536", "65537"},
      {"beat_cycles", "65536", "65537"},
      {"down_cycles", "65536", "65537"},
  };
  for (const Limit& limit : limits) {
    EXPECT_EQ(error_of(switch_with(limit.key, limit.most)), "no error") << limit.key;
    const std::string text = switch_with(limit.key, limit.beyond);
    const auto line = std::count(text.begin(), text.begin() + text.find(limit.beyond + ","), '\n');
    EXPECT_THAT(error_of(text),
                testing::StartsWith("my.toml:" + std::to_string(line + 1) + ": switch." +
                                    limit.key + ": value is " + limit.beyond));
  }
  for (const char* const window :
       {"3", "63", "1000", "64, min = 48, max = 64", "64, min = 64, max = 96"}) {
    EXPECT_THAT(error_of(switch_with("window", window)),
                HasSubstr("switch.window must be a power of two, not "));
  }
  EXPECT_EQ(error_of(switch_with("window", "64, min = 32, max = 128")), "no error");
}

TEST(MachineFiles, ByPath) {
  const std::string path = testing::TempDir() + "carillon_machine_test.toml";
  std::ofstream(path) << edr();
  Result<Machine> machine = load(path);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(machine.value().name, "carillon_machine_test");
  EXPECT_THAT(std::string(load("./nowhere.toml").status().message()), HasSubstr("./nowhere.toml"));
  EXPECT_THAT(std::string(load("edrr").status().message()),
              testing::AllOf(HasSubstr("edrr"), HasSubstr("clan_via")));
}

TEST(MachineFiles, WhatCannotBeIsRefused) {
  const std::string latency = line(edr(), "latency_ns");
  struct Case {
    std::string from, to, message;
  };
  const Case cases[] = {
      {latency + "\n", "", "network.latency_ns is missing"},
      {"value = 600", "value = -600", "network.latency_ns: value is -600"},
      {"value = 600", "value = 0", "network.latency_ns: value is 0"},
      {"value = 600", "value = 6e10", "network.latency_ns: value is 6"},
      {"value = 600", "value = nan", "network.latency_ns: value is nan"},
      {"value = 600", "value = \"600\"", "value must be a number"},
      {"value = 600, ", "", "network.latency_ns needs value"},
      {latency, "latency_ns = 600", "network.latency_ns must say where it comes from"},
      {"min = 600", "min = 700", "network.latency_ns: min is 700"},
      {"max = 800", "max = 500", "network.latency_ns: max is 500"},
      {"gap_ns", "fragment_bytes = {value = 0, source = \"ucx_ib\"}\ngap_ns",
       "network.fragment_bytes: value is 0; it must be within 1"},
      {"mtu_bytes = {value = 4096", "mtu_bytes = {value = 0",
       "datagram.mtu_bytes: value is 0; it must be within 1"},
      {", max = 800", "", "network.latency_ns needs max"},
      {"source = \"ucx_ib\"", "source = \"ucx\"", "there is no source \"ucx\""},
      {", source = \"ucx_ib\"", "", "must have either a source"},
      {"source = \"ucx_ib\"", "source = \"ucx_ib\", estimate = \"so\"", "must have either"},
      {", min = 600, max = 800, source = \"ucx_ib\"", ", estimate = \"so\"", "needs min and max"},
      {"value = 600", "value = 600, maxx = 5", "network.latency_ns has no maxx"},
      {"latency_ns", "latency_us", "section [network] has no latency_us"},
      {"[network]", "[netork]", "the file has no netork"},
      {"stage_puts = {value = true", "stage_puts = {value = 1", "must be true or false"},
      {"cores = {value = 32", "cores = {value = 32.5", "must be a whole number"},
      {"ranks = {value = 1,", "ranks = {value = 40,", "node.ranks"},
      {"title = ", "titel = ", "the file has no titel"},
      {"[sources]", "[sources", "my.toml:"},
      {"[sources]", "[\nsources]", "my.toml:6: "},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(error_of(edr(c.from, c.to)), HasSubstr(c.message)) << c.from << " -> " << c.to;
  }
}

TEST(MachineFiles, ErrorsNameFileAndLine) {
  const std::string text = edr("value = 600", "value = -600");
  const auto lines = std::count(text.begin(), text.begin() + text.find("-600"), '\n') + 1;
  EXPECT_THAT(error_of(text), testing::StartsWith("my.toml:" + std::to_string(lines) + ": "));
  EXPECT_THAT(error_of(""), HasSubstr("title"));
}

// Every number of a machine can be given in a file, by one name.
TEST(Fields, GetWhatWasSet) {
  Machine machine;
  std::set<std::string> names;
  for (const Field& field : fields()) {
    EXPECT_TRUE(names.insert(field.name()).second) << field.name();
    EXPECT_EQ(find_field(field.name()), &field);
    const std::int64_t before = field.get(machine);
    field.set(machine, before == 1 ? 0 : 1);
    EXPECT_NE(field.get(machine), before) << field.name();
    field.set_value(machine, 1);
    EXPECT_EQ(field.value(machine), 1) << field.name();
  }
}

TEST(Costs, AreRoundedOncePerThing) {
  EXPECT_EQ(cost(0, 80'000), 0);
  EXPECT_EQ(cost(1, 499), 0);
  EXPECT_EQ(cost(1, 500), 1);
  EXPECT_EQ(cost(3, 500), 2);
  EXPECT_EQ(cost(1'000'000'000'000, 80'000), 80'000'000'000'000);
}

TEST(Costs, WhatIsInTheWay) {
  Machine m;
  m.network = {.latency_ps = 1'000'000, .gap_ps = 10'000, .per_byte_fs = 100'000};
  struct Port {
    Lanes nic, bus;
  };
  const auto sent = [&](Port* port, std::int64_t told_ps) {
    return inject(m, &port->nic, &port->bus, told_ps, occupancy(m, {.bytes = 1000}, 0, true));
  };
  const auto seen = [&](Port* port, std::int64_t arrival_ps) {
    return land(m, &port->nic, &port->bus, arrival_ps, occupancy(m, {.bytes = 1000}, 0, false));
  };
  Port port;
  EXPECT_EQ(sent(&port, 0).end_ps, 100'000);
  EXPECT_FALSE(sent(&port, 110'000).waited);
  EXPECT_EQ(sent(&port, 0).end_ps, 320'000) << "after the others and their gaps";
  EXPECT_TRUE(sent(&port, 0).waited);
  EXPECT_EQ(sent(&port, 500'000).end_ps, 600'000) << "idle before";
  m.bus = {.per_message_ps = 1000, .per_byte_fs = 200'000, .cut_through = true};
  Port fresh;
  EXPECT_EQ(sent(&fresh, 0).end_ps, 201'000) << "the bus is slower";
  EXPECT_EQ(seen(&fresh, 1'500'000), 1'501'000);
  EXPECT_EQ(seen(&fresh, 1'500'000), 1'500'000 + 10'000 + 200'000 + 1000);
  m.bus.cut_through = false;
  Port stored;
  EXPECT_EQ(sent(&stored, 0).end_ps, 1000 + 200'000 + 100'000) << "one after the other";
  EXPECT_EQ(seen(&fresh, 9'000'000), 9'000'000 + 1000 + 200'000);
  Port none;
  EXPECT_EQ(inject(m, &none.nic, nullptr, 0, occupancy(m, {.bytes = 1000}, 0, true)).end_ps,
            100'000);
}

}  // namespace
}  // namespace carillon::machine
