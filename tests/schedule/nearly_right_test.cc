// SPDX-License-Identifier: Apache-2.0
//
// Hand-written schedules in which every byte is right when the machine moves it, and which verify
// rejects all the same: for what operators, engines and the next call make of them.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>

#include "schedule/verify.h"
#include "support/hand_team.h"
#include "support/shapes.h"

namespace carillon {
namespace {

void expect_rejected(const TeamCall& call, const std::string& text, const std::string& reason) {
  const Report report = verify(call, test::emit_text(text));
  ASSERT_FALSE(report.ok()) << text;
  EXPECT_NE(report.status.message().find(reason), std::string::npos)
      << text << "got:    " << report.status.message() << "\nwanted: " << reason;
}

// Rank 0 sums from the left and from the right and takes a half of its result from each: bytes that
// no sum has.
TEST(NearlyRight, HalvesOfElements) {
  constexpr std::string_view good =
      "schedule ranks 3 rank 0 scratch 16\n"
      "wait 1 #0\n"
      "wait 2 #0\n"
      "reduce scratch[0+8] = input[0+8] slot(1 #0)[0+8]\n"
      "reduce scratch[0+8] = scratch[0+8] slot(2 #0)[0+8]\n"
      "reduce scratch[8+8] = slot(1 #0)[0+8] slot(2 #0)[0+8]\n"
      "reduce scratch[8+8] = input[0+8] scratch[8+8]\n"
      "copy output[0+4] = scratch[0+4]\n"
      "copy output[4+4] = scratch[4+4]\n"
      "schedule ranks 3 rank 1 scratch 0\n"
      "put 0 #0 input[0+8]\n"
      "schedule ranks 3 rank 2 scratch 0\n"
      "put 0 #0 input[0+8]\n";
  const TeamCall call{
      .shared = {.collective = Collective::kReduce, .ranks = 3, .count = 1, .element_bytes = 8},
      .limits = {},
      .locals = {}};
  EXPECT_TRUE(verify(call, test::emit_text(good)).ok());
  const std::string torn = test::replaced(std::string(good), "output[4+4] = scratch[4+4]",
                                          "output[4+4] = scratch[12+4]");
  expect_rejected(call, torn, "rank 0: output[0+4] ends inside an element");
}

// The next call begins where the numbers of this one end, by how many there are.
TEST(NearlyRight, MessagesThatAreLeftOut) {
  const std::string_view good =
      "schedule ranks 2 rank 0 scratch 0\n"
      "put 1 #0 input[0+8]\n"
      "put 1 #1 input[8+8]\n"
      "schedule ranks 2 rank 1 scratch 0\n"
      "wait 0 #0\n"
      "copy output[0+8] = slot(0 #0)[0+8]\n"
      "wait 0 #1\n"
      "copy output[8+8] = slot(0 #1)[0+8]\n";
  const TeamCall call{
      .shared = {.collective = Collective::kBcast, .ranks = 2, .count = 2, .element_bytes = 8},
      .limits = {},
      .locals = {}};
  EXPECT_TRUE(verify(call, test::emit_text(good)).ok());
  for (const auto& [from, to, left_out] :
       {std::tuple("#1", "#2", "message #1"), std::tuple("#0", "#3", "message #0")}) {
    std::string text(good);
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; ++at) {
      text.replace(at, 2, to);
    }
    expect_rejected(call, text, left_out + std::string(" from rank 0 is never put"));
  }
}

// A switch's first results come while a leader still sends the rest of its operand.
TEST(NearlyRight, ResultsOverOperands) {
  constexpr std::string_view good =
      "schedule ranks 2 rank 0 scratch 40\n"
      "copy scratch[8+16] = input[0+16]\n"
      "aggregate #0 scratch[24+16] = scratch[8+16]\n"
      "copy output[0+16] = scratch[24+16]\n"
      "schedule ranks 2 rank 1 scratch 0\n"
      "aggregate #0 output[0+16] = input[0+16]\n";
  TeamCall call{
      .shared = {.collective = Collective::kAllreduce, .ranks = 2, .count = 2, .element_bytes = 8},
      .limits = {},
      .locals = {}};
  call.limits.nodes = test::blocked({1, 1}).nodes;
  EXPECT_TRUE(verify(call, test::emit_text(good)).ok());
  for (const std::string to : {"scratch[0+16]", "scratch[16+16]"}) {
    std::string over(good);
    for (int i = 0; i < 2; ++i) over = test::replaced(over, "scratch[24+16]", to);
    expect_rejected(call, over, "the result overlaps the operand without being equal to it");
  }
}

// To one other rank, with messages that all take large slots.
TeamCall bcast_through_slots(std::int64_t count) {
  return {
      .shared = {.collective = Collective::kBcast, .ranks = 2, .count = count, .element_bytes = 8},
      .limits = {.inline_bytes = 0},
      .locals = {}};
}

// Rank 0's first strand passes on a message of its own, for which it needs the slot that rank 1
// gives back; then it ends, once.
TEST(NearlyRight, AStrandThatNeverEnds) {
  constexpr std::string_view good =
      "schedule ranks 2 rank 0 scratch 0\n"
      "put 1 #0 input[0+8]\n"
      "put 0 #0 input[8+8]\n"
      "wait 0 #0\n"
      "put 1 #1 slot(0 #0)[0+8]\n"
      "strand\n"
      "wait 1 #0\n"
      "schedule ranks 2 rank 1 scratch 0\n"
      "signal 0 #0\n"
      "wait 0 #0\n"
      "copy output[0+8] = slot(0 #0)[0+8]\n"
      "wait 0 #1\n"
      "copy output[8+8] = slot(0 #1)[0+8]\n";
  const TeamCall call = bcast_through_slots(2);
  const Report report = verify(call, test::emit_text(good));
  EXPECT_TRUE(report.ok()) << report.status.to_string();
  expect_rejected(call, test::replaced(std::string(good), "signal 0 #0\n", ""),
                  "op 4 (wait 1 #0) waits for message #0 of rank 1");
}

// Writers hear how many messages have been released without a gap: while the first is held, slots
// of those behind it are not free for them.
TEST(NearlyRight, SlotsBehindOneThatIsHeld) {
  constexpr std::string_view good =
      "schedule ranks 2 rank 0 scratch 0\n"
      "put 1 #0 input[0+8]\n"
      "put 1 #1 input[8+8]\n"
      "put 1 #2 input[16+8]\n"
      "schedule ranks 2 rank 1 scratch 0\n"
      "wait 0 #0\n"
      "copy output[0+8] = slot(0 #0)[0+8]\n"
      "wait 0 #1\n"
      "copy output[8+8] = slot(0 #1)[0+8]\n"
      "wait 0 #2\n"
      "copy output[16+8] = slot(0 #2)[0+8]\n";
  const TeamCall call = bcast_through_slots(3);
  const Report report = verify(call, test::emit_text(good));
  EXPECT_TRUE(report.ok()) << report.status.to_string();
  const std::string held = test::replaced(
      std::string(good), "copy output[16+8] =", "copy output[0+8] output[16+8] = slot(0 #0)[0+8]");
  expect_rejected(call, held, "op 2 (put 1 #2 input[16+8]) waits for one of its 2 large slots");
}

}  // namespace
}  // namespace carillon
