// SPDX-License-Identifier: Apache-2.0
//
// The Builder, by the text of what it builds, and release_points.
#include <gtest/gtest.h>

#include "schedule/builder.h"
#include "schedule/text.h"

namespace carillon {
namespace {

Call call_of(Collective collective, Rank ranks, Rank rank) {
  return {.shared = {.collective = collective, .ranks = ranks, .count = 8, .element_bytes = 8},
          .local = {},
          .rank = rank,
          .limits = {},
          .params = {},
          .stage = 0,
          .learned = {}};
}

std::string built(Builder& b) {
  Result<Schedule> schedule = b.finish();
  return schedule.ok() ? to_text(schedule.value()) : schedule.status().to_string();
}

// Ranks 0 and 2 lead nodes of two.
TEST(Builder, NumbersMulticastsPerGroupAndWriter) {
  Call call = call_of(Collective::kAllreduce, 4, 0);
  call.limits.nodes = std::make_shared<Nodes>(std::vector<std::int32_t>{0, 0, 1, 1});
  Builder b(call);
  const Range all{0, 64};
  b.multicast(Channel::kTeam, b.input(all));
  b.multicast(Channel::kLeaders, b.input(all));
  b.multicast(Channel::kLeaders, b.input({0, 0}));
  b.receive(Channel::kTeam, 3, b.output(all));
  b.receive(Channel::kTeam, 2, b.output(all));
  b.receive(Channel::kLeaders, 2, b.output(all));
  b.segments(64, 32, [&](Range s) {
    b.multicast(Channel::kTeam, b.input(s));
    b.receive(Channel::kTeam, 3, b.output(s));
  });
  EXPECT_EQ(built(b),
            "schedule ranks 4 rank 0 scratch 0\n"
            "multicast team #0 input[0+64]\n"
            "multicast leaders #0 input[0+64]\n"
            "multicast leaders #1\n"
            "receive 3 team #0 output[0+64]\n"
            "receive 2 team #0 output[0+64]\n"
            "receive 2 leaders #0 output[0+64]\n"
            "repeat 2 {\n"
            "  multicast team #1 by 1 input[0+32 by 32]\n"
            "  receive 3 team #1 by 1 output[0+32 by 32]\n"
            "}\n");
}

TEST(Builder, RefusesMulticastsThatCannotBe) {
  const auto refusal = [](auto body, std::int64_t multicast_bytes = 64) {
    Call call = call_of(Collective::kAllreduce, 4, 1);
    call.limits.nodes = std::make_shared<Nodes>(std::vector<std::int32_t>{0, 0, 1, 1});
    call.limits.multicast_bytes = multicast_bytes;
    Builder b(call);
    body(b);
    return built(b);
  };
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(refusal([](Builder& b) {
                    b.multicast(Channel::kLeaders, b.input({0, 8}));
                  }),
                  "not in the group"));
  EXPECT_TRUE(has(refusal([](Builder& b) {
                    b.receive(Channel::kTeam, 4, b.output({0, 8}));
                  }),
                  "not in the group"));
  EXPECT_TRUE(has(refusal(
                      [](Builder& b) {
                        b.multicast(Channel::kTeam, b.input({0, 64}));
                      },
                      63),
                  "it takes 63"));
  EXPECT_TRUE(has(refusal([](Builder& b) {
                    b.multicast(Channel::kAll, b.input({0, 8}));
                  }),
                  "no group"));
}

TEST(Builder, NumbersMessagesPerChannel) {
  Builder b(call_of(Collective::kAllreduce, 3, 0));
  const Range all{0, 64};
  b.put(1, b.input(all));
  b.put(2, b.input(all));
  b.signal(1);
  b.put_all(b.input(all));
  b.signal_all();
  const Message m = b.wait(1);
  b.wait_all(1);
  b.wait(1);
  b.send(0, b.input(all));
  b.recv(0, b.output(all));
  b.copy(b.output(all), b.slot(m, all));
  EXPECT_EQ(built(b),
            "schedule ranks 3 rank 0 scratch 0\n"
            "put 1 #0 input[0+64]\n"
            "put 2 #0 input[0+64]\n"
            "signal 1 #1\n"
            "put all #0 input[0+64]\n"
            "signal all #1\n"
            "wait 1 #0\n"
            "wait 1 all #0\n"
            "wait 1 #1\n"
            "send 0 #0 input[0+64]\n"
            "recv 0 #0 output[0+64]\n"
            "copy output[0+64] = slot(1 #0)[0+64]\n");
}

TEST(Builder, MergesAdjacentRangesAndDropsEmptyOnes) {
  Builder b(call_of(Collective::kAllreduce, 2, 0));
  b.put(1, {b.input({0, 8}), b.input({8, 8}), b.input({24, 8}), b.input({40, 0})});
  b.put(1, b.input({8, 0}));
  b.copy(b.output({8, 0}), b.input({0, 0}));
  b.segments(40, 8, [](Range) {});
  EXPECT_EQ(built(b),
            "schedule ranks 2 rank 0 scratch 0\n"
            "put 1 #0 input[0+16] input[24+8]\n"
            "signal 1 #1\n");
}

TEST(Builder, CopiesEachWhereAskedThoughRangesTouch) {
  Builder b(call_of(Collective::kAllreduce, 2, 0));
  b.copy_each({b.output({0, 8}), b.output({8, 8}), b.output({16, 0})}, b.input({0, 16}));
  EXPECT_EQ(built(b),
            "schedule ranks 2 rank 0 scratch 0\n"
            "copy output[0+8] output[8+8] = input[0+16]\n");
}

TEST(Builder, LeavesOutCopiesOntoItself) {
  Call call = call_of(Collective::kAllgather, 2, 1);
  call.local.in_place = true;
  Builder b(call);
  b.copy(b.output({64, 64}), b.input({0, 64}));
  b.copy(b.output({0, 64}), b.output({0, 64}));
  EXPECT_EQ(built(b), "schedule ranks 2 rank 1 scratch 0\n");
}

TEST(Builder, LoopsStayLoops) {
  Builder b(call_of(Collective::kBcast, 2, 1));
  b.wait(0);
  b.segments(40, 16, [&](Range segment) {
    const Message m = b.wait(0);
    b.copy(b.output(Range{0, 40}.sub(segment)), b.slot(m, {0, segment.length}));
  });
  b.wait(0);
  EXPECT_EQ(built(b),
            "schedule ranks 2 rank 1 scratch 0\n"
            "wait 0 #0\n"
            "repeat 2 {\n"
            "  wait 0 #1 by 1\n"
            "  copy output[0+16 by 16] = slot(0 #1 by 1)[0+16]\n"
            "}\n"
            "wait 0 #3\n"
            "copy output[32+8] = slot(0 #3)[0+8]\n"
            "wait 0 #4\n");
}

TEST(Builder, KeepsStrandsPhasesAndScratch) {
  Builder b(call_of(Collective::kAllreduce, 2, 0));
  const Range first = b.allocate_scratch(10);
  const Range second = b.allocate_scratch(8);
  b.phase("one");
  b.copy(b.scratch(first), b.input({0, 10}));
  b.strand();
  b.phase("two");
  b.copy(b.scratch(second), b.input({0, 8}));
  b.next_stage(second);
  b.strand();
  EXPECT_EQ(built(b),
            "schedule ranks 2 rank 0 scratch 128\n"
            "phase one\n"
            "copy scratch[0+10] = input[0+10]\n"
            "strand\n"
            "phase two\n"
            "copy scratch[64+8] = input[0+8]\n"
            "learn scratch[64+8]\n");
}

TEST(Builder, MapsTheRanksAndTheMemoryOfAGroup) {
  Call call = call_of(Collective::kAllreduce, 4, 2);
  const std::vector<std::int32_t> node_of{0, 0, 1, 1};
  call.limits.nodes = std::make_shared<Nodes>(node_of);
  Builder b(call);
  EXPECT_FALSE(b.reaches_all());
  b.put_all(b.input({0, 8}));
  const std::vector<Rank> node{2, 3};
  Call group = call_of(Collective::kAllgather, 2, 0);
  group = b.enter(group, node, b.output({128}), b.output({128}));
  EXPECT_TRUE(group.local.in_place);  // by where the memory lies
  EXPECT_TRUE(b.reaches_all());
  b.put_all(b.input({0, 8}));
  const Message m = b.wait(1);
  b.copy(b.output({8, 8}), b.slot(m, {0, 8}));
  b.copy(b.output({0, 8}), b.input({0, 8}));  // onto itself
  b.leave();
  b.wait_all(1);
  EXPECT_EQ(built(b),
            "schedule ranks 4 rank 2 scratch 0\n"
            "put 3 #0 input[0+8]\n"
            "put 0 #0 input[0+8]\n"
            "put 1 #0 input[0+8]\n"
            "put all #0 output[128+8]\n"
            "wait 3 #0\n"
            "copy output[136+8] = slot(3 #0)[0+8]\n"
            "wait 1 #0\n");
}

TEST(Builder, KeepsTheStrandsOfAGroupBetweenBeforeAndAfter) {
  const Call call = call_of(Collective::kAllreduce, 2, 0);
  Builder b(call);
  const std::vector<Rank> both{0, 1};
  b.put(1, b.input({0, 8}));
  b.enter(call, both, b.input({}), b.output({}));
  b.strand();  // nothing to part from
  b.put(1, b.input({8, 8}));
  b.strand();
  b.wait(1);
  b.strand();
  b.wait(1);
  b.leave();
  b.put(1, b.input({16, 8}));
  EXPECT_EQ(built(b),
            "schedule ranks 2 rank 0 scratch 0\n"
            "put 1 #0 input[0+8]\n"
            "signal 0 #0\n"
            "signal 0 #1\n"
            "put 1 #1 input[8+8]\n"
            "signal 0 #2\n"
            "strand\n"
            "wait 0 #0\n"
            "wait 1 #0\n"
            "signal 0 #3\n"
            "strand\n"
            "wait 0 #1\n"
            "wait 1 #1\n"
            "wait 0 #2\n"
            "wait 0 #3\n"
            "put 1 #2 input[16+8]\n");
}

TEST(Builder, TwoSidedReceivesIntoScratchThatRoundsShare) {
  Call call = call_of(Collective::kAllreduce, 3, 0);
  call.params.two_sided = true;
  Builder b(call);
  b.put_all(b.input({0, 8}));
  const Message kept = b.wait(1, 8);
  b.segments(40, 16, [&](Range s) {
    const Message m = b.wait(2, s.length);
    b.copy(b.output(s), b.slot(m, {0, s.length}));
  });
  b.strand();
  const Message other = b.wait(2, 8);
  b.reduce(b.output({48, 8}), b.slot(kept, {0, 8}), b.slot(other, {0, 8}));
  EXPECT_EQ(built(b),
            "schedule ranks 3 rank 0 scratch 192\n"
            "send 1 #0 input[0+8]\n"
            "send 2 #0 input[0+8]\n"
            "recv 1 #0 scratch[0+8]\n"
            "recv 2 #0 scratch[64+16]\n"
            "copy output[0+16] = scratch[64+16]\n"
            "recv 2 #1 scratch[64+16]\n"
            "copy output[16+16] = scratch[64+16]\n"
            "recv 2 #2 scratch[64+8]\n"
            "copy output[32+8] = scratch[64+8]\n"
            "strand\n"
            "recv 2 #3 scratch[128+8]\n"
            "reduce output[48+8] = scratch[0+8] scratch[128+8]\n");
}

TEST(Builder, FirstErrorSticks) {
  Builder b(call_of(Collective::kAllreduce, 2, 0));
  b.put(2, b.input({0, 8}));
  b.copy(b.output({0, 8}), b.input({0, 16}));
  EXPECT_EQ(built(b),
            "internal error: allreduce schedule of rank 0, op 0: peer 2 is not in the "
            "team");
}

TEST(Builder, RefusesGroupsThatCannotBe) {
  const Call call = call_of(Collective::kAllreduce, 2, 0);
  const std::vector<Rank> strangers{0, 5};
  Builder b(call);
  b.enter(call, strangers, b.input({}), b.output({}));
  b.put(1, b.input({0, 8}));
  b.leave();
  EXPECT_NE(built(b).find("peer 5 is not in the team"), std::string::npos);
  Builder alone(call);
  alone.leave();
  EXPECT_NE(built(alone).find("no group to leave"), std::string::npos);
}

TEST(Builder, RefusesTableEntriesWhereLengthsMatter) {
  Builder put(call_of(Collective::kAlltoallv, 2, 0));
  put.put(1, put.input_of(1));
  EXPECT_FALSE(put.finish().ok());
  Builder reduce(call_of(Collective::kAlltoallv, 2, 0));
  reduce.reduce(reduce.output_of(1), reduce.input_of(1), reduce.input_of(1));
  EXPECT_FALSE(reduce.finish().ok());
}

TEST(ReleasePoints, AreTheLastReads) {
  const auto schedule = parse_schedule(
      "schedule ranks 2 rank 0 scratch 0\n"
      "wait 1 #0\n"                                        // 0, read last by 3
      "wait 1 #1\n"                                        // 1, never read
      "copy output[0+8] = slot(1 #0)[0+8]\n"               // 2
      "copy output[8+8] = slot(1 #0)[0+8]\n"               // 3
      "wait 1 #2\n"                                        // 4, read in the loop only
      "repeat 2 {\n"                                       // 5
      "  wait 1 #3 by 1\n"                                 // 6, read in the same round
      "  copy output[0+8] = slot(1 #2)[0+8]\n"             // 7
      "  copy output[16+8 by 8] = slot(1 #3 by 1)[0+8]\n"  // 8
      "}\n"
      "strand\n"
      "copy output[0+8] = slot(1 #1)[0+8]\n");  // 9, another strand
  ASSERT_TRUE(schedule.ok()) << schedule.status().to_string();
  const std::vector<std::int64_t> expected{3, 1, -1, -1, 5, -1, 8, -1, -1, -1};
  EXPECT_EQ(release_points(schedule.value()), expected);
}

}  // namespace
}  // namespace carillon
