// SPDX-License-Identifier: Apache-2.0
//
// The text form: exact both ways, and no input harms the parser.
#include <gtest/gtest.h>

#include <random>

#include "schedule/check.h"
#include "schedule/text.h"

namespace carillon {
namespace {

constexpr std::string_view kEverything =
    "schedule ranks 4 rank 1 scratch 128\n"
    "phase first\n"
    "copy output[0+8] scratch[16+8] = input[8+16]\n"
    "repeat 3 {\n"
    "  put 2 #0 by 1 input[0+8 by 8] scratch[64+4]\n"
    "  phase in_loop\n"
    "  signal 3 #0 by 2\n"
    "  wait 0 #1 by 1\n"
    "  reduce output[0+8 by 8] = slot(0 #1 by 1)[0+8] output[0+8 by 8]\n"
    "}\n"
    "strand\n"
    "put all #0 output[0+8]\n"
    "signal all #1\n"
    "wait 3 all #0\n"
    "copy scratch[0+8] = slot(3 all #0)[0+8]\n"
    "strand\n"
    "strand\n"
    "send 2 #0 input(2)\n"
    "send 2 #1\n"
    "recv 3 #0 output(3)\n"
    "recv 3 #1\n"
    "multicast team #0 input[0+8] scratch[64+4]\n"
    "multicast leaders #1 output[0+8]\n"
    "receive 3 team #2 output[0+8] scratch[0+4]\n"
    "receive 0 leaders #0 output[8+8]\n"
    "phase last\n"
    "learn scratch[0+16]\n";

TEST(Text, RoundTripsExactly) {
  const auto schedule = parse_schedule(kEverything);
  ASSERT_TRUE(schedule.ok()) << schedule.status().to_string();
  EXPECT_EQ(to_text(schedule.value()), kEverything);
  const auto again = parse_schedule(to_text(schedule.value()));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value(), schedule.value());
}

TEST(Text, TakesBlanksAndComments) {
  const auto schedule = parse_schedule(
      "  // a team of one\n\nschedule  ranks 1 rank 0\tscratch 8\r\n"
      "copy scratch [ 0 + 8 by 0 ]=input[0+8]");
  ASSERT_TRUE(schedule.ok()) << schedule.status().to_string();
  EXPECT_EQ(to_text(schedule.value()),
            "schedule ranks 1 rank 0 scratch 8\ncopy scratch[0+8] = input[0+8]\n");
}

TEST(Text, HoldsSeveralRanks) {
  const auto team = parse_schedules(
      "schedule ranks 2 rank 0 scratch 0\nput 1 #0 input[0+8]\n\n"
      "schedule ranks 2 rank 1 scratch 0\nwait 0 #0\n");
  ASSERT_TRUE(team.ok());
  ASSERT_EQ(team.value().size(), 2U);
  EXPECT_EQ(parse_schedules(to_text(team.value())).value(), team.value());
}

struct Bad {
  std::string_view text;
  std::string_view reason;
};

TEST(Text, SaysLineAndReason) {
  const std::string header = "schedule ranks 2 rank 0 scratch 0\n";
  const Bad cases[] = {
      {"put 1", "line 2: expected '#' at the end of the line"},
      {"put 1 #0 input[0+8", "line 2: expected ']' at the end of the line"},
      {"put 1 #99999999999 input[0+8]", "line 2: a number that is too large"},
      {"push 1 #0", "line 2: 'push' is no op"},
      {"copy output[0+8] input[0+8]", "line 2: expected '=' at the end of the line"},
      {"copy output[0+8] = inputs[0+8]", "line 2: expected a buffer"},
      {"wait 1 #0 nonsense", "line 2: expected a buffer"},
      {"signal 1 #0 }", "line 2: expected a buffer"},
      {"repeat 2 {\nrepeat 2 {", "line 3: a loop inside a loop"},
      {"repeat 2 {\nwait 1 #0", "line 3: a loop is not closed"},
      {"repeat 2 {\nstrand", "line 3: a strand starts inside a loop"},
      {"}", "line 2: '}' without a loop"},
      {"repeat 2 { wait", "line 2: expected the end of the line before 'wait'"},
      {"phase", "line 2: expected a name"},
      {"learn scratch[0+8]\nwait 1 #0", "line 3: nothing can follow 'learn'"},
      {"schedule ranks 2", "line 2: expected 'rank' at the end of the line"},
  };
  for (const Bad& bad : cases) {
    const auto schedule = parse_schedules(header + std::string(bad.text));
    ASSERT_FALSE(schedule.ok()) << bad.text;
    EXPECT_NE(schedule.status().message().find(bad.reason), std::string::npos)
        << bad.text << "\n"
        << schedule.status().message();
  }
  EXPECT_FALSE(parse_schedules("wait 1 #0").ok());
  EXPECT_FALSE(parse_schedule("").ok());
}

// Whatever the bytes, the parser answers, and what it accepts can be checked and printed; the
// print parses again to the same print.
TEST(Text, SurvivesDamage) {
  constexpr unsigned kSeed = 20240229;
  std::mt19937 random(kSeed);
  const std::string tokens[] = {"[",        "]", "by", "-9",         "9223372036854775807",
                                "strand\n", "}", "{",  "#",          "slot(",
                                "all",      "=", "\n", "4294967296", "repeat 2 {\n"};
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text(kEverything);
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, 1 + random() % 12); break;
        case 2: text.insert(at, tokens[random() % std::size(tokens)]); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 40)); break;
      }
    }
    const auto schedule = parse_schedule(text);
    if (!schedule.ok()) continue;
    ++accepted;
    Call call{.shared = {.collective = Collective::kAlltoallv, .ranks = 4},
              .local = {},
              .rank = 1,
              .limits = {},
              .params = {},
              .stage = 0,
              .learned = {}};
    (void)check_schedule(schedule.value(), call).ok();
    const std::string once = to_text(schedule.value());
    const auto again = parse_schedule(once);
    ASSERT_TRUE(again.ok()) << once << again.status().to_string() << " seed " << kSeed;
    ASSERT_EQ(to_text(again.value()), once) << "seed " << kSeed;
  }
  EXPECT_GT(accepted, 100);
}

TEST(Text, PrintsMalformedOps) {
  Schedule schedule;
  schedule.ops.push_back({.kind = OpKind::kPut,
                          .message = {},
                          .first_buffer = 7,
                          .dst_count = 0,
                          .src_count = 1,
                          .count = 0,
                          .body = 0});
  schedule.ops.push_back({.kind = static_cast<OpKind>(99),
                          .message = {},
                          .first_buffer = 0,
                          .dst_count = 0,
                          .src_count = 0,
                          .count = 0,
                          .body = 0});
  EXPECT_EQ(op_text(schedule, 0), "put with buffers that do not exist");
  EXPECT_EQ(op_text(schedule, 1), "unknown op");
  EXPECT_EQ(op_text(schedule, 2), "no op");
}

}  // namespace
}  // namespace carillon
