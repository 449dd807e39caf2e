// SPDX-License-Identifier: Apache-2.0
//
// Allreduces of hosts alone: over the switch's hardware, over the model of it that is there for
// more hosts than its tables have room for, and over a fat tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/costs.h"
#include "machine/sheet.h"
#include "switch/tree/doubling.h"
#include "switch/tree/hardware_switch.h"
#include "switch/tree/host.h"

namespace carillon::tree {
namespace {

using aggregate::Op;
using aggregate::Type;
using testing::HasSubstr;

const ForwardTiming& timing() {
  static const ForwardTiming measured = measure_forwarding().value();
  return measured;
}

DoublingConfig config_of(std::uint32_t hosts, Fabric fabric) {
  return {.hosts = hosts,
          .machine = machine::load("hu2013").value(),
          .fabric = fabric,
          .timing = timing()};
}

// allreduce_by_hosts compares the results of all hosts with the reference.
Cycles cycles_of_call(const DoublingConfig& config, const Message& message) {
  const Result<Cycles> cycles = allreduce_by_hosts(config, message);
  if (cycles.ok()) return cycles.value();
  ADD_FAILURE() << cycles.status().message();
  return 0;
}

class RtlDoublingTest : public testing::TestWithParam<std::uint32_t> {};

// The model knows when frames leave, and not in what cycle the hardware chooses among those that
// wait: a twentieth is what that may make.
TEST_P(RtlDoublingTest, TheModelAgreesWithTheHardware) {
  constexpr double kTwentieth = 0.05;
  for (const Message& message :
       {Message{Op::kSum, Type::kInt64, 1}, Message{Op::kXor, Type::kInt32, 60},
        Message{Op::kMax, Type::kInt64, 500}}) {
    const auto hardware =
        static_cast<double>(cycles_of_call(config_of(GetParam(), Fabric::kHardwareTree), message));
    const auto model =
        static_cast<double>(cycles_of_call(config_of(GetParam(), Fabric::kTree), message));
    EXPECT_NEAR(model, hardware, kTwentieth * hardware) << message.bytes() << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, RtlDoublingTest, testing::Values(2U, 3U, 5U, 16U, 17U, 40U));

// Two hosts: nobody is in anybody's way, where their frames leave at once.
TEST(RtlDoublingTimeTest, OfTwoHostsIsMadeOfItsParts) {
  const DoublingConfig config = config_of(2, Fabric::kFatTree);
  const machine::Machine& m = config.machine;
  constexpr Cycles kWordsBehindTheFirst = 7;  // of 42 + 14 + 8 bytes
  const Cycles expected = tree::cycles_of(m, machine::put_ps(m, {.bytes = 8})) +
                          2 * tree::cycles_of(m, m.in_switch.nic_ps) +
                          2 * tree::cycles_of(m, m.in_switch.link_ps) + 2 * kWordsBehindTheFirst +
                          timing().latency +
                          tree::cycles_of(m, machine::wait_ps(m) + machine::reduce_ps(m.memory, 8));
  const Message word = {Op::kSum, Type::kInt64, 1};
  EXPECT_EQ(cycles_of_call(config, word), expected);
  // The hardware passes one frame on after the other.
  EXPECT_EQ(cycles_of_call(config_of(2, Fabric::kHardwareTree), word),
            expected + kWordsBehindTheFirst + timing().between);
}

// Each step goes through one switch more and back, or not, and nobody waits for another: steps
// within a switch take as long as that of two hosts, and those that go up two switches and two
// links longer.
TEST(RtlDoublingTimeTest, NobodyWaitsInAFatTree) {
  const Message word = {Op::kSum, Type::kInt64, 1};
  const Cycles step = cycles_of_call(config_of(2, Fabric::kFatTree), word);
  EXPECT_EQ(cycles_of_call(config_of(16, Fabric::kFatTree), word), 4 * step);
  const DoublingConfig far = config_of(256, Fabric::kFatTree);
  constexpr Cycles kWordsBehindTheFirst = 7;
  const Cycles level = 2 * (tree::cycles_of(far.machine, far.machine.in_switch.link_ps) +
                            kWordsBehindTheFirst + timing().latency);
  EXPECT_EQ(cycles_of_call(far, word), 8 * step + 4 * level);
  DoublingConfig narrow = config_of(8, Fabric::kFatTree);
  narrow.machine.in_switch.ports = 2;  // three levels
  EXPECT_EQ(cycles_of_call(narrow, word), 3 * step + (1 + 2) * level);
}

// Of numbers that are no powers of two, and messages of several frames.
TEST(RtlDoublingTimeTest, FatTreesOfAnyNumber) {
  for (const std::uint32_t hosts : {3U, 5U, 17U, 40U, 300U}) {
    cycles_of_call(config_of(hosts, Fabric::kFatTree), {Op::kSum, Type::kInt32, 800});
  }
}

TEST(RtlDoublingTimeTest, WhatCannotBe) {
  const auto error = [](const DoublingConfig& config, const Message& message) {
    return std::string(allreduce_by_hosts(config, message).status().message());
  };
  EXPECT_THAT(error(config_of(65, Fabric::kHardwareTree), {Op::kSum, Type::kInt64, 1}),
              HasSubstr("room for 64 hosts, not 65"));
  EXPECT_THAT(error(config_of(2, Fabric::kTree), {Op::kSum, Type::kFloat64, 1}),
              HasSubstr("hosts reduce integers here"));
}

}  // namespace
}  // namespace carillon::tree
