// SPDX-License-Identifier: Apache-2.0
//
// Lists of any length, put or sent: what one post does not take is put in parts into the reader's
// slot, one after the other, and the last one tells of all. Nothing is copied on the way. Each rank
// writes to the next; counted are posts, entries, words to the reader, and copied bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "support/list_job.h"

namespace carillon::test {
namespace {

constexpr int kRanks = 3;
constexpr int kRounds = 4;

// A list: runs of the input, so far apart; `touching` pieces to each run.
struct List {
  std::int64_t runs = 1;
  std::int64_t bytes = 40;   // of a run
  std::int64_t first = 160;  // of the first: a message that fits in a line is no list
  std::int64_t touching = 1;
  std::int64_t gap = 24;

  [[nodiscard]] std::int64_t run_bytes(std::int64_t i) const { return i == 0 ? first : bytes; }
  [[nodiscard]] std::int64_t start(std::int64_t i) const {
    return i == 0 ? 0 : first + gap + (i - 1) * (bytes + gap);
  }
  [[nodiscard]] std::int64_t length() const { return first + (runs - 1) * bytes; }
  [[nodiscard]] std::int64_t span() const { return start(runs); }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (std::int64_t i = 0; i < runs; ++i) {
      const std::int64_t piece = run_bytes(i) / touching;
      for (std::int64_t k = 0; k < touching; ++k) {
        all += " input[" + std::to_string(start(i) + k * piece) + "+" + std::to_string(piece) + "]";
      }
    }
    return all;
  }
};

// Runs, and the head of the message.
std::uint64_t posts_of(std::uint64_t runs, std::uint64_t limit) {
  return (runs + 1 + limit) / (limit + 1);
}

// What a rank has to do to write the list to the next one, and its memory, which the network knows.
class Turn {
 public:
  Turn(const Member& member, const List& list, bool sends)
      : member_(member),
        list_(list),
        memory_(static_cast<std::uint8_t*>(
            crl_alloc(member.context, static_cast<std::size_t>(2 * list.span())))),
        plan_(plan_by_hand(member, list.span(), ops(sends), sends)) {}
  ~Turn() { crl_free(member_.context, memory_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void run(int round) {
    const std::int64_t span = list_.span();
    std::uint8_t* const out = memory_ + span;
    for (std::int64_t i = 0; i < span; ++i) memory_[i] = byte_of(member_.rank, 0, round, i);
    std::memset(out, 0, static_cast<std::size_t>(span));
    one_.prepare(*member_.team->team, {.input = memory_, .output = out});
    one_.set_plan(plan_);
    member_.context->engine->run_to_end(one_);
    ASSERT_TRUE(one_.status().ok()) << one_.status().to_string();
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < list_.runs; ++i) {
      for (std::int64_t k = 0; k < list_.run_bytes(i); ++k) {
        ASSERT_EQ(out[at++], byte_of(previous(), 0, round, list_.start(i) + k))
            << "byte " << k << " of run " << i << " of " << list_.runs << " at rank "
            << member_.rank << ", round " << round;
      }
    }
  }

 private:
  [[nodiscard]] int next() const { return (member_.rank + 1) % kRanks; }
  [[nodiscard]] int previous() const { return (member_.rank + kRanks - 1) % kRanks; }
  [[nodiscard]] std::string ops(bool sends) const {
    const std::string whole = "[0+" + std::to_string(list_.length()) + "]\n";
    const std::string from = std::to_string(previous()) + " #0";
    const std::string to = std::to_string(next()) + " #0";
    if (sends) return "send " + to + list_.text() + "\nrecv " + from + " output" + whole;
    return "put " + to + list_.text() + "\nwait " + from + "\ncopy output[0+" +
           std::to_string(list_.length()) + "] = slot(" + from + ")" + whole;
  }

  const Member& member_;
  List list_;
  std::uint8_t* memory_;
  std::shared_ptr<const Plan> plan_;
  carillon::Run one_;
};

struct Work {
  net::Counters net;
  std::uint64_t sends, copied_by_transport;
};

Work work_of(const Member& member) {
  const wire::Counters& wire = member.wire_counters();
  return {member.counters(), wire.sends, wire.copied_bytes};
}

// By put or by send; the most entries that are asked for.
class SendList : public ListJob, public testing::WithParamInterface<std::tuple<bool, const char*>> {
 protected:
  static bool sends() { return std::get<0>(GetParam()); }
  void SetUp() override {
    ListJob::SetUp();
    set("CARILLON_GATHER_ENTRIES", std::get<1>(GetParam()));
  }
  // What one post takes beside a message's head.
  static std::int64_t limit_of(const Member& member) {
    return std::min(static_cast<std::int64_t>(member.most_entries()),
                    static_cast<std::int64_t>(member.limits().gather_entries));
  }
};

void expect_no_copies(const Member& member, const List& list, std::int64_t limit, bool sends) {
  Turn turn(member, list, sends);
  turn.run(0);
  const Work before = work_of(member);
  for (int round = 1; round <= kRounds; ++round) turn.run(round);
  const Work after = work_of(member);
  const net::Counters work = after.net - before.net;
  const auto runs = static_cast<std::uint64_t>(list.runs);
  const std::uint64_t posts = posts_of(runs, static_cast<std::uint64_t>(limit));
  const std::string what = std::to_string(runs) + " runs, " + std::to_string(limit) + " a post";
  EXPECT_EQ(work.gathered, kRounds) << what;
  EXPECT_EQ(work.gathered_entries, kRounds * runs) << what;
  EXPECT_EQ(work.gathered_posts, kRounds * posts) << what;
  EXPECT_EQ(work.lists_made, 0) << what;
  EXPECT_EQ(work.sent_copied_bytes, 0) << what;
  // The reader's own copy to the output is all there is.
  EXPECT_EQ(work.copied_bytes, kRounds * list.length()) << what;
  EXPECT_EQ(after.sends - before.sends, sends && posts == 1 ? kRounds : 0) << what;
  if (!sends || posts > 1) {
    EXPECT_EQ(after.copied_by_transport, before.copied_by_transport) << what;
  }
}

// Of all ranks: a word for each message that was put, for each note, and for each status. A rank
// may have heard of what others did after they counted: of a message and a status from each.
void expect_one_word_each(const Member& member) {
  const Work work = work_of(member);
  const std::array<std::uint64_t, 2> mine = {
      member.wire_counters().immediates,
      work.net.notes + work.net.statuses + work.net.gathered - work.sends};
  std::array<std::array<std::uint64_t, 2>, kRanks> all;
  expect_ok(crl_allgather(member.team, mine.data(), all.data(), sizeof mine));
  std::uint64_t heard = 0, written = 0;
  for (const auto& [words, puts] : all) {
    heard += words;
    written += puts;
  }
  EXPECT_LE(heard, written + 2 * kRanks * (kRanks - 1));
  EXPECT_GE(heard + 2 * kRanks * (kRanks - 1), written);
}

TEST_P(SendList, GoesFromWhereItStands) {
  run(kRanks, "", [](const Member& member) {
    const std::int64_t limit = limit_of(member);
    for (const std::int64_t runs :
         {std::int64_t{1}, limit, limit + 1, 3 * limit + 2, 3 * limit + 3}) {
      expect_no_copies(member, {.runs = runs}, limit, sends());
    }
  });
}

TEST_P(SendList, TheLastPartTellsOfAll) {
  run(kRanks, "", [](const Member& member) {
    Turn turn(member, {.runs = 3 * limit_of(member) + 3}, sends());
    for (int round = 0; round < 2 * kRounds; ++round) turn.run(round);
    expect_one_word_each(member);
  });
}

TEST_P(SendList, RunsThatTouchAreOne) {
  run(kRanks, "", [](const Member& member) {
    const std::int64_t limit = limit_of(member);
    expect_no_copies(member, {.runs = limit + 1, .touching = 2}, limit, sends());
  });
}

// Short and long lists in turn, so that each line of the window has messages that are sent and
// messages that are put: on a network that keeps back, overtakes and refuses, too.
TEST_P(SendList, LongAndShortInTurn) {
  for (const char* const fault : {"", "delay=0.3,reorder=0.4,refuse=0.3,duplicate=0.1,seed=7"}) {
    set("CARILLON_FAULT", fault);
    run(kRanks, "", [](const Member& member) {
      const std::int64_t limit = limit_of(member);
      Turn long_one(member, {.runs = 3 * limit + 2}, sends());
      Turn longer(member, {.runs = limit + 1, .bytes = 64}, sends());
      Turn short_one(member, {.runs = limit}, sends());
      Turn* const turns[] = {&long_one, &short_one, &longer, &short_one, &short_one};
      const net::Counters before = member.counters();
      for (int round = 0; round < 25 && !HasFailure(); ++round) turns[round % 5]->run(round);
      const net::Counters work = member.counters() - before;
      EXPECT_EQ(work.gathered, 25);
      EXPECT_EQ(work.sent_copied_bytes, 0);
    });
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(, SendList, testing::Combine(testing::Bool(), testing::Values("3", "100")),
                         [](const auto& shape) {
                           return std::string(std::get<0>(shape.param) ? "Sent" : "Put") +
                                  std::get<1>(shape.param);
                         });

class LongSends : public ListJob {};

// Of a list that is several messages, the runs count, not how many of them are in one message.
TEST_F(LongSends, AreAListForEachMessage) {
  constexpr std::int64_t kRun = 512, kRuns = 20, kInAMessage = 8;
  set("CARILLON_SLOT_BYTES", std::to_string(kInAMessage * kRun));
  set("CARILLON_GATHER_BYTES", "256");
  run(kRanks, "", [](const Member& member) {
    Turn turn(member, {.runs = kRuns, .bytes = kRun, .first = kRun}, true);
    turn.run(0);
    const net::Counters before = member.counters();
    for (int round = 1; round <= kRounds; ++round) turn.run(round);
    const net::Counters work = member.counters() - before;
    EXPECT_EQ(work.gathered, kRounds * 3);
    EXPECT_EQ(work.gathered_entries, kRounds * kRuns);
    EXPECT_EQ(work.gathered_posts,
              kRounds * (2 * posts_of(kInAMessage, 3) + posts_of(kRuns % kInAMessage, 3)));
    EXPECT_EQ(work.sent_copied_bytes, 0);
  });
}

// In the log, once for each length that is the longest so far.
TEST_F(LongSends, PartsAreTold) {
  set("CARILLON_LOG", "debug");
  for (const bool sends : {false, true}) {
    run(kRanks, "", [&](const Member& member) {
      Turn of_three(member, {.runs = 3}, sends), of_seven(member, {.runs = 7}, sends),
          of_eight(member, {.runs = 8}, sends);
      testing::internal::CaptureStderr();
      for (Turn* const turn : {&of_three, &of_seven, &of_eight, &of_seven}) turn->run(0);
      const std::string told = testing::internal::GetCapturedStderr();
      const std::string to =
          " for process " + std::to_string((member.rank + 1) % kRanks) + " of the job is put in ";
      const std::vector<std::string> lines = {"a list of 7 entries" + to + "2 parts",
                                              "a list of 8 entries" + to + "3 parts"};
      for (const std::string& line : lines) {
        const auto at = told.find(line);
        EXPECT_NE(at, std::string::npos) << told;
        EXPECT_EQ(told.find(line, at + 1), std::string::npos) << told;
      }
      EXPECT_EQ(told.find("a list of 3 entries"), std::string::npos) << told;
    });
  }
}

}  // namespace
}  // namespace carillon::test
