// SPDX-License-Identifier: Apache-2.0
//
// What an engine may leave where it is, and what may land early: each rule with a schedule that
// keeps it, and one that breaks it in one op.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "schedule/lifetimes.h"
#include "schedule/text.h"

namespace carillon {
namespace {

// Of rank 1 of 4 in an allreduce, or an allgather in place (where its input lies at output 8).
struct Case {
  Schedule schedule;
  Call call;

  explicit Case(const std::string& ops, bool in_place = false) {
    auto parsed = parse_schedule("schedule ranks 4 rank 1 scratch 64\n" + ops);
    EXPECT_TRUE(parsed.ok()) << parsed.status().to_string();
    schedule = parsed.value();
    call.shared = {in_place ? Collective::kAllgather : Collective::kAllreduce, 4, 0, 8, 1, true};
    call.local.in_place = in_place;
  }
  [[nodiscard]] std::size_t op_of(OpKind kind, int which = 0) const {
    for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
      if (schedule.ops[i].kind == kind && which-- == 0) return i;
    }
    return 0;
  }
  [[nodiscard]] bool lasts() const {
    const std::size_t put = op_of(OpKind::kPut);
    return Lifetimes(schedule, call).lasts(put, schedule.src(schedule.ops[put])[0]);
  }
  /// The ops that may overwrite what the first put has captured.
  [[nodiscard]] std::vector<std::size_t> overwriters() const {
    return Lifetimes(schedule, call).overwriters(op_of(OpKind::kPut));
  }
  /// The op that would bring the first wait's message; -1: it may not land early.
  [[nodiscard]] int landing() const {
    const auto copy = Lifetimes(schedule, call).landing(op_of(OpKind::kWait));
    return copy ? static_cast<int>(*copy) : -1;
  }
};

TEST(Lasts, WhatNobodyWritesAfterwards) {
  EXPECT_TRUE(Case("put 2 #0 input[0+8]\n").lasts());
  EXPECT_TRUE(Case("copy output[0+8] = input[0+8]\nput 2 #0 output[0+8]\n").lasts());
  EXPECT_TRUE(Case("put 2 #0 output[0+8]\ncopy output[8+8] = input[0+8]\n").lasts());
  EXPECT_FALSE(Case("put 2 #0 output[0+8]\ncopy output[7+8] = input[0+8]\n").lasts());
  EXPECT_FALSE(Case("put 2 #0 scratch[0+8]\n").lasts());
}

TEST(Lasts, OtherStrandsMayBeLater) {
  EXPECT_TRUE(Case("put 2 #0 output[0+8]\nstrand\ncopy output[8+8] = input[0+8]\n").lasts());
  EXPECT_FALSE(Case("put 2 #0 output[0+8]\nstrand\ncopy output[0+8] = input[0+8]\n").lasts());
  EXPECT_FALSE(Case("copy output[0+8] = input[0+8]\nstrand\nput 2 #0 output[0+8]\n").lasts());
}

TEST(Lasts, OtherRoundsMayBeLater) {
  EXPECT_FALSE(Case("repeat 3 {\n  copy output[8+8 by 8] = input[0+8]\n"
                    "  put 2 #0 by 1 output[0+8 by 8]\n}\n")
                   .lasts());
  EXPECT_TRUE(Case("repeat 3 {\n  copy output[24+8 by 8] = input[0+8]\n"
                   "  put 2 #0 by 1 output[0+8 by 8]\n}\n")
                  .lasts());
  EXPECT_FALSE(Case("repeat 3 {\n  copy output[0+8] = input[0+8 by 8]\n"
                    "  put 2 #0 by 1 output[0+8]\n}\n")
                   .lasts());
}

TEST(Lasts, InPlaceTheInputIsOutput) {
  EXPECT_TRUE(Case("put 2 #0 input[0+8]\ncopy output[0+8] = scratch[0+8]\n", true).lasts());
  EXPECT_FALSE(Case("put 2 #0 input[0+8]\ncopy output[8+8] = scratch[0+8]\n", true).lasts());
}

using Ops = std::vector<std::size_t>;

TEST(Overwriters, TheFirstThatFollows) {
  const std::string put = "put 2 #0 scratch[0+8] output[0+8]\n";
  EXPECT_EQ(Case(put).overwriters(), Ops{});
  EXPECT_EQ(Case("copy scratch[0+8] = input[0+8]\n" + put).overwriters(), Ops{});
  EXPECT_EQ(Case(put + "copy scratch[8+8] = input[0+8]\ncopy scratch[7+8] = input[0+8]\n"
                       "copy output[0+8] = input[0+8]\n")
                .overwriters(),
            Ops{2});
  EXPECT_EQ(Case(put + "reduce output[4+8] = input[0+8] input[8+8]\n").overwriters(), Ops{1});
  // What lands early is written from the wait on.
  EXPECT_EQ(Case(put + "wait 0 #0\ncopy output[0+8] = slot(0 #0)[0+8]\n").overwriters(), Ops{1});
}

TEST(Overwriters, InOtherStrandsAll) {
  EXPECT_EQ(Case("put 2 #0 scratch[0+8]\nstrand\ncopy scratch[0+4] = input[0+4]\n"
                 "copy scratch[4+4] = input[0+4]\ncopy scratch[8+4] = input[0+4]\n")
                .overwriters(),
            (Ops{1, 2}));
}

TEST(Overwriters, InALoopThoseOfLaterRounds) {
  const auto loop = [](const std::string& body) { return "repeat 3 {\n" + body + "}\n"; };
  const std::string put = "  put 2 #0 by 1 scratch[0+8 by 8]\n";
  EXPECT_EQ(Case(loop("  copy scratch[0+8 by 8] = input[0+8]\n" + put)).overwriters(), Ops{});
  EXPECT_EQ(Case(loop(put + "  copy scratch[0+8 by 8] = input[0+8]\n")).overwriters(), Ops{2});
  // One writes a round later what is put, one two rounds later, one would three rounds later.
  for (const auto& [from, ops] : {std::pair("8", Ops{1}), {"16", Ops{1}}, {"24", Ops{}}}) {
    EXPECT_EQ(Case(loop("  copy scratch[0+8 by 8] = input[0+8]\n  put 2 #0 by 1 scratch[" +
                        std::string(from) + "+8 by 8]\n"))
                  .overwriters(),
              ops)
        << from;
  }
  EXPECT_EQ(Case(loop("  copy scratch[24+8 by 8] = input[0+8]\n" + put)).overwriters(), Ops{});
  EXPECT_EQ(Case(loop("  copy scratch[0+8] = input[0+8 by 8]\n  put 2 #0 by 1 scratch[0+8]\n"))
                .overwriters(),
            Ops{1});
  EXPECT_EQ(Case(loop(put) + "copy scratch[16+8] = input[0+8]\n").overwriters(), Ops{2});
}

TEST(Overwriters, InPlaceTheInputIsOutput) {
  EXPECT_EQ(Case("put 2 #0 input[0+8]\ncopy output[8+8] = scratch[0+8]\n", true).overwriters(),
            Ops{1});
  EXPECT_EQ(Case("put 2 #0 input[0+8]\ncopy output[0+8] = scratch[0+8]\n", true).overwriters(),
            Ops{});
}

TEST(Landing, WhereACopyBringsItAnyway) {
  EXPECT_EQ(Case("wait 0 #0\ncopy output[0+8] = slot(0 #0)[0+8]\n").landing(), 1);
  EXPECT_EQ(
      Case("wait 0 #0\nput 2 #0 slot(0 #0)[0+8]\ncopy output[0+8] = slot(0 #0)[0+8]\n").landing(),
      2);
  EXPECT_EQ(Case("repeat 3 {\n  wait 0 #0 by 1\n"
                 "  copy output[0+8 by 8] = slot(0 #0 by 1)[0+8]\n}\n")
                .landing(),
            2);
  // Not whole, not to the output, not copied.
  EXPECT_EQ(Case("wait 0 #0\ncopy output[0+8] = slot(0 #0)[8+8]\n").landing(), -1);
  EXPECT_EQ(Case("wait 0 #0\ncopy scratch[0+8] = slot(0 #0)[0+8]\n").landing(), -1);
  EXPECT_EQ(Case("wait 0 #0\nreduce output[0+8] = output[0+8] slot(0 #0)[0+8]\n").landing(), -1);
}

TEST(Landing, NobodyLooksInBetween) {
  const std::string wait = "wait 0 #0\n";
  const std::string copy = "copy output[0+8] = slot(0 #0)[0+8]\n";
  EXPECT_EQ(Case(wait + "put 2 #0 output[8+8]\n" + copy).landing(), 2);
  EXPECT_EQ(Case(wait + "put 2 #0 output[0+8]\n" + copy).landing(), -1);
  EXPECT_EQ(Case(wait + "copy output[4+8] = input[0+8]\n" + copy).landing(), -1);
  EXPECT_EQ(Case(wait + "wait 2 #0\n" + copy).landing(), -1);
  // By what comes it hears that another strand has looked.
  EXPECT_EQ(Case(wait + "recv 2 #0 scratch[0+8]\n" + copy).landing(), -1);
  EXPECT_EQ(Case(wait + "receive 2 team #0 scratch[0+8]\n" + copy).landing(), -1);
  EXPECT_EQ(Case(wait + "aggregate #0 scratch[0+8] = input[0+8]\n" + copy).landing(), -1);
}

TEST(Landing, NobodyChangesItWhileTheMessageIsInUse) {
  const std::string begin = "wait 0 #0\ncopy output[0+8] = slot(0 #0)[0+8]\n";
  const std::string use = "put 2 #0 slot(0 #0)[0+8]\n";
  EXPECT_EQ(Case(begin + "copy output[0+8] = input[0+8]\n").landing(), 1);
  EXPECT_EQ(Case(begin + "copy output[0+8] = input[0+8]\n" + use).landing(), -1);
  EXPECT_EQ(Case(begin + "strand\ncopy output[0+8] = input[0+8]\n").landing(), -1);
  EXPECT_EQ(Case(begin + "repeat 2 {\n  put 2 #0 by 1 slot(0 #0)[0+8]\n"
                         "  copy output[0+8] = input[0+8 by 8]\n}\n")
                .landing(),
            -1);
}

}  // namespace
}  // namespace carillon
