// SPDX-License-Identifier: Apache-2.0
//
// The file of a program: what is written is read again, and what cannot be is told with its line.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <string>

#include "program/text.h"

namespace carillon::program {
namespace {

constexpr const char* kExample =
    "carillon-program 1\n"
    "ranks 6\n"
    "team some 5,0-4:2\n"
    "teams row blocks 3\n"
    "teams column stride 3\n"
    "call a allreduce count=8 element=8 ordered in_place\n"
    "call b bcast team=row root=2 count=100\n"
    "call c barrier team=column\n"
    "call d alltoallv team=some send=8x3,0 recv=8,0,1x2\n"
    "rank 0-4:2\n"
    "compute 1500\n"
    "repeat 10\n"
    "start a as x\n"
    "do b\n"
    "wait x\n"
    "end\n"
    "other scan 70\n"
    "do d\n"
    "rank 1-5:2\n"
    "start c as c\n"
    "wait c\n";

Program parsed(const std::string& text) {
  Result<Program> program = parse(text, "p");
  EXPECT_TRUE(program.ok()) << program.status().message();
  return program.ok() ? program.value() : Program{};
}

TEST(ProgramText, IsWrittenAsItIsRead) { EXPECT_EQ(to_text(parsed(kExample)), kExample); }

TEST(ProgramText, SaysWhatItSays) {
  const Program program = parsed(kExample);
  ASSERT_EQ(program.calls.size(), 4U);
  const Call& table = program.calls[3];
  EXPECT_EQ(table.send_bytes, (std::vector<std::int64_t>{8, 8, 8, 0}));
  EXPECT_EQ(table.recv_offsets, (std::vector<std::int64_t>{0, 8, 8, 9}));
  EXPECT_FALSE(program.calls[0].commutative);
  EXPECT_EQ(program.body_of, (std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1}));
  const TeamTable teams(program);
  EXPECT_EQ(teams.find(1, 5).member, 0);
  EXPECT_EQ(teams.find(1, 4).member, 3);
  EXPECT_EQ(teams.find(1, 1).member, -1);
  EXPECT_EQ(teams.find(2, 4).member, 1);
  EXPECT_EQ(teams.name(teams.find(2, 4).team), "row[1]");
  EXPECT_EQ(teams.members(teams.find(3, 4).team), (std::vector<Rank>{1, 4}));
}

TEST(ProgramText, ListsOfRanks) {
  for (const char* const list : {"0", "0,1", "0-2", "5,0-4:2", "3,2,1,0", "0-6:2,7-9", "0,1,4-9"}) {
    const Program program =
        parsed("carillon-program 1\nranks 10\nteam t " + std::string(list) + "\nrank all\n");
    EXPECT_EQ(teams_line(program.teams[1]), "team t " + std::string(list));
  }
}

TEST(ProgramText, CommentsAndSpace) {
  const Program program = parsed(
      "# by hand\n\ncarillon-program 1  # this\n  ranks 2\ncall a barrier\nrank all\n\tdo a\r\n");
  EXPECT_EQ(program.bodies.at(0).steps.size(), 1U);
  EXPECT_EQ(program.calls.at(0).line, 5);
}

TEST(ProgramText, WhatCannotBeIsToldWithItsLine) {
  const struct {
    const char* body;
    const char* message;
  } rows[] = {
      {"", "p:2: rank 0 is missing"},
      {"rank 0\n", "p:3: rank 1 is missing"},
      {"ranks 3\n", "p:3: the ranks again"},
      {"sing 1\n", "p:3: there is no \"sing\"; a line begins with ranks, team, teams, "},
      {"rank 0-9\n", "p:3: \"0-9\" is no list of ranks"},
      {"rank 0,0\n", "p:3: \"0,0\" is no list of ranks"},
      {"rank 0-3:0\n", "p:3: \"0-3:0\" is no list"},
      {"rank 0\nrank 0\n", "p:4: rank 0 again"},
      {"team t 0-4\n", "p:3: \"0-4\" is no list of ranks, each once, from 0 to 3"},
      {"team world 0\n", "p:3: team \"world\" again"},
      {"teams t rows 2\n", "p:3: \"rows\": teams are blocks or stride"},
      {"teams t blocks 0\n", "p:3: blocks \"0\": from 1 to 4"},
      {"call a sing\n", "p:3: there is no collective \"sing\""},
      {"call a bcast count=x\n", "p:3: count \"x\": from 0"},
      {"call a bcast root=4\n", "p:3: root \"4\": from 0 to 3"},
      {"call a bcast count=1 element=99999999999\n", "p:3: element \"99999999999\""},
      {"call a bcast count=1099511627776 element=16\n", "p:3: a block of more than"},
      {"call a bcast count=99999999999999999999\n", "p:3: count \"99999999999999999999\""},
      {"call a barrier root=1\n", "p:3: barrier has no root"},
      {"call a alltoallv\n", "p:3: alltoallv has send= and recv="},
      {"call a barrier send=1 recv=1\n", "p:3: barrier has no send= and recv="},
      {"call a alltoallv send=1xx recv=1\n", "p:3: \"send=1xx\" is no table"},
      {"call a alltoallv send=1x9999999 recv=1\n", "p:3: \"send=1x9999999\" is no table"},
      {"call a alltoallv send=1x5 recv=1x4\n", "p:3: \"send=1x5\" is no table"},
      {"call a alltoallv send=0x4,0 recv=1x4\n", "p:3: \"send=0x4,0\" is no table"},
      {"call a alltoallv send=1x3 recv=1x4\nrank all\ndo a\n", "p:3: tables of 3 and 4 members"},
      {"call a barrier team=t\n", "p:3: there is no team \"t\""},
      {"call a barrier loud\n", "p:3: a call has no \"loud\"; it may have team=, root=, count="},
      {"call a barrier\ncall a barrier\n", "p:4: call \"a\" again"},
      {"compute 1\n", "p:3: a step before the first \"rank\""},
      {"rank all\ncompute -1\n", "p:4: ns \"-1\""},
      {"rank all\ncompute\n", "p:4: the line is \"compute NS\""},
      {"rank all\ndo a\n", "p:4: there is no call \"a\""},
      {"rank all\nwait a\n", "p:4: a wait for \"a\", which has not been started"},
      {"call a barrier\nrank all\nstart a\nstart a\n", "p:6: \"a\" is in flight since line 5"},
      {"call a barrier\nrank all\nstart a as\n", "p:5: the line is \"start CALL"},
      {"call a barrier\nrank all\nstart a\nrank 0\n", "p:5: \"a\" is never waited for"},
      {"call a barrier\nrank all\nrepeat 2\nstart a\nend\n", "p:7: the repeat of line 5 must wait"},
      {"call a barrier\nrank all\nstart a\nrepeat 2\nwait a\nend\n", "p:8: the repeat of line 6"},
      {"rank all\nrepeat 2\n", "p:4: a repeat without an end"},
      {"rank all\nend\n", "p:4: an end without a repeat"},
      {"team t 1,2\ncall a barrier team=t\nrank all\ndo a\n", "p:6: rank 0 is not in team t"},
      {"team t 1,2\ncall a bcast team=t root=2\nrank 0,3\nrank 1-2\ndo a\n",
       "p:4: root 2 is not in team t of 2"},
      {"call a gather in_place\nrank all\ndo a\n", "p:5: rank 1 cannot do call a in place"},
  };
  for (const auto& row : rows) {
    const Result<Program> program =
        parse("carillon-program 1\nranks 4\n" + std::string(row.body), "p");
    ASSERT_FALSE(program.ok()) << row.body;
    EXPECT_EQ(program.status().message().substr(0, std::string_view(row.message).size()),
              row.message)
        << program.status().message();
  }
}

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::int64_t peak_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * std::int64_t{1024};
}

// Loops in loops around much that is in flight: memory is as long as the text.
TEST(ProgramText, LoopsTakeLittleMemory) {
  constexpr int kCount = 4000;
  std::string starts, waits;
  for (int i = 0; i < kCount; ++i) {
    starts += "start a as x" + std::to_string(i) + "\n";
    waits += "wait x" + std::to_string(i) + "\n";
  }
  const std::string text = "carillon-program 1\nranks 1\ncall a barrier\nrank all\n" + starts +
                           times(kCount, "repeat 2\n") + "wait x0\nstart a as x0\n" +
                           times(kCount, "end\n") + waits;
  const std::int64_t before = peak_bytes();
  const Result<Program> program = parse(text, "p");
  EXPECT_TRUE(program.ok()) << program.status().message();
  EXPECT_LT(peak_bytes() - before, std::int64_t{64} << 20);
}

TEST(ProgramText, OtherFiles) {
  EXPECT_EQ(parse("", "p").status().message(), "p:1: an empty file");
  EXPECT_EQ(parse("ranks 3\n", "p").status().message(),
            "p:1: not a program: the first line is \"carillon-program 1\"");
  EXPECT_EQ(parse("carillon-program 1\nrank 0\n", "p").status().message(),
            "p:2: \"ranks N\" comes first");
  EXPECT_EQ(load("/nowhere/at/all").status().message(),
            "cannot read /nowhere/at/all: No such file or directory");
  EXPECT_EQ(load("/tmp").status().message(), "cannot read /tmp: it is a folder");
}

TEST(Resized, RanksDoWhatThoseOfTheProgramDo) {
  const Program program = parsed(
      "carillon-program 1\nranks 4\nteam odd 1,3\nteams row blocks 2\n"
      "call a allreduce count=8\ncall b barrier team=row\n"
      "rank 0-2:2\ncompute 5\ndo a\ndo b\nrank 1,3\ndo a\ndo b\n");
  const Result<Program> larger = resized(program, 10);
  ASSERT_TRUE(larger.ok()) << larger.status().message();
  const Result<Program> again = parse(to_text(larger.value()), "q");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again.value().ranks, 10);
  EXPECT_EQ(again.value().body_of, (std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(TeamTable(again.value()).size(), 6U);
}

// What nobody does there, and teams that cannot be there, are not in its text.
TEST(Resized, OfFewRanksHasATextThatIsReadAgain) {
  const Program program = parsed(
      "carillon-program 1\nranks 4\nteams row blocks 4\ncall a barrier\n"
      "rank 0\ndo a\nrank 1-3\ncompute 5\ndo a\n");
  const Result<Program> one = resized(program, 1);
  ASSERT_TRUE(one.ok()) << one.status().message();
  const Result<Program> again = parse(to_text(one.value()), "q");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again.value().bodies.size(), 1U);
}

TEST(Resized, RefusesWhatHasNoMeaning) {
  const auto refused = [](const std::string& lines, Rank ranks) {
    const Program program = parsed("carillon-program 1\nranks 4\n" + lines);
    const Result<Program> other = resized(program, ranks);
    return other.ok() ? std::string() : std::string(other.status().message());
  };
  EXPECT_EQ(
      refused("team t 0-1\ncall a barrier team=t\nrank all\n", 8),
      "p:4: call a is on team t, a list of some ranks, which has no meaning on 8 ranks instead "
      "of 4");
  EXPECT_NE(refused("call a alltoallv send=1x4 recv=1x4\nrank all\n", 8).find("tables"),
            std::string::npos);
  EXPECT_NE(refused("teams t blocks 2\ncall a barrier team=t\nrank all\n", 7).find("divide"),
            std::string::npos);
  EXPECT_NE(refused("call a bcast root=3\nrank all\n", 3).find("root"), std::string::npos);
}

}  // namespace
}  // namespace carillon::program
