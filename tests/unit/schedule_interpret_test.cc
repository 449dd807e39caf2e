// SPDX-License-Identifier: Apache-2.0
//
// The reference interpreter on hand-written schedules (conformance_test runs the algorithms).
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "schedule/interpret.h"
#include "support/hand_team.h"

namespace carillon {
namespace {

Bytes bytes_of(std::initializer_list<std::uint64_t> values) {
  Bytes bytes(values.size() * 8);
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

// Neither commutative nor associative, so that every operand order shows.
void minus(std::byte* dst, const std::byte* left, const std::byte* right, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 8) {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::memcpy(&a, left + i, 8);
    std::memcpy(&b, right + i, 8);
    a -= b;
    std::memcpy(dst + i, &a, 8);
  }
}

constexpr std::string_view kExchange =
    "schedule ranks 2 rank 0 scratch 0\n"
    "put 1 #0 input[0+8]\n"
    "wait 1 #0\n"
    "reduce output[0+8] = input[0+8] slot(1 #0)[0+8]\n"
    "schedule ranks 2 rank 1 scratch 0\n"
    "put 0 #0 input[0+8]\n"
    "wait 0 #0\n"
    "reduce output[0+8] = slot(0 #0)[0+8] input[0+8]\n";

TeamCall allreduce(Rank ranks, std::int64_t count) {
  return {.shared = {.collective = Collective::kAllreduce,
                     .ranks = ranks,
                     .count = count,
                     .element_bytes = 8},
          .limits = {},
          .locals = {}};
}

TEST(Interpret, KeepsOperandOrder) {
  for (const bool in_place : {false, true}) {
    TeamCall call = allreduce(2, 1);
    call.locals.assign(2, {.in_place = in_place, .tables = {}});
    const std::vector<Bytes> inputs{bytes_of({10}), bytes_of({4})};
    const auto run = interpret(call, test::emit_text(kExchange), inputs, minus);
    ASSERT_TRUE(run.ok()) << run.status().to_string();
    EXPECT_EQ(run.value().outputs[0], bytes_of({6}));
    EXPECT_EQ(run.value().outputs[1], bytes_of({6}));
    EXPECT_EQ(run.value().stats.messages, 2);
    EXPECT_EQ(run.value().stats.message_bytes, 16);
  }
}

TEST(Interpret, InputInsideOutputAndOutputInsideInput) {
  TeamCall scatter{
      .shared = {.collective = Collective::kScatter, .ranks = 2, .root = 1, .count = 8},
      .limits = {},
      .locals = {{}, {.in_place = true, .tables = {}}}};
  const auto run = interpret(scatter,
                             test::emit_text("schedule ranks 2 rank 0 scratch 0\n"
                                             "wait 1 #0\n"
                                             "copy output[0+8] = slot(1 #0)[0+8]\n"
                                             "schedule ranks 2 rank 1 scratch 0\n"
                                             "put 0 #0 input[0+8]\n"),
                             std::vector<Bytes>{{}, bytes_of({7, 8})}, {});
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  EXPECT_EQ(run.value().outputs[0], bytes_of({7}));
  EXPECT_EQ(run.value().outputs[1], bytes_of({8}));
}

// 3 segments through a loop, the sender at most a window ahead, in any order of execution.
TEST(Interpret, RunsLoopsThroughTheWindow) {
  TeamCall call{.shared = {.collective = Collective::kBcast, .ranks = 2, .count = 72},
                .limits = {.slot_bytes = 8, .inline_bytes = 0, .window = 2, .large_slots = 1},
                .locals = {}};
  Bytes input(72);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i);
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const auto run = interpret(call,
                               test::emit_text("schedule ranks 2 rank 0 scratch 0\n"
                                               "repeat 9 {\n"
                                               "  put 1 #0 by 1 input[0+8 by 8]\n"
                                               "}\n"
                                               "schedule ranks 2 rank 1 scratch 0\n"
                                               "repeat 9 {\n"
                                               "  wait 0 #0 by 1\n"
                                               "  copy output[0+8 by 8] = slot(0 #0 by 1)[0+8]\n"
                                               "}\n"),
                               std::vector<Bytes>{input, {}}, {}, {.run = {.seed = seed}});
    ASSERT_TRUE(run.ok()) << run.status().to_string();
    EXPECT_EQ(run.value().outputs[1], input);
  }
}

// A send of 10 slots passes through a window of 4, on one node in messages of two slots; both
// directions at once need a strand each.
TEST(Interpret, StreamsSends) {
  TeamCall call{.shared = {.collective = Collective::kAlltoall, .ranks = 2, .count = 80},
                .limits = {.slot_bytes = 8, .inline_bytes = 0},
                .locals = {}};
  std::string text;
  for (const char* const ranks : {"01", "10"}) {
    const std::string own(1, ranks[0]);
    const std::string peer(1, ranks[1]);
    const std::string at_own = own == "0" ? "[0+80]" : "[80+80]";
    const std::string at_peer = own == "0" ? "[80+80]" : "[0+80]";
    text += "schedule ranks 2 rank " + own + " scratch 0\n";
    text += "copy output" + at_own + " = input" + at_own + "\n";
    text += "send " + peer + " #0 input" + at_peer + "\nstrand\n";
    text += "recv " + peer + " #0 output" + at_peer + "\n";
  }
  const std::vector<Bytes> inputs{Bytes(160, std::byte{1}), Bytes(160, std::byte{2})};
  const auto run = interpret(call, test::emit_text(text), inputs, {});
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  EXPECT_EQ(run.value().outputs[0][80], std::byte{2});
  EXPECT_EQ(run.value().outputs[1][79], std::byte{1});
  EXPECT_EQ(run.value().stats.messages, 10);
  TeamCall between = call;
  between.limits.nodes = std::make_shared<const Nodes>(std::vector<std::int32_t>{0, 1});
  const auto run_between = interpret(between, test::emit_text(text), inputs, {});
  ASSERT_TRUE(run_between.ok()) << run_between.status().to_string();
  EXPECT_EQ(run_between.value().stats.messages, 20);

  while (text.find("strand\n") != std::string::npos) text = test::replaced(text, "strand\n", "");
  const auto stuck = interpret(call, test::emit_text(text), inputs, {});
  ASSERT_FALSE(stuck.ok());
  EXPECT_EQ(stuck.status().message(),
            "deadlock:\n"
            "  rank 0, strand 0, op 1 (send 1 #0 input[80+80]) waits for one of its 2 large slots\n"
            "  rank 1, strand 0, op 1 (send 0 #0 input[0+80]) waits for one of its 2 large slots");
}

TEST(Interpret, ChecksItsArguments) {
  const TeamCall call = allreduce(2, 1);
  const std::vector<Bytes> inputs{bytes_of({1}), bytes_of({2, 3})};
  EXPECT_EQ(interpret(call, test::emit_text(kExchange), inputs, minus).status().message(),
            "the input of rank 1 needs 8 bytes");
  const std::vector<Bytes> good{bytes_of({1}), bytes_of({2})};
  EXPECT_FALSE(interpret(call, test::emit_text(kExchange), good, {}).ok());
}

TEST(Interpret, PassesEmitErrorsOn) {
  const Emit fails = [](Rank, std::int32_t, std::span<const std::int64_t>) -> Result<Schedule> {
    return Status(Code::kUnsupported, "not today");
  };
  const std::vector<Bytes> inputs{bytes_of({1})};
  EXPECT_EQ(interpret(allreduce(1, 1), fails, inputs, minus).status().message(), "not today");
}

}  // namespace
}  // namespace carillon
