// SPDX-License-Identifier: Apache-2.0
//
// Hand-written broken schedules: verify rejects each, for the right reason.
#include <gtest/gtest.h>

#include "schedule/verify.h"
#include "support/hand_team.h"
#include "support/shapes.h"

namespace carillon {
namespace {

// An allreduce of two elements over two ranks, the second through scratch.
constexpr std::string_view kAllreduce =
    "schedule ranks 2 rank 0 scratch 64\n"
    "put 1 #0 input[0+16]\n"
    "wait 1 #0\n"
    "copy scratch[0+8] = slot(1 #0)[8+8]\n"
    "reduce output[0+8] = input[0+8] slot(1 #0)[0+8]\n"
    "reduce output[8+8] = input[8+8] scratch[0+8]\n"
    "schedule ranks 2 rank 1 scratch 0\n"
    "put 0 #0 input[0+16]\n"
    "wait 0 #0\n"
    "reduce output[0+16] = slot(0 #0)[0+16] input[0+16]\n";

TeamCall allreduce(bool commutative) {
  return {.shared = {.collective = Collective::kAllreduce,
                     .ranks = 2,
                     .count = 2,
                     .element_bytes = 8,
                     .commutative = commutative},
          .limits = {},
          .locals = {}};
}

struct Broken {
  std::string_view from, to, reason;
};

void expect_rejected(const TeamCall& call, std::string_view good, const Broken& broken) {
  const std::string text = test::replaced(std::string(good), broken.from, broken.to);
  const Report report = verify(call, test::emit_text(text));
  ASSERT_FALSE(report.ok()) << text;
  EXPECT_NE(report.status.message().find(broken.reason), std::string::npos)
      << text << "got:    " << report.status.message() << "\nwanted: " << broken.reason;
}

TEST(Broken, TheUnbrokenOneIsRight) {
  const Report report = verify(allreduce(false), test::emit_text(kAllreduce));
  EXPECT_TRUE(report.ok()) << report.status.to_string();
  EXPECT_EQ(report.stats.messages, 2);
  EXPECT_EQ(report.stats.reduced_bytes, 32);
}

// A bcast of two elements in two multicasts: to all ranks, and to the leaders of nodes 0 1 | 2.
constexpr std::string_view kMulticasts =
    "schedule ranks 3 rank 0 scratch 0\n"
    "multicast team #0 input[0+8]\n"
    "multicast leaders #0 input[8+8]\n"
    "put 1 #0 input[8+8]\n"
    "schedule ranks 3 rank 1 scratch 0\n"
    "receive 0 team #0 output[0+8]\n"
    "wait 0 #0\n"
    "copy output[8+8] = slot(0 #0)[0+8]\n"
    "schedule ranks 3 rank 2 scratch 0\n"
    "receive 0 team #0 output[0+8]\n"
    "receive 0 leaders #0 output[8+8]\n";

TeamCall multicasts() {
  TeamCall call{
      .shared = {.collective = Collective::kBcast, .ranks = 3, .count = 2, .element_bytes = 8},
      .limits = {.multicast_bytes = 16},
      .locals = {}};
  call.limits.nodes = test::blocked({2, 1}).nodes;
  return call;
}

TEST(Broken, Multicasts) {
  const Report right = verify(multicasts(), test::emit_text(kMulticasts));
  EXPECT_TRUE(right.ok()) << right.status.to_string();
  const Broken cases[] = {
      {"receive 0 leaders #0 output[8+8]\n", "", "was never waited for by rank 2"},
      {"receive 0 leaders #0 output[8+8]", "receive 0 leaders #1 output[8+8]", "deadlock"},
      {"receive 0 leaders #0 output[8+8]", "receive 0 team #1 output[8+8]", "deadlock"},
      {"receive 0 leaders #0 output[8+8]", "receive 1 leaders #0 output[8+8]",
       "the peer is not in the group"},
      {"wait 0 #0", "receive 0 leaders #0 output[8+8]", "this rank is not in the group"},
      {"receive 0 leaders #0 output[8+8]", "receive 0 leaders #0 output[0+16]",
       "has 8 bytes, the receive takes 16"},
      {"receive 0 leaders #0 output[8+8]",
       "receive 0 leaders #0 output[8+8]\nreceive 0 leaders #0 output[8+8]", "a second time"},
      {"multicast leaders #0 input[8+8]",
       "multicast leaders #0 input[8+8]\nmulticast leaders #0 input[8+8]", "a second time"},
      {"multicast leaders #0 input[8+8]", "multicast leaders #0",
       "has 0 bytes, the receive takes 8"},
      {"multicast team #0 input[0+8]", "multicast team #0 input[0+8] input[0+16]",
       "24 bytes; a multicast takes 16"},
      {"multicast leaders #0 input[8+8]", "multicast leaders #0 input[0+8]", "not byte 8 of"},
  };
  for (const Broken& broken : cases) expect_rejected(multicasts(), kMulticasts, broken);
  TeamCall without = multicasts();
  without.limits.multicast_bytes = 0;
  EXPECT_FALSE(verify(without, test::emit_text(kMulticasts)).ok());
}

// Multicasts of one writer come in their order: who receives the second one first waits for ever.
TEST(Broken, MulticastsOutOfOrder) {
  const std::string_view good =
      "schedule ranks 2 rank 0 scratch 0\n"
      "multicast team #0 input[0+8]\n"
      "multicast team #1 input[8+8]\n"
      "schedule ranks 2 rank 1 scratch 0\n"
      "receive 0 team #0 output[0+8]\n"
      "receive 0 team #1 output[8+8]\n";
  TeamCall call{
      .shared = {.collective = Collective::kBcast, .ranks = 2, .count = 2, .element_bytes = 8},
      .limits = {},
      .locals = {}};
  EXPECT_TRUE(verify(call, test::emit_text(good)).ok());
  const Broken cases[] = {
      {"receive 0 team #0 output[0+8]\nreceive 0 team #1 output[8+8]",
       "receive 0 team #1 output[8+8]\nreceive 0 team #0 output[0+8]", "waits for its turn"},
      {"multicast team #0 input[0+8]\nmulticast team #1 input[8+8]",
       "multicast team #1 input[8+8]\nmulticast team #0 input[0+8]", "waits for its turn"},
  };
  for (const Broken& broken : cases) expect_rejected(call, good, broken);
}

// As far ahead as the window goes, and no farther.
TEST(Broken, MulticastsBeyondTheWindow) {
  const auto team = [](int ahead) {
    std::string writer = "schedule ranks 2 rank 0 scratch 0\n";
    std::string reader = "schedule ranks 2 rank 1 scratch 0\nwait 0 #0\n";
    for (int i = 0; i < ahead; ++i) {
      writer += "multicast team #" + std::to_string(i) + " input[" + std::to_string(i) + "+1]\n";
      reader += "receive 0 team #" + std::to_string(i) + " output[" + std::to_string(i) + "+1]\n";
    }
    return writer + "signal 1 #0\n" + reader;
  };
  for (const int ahead : {4, 5}) {
    TeamCall call{.shared = {.collective = Collective::kBcast, .ranks = 2, .count = ahead},
                  .limits = {.window = 4},
                  .locals = {}};
    EXPECT_EQ(verify(call, test::emit_text(team(ahead))).ok(), ahead == 4);
  }
}

TEST(Broken, MalformedOps) {
  const Broken cases[] = {
      {"put 1 #0 input[0+16]", "put 2 #0 input[0+16]", "the peer is not in the team"},
      {"put 1 #0 input[0+16]", "put 1 #-1 input[0+16]", "a negative message number"},
      {"put 1 #0 input[0+16]", "put 1 #0", "a put has sources only"},
      {"put 1 #0 input[0+16]", "put 1 #0 input[0+8 by 8]", "a stride outside a loop"},
      {"put 1 #0 input[0+16]", "put 1 #0 input[8+16]", "input has 16 bytes only"},
      {"put 1 #0 input[0+16]", "put 1 #0 input[-8+16]", "negative or impossible offset"},
      {"put 1 #0 input[0+16]", "put 1 #0 input(1)", "only copy, send and recv can refer"},
      {"put 1 #0 input[0+16]", "send 1 #0 input(1)", "this call has no count tables"},
      {"copy scratch[0+8]", "copy scratch[60+8]", "scratch has 64 bytes only"},
      {"copy scratch[0+8]", "copy input[0+8]", "only output and scratch can be written"},
      {"copy scratch[0+8]", "copy slot(1 #0)[0+8]", "only output and scratch can be written"},
      {"copy scratch[0+8]", "copy scratch[0+4]", "lists of different lengths"},
      {"input[8+8] scratch[0+8]", "input[8+8] scratch[0+4]", "operands of different lengths"},
      {"input[8+8] scratch[0+8]", "input[8+8]", "one destination and two operands"},
      {"reduce output[8+8] = input[8+8] scratch[0+8]",
       "reduce output[8+4] = input[8+4] scratch[0+4]", "a part of an element"},
      {"wait 1 #0\n", "wait 1 #0\nrepeat 0 {\ncopy scratch[0+8] = input[0+8]\n}\n",
       "an impossible number of rounds"},
      {"wait 1 #0\n", "wait 1 #0\nrepeat 2 {\n}\n", "the loop body does not fit"},
      {"wait 1 #0\n", "wait 1 #0\nrepeat 9 {\ncopy scratch[0+8 by 8] = input[0+8]\n}\n",
       "scratch has 64 bytes only"},
      {"wait 1 #0\n", "wait 1 #0\nrepeat 2 {\ncopy scratch[0+8 by -8] = input[0+8]\n}\n",
       "a buffer that strides below 0"},
      {"ranks 2 rank 1", "ranks 3 rank 1", "a schedule for a team of another size"},
      {"scratch[0+8]\n", "scratch[0+8]\nlearn scratch[0+4]\n", "not whole, aligned int64"},
  };
  for (const Broken& broken : cases) expect_rejected(allreduce(true), kAllreduce, broken);
}

TEST(Broken, MessagesThatDoNotMatch) {
  const Broken cases[] = {
      {"put 0 #0 input[0+16]\n", "", "waits for message #0 of rank 1, which has finished"},
      {"wait 0 #0\nreduce output[0+16] = slot(0 #0)[0+16] input[0+16]\n", "",
       "message #0 from rank 0 (op 0 there) was never waited for by rank 1"},
      {"put 0 #0 input[0+16]", "put 0 #1 input[0+16]", "waits for message #0 of rank 1"},
      {"put 0 #0 input[0+16]", "put 0 #0 input[0+16]\nput 0 #0 input[0+16]",
       "message #0 is put a second time"},
      {"wait 1 #0\n", "wait 1 #0\nwait 1 #0\n", "message #0 is waited for a second time"},
      {"put 0 #0 input[0+16]", "put 0 #0 input[0+8]", "up to byte 16, but it has only 8"},
      {"put 0 #0 input[0+16]", "send 0 #0 input[0+16]", "both used between these two ranks"},
      {"wait 1 #0\n", "", "has not waited for it or has released it"},
      {"copy scratch[0+8] = slot(1 #0)[8+8]\n", "strand\ncopy scratch[0+8] = slot(1 #0)[8+8]\n",
       "this strand has not waited for it"},
  };
  for (const Broken& broken : cases) expect_rejected(allreduce(true), kAllreduce, broken);
}

TEST(Broken, WrongValues) {
  const Broken cases[] = {
      {"input[8+8] scratch[0+8]", "input[8+8] scratch[8+8]",
       "rank 0, strand 0, op 4 (reduce output[8+8] = input[8+8] scratch[8+8]): reads "
       "scratch[8+8], where byte 8 has not been written"},
      {"slot(1 #0)[8+8]", "slot(1 #0)[0+8]", "byte 8 of 0 meets byte 0 of 1"},
      {"reduce output[8+8] = input[8+8] scratch[0+8]", "copy output[8+8] = input[8+8]",
       "rank 0: output[8+8] lacks the contribution of rank 1: 0"},
      {"reduce output[8+8] = input[8+8] scratch[0+8]\n", "",
       "rank 0: output[8+1] is never written"},
      {"reduce output[8+8] = input[8+8] scratch[0+8]\n",
       "reduce output[8+8] = input[8+8] scratch[0+8]\n"
       "reduce output[8+8] = output[8+8] scratch[0+8]\n",
       "has more than once the contribution of rank 1: ((0 + 1) + 1)"},
      {"= input[8+8] scratch[0+8]", "= scratch[0+8] input[8+8]", "the bits can differ"},
      {"reduce output[0+8] = input[0+8] slot(1 #0)[0+8]",
       "reduce output[4+8] = input[0+8] slot(1 #0)[0+8]", "rank 0: output[0+1] is never written"},
      {"copy scratch[0+8] = slot(1 #0)[8+8]", "copy scratch[0+4] scratch[8+4] = slot(1 #0)[8+8]",
       "where byte 4 has not been written"},
      {"copy scratch[0+8] = slot(1 #0)[8+8]", "copy scratch[0+8] scratch[4+8] = slot(1 #0)[0+16]",
       "two destinations overlap"},
      {"copy scratch[0+8] = slot(1 #0)[8+8]\n",
       "copy scratch[0+8] = slot(1 #0)[8+8]\ncopy scratch[4+8] = scratch[0+8]\n",
       "a destination overlaps a source"},
      {"reduce output[0+16] = slot(0 #0)[0+16] input[0+16]",
       "copy output[0+16] = input[0+16]\nreduce output[0+8] = output[4+8] output[0+8]",
       "overlaps an operand without being equal to it"},
  };
  for (const Broken& broken : cases) expect_rejected(allreduce(true), kAllreduce, broken);
  const Broken order{"slot(0 #0)[0+16] input[0+16]", "input[0+16] slot(0 #0)[0+16]",
                     "is not in rank order, which this operator needs: (1 + 0)"};
  expect_rejected(allreduce(false), kAllreduce, order);
}

// In place the first reduce would destroy what the second one reads.
TEST(Broken, OnlyInPlace) {
  const Broken late{
      "put 1 #0 input[0+16]\nwait 1 #0\n"
      "copy scratch[0+8] = slot(1 #0)[8+8]\n"
      "reduce output[0+8] = input[0+8] slot(1 #0)[0+8]\n",
      "wait 1 #0\ncopy scratch[0+8] = slot(1 #0)[8+8]\n"
      "reduce output[0+8] = input[0+8] slot(1 #0)[0+8]\n"
      "put 1 #0 input[0+16]\n",
      "has more than once the contribution of rank 1"};
  const std::string text = test::replaced(std::string(kAllreduce), late.from, late.to);
  TeamCall call = allreduce(true);
  EXPECT_TRUE(verify(call, test::emit_text(text)).ok());
  call.locals.assign(2, {.in_place = true, .tables = {}});
  expect_rejected(call, kAllreduce, late);
}

// Two strands of rank 0 share output[0+8].
TEST(Broken, UnorderedStrands) {
  constexpr std::string_view good =
      "schedule ranks 2 rank 0 scratch 0\n"
      "put 1 #0 input[0+16]\n"
      "wait 1 #0\n"
      "reduce output[0+16] = input[0+16] slot(1 #0)[0+16]\n"
      "signal 0 #0\n"
      "strand\n"
      "wait 0 #0\n"
      "put 1 #1 output[0+8]\n"
      "schedule ranks 2 rank 1 scratch 0\n"
      "put 0 #0 input[0+16]\n"
      "wait 0 #0\n"
      "reduce output[0+16] = slot(0 #0)[0+16] input[0+16]\n"
      "wait 0 #1\n"
      "copy output[0+8] = slot(0 #1)[0+8]\n";
  const Report report = verify(allreduce(true), test::emit_text(good));
  EXPECT_TRUE(report.ok()) << report.status.to_string();
  expect_rejected(allreduce(true), good,
                  {"signal 0 #0\nstrand\nwait 0 #0\n", "strand\n",
                   "op 3 (put 1 #1 output[0+8]): "
                   "reads output[0+8], where byte 0 has not been written"});
  expect_rejected(allreduce(true), good,
                  {"reduce output[0+16] = input[0+16] slot(1 #0)[0+16]\nsignal 0 #0\n",
                   "signal 0 #0\nreduce output[0+16] = input[0+16] slot(1 #0)[0+16]\n",
                   "op 5 (put 1 #1 output[0+8]): reads output[0+8] in no order with strand 0 of "
                   "this rank, which writes it too"});
  expect_rejected(allreduce(true), good,
                  {"wait 0 #0\nput 1 #1 output[0+8]", "put 1 #1 input[0+8]\nwait 0 #0",
                   "rank 1: output[0+8] lacks the contribution of rank 1"});
  // A full window is no order: with more room, signal #1 would not wait for the other strand.
  constexpr std::string_view window =
      "schedule ranks 1 rank 0 scratch 8\n"
      "signal 0 #0\n"
      "signal 0 #1\n"
      "copy output[0+16] = input[0+16]\n"
      "strand\n"
      "copy scratch[0+8] = input[0+8]\n"
      "wait 0 #0\n"
      "wait 0 #1\n";
  TeamCall alone = allreduce(true);
  alone.shared.ranks = 1;
  alone.limits.window = 1;
  EXPECT_TRUE(verify(alone, test::emit_text(window)).ok());
  expect_rejected(alone, window, {"copy scratch[0+8]", "copy output[0+8]", "in no order"});
}

TEST(Broken, Deadlocks) {
  // Waiting first on one side only is fine.
  const std::string text =
      test::replaced(std::string(kAllreduce), "put 0 #0 input[0+16]\nwait 0 #0\n",
                     "wait 0 #0\nput 0 #0 input[0+16]\n");
  EXPECT_TRUE(verify(allreduce(true), test::emit_text(text)).ok());
  expect_rejected(allreduce(true), text,
                  {"put 1 #0 input[0+16]\nwait 1 #0\n", "wait 1 #0\nput 1 #0 input[0+16]\n",
                   "deadlock:\n"
                   "  rank 0, strand 0, op 0 (wait 1 #0) waits for message #0 of rank 1\n"
                   "  rank 1, strand 0, op 0 (wait 0 #0) waits for message #0 of rank 0"});
}

// Both put all their segments before they read any: right as long as the window holds them.
TEST(Broken, DeadlockAtTheGuaranteedMinimum) {
  std::string text;
  for (const char* const ranks : {"01", "10"}) {
    const std::string own(1, ranks[0]), other(1, ranks[1]);
    text += "schedule ranks 2 rank " + own + " scratch 0\n";
    text += "repeat 3 {\nput " + other + " #0 by 1 input[0+8 by 8]\n}\n";
    text += "repeat 3 {\nwait " + other + " #0 by 1\n";
    text += ranks[0] == '0' ? "reduce output[0+8 by 8] = input[0+8 by 8] slot(1 #0 by 1)[0+8]\n}\n"
                            : "reduce output[0+8 by 8] = slot(0 #0 by 1)[0+8] input[0+8 by 8]\n}\n";
  }
  TeamCall call = allreduce(false);
  call.shared.count = 3;
  EXPECT_TRUE(verify(call, test::emit_text(text)).ok());
  call.limits.window = 2;
  Report report = verify(call, test::emit_text(text));
  EXPECT_NE(report.status.message().find(
                "op 1 (put 1 #0 by 1 input[0+8 by 8]), round 2 waits for the window: message #2"),
            std::string::npos)
      << report.status.message();
  call.limits = {.inline_bytes = 0};
  report = verify(call, test::emit_text(text));
  EXPECT_NE(report.status.message().find("waits for one of its 2 large slots"), std::string::npos)
      << report.status.message();
}

TEST(Broken, MessagesToAll) {
  constexpr std::string_view good =
      "schedule ranks 3 rank 0 scratch 0\n"
      "put all #0 input[0+8]\n"
      "schedule ranks 3 rank 1 scratch 0\n"
      "wait 0 all #0\n"
      "copy output[0+8] = slot(0 all #0)[0+8]\n"
      "schedule ranks 3 rank 2 scratch 0\n"
      "wait 0 all #0\n"
      "copy output[0+8] = slot(0 all #0)[0+8]\n";
  const TeamCall call{.shared = {.collective = Collective::kBcast, .ranks = 3, .count = 8},
                      .limits = {},
                      .locals = {}};
  EXPECT_TRUE(verify(call, test::emit_text(good)).ok());
  expect_rejected(call, good,
                  {"rank 2 scratch 0\nwait 0 all #0\ncopy output[0+8] = slot(0 all #0)[0+8]\n",
                   "rank 2 scratch 0\n",
                   "message #0 from rank 0 to all (op 0 there) was never waited for by rank 2"});
  expect_rejected(call, good,
                  {"wait 0 all #0\n", "wait 0 all #0\nwait 0 all #0\n",
                   "message #0 is waited for a second time"});
  expect_rejected(call, good, {"wait 0 all #0\n", "wait 0 #0\n", "waits for message #0 of rank 0"});
  expect_rejected(call, good,
                  {"put all #0 input[0+8]\n", "put all #0 input[0+8]\nwait 0 all #0\n",
                   "a rank does not read its own message to all"});
}

// A message to all is for the writer's node only.
TEST(Broken, MessagesToAllOfANode) {
  constexpr std::string_view good =
      "schedule ranks 3 rank 0 scratch 0\n"
      "put all #0 input[0+8]\n"
      "put 2 #0 input[0+8]\n"
      "schedule ranks 3 rank 1 scratch 0\n"
      "wait 0 all #0\n"
      "copy output[0+8] = slot(0 all #0)[0+8]\n"
      "schedule ranks 3 rank 2 scratch 0\n"
      "wait 0 #0\n"
      "copy output[0+8] = slot(0 #0)[0+8]\n";
  TeamCall call{.shared = {.collective = Collective::kBcast, .ranks = 3, .count = 8},
                .limits = {.nodes = test::blocked({2, 1}).nodes},
                .locals = {}};
  EXPECT_TRUE(verify(call, test::emit_text(good)).ok());
  expect_rejected(call, good,
                  {"wait 0 #0\ncopy output[0+8] = slot(0 #0)",
                   "wait 0 all #0\ncopy output[0+8] = slot(0 all #0)",
                   "a message to all does not leave its node"});
  expect_rejected(call, good,
                  {"copy output[0+8] = slot(0 #0)[0+8]\n",
                   "copy output[0+8] = slot(0 #0)[0+8]\nput all #0 output[0+8]\n",
                   "a message to all on a node of one rank"});
  expect_rejected(call, good,
                  {"wait 0 all #0\ncopy output[0+8] = slot(0 all #0)[0+8]\n", "",
                   "message #0 from rank 0 to all (op 0 there) was never waited for by rank 1"});
  call.limits.nodes = test::blocked({2, 2}).nodes;
  EXPECT_NE(verify(call, test::emit_text(good)).status.message().find("nodes of another number"),
            std::string_view::npos);
}

TEST(Broken, BarrierThatLeavesEarly) {
  constexpr std::string_view good =
      "schedule ranks 2 rank 0 scratch 0\n"
      "signal 1 #0\nwait 1 #0\n"
      "schedule ranks 2 rank 1 scratch 0\n"
      "signal 0 #0\nwait 0 #0\n";
  const TeamCall call{
      .shared = {.collective = Collective::kBarrier, .ranks = 2}, .limits = {}, .locals = {}};
  EXPECT_TRUE(verify(call, test::emit_text(good)).ok());
  expect_rejected(call,
                  "schedule ranks 2 rank 0 scratch 0\n"
                  "signal 1 #0\n"
                  "schedule ranks 2 rank 1 scratch 0\n"
                  "wait 0 #0\n",
                  {"", "", "rank 0 can leave the barrier before rank 1 has entered it"});
}

TEST(Broken, TwoSidedTransfers) {
  const std::vector<std::int64_t> send0{0, 8}, recv0{0, 0}, send1{0, 0}, recv1{8, 0};
  const std::vector<std::int64_t> zero{0, 0}, eight{8, 8};
  TeamCall call{
      .shared = {.collective = Collective::kAlltoallv, .ranks = 2},
      .limits = {},
      .locals = {{false, {send0, zero, recv0, zero}}, {false, {send1, zero, recv1, eight}}}};
  constexpr std::string_view good =
      "schedule ranks 2 rank 0 scratch 0\n"
      "send 1 #0 input(1)\n"
      "schedule ranks 2 rank 1 scratch 0\n"
      "recv 0 #0 output(0)\n";
  const Report report = verify(call, test::emit_text(good));
  EXPECT_TRUE(report.ok()) << report.status.to_string();
  expect_rejected(call, good,
                  {"recv 0 #0 output(0)\n", "",
                   "send #0 from rank 0 to rank 1 (op 0 there) was never received"});
  expect_rejected(
      call, good,
      {"recv 0 #0 output(0)", "recv 0 #0", "op 0 of rank 0) has 8 bytes, the recv takes 0"});
  expect_rejected(
      call, good,
      {"recv 0 #0 output(0)", "recv 0 #0 output[0+8]", "of which not all belongs to the result"});
  expect_rejected(
      call, good,
      {"recv 0 #0 output(0)", "recv 0 #1 output(0)", "waits for its turn behind another strand"});
  expect_rejected(call, good, {"input(1)", "input[0+4]", "has 4 bytes, the recv takes 8"});
  expect_rejected(call, good,
                  {"input(1)", "input(1) input(0)", "an entry of a count table beside other"});
  expect_rejected(call, good, {"input(1)", "counts[0+8]", "only copy can refer to the counts"});
}

// Of two ranks there are two counts and the larger of them; they are bytes of no input.
TEST(Broken, Counts) {
  const std::vector<std::int64_t> eight{8, 8}, places{0, 8};
  const Local local{false, {eight, places, eight, places}};
  const TeamCall call{.shared = {.collective = Collective::kAlltoallv, .ranks = 2},
                      .limits = {},
                      .locals = {local, local}};
  constexpr std::string_view good =
      "schedule ranks 2 rank 0 scratch 24\n"
      "copy scratch[0+24] = counts[0+24]\n"
      "copy output(0) = input(0)\n"
      "send 1 #0 input(1)\n"
      "recv 1 #0 output(1)\n"
      "schedule ranks 2 rank 1 scratch 0\n"
      "copy output(1) = input(1)\n"
      "send 0 #0 input(0)\n"
      "recv 0 #0 output(0)\n";
  const Report report = verify(call, test::emit_text(good));
  EXPECT_TRUE(report.ok()) << report.status.to_string();
  expect_rejected(call, good, {"counts[0+24]", "counts[25+24]", "counts has 48 bytes only"});
  expect_rejected(call, good, {"output(0) = input(0)", "output(0) = counts[0+8]", "holds byte"});
}

TEST(Broken, CallsThatDoNotFitTogether) {
  TeamCall call = allreduce(true);
  call.locals.assign(1, {});
  EXPECT_EQ(verify(call, test::emit_text(kAllreduce)).status.message(),
            "locals for another number of ranks");
  call.shared.collective = Collective::kBcast;
  call.locals.assign(2, {.in_place = true, .tables = {}});
  EXPECT_EQ(verify(call, test::emit_text(kAllreduce)).status.message(),
            "rank 0 may not ask for in place here");
  const std::vector<std::int64_t> sends{0, 8}, nothing{0, 0};
  const TeamCall tables{.shared = {.collective = Collective::kAlltoallv, .ranks = 2},
                        .limits = {},
                        .locals = {{false, {sends, nothing, nothing, nothing}},
                                   {false, {nothing, nothing, nothing, nothing}}}};
  EXPECT_EQ(verify(tables, test::emit_text("")).status.message(),
            "rank 0 sends 8 bytes to rank 1, which expects 0");
}

}  // namespace
}  // namespace carillon
