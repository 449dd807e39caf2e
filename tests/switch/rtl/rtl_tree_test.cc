// SPDX-License-Identifier: Apache-2.0
//
// Trees of switches in hardware with hosts below them, cycle by cycle: each host has the sum, bit
// for bit; the time goes by the parts that it is made of, and not by how it is gone through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "machine/costs.h"
#include "machine/model.h"
#include "machine/sheet.h"
#include "switch/rtl/operands.h"
#include "switch/tree/tree.h"

namespace carillon::tree {
namespace {

using aggregate::Op;
using aggregate::Type;
using testing::HasSubstr;

machine::Machine hu2013() { return machine::load("hu2013").value(); }

TreeConfig config_of(std::uint32_t hosts) { return {.hosts = hosts, .machine = hu2013()}; }

std::unique_ptr<Tree> tree_of(const TreeConfig& config) {
  Result<std::unique_ptr<Tree>> made = Tree::make(config);
  if (made.ok()) return std::move(made.value());
  ADD_FAILURE() << made.status().message();
  return nullptr;
}

Call call_of(Tree& tree, const Message& message) {
  Result<Call> call = tree.allreduce(message);
  if (call.ok()) return call.value();
  ADD_FAILURE() << call.status().message();
  return {};
}

template <class T>
T operand(Type type, std::uint32_t rank, std::uint64_t index) {
  T value;
  std::array<std::byte, sizeof(T)> bytes;
  fill_operand(type, rank, index, bytes);
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// As the protocol has it, written once more: pairs of neighbours, then pairs of these.
template <class T, class Combine>
T tree_sum(std::vector<T> values, std::size_t radix, Combine combine) {
  while (values.size() > 1) {
    std::vector<T> above;
    for (std::size_t first = 0; first < values.size(); first += radix) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
      const std::size_t children = std::min(radix, values.size() - first);
      std::vector<T> ports(begin, begin + static_cast<std::ptrdiff_t>(children));
      while (ports.size() > 1) {
        std::vector<T> pairs;
        for (std::size_t i = 0; i < ports.size(); i += 2) {
          pairs.push_back(i + 1 < ports.size() ? combine(ports[i], ports[i + 1]) : ports[i]);
        }
        ports = pairs;
      }
      above.push_back(ports.front());
    }
    values = above;
  }
  return values.front();
}

template <class T, class Combine>
void expect_results(const Tree& tree, std::uint32_t hosts, const Message& message,
                    Combine combine) {
  for (std::uint64_t i = 0; i < message.count; ++i) {
    std::vector<T> values;
    for (std::uint32_t rank = 0; rank < hosts; ++rank) {
      values.push_back(operand<T>(message.type, rank, i));
    }
    const T expected = tree_sum(values, tree.radix(), combine);
    for (std::uint32_t rank = 0; rank < hosts; ++rank) {
      ASSERT_EQ(tree.result(rank).size(), message.bytes());
      EXPECT_EQ(std::memcmp(&tree.result(rank)[i * sizeof(T)], &expected, sizeof(T)), 0)
          << "element " << i << " of host " << rank << " of " << hosts;
      if (testing::Test::HasFailure()) return;
    }
  }
}

class RtlTreeTest : public testing::TestWithParam<std::uint32_t> {};

// Blocks and bursts, one after the other in the same group; the last one needs more packets than
// there are slots.
TEST_P(RtlTreeTest, Results) {
  const std::uint32_t hosts = GetParam();
  const auto tree = tree_of(config_of(hosts));
  ASSERT_NE(tree, nullptr);
  const Message block = {Op::kSum, Type::kFloat64, 1};
  call_of(*tree, block);
  expect_results<double>(*tree, hosts, block, std::plus<>());
  const Message words = {Op::kXor, Type::kInt32, 3};
  call_of(*tree, words);
  expect_results<std::uint32_t>(*tree, hosts, words, std::bit_xor<>());
  const Message least = {Op::kMin, Type::kInt64, 32};
  call_of(*tree, least);
  expect_results<std::int64_t>(*tree, hosts, least, [](auto a, auto b) { return std::min(a, b); });
  const Message burst = {Op::kSum, Type::kFloat32, 2 * 352 + 5};
  call_of(*tree, burst);
  expect_results<float>(*tree, hosts, burst, std::plus<>());
  if (hosts > 5) return;
  const Message rounds = {Op::kSum, Type::kInt64, 176 * (2 * kWindow + 3)};
  call_of(*tree, rounds);
  expect_results<std::uint64_t>(*tree, hosts, rounds, std::plus<>());
}

INSTANTIATE_TEST_SUITE_P(Hosts, RtlTreeTest, testing::Values(2U, 3U, 5U, 16U, 17U, 40U));

TEST(RtlTreeShapeTest, SwitchesAreAsFullAsCanBe) {
  EXPECT_EQ(tree_of(config_of(16))->switches(), 1U);
  const auto two = tree_of(config_of(17));
  EXPECT_EQ(two->switches(), 3U);
  EXPECT_EQ(two->levels(), 2U);
  TreeConfig narrow = config_of(5);
  narrow.machine.in_switch.ports = 2;
  const auto three = tree_of(narrow);
  EXPECT_EQ(three->switches(), 3U + 2U + 1U);
  EXPECT_EQ(three->levels(), 3U);
  const Message sum = {Op::kSum, Type::kFloat64, 2};
  const Call call = call_of(*three, sum);
  expect_results<double>(*three, 5, sum, std::plus<>());
  ASSERT_EQ(call.hops.size(), 3U);
  EXPECT_TRUE(call.hops[1].down.has_value());
  EXPECT_FALSE(call.hops[2].down.has_value());
}

// Each level has a link up and one down; a host's NIC is passed twice, and what its processor does
// for a packet and for a result once each.
TEST(RtlTreeTimeTest, IsMadeOfItsParts) {
  constexpr std::int64_t kMore = 7;
  const Message sum = {Op::kSum, Type::kInt64, 1};
  const auto cycles = [&](auto change) {
    TreeConfig config = config_of(17);
    change(&config.machine.in_switch, config.machine.in_switch.cycle_ps * kMore);
    return call_of(*tree_of(config), sum).cycles;
  };
  using Switch = machine::InSwitch;
  const Cycles plain = cycles([](Switch*, std::int64_t) {});
  EXPECT_EQ(cycles([](Switch* s, std::int64_t ps) { s->link_ps += ps; }), plain + 4 * kMore);
  EXPECT_EQ(cycles([](Switch* s, std::int64_t ps) { s->nic_ps += ps; }), plain + 2 * kMore);
  EXPECT_EQ(cycles([](Switch* s, std::int64_t ps) { s->send_ps += ps; }), plain + kMore);
  EXPECT_EQ(cycles([](Switch* s, std::int64_t ps) { s->receive_ps += ps; }), plain + kMore);
}

// The hops and the known parts are all there is.
TEST(RtlTreeTimeTest, IsTheSumOfItsHops) {
  const TreeConfig config = config_of(40);
  const machine::InSwitch& s = config.machine.in_switch;
  const Call call = call_of(*tree_of(config), {Op::kSum, Type::kInt64, 1});
  const auto of = [&](std::int64_t ps) { return cycles_of(config.machine, ps); };
  constexpr Cycles kWordsBehindTheFirst = 10;  // of a host's frame
  Cycles sum = of(machine::contribute_ps(config.machine, 8)) +
               of(machine::take_result_ps(config.machine, 8)) + 2 * of(s.nic_ps);
  sum += 4 * of(s.link_ps) + kWordsBehindTheFirst;
  for (const Hop& hop : call.hops) sum += hop.up + hop.down.value_or(0);
  EXPECT_EQ(call.cycles, sum);
}

// The machine has the cycles of a full switch from here, and with these the simulator says what
// trees of such take (this is its closed form). It knows no cycles of hosts, and counts more bytes
// of a frame: a fiftieth, at most.
TEST(RtlTreeTimeTest, AsTheSimulatorHasIt) {
  constexpr double kFiftieth = 0.02;
  const Message word = {Op::kSum, Type::kInt64, 1};
  const Hop full = call_of(*tree_of(config_of(32)), word).hops.front();
  const machine::Machine machine = hu2013();
  const machine::InSwitch& s = machine.in_switch;
  const std::int64_t frame_ps = machine::packet_ps(machine, 8);
  EXPECT_EQ(full.up * s.cycle_ps, machine::combine_ps(s, 8) + frame_ps);
  EXPECT_EQ(full.down.value() * s.cycle_ps, machine::forward_ps(s) + frame_ps);
  for (const std::int32_t hosts : {16, 256}) {
    const auto ours = static_cast<double>(
        call_of(*tree_of(config_of(static_cast<std::uint32_t>(hosts))), word).cycles * s.cycle_ps);
    const Result<std::int64_t> model =
        machine::model_ps(machine, {.algorithm = "allreduce.switch", .ranks = hosts, .bytes = 8});
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_NEAR(static_cast<double>(model.value()), ours, kFiftieth * ours) << hosts << " hosts";
  }
}

TEST(RtlTreeTimeTest, DoesNotGoByThreadsOrRest) {
  const std::vector<Message> messages = {{Op::kSum, Type::kFloat64, 1},
                                         {Op::kSum, Type::kFloat64, 400}};
  const auto calls = [&](const TreeConfig& config) {
    std::vector<Call> all;
    const auto tree = tree_of(config);
    for (const Message& message : messages) all.push_back(call_of(*tree, message));
    return all;
  };
  TreeConfig config = config_of(40);
  const std::vector<Call> plain = calls(config);
  config.threads = 3;
  const std::vector<Call> threads = calls(config);
  config.rests = false;
  const std::vector<Call> restless = calls(config);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    for (const std::vector<Call>* other : {&threads, &restless}) {
      EXPECT_EQ((*other)[i].cycles, plain[i].cycles);
      EXPECT_EQ((*other)[i].most_waiting_words, plain[i].most_waiting_words);
      ASSERT_EQ((*other)[i].hops.size(), plain[i].hops.size());
      for (std::size_t hop = 0; hop < plain[i].hops.size(); ++hop) {
        EXPECT_EQ((*other)[i].hops[hop].up, plain[i].hops[hop].up);
        EXPECT_EQ((*other)[i].hops[hop].down, plain[i].hops[hop].down);
      }
    }
    EXPECT_EQ(threads[i].evaluated_cycles, plain[i].evaluated_cycles);
    EXPECT_LT(plain[i].evaluated_cycles, restless[i].evaluated_cycles);
  }
}

TEST(RtlTreeShapeTest, WhatCannotBe) {
  const auto error = [](const TreeConfig& config) {
    return std::string(Tree::make(config).status().message());
  };
  EXPECT_THAT(error(config_of(1)), HasSubstr("1 nodes; a tree has 2 to 4096"));
  EXPECT_THAT(error(config_of(4097)), HasSubstr("4097 nodes"));
  TreeConfig without = config_of(4);
  without.machine = machine::load("edr").value();
  EXPECT_THAT(error(without), HasSubstr("machine edr has no switches that reduce"));
  const auto tree = tree_of(config_of(2));
  EXPECT_FALSE(tree->allreduce({Op::kXor, Type::kFloat64, 1}).ok());
  EXPECT_FALSE(tree->allreduce({Op::kSum, Type::kFloat64, 0}).ok());
}

}  // namespace
}  // namespace carillon::tree
