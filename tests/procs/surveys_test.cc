// SPDX-License-Identifier: Apache-2.0
//
// Alltoallvs of a team whose tables are surveyed, through the C API: all ranks change the algorithm
// at the same calls, blocking or not, and the bytes are right before and after. What messages cost
// is made up, so that small teams are surveyed, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/calls.h"
#include "support/surveyed.h"

namespace carillon::test {
namespace {

using Numbers = std::vector<std::int64_t>;
constexpr int kCalls = 20;
constexpr int kGrows = 9, kGrown = 12;  // the first call with a long block, and the last

// Two tables in turn; what ranks send differs wildly, the last one nothing. In some calls rank 0
// has a long block.
std::int64_t length(int from, int to, int ranks, int call) {
  if (call >= kGrows && call <= kGrown && from == 0 && to == 1) return 3000;
  if (from == ranks - 1) return 0;
  return (from * 7 + to * 5 + call % 2 * 3) % 11 * (from % 3 == 0 ? 20 : 1);
}
char byte_of(int from, int to, int call, std::int64_t i) {
  return static_cast<char>(from * 31 + to * 17 + call * 5 + i * 3);
}

// One rank's part of a call.
class Exchange {
 public:
  Exchange(crl_team_h team, int call)
      : team_(team), call_(call), rank_(crl_team_rank(team)), ranks_(crl_team_size(team)) {
    for (int peer = 0; peer < ranks_; ++peer) {
      add(length(rank_, peer, ranks_, call), &send_, &in_);
      add(length(peer, rank_, ranks_, call), &recv_, &out_);
      for (std::int64_t i = 0; i < send_.bytes.back(); ++i) {
        in_[static_cast<std::size_t>(send_.offsets.back() + i)] = byte_of(rank_, peer, call, i);
      }
    }
  }
  [[nodiscard]] crl_status_t run() {
    return crl_alltoallv(team_, in_.data(), send_.bytes.data(), send_.offsets.data(), out_.data(),
                         recv_.bytes.data(), recv_.offsets.data());
  }
  [[nodiscard]] crl_status_t start() {
    return crl_ialltoallv(team_, in_.data(), send_.bytes.data(), send_.offsets.data(), out_.data(),
                          recv_.bytes.data(), recv_.offsets.data(), &request_);
  }
  [[nodiscard]] crl_status_t wait() { return crl_request_wait(&request_); }
  /// Of one that was started: nobody says how it will be done before it begins.
  [[nodiscard]] std::string_view algorithm() const {
    const char* id = nullptr;
    while ((id = crl_request_algorithm(request_)) == nullptr) (void)crl_team_test(team_);
    return id;
  }
  void expect_right() const {
    for (int from = 0; from < ranks_; ++from) {
      const auto peer = static_cast<std::size_t>(from);
      const auto begin = static_cast<std::size_t>(recv_.offsets[peer]);
      for (std::int64_t i = 0; i < recv_.bytes[peer]; ++i) {
        ASSERT_EQ(out_[begin + static_cast<std::size_t>(i)], byte_of(from, rank_, call_, i))
            << "call " << call_ << ", from " << from << " to " << rank_ << ", byte " << i;
      }
      ASSERT_EQ(out_[begin + static_cast<std::size_t>(recv_.bytes[peer])], kUntouchedByte);
    }
  }

 private:
  static constexpr char kUntouchedByte = 0x5A;
  struct Side {
    Numbers bytes, offsets;
  };
  static void add(std::int64_t bytes, Side* side, std::vector<char>* buffer) {
    side->bytes.push_back(bytes);
    side->offsets.push_back(static_cast<std::int64_t>(buffer->size()));
    buffer->insert(buffer->end(), static_cast<std::size_t>(bytes) + 1, kUntouchedByte);
  }

  crl_team_h team_;
  int call_, rank_, ranks_;
  Side send_, recv_;
  std::vector<char> in_, out_;
  crl_request_h request_ = nullptr;
};

struct Ranks {
  const char* shape;  // CARILLON_NODE_RANKS
  int ranks;
  // Nodes of several ranks.
  [[nodiscard]] bool merges() const { return std::string_view(shape) != "1"; }
};

// pairwise, survey, bruck_two_phase or merged, by its first letter; a survey's is large.
char letter(std::string_view id) {
  return id == "alltoallv.survey" ? 'S' : id.substr(id.find('.') + 1).front();
}

// What the calls of a team go by. Both tables have been seen when the second survey is held. Merged
// blocks end with no long one, which goes straight.
std::string expected_letters(const Ranks& team) {
  if (team.ranks <= 2) return std::string(kCalls, 'p');
  return team.merges() ? "pSpSmmmSmmmmmmmSmmmm" : "pSpSbbbSbppppppSbbbb";
}

using Calls = std::function<std::string(crl_team_h team)>;

std::string one_by_one(crl_team_h team) {
  std::string letters;
  for (int call = 1; call <= kCalls; ++call) {
    Exchange exchange(team, call);
    expect_ok(exchange.run());
    exchange.expect_right();
    letters += letter(crl_team_last_algorithm(team));
    if (testing::Test::HasFatalFailure()) break;
  }
  return letters;
}

// Several are started before the first has ended, with others between them.
std::string several_at_once(crl_team_h team) {
  std::string letters;
  for (int call = 1; call <= kCalls; call += 5) {
    std::vector<Exchange> exchanges;
    for (int i = 0; i < 4; ++i) exchanges.emplace_back(team, call + i);
    for (Exchange& exchange : exchanges) expect_ok(exchange.start());
    const std::int64_t one = 1;
    std::int64_t sum = 0;
    crl_request_h request = nullptr;
    expect_ok(crl_iallreduce(team, &one, &sum, 1, CRL_INT64, CRL_SUM, &request));
    Exchange last(team, call + 4);
    expect_ok(last.run());
    const std::string_view last_one = crl_team_last_algorithm(team);
    expect_ok(crl_request_wait(&request));
    EXPECT_EQ(sum, crl_team_size(team));
    for (const Exchange& exchange : exchanges) letters += letter(exchange.algorithm());
    letters += letter(last_one);
    for (std::size_t i = exchanges.size(); i-- > 0;) expect_ok(exchanges[i].wait());
    for (const Exchange& exchange : exchanges) exchange.expect_right();
    last.expect_right();
    if (testing::Test::HasFatalFailure()) break;
  }
  return letters;
}

class SurveyedCalls : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override {
    setenv("CARILLON_NODE_RANKS", GetParam().shape, 1);
    setenv("CARILLON_CROWDED", "0", 1);
  }
  void TearDown() override {
    for (const char* const name : {"NODE_RANKS", "CROWDED", "ALGORITHM"}) {
      unsetenv((std::string("CARILLON_") + name).c_str());
    }
  }

  static void on_team(Meeting& world, Meeting& meeting, int rank, bool threaded,
                      const std::function<void(crl_team_h)>& body) {
    crl_context_h context = make_context(world, rank, threaded);
    if (std::getenv("CARILLON_ALGORITHM") == nullptr) take_two_phases_for_cheap(*context);
    crl_team_h team = make_team(context, meeting.oob(rank));
    body(team);
    crl_team_destroy(team);
    crl_context_destroy(context);
  }
  static void on_processes(const std::function<void(crl_team_h)>& body) {
    const int ranks = GetParam().ranks;
    Meeting world(ranks), meeting(ranks);
    expect_processes_ok(ranks, [&](int rank) { on_team(world, meeting, rank, false, body); });
  }
};

TEST_P(SurveyedCalls, AreRightOneByOne) {
  on_processes([](crl_team_h team) { EXPECT_EQ(one_by_one(team), expected_letters(GetParam())); });
}

TEST_P(SurveyedCalls, AreRightSeveralAtOnce) {
  on_processes(
      [](crl_team_h team) { EXPECT_EQ(several_at_once(team), expected_letters(GetParam())); });
}

TEST_P(SurveyedCalls, AreRightOnThreads) {
  const int ranks = GetParam().ranks;
  Meeting world(ranks), meeting(ranks);
  // In a process of their own: libfabric keeps what a search for leaks at the end would find.
  expect_processes_ok(1, [&](int /*process*/) {
    run_threads(ranks, [&](int rank) {
      on_team(world, meeting, rank, true, [](crl_team_h team) {
        EXPECT_EQ(several_at_once(team), expected_letters(GetParam()));
      });
    });
  });
}

// Started while the team is being made.
TEST_P(SurveyedCalls, MayComeBeforeTheTeam) {
  const int ranks = GetParam().ranks;
  Meeting world(ranks), meeting(ranks);
  expect_processes_ok(ranks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    take_two_phases_for_cheap(*context);
    const crl_oob_t oob = meeting.oob(rank);
    crl_team_h team = nullptr;
    expect_ok(crl_team_create(context, &oob, &team));
    std::vector<Exchange> exchanges;
    for (int call = 1; call <= 5; ++call) exchanges.emplace_back(team, call);
    for (Exchange& exchange : exchanges) expect_ok(exchange.start());
    for (Exchange& exchange : exchanges) expect_ok(exchange.wait());
    for (const Exchange& exchange : exchanges) exchange.expect_right();
    Exchange sixth(team, 6);
    expect_ok(sixth.run());
    sixth.expect_right();
    EXPECT_EQ(letter(crl_team_last_algorithm(team)), expected_letters(GetParam())[5]);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

TEST_P(SurveyedCalls, ObeyOverrides) {
  setenv("CARILLON_ALGORITHM", "alltoallv=bruck_two_phase", 1);
  on_processes([](crl_team_h team) { EXPECT_EQ(one_by_one(team), std::string(kCalls, 'b')); });
}

INSTANTIATE_TEST_SUITE_P(Shapes, SurveyedCalls,
                         testing::Values(Ranks{"1", 1}, Ranks{"1", 2}, Ranks{"1", 3}, Ranks{"1", 5},
                                         Ranks{"3,1,3", 7}, Ranks{"rr:2", 8}, Ranks{"4,4,5", 13}),
                         [](const auto& test) { return std::to_string(test.param.ranks); });

// What crl_team_decisions says: the reason, and how many calls; by algorithm and reason.
std::string decided(crl_team_h team) {
  std::vector<crl_decision_t> all(static_cast<std::size_t>(crl_team_decisions(team, nullptr, 0)));
  const int room = static_cast<int>(all.size());
  EXPECT_EQ(crl_team_decisions(team, all.data(), room), room);
  std::string text;
  for (const crl_decision_t& each : all) {
    text += std::to_string(each.calls) + " " + each.algorithm + ": " + each.reason + "\n";
  }
  return text;
}

TEST_P(SurveyedCalls, AreCountedWithTheirReasons) {
  on_processes([](crl_team_h team) {
    EXPECT_EQ(decided(team), "");
    one_by_one(team);
    if (crl_team_size(team) <= 2) {
      EXPECT_EQ(decided(team),
                std::string("20 alltoallv.pairwise: no surveys: ") +
                    (crl_team_size(team) == 1 ? "the ranks are on one node\n"
                                              : "two phases cannot pay for so few ranks\n"));
      return;
    }
    // The tables are new at the first survey.
    if (GetParam().merges()) {
      EXPECT_EQ(decided(team),
                "4 alltoallv.survey: a survey of the tables\n"
                "14 alltoallv.merged: short blocks from node to node in tables that repeat\n"
                "1 alltoallv.pairwise: nothing known before the first survey\n"
                "1 alltoallv.pairwise: two phases would pay if tables repeated\n");
      return;
    }
    // Call 10 is the first after the long block.
    EXPECT_EQ(decided(team),
              "4 alltoallv.survey: a survey of the tables\n"
              "8 alltoallv.bruck_two_phase: short blocks in tables that repeat\n"
              "1 alltoallv.pairwise: nothing known before the first survey\n"
              "1 alltoallv.pairwise: two phases would pay if tables repeated\n"
              "6 alltoallv.pairwise: a block has grown too long since the survey\n");
    crl_decision_t first{};
    EXPECT_EQ(crl_team_decisions(team, &first, 1), 5) << "room for one";
    EXPECT_STREQ(first.algorithm, "alltoallv.survey");
  });
}

// The setting, as it comes to a team of few ranks that share cores: one rank that has another one
// ends it for all.
TEST(Surveyed, WhereTheSettingSaysSo) {
  constexpr int kRanks = 5;
  const std::string few =
      "20 alltoallv.pairwise: no surveys: two phases cannot pay for so few ranks\n";
  struct Case {
    const char *all, *rank_3, *letters;
    std::string decided;
  };
  const Case cases[] = {
      {"on", "on", "pSpSpppSpppppppSpppp",
       "4 alltoallv.survey: a survey of the tables\n"
       "1 alltoallv.pairwise: nothing known before the first survey\n"
       "15 alltoallv.pairwise: two phases would not be faster\n"},
      {"auto", "auto", "pppppppppppppppppppp", few},
      {"on", "off", "pppppppppppppppppppp", few},
      {"off", "off", "pppppppppppppppppppp",
       "20 alltoallv.pairwise: no surveys: CARILLON_SURVEYS=off\n"},
  };
  setenv("CARILLON_NODE_RANKS", "2,1,2", 1);
  setenv("CARILLON_CROWDED", "1", 1);
  for (const Case& each : cases) {
    Meeting world(kRanks), meeting(kRanks);
    expect_processes_ok(kRanks, [&](int rank) {
      setenv("CARILLON_SURVEYS", rank == 3 ? each.rank_3 : each.all, 1);
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      EXPECT_EQ(one_by_one(team), each.letters);
      EXPECT_EQ(decided(team), each.decided);
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
  unsetenv("CARILLON_NODE_RANKS");
  unsetenv("CARILLON_CROWDED");
}

TEST(Surveyed, AnUnknownSettingIsRefused) {
  setenv("CARILLON_SURVEYS", "sometimes", 1);
  const auto config = read_config();
  unsetenv("CARILLON_SURVEYS");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().message(), "CARILLON_SURVEYS=sometimes is none of auto, on and off");
}

// On one node no rule goes by surveys.
TEST(Surveyed, NotOnOneNode) {
  constexpr int kRanks = 4;
  Meeting world(kRanks), meeting(kRanks);
  setenv("CARILLON_CROWDED", "0", 1);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    take_two_phases_for_cheap(*context);
    crl_team_h team = make_team(context, meeting.oob(rank));
    EXPECT_EQ(one_by_one(team), std::string(kCalls, 'p'));
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
  unsetenv("CARILLON_CROWDED");
}

}  // namespace
}  // namespace carillon::test
