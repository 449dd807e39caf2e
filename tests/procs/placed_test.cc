// SPDX-License-Identifier: Apache-2.0
//
// Messages that are placed: lists at both ends, whose bytes the network takes from the one and
// brings to the other. Counted are receives, their entries and copied bytes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/list_job.h"

namespace carillon::test {
namespace {

constexpr int kRanks = 3;
constexpr int kRounds = 4;
constexpr std::int64_t kBytes = 1440;  // of a message; many numbers of runs divide it

// So many runs of equal length, apart from each other unless they touch.
struct Runs {
  std::int64_t count = 1;
  bool touch = false;

  [[nodiscard]] std::int64_t bytes() const { return kBytes / count; }
  [[nodiscard]] std::int64_t start(std::int64_t i) const { return i * (bytes() + (touch ? 0 : 8)); }
  [[nodiscard]] std::string text(const std::string& space) const {
    std::string all;
    for (std::int64_t i = 0; i < count; ++i) {
      all += " " + space + "[" + std::to_string(start(i)) + "+" + std::to_string(bytes()) + "]";
    }
    return all;
  }
  // Where the k-th byte of the message is.
  [[nodiscard]] std::int64_t place(std::int64_t k) const {
    return start(k / bytes()) + k % bytes();
  }
};

std::string at(int rank, int index) {
  return std::to_string((rank + kRanks) % kRanks) + " #" + std::to_string(index);
}

// A rank's ops, run again and again on memory that the network knows.
class Play {
 public:
  Play(const Member& member, const std::string& ops)
      : member_(member),
        memory_(static_cast<std::uint8_t*>(crl_alloc(member.context, 2 * kSpan))),
        plan_(plan_by_hand(member, kSpan / kRanks, ops, true)) {}
  ~Play() { crl_free(member_.context, memory_); }
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;

  void run(int round) {
    for (std::int64_t i = 0; i < kSpan; ++i) memory_[i] = byte_of(member_.rank, 0, round, i);
    std::memset(output(), 0, kSpan);
    one_.prepare(*member_.team->team, {.input = memory_, .output = output()});
    one_.set_plan(plan_);
    member_.context->engine->run_to_end(one_);
    ASSERT_TRUE(one_.status().ok()) << one_.status().to_string();
  }
  [[nodiscard]] std::uint8_t* output() { return memory_ + kSpan; }

 private:
  static constexpr std::int64_t kSpan = 12288;  // a buffer
  const Member& member_;
  std::uint8_t* memory_;
  std::shared_ptr<const Plan> plan_;
  carillon::Run one_;
};

// Each rank sends a list to the next, which has another one for it.
class Turn {
 public:
  Turn(const Member& member, const Runs& from, const Runs& to)
      : member_(member),
        from_(from),
        to_(to),
        play_(member, "send " + at(member.rank + 1, 0) + from.text("input") + "\nrecv " +
                          at(member.rank - 1, 0) + to.text("output") + "\n") {}
  void run(int round) {
    play_.run(round);
    for (std::int64_t k = 0; k < kBytes; ++k) {
      ASSERT_EQ(play_.output()[to_.place(k)],
                byte_of((member_.rank + kRanks - 1) % kRanks, 0, round, from_.place(k)))
          << "byte " << k << " from " << from_.count << " runs to " << to_.count << ", round "
          << round << ", rank " << member_.rank;
    }
  }

 private:
  const Member& member_;
  Runs from_, to_;
  Play play_;
};

// A message is cut after so many entries of either list.
struct Work {
  std::uint64_t parts = 0, entries = 0;
};
Work expected(const Runs& from, const Runs& to, std::int64_t limit) {
  std::set<std::int64_t> cuts{kBytes};
  for (const Runs& list : {from, to}) {
    for (std::int64_t i = limit; i < list.count; i += limit) cuts.insert(i * list.bytes());
  }
  Work work{.parts = cuts.size()};
  std::int64_t begin = 0;
  for (const std::int64_t end : cuts) {  // runs of the reader's that the part touches
    work.entries += static_cast<std::uint64_t>((end - 1) / to.bytes() - begin / to.bytes() + 1);
    begin = end;
  }
  return work;
}

std::uint64_t copied(const Member& member) {
  return member.counters().copied_bytes + member.wire_counters().copied_bytes;
}

class Lists : public ListJob, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    ListJob::SetUp();
    set("CARILLON_GATHER_ENTRIES", GetParam());
    set("CARILLON_PLACE_BYTES", "1");
  }
  static std::int64_t limit_of(const Member& member) {
    const auto most = static_cast<std::int64_t>(member.most_entries()) + 1;  // without a head
    return std::min<std::int64_t>(most, member.limits().gather_entries);
  }
};

void expect_placed(const Member& member, const Runs& from, const Runs& to, std::int64_t limit) {
  Turn turn(member, from, to);
  turn.run(0);
  const wire::Counters before = member.wire_counters();
  const net::Counters net_before = member.counters();
  const std::uint64_t copied_before = copied(member);
  for (int round = 1; round <= kRounds; ++round) turn.run(round);
  const Runs one{.count = 1};
  const Work work = expected(from.touch ? one : from, to.touch ? one : to, limit);
  const std::string what = std::to_string(from.count) + " runs to " + std::to_string(to.count) +
                           ", " + std::to_string(limit) + " a post";
  EXPECT_EQ(member.wire_counters().placed - before.placed, kRounds * work.parts) << what;
  EXPECT_EQ(member.wire_counters().placed_entries - before.placed_entries, kRounds * work.entries)
      << what;
  EXPECT_EQ(copied(member) - copied_before, 0) << what;
  const net::Counters sent = member.counters() - net_before;
  EXPECT_EQ(sent.gathered, kRounds) << what;
  EXPECT_EQ(sent.gathered_posts, kRounds * work.parts) << what;
}

TEST_P(Lists, GoFromPlaceToPlace) {
  run(kRanks, "", [](const Member& member) {
    const std::int64_t limit = limit_of(member);
    for (const std::int64_t from : {1, 2, 3, 8}) {
      for (const std::int64_t to : {1, 3, 5, 12}) expect_placed(member, {from}, {to}, limit);
    }
    expect_placed(member, {4, true}, {6, true}, limit);
    expect_placed(member, {4}, {6, true}, limit);
    if (limit >= 30) {
      expect_placed(member, {3}, {30}, limit);
      expect_placed(member, {40}, {48}, limit);
    }
  });
}

// On a network that keeps back, overtakes and refuses, too.
TEST_P(Lists, InTurn) {
  for (const char* const fault : {"", "delay=0.3,reorder=0.4,refuse=0.3,duplicate=0.1,seed=7"}) {
    set("CARILLON_FAULT", fault);
    run(kRanks, "", [](const Member& member) {
      Turn plain(member, {2}, {3}), cut(member, {12}, {10}), one(member, {1}, {1});
      Turn* const turns[] = {&plain, &cut, &one, &cut, &plain};
      const std::uint64_t before = copied(member);
      for (int round = 0; round < 40 && !HasFailure(); ++round) turns[round % 5]->run(round);
      EXPECT_EQ(copied(member), before);
    });
    if (HasFailure()) return;
  }
}

// Seven in a row to the same reader, which takes them all later.
TEST_P(Lists, AheadOfTheReader) {
  run(kRanks, "", [](const Member& member) {
    std::string sends, recvs;
    for (int i = 0; i < 7; ++i) {
      const std::string place = "[" + std::to_string(i * 200) + "+90] ";
      const std::string more = "[" + std::to_string(i * 200 + 100) + "+90]\n";
      sends += "send " + at(member.rank + 1, i) + " input" + place + "input" + more;
      recvs += "recv " + at(member.rank - 1, i) + " output" + place + "output" + more;
    }
    Play play(member, sends + recvs);
    for (int round = 0; round < kRounds; ++round) {
      play.run(round);
      for (std::int64_t i = 0; i < 7 * 200; ++i) {
        const bool sent = i % 100 < 90;
        ASSERT_EQ(play.output()[i],
                  sent ? byte_of((member.rank + kRanks - 1) % kRanks, 0, round, i) : 0);
      }
    }
    EXPECT_EQ(copied(member), 0);
  });
}

// Lists of more cuts than a message may have are copied, each end its own.
TEST_P(Lists, ThatAreTooLongAreCopied) {
  run(kRanks, "", [](const Member& member) {
    if (limit_of(member) != 3) return;
    const auto work_of = [&](const Runs& from, const Runs& to) {
      Turn turn(member, from, to);
      turn.run(0);
      const net::Counters before = member.counters();
      turn.run(1);
      return member.counters() - before;
    };
    EXPECT_EQ(work_of({24}, {2}).sent_copied_bytes, kBytes);
    EXPECT_EQ(work_of({24}, {2}).copied_bytes, kBytes);
    EXPECT_EQ(work_of({2}, {24}).sent_copied_bytes, 0);
    EXPECT_EQ(work_of({2}, {24}).copied_bytes, kBytes);
    EXPECT_EQ(work_of({20}, {20}).copied_bytes, 0);
  });
}

std::size_t times(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto from = text.find(what); from != text.npos; from = text.find(what, from + 1)) ++count;
  return count;
}

// Each longer list than one post takes is told of, once, by either end.
TEST_P(Lists, LongerOnesAreTold) {
  set("CARILLON_LOG", "debug");
  run(kRanks, "", [](const Member& member) {
    const std::int64_t limit = limit_of(member);
    testing::internal::CaptureStderr();
    for (const std::int64_t count : {12, 15, 24}) {
      for (const Runs& from : {Runs{count}, Runs{2}}) {
        Turn turn(member, from, from.count == 2 ? Runs{count} : Runs{2});
        for (int round = 0; round < 2; ++round) turn.run(round);
      }
    }
    const std::string told = testing::internal::GetCapturedStderr();
    for (const std::int64_t count : {2, 12, 15, 24}) {
      const std::int64_t parts = (count + limit - 1) / limit;
      const std::string list = "a list of " + std::to_string(count) + " entries ";
      const auto rank_of = [&](int on) { return std::to_string((member.rank + on) % kRanks); };
      const std::string sent = list + "for process " + rank_of(1) + " of the job is ",
                        received = list + "from process " + rank_of(kRanks - 1) + " of the job is ",
                        in_parts = " in " + std::to_string(parts) + " parts",
                        copied = "copied: it takes more than 7 parts";
      const bool is_copied = parts > 7;
      EXPECT_EQ(times(told, list), parts > 1 ? 2 : 0) << told;
      if (parts == 1) continue;
      EXPECT_EQ(times(told, sent + (is_copied ? copied : "placed" + in_parts)), 1) << told;
      EXPECT_EQ(times(told, received + (is_copied ? copied : "filled" + in_parts)), 1) << told;
    }
  });
}

// What is overwritten by the very message that comes in its place is copied to be sent: nobody
// would ask for it, all waiting for each other.
TEST_P(Lists, ToPlacesOfWhatIsSent) {
  run(kRanks, "", [](const Member& member) {
    const std::string places = " output[0+300] output[400+300]";
    Play play(member, "copy output[0+800] = input[0+800]\nsend " + at(member.rank + 1, 0) + places +
                          "\nrecv " + at(member.rank - 1, 0) + places + "\n");
    for (int round = 0; round < kRounds; ++round) {
      const net::Counters before = member.counters();
      play.run(round);
      EXPECT_EQ((member.counters() - before).sent_copied_bytes, 600);
      for (std::int64_t i = 0; i < 700; ++i) {
        const bool sent = i < 300 || i >= 400;
        ASSERT_EQ(play.output()[i],
                  byte_of(sent ? (member.rank + kRanks - 1) % kRanks : member.rank, 0, round, i));
      }
    }
  });
}

// Nobody asks for rank 0's first message before rank 0 has gone on, and overwritten it.
TEST_P(Lists, WhatNobodyAsksForIsCopiedInTheEnd) {
  run(kRanks, "", [](const Member& member) {
    const std::string first = "output[0+300] ", small = "output[1000+100]\n";
    const std::string ops[] = {
        "copy output[0+300] = input[0+300]\nsend 1 #0 output[0+300]\nrecv 2 #0 " + small +
            "copy output[0+300] = input[400+300]\nsend 2 #0 output[0+300]\n",
        "recv 2 #0 " + small + "recv 0 #0 output[0+300]\n",
        "send 0 #0 input[0+100]\nrecv 0 #0 output[0+300]\nsend 1 #0 input[0+100]\n"};
    Play play(member, ops[member.rank]);
    play.run(0);
    for (std::int64_t i = 0; i < 300; ++i) {
      const std::int64_t shown = member.rank == 1 ? i : 400 + i;
      ASSERT_EQ(play.output()[i], byte_of(0, 0, 0, shown)) << "rank " << member.rank;
    }
    if (member.rank == 0) {
      EXPECT_EQ(member.counters().sent_copied_bytes, 300);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, Lists, testing::Values("3", "100"), [](const auto& entries) {
  return std::string("Entries") + entries.param;
});

class Layouts : public ListJob {
 protected:
  void SetUp() override {
    ListJob::SetUp();
    set("CARILLON_PLACE_BYTES", "1");
  }
  static constexpr std::int64_t kBlock = 120;
  // What a rank's alltoalls of blocks do, answers checked; entries that receives have, bytes
  // copied; lists that the first call makes, and the others.
  struct Counts {
    std::uint64_t receives, entries, sent_copied, copied, first_lists, more_lists;
  };
  static Counts count(const Member& member, int ranks) {
    const auto bytes = static_cast<std::size_t>(ranks * kBlock);
    auto* const in = static_cast<std::uint8_t*>(crl_alloc(member.context, 2 * bytes));
    std::uint8_t* const out = in + bytes;
    wire::Counters wire;
    net::Counters before;
    std::uint64_t copied_before = 0;
    const std::uint64_t lists_before = member.counters().lists_made;
    for (int round = 0; round <= kRounds; ++round) {
      for (int to = 0; to < ranks; ++to) {
        for (std::int64_t i = 0; i < kBlock; ++i)
          in[to * kBlock + i] = byte_of(member.rank, to, round, i);
      }
      expect_ok(crl_alltoall(member.team, in, out, kBlock));
      for (int from = 0; from < ranks; ++from) {
        for (std::int64_t i = 0; i < kBlock; ++i) {
          EXPECT_EQ(out[from * kBlock + i], byte_of(from, member.rank, round, i));
        }
      }
      if (round > 0) continue;
      wire = member.wire_counters();
      before = member.counters();
      copied_before = copied(member);
    }
    crl_free(member.context, in);
    const wire::Counters& now = member.wire_counters();
    return {(now.placed - wire.placed) / kRounds,
            (now.placed_entries - wire.placed_entries) / kRounds,
            (member.counters() - before).sent_copied_bytes / kRounds,
            (copied(member) - copied_before) / kRounds,
            before.lists_made - lists_before,
            (member.counters() - before).lists_made};
  }
};

// Bruck's layout that never lands where it puts: lists at both ends, and nothing is copied but a
// rank's block for itself. Of 5 ranks three messages: blocks 1 and 3, 2 and 3, 4; of each the
// reader's blocks are in two places, in one, and in one.
TEST_F(Layouts, ZerocopyCopiesNothing) {
  for (const int ranks : {4, 5, 8}) {
    run(ranks, "alltoall=bruck_zerocopy:memory=gather,transfer=sendrecv",
        [&](const Member& member) {
          const Counts counts = count(member, ranks);
          EXPECT_EQ(counts.sent_copied, 0);
          EXPECT_EQ(counts.copied, kBlock);
          EXPECT_GT(counts.entries, counts.receives);
          EXPECT_GE(counts.receives, ranks == 4 ? 2 : 3);
          EXPECT_EQ(counts.first_lists, ranks == 4 ? 2 + 2 : 3 + 3);
          EXPECT_EQ(counts.more_lists, 0);
        });
    if (HasFailure()) return;
  }
}

// The others: right, received without a copy. In place and reversed, a step receives where it
// sends.
TEST_F(Layouts, OthersAreReceivedInPlace) {
  constexpr int kEight = 8;
  for (const char* const layout : {"inplace", "reversed", "resident"}) {
    const bool stays = std::string(layout) == "resident";
    const std::string algorithm =
        "alltoall=bruck_" + std::string(layout) + ":memory=gather,transfer=sendrecv";
    run(kEight, algorithm.c_str(), [&](const Member& member) {
      const Counts counts = count(member, kEight);
      constexpr std::uint64_t kSent = 3 * 4 * kBlock;
      EXPECT_EQ(counts.sent_copied, stays ? 0 : kSent);
      const std::uint64_t rotated = (std::string(layout) == "inplace" ? 2 : 1) * kEight * kBlock;
      EXPECT_EQ(counts.copied - counts.sent_copied, rotated);
      EXPECT_EQ(counts.first_lists, stays ? 3 + 3 : 3);  // what is copied to be sent has none
      EXPECT_EQ(counts.more_lists, 0);
    });
    if (HasFailure()) return;
  }
}

// A rank dies in the middle: the others hear of it.
TEST_F(Layouts, ADeadRankEndsTheCall) {
  run(4, "alltoall=bruck_zerocopy:memory=gather,transfer=sendrecv", [&](const Member& member) {
    std::vector<std::uint8_t> in(4 * kBlock), out(4 * kBlock);
    expect_ok(crl_alltoall(member.team, in.data(), out.data(), kBlock));
    if (member.rank == 2) _exit(0);
    EXPECT_EQ(crl_alltoall(member.team, in.data(), out.data(), kBlock), CRL_ERR_PEER_DEAD);
    _exit(HasFailure() ? 1 : 0);
  });
}

// Calls that do not fit together end; what was announced in them is in nobody's way afterwards.
TEST_F(Layouts, AFailedTeamLeavesOthersAsTheyWere) {
  constexpr int kFour = 4;
  Meeting more(kFour);
  run(kFour, "alltoall=bruck_zerocopy:memory=gather,transfer=sendrecv", [&](const Member& member) {
    crl_team_h other = make_team(member.context, more.oob(member.rank));
    expect_ok(settle(other));
    const Member second{member.context, other, member.rank};
    EXPECT_EQ(count(second, kFour).sent_copied, 0);
    std::vector<std::uint8_t> in(kFour * kBlock), out(kFour * kBlock);
    const std::int64_t bytes = member.rank == 2 ? kBlock / 2 : kBlock;
    const crl_status_t status = crl_alltoall(member.team, in.data(), out.data(), bytes);
    EXPECT_TRUE(status == CRL_ERR_MISMATCH || status == CRL_ERR_PEER_DEAD) << status;
    EXPECT_EQ(count(second, kFour).sent_copied, 0);
    crl_team_destroy(other);
  });
}

// So do those that are destroyed as soon as they have failed, while others still await what was
// announced there.
TEST_F(Layouts, TeamsThatAreGoneLeaveOthersAsTheyWere) {
  constexpr int kFour = 4;
  constexpr int kTeams = 6;
  for (const char* const fault : {"", "delay=0.5,reorder=0.4,refuse=0.2,seed=3"}) {
    set("CARILLON_FAULT", fault);
    std::vector<std::unique_ptr<Meeting>> meetings;
    for (int i = 0; i < kTeams; ++i) meetings.push_back(std::make_unique<Meeting>(kFour));
    run(kFour, "alltoall=bruck_zerocopy:memory=gather,transfer=sendrecv",
        [&](const Member& member) {
          std::vector<std::uint8_t> in(kFour * kBlock), out(kFour * kBlock);
          for (int i = 0; i < kTeams; ++i) {
            crl_team_h doomed =
                make_team(member.context, meetings[static_cast<std::size_t>(i)]->oob(member.rank));
            expect_ok(settle(doomed));
            expect_ok(crl_alltoall(doomed, in.data(), out.data(), kBlock));
            const std::int64_t bytes = member.rank == i % kFour ? kBlock / 2 : kBlock;
            EXPECT_NE(crl_alltoall(doomed, in.data(), out.data(), bytes), CRL_OK);
            crl_team_destroy(doomed);
            EXPECT_EQ(count(member, kFour).sent_copied, 0) << "after " << i + 1 << " teams";
          }
        });
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace carillon::test
