// SPDX-License-Identifier: Apache-2.0
//
// Messages that are placed, and a process that announces them, answers and sends as it pleases: the
// other end notices, sends nothing that was not asked for, and writes to its list alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/hostile.h"

namespace carillon::test {
namespace {

constexpr std::uint32_t kGarbage = 0xA7A7A7A7;

// Messages that are to be placed.
struct Announced {
  Message message;
  net::Announcement payload;
  bool accepted;
};

TEST(Hostile, AnnouncementsAreChecked) {
  constexpr std::uint64_t kLength = sizeof(net::Announcement);
  using Payload = net::Announcement;
  const auto said = [](bool accepted, const Payload& payload,
                       std::uint64_t length = sizeof(net::Announcement), bool is_long = false) {
    return Announced{{length, shm::kAnnounced, is_long}, payload, accepted};
  };
  const Payload sound{.bytes = 300, .count = 3, .cuts = {100, 200, 300}};
  Payload garbage{.bytes = 300, .count = kGarbage};
  std::fill(std::begin(garbage.cuts), std::end(garbage.cuts), kGarbage);
  expect_judged(std::array{
      said(true, sound),
      said(true, {.bytes = kSlotBytes, .count = 1, .cuts = {kSlotBytes}}),
      said(true, {.bytes = 70, .count = 7, .cuts = {10, 20, 30, 40, 50, 60, 70}}),
      said(false, {.bytes = kSlotBytes + 1, .count = 1, .cuts = {kSlotBytes + 1}}),
      said(false, {.bytes = (UINT64_C(1) << 32) + 300, .count = 1, .cuts = {300}}),
      said(false, {.bytes = 0, .count = 1, .cuts = {0}}),
      said(false, {.bytes = 300, .count = 0, .cuts = {300}}),
      said(false, {.bytes = 70, .count = 8, .cuts = {10, 20, 30, 40, 50, 60, 70}}),
      said(false, {.bytes = 70, .count = UINT32_MAX, .cuts = {10, 20, 30, 40, 50, 60, 70}}),
      said(false, {.bytes = 300, .count = 3, .cuts = {200, 100, 300}}),
      said(false, {.bytes = 300, .count = 3, .cuts = {100, 100, 300}}),
      said(false, {.bytes = 300, .count = 2, .cuts = {100, 200, 300}}),
      said(false, {.bytes = 300, .count = 2, .cuts = {100, 400}}),
      said(false, garbage),
      said(false, sound, kLength - 1),
      said(false, sound, kLength + 1),
      said(false, sound, kLength, true),
  });
}

// Both ends go on until the other one says so, too.
void go_on_together(net::Network& network, Meeting& meeting, int rank) {
  Gather<char> all;
  ASSERT_TRUE(all.post(meeting.oob(rank), 0).ok());
  const Stopwatch watch;
  while (all.test() == Code::kInProgress && watch.seconds() < 20) {
    ASSERT_TRUE(network.progress().ok());
    sched_yield();
  }
}

// The victim's and the hostile process's pair, and where their blocks are.
struct Both {
  std::unique_ptr<net::Network> network;
  std::unique_ptr<Target> target;
  std::array<wire::RemoteMemory, 2> blocks;

  Both(Meeting& contacts, Meeting& meeting, int rank) : network(open(contacts, rank)) {
    network->take_ids(1, kGeneration);
    target = std::make_unique<Target>(*network, 0, 0, 1 - rank);
    EXPECT_TRUE(target->pair.allocate_block());
    const auto told = exchange(meeting.oob(rank), target->pair.block(), 20);
    EXPECT_TRUE(told.ok());
    std::copy_n(told.value()->all().begin(), 2, blocks.begin());
    network->end_making(0);
  }
  // Until it is so, or for so long.
  void go_on(const std::function<bool()>& until) const {
    const Stopwatch watch;
    while (!until() && watch.seconds() < 20) {
      ASSERT_TRUE(network->progress().ok());
      sched_yield();
    }
  }
};

void play_both(const std::function<void(Both&, Meeting&, int rank)>& body) {
  Meeting contacts(2), meeting(2);
  const auto exits = run_both([&](int rank) {
    Both both(contacts, meeting, rank);
    body(both, meeting, rank);
    go_on_together(*both.network, meeting, rank);
  });
  if (exits[0] == kNoNetwork) GTEST_SKIP() << "there is no network here";
  expect_all_ok(exits);
}

// The victim has two messages of six pieces for the hostile process, to be cut after two and after
// four. What is answered to lines of the victim's: it sends as many parts as it is asked for by
// answers that are right, up to the first one that is not.
constexpr std::uint32_t kMessages = 2, kPieces = 6, kPieceBytes = 100;
constexpr std::uint32_t kAll = kPieces * kPieceBytes;
struct Answer {
  unsigned line = 0;
  net::Ready ready;
};
struct Case {
  std::string what;
  std::vector<Answer> answers;
  std::uint32_t parts = 0;  // that are sent
  bool accepted = false;
};

net::Ready ready(std::uint32_t number, std::uint32_t first,
                 const std::vector<std::uint32_t>& ends) {
  net::Ready words{
      .number = number, .first = first, .count = static_cast<std::uint32_t>(ends.size())};
  std::copy_n(ends.begin(), std::min<std::size_t>(ends.size(), net::kMostParts), words.ends);
  return words;
}

void announce_all(Both& both, std::vector<net::Buffer*>* under_way) {
  net::Network& network = *both.network;
  net::Pair& pair = both.target->pair;
  const net::Block block = network.memory().allocate(kMessages * 2 * kAll).value();
  for (std::uint32_t number = 0; number < kMessages; ++number) {
    std::vector<wire::Piece> list;
    for (std::uint32_t i = 0; i < kPieces; ++i) {
      const std::uint32_t at = (number * kPieces + i) * 2 * kPieceBytes;
      list.push_back(block.piece(at, kPieceBytes));
      std::memset(block.data + at, static_cast<int>(1 + number * kPieces + i), kPieceBytes);
    }
    const net::Pair::Listed message{.number = number,
                                    .header = shm::make_header(number, 0, 0, 0),
                                    .length = kAll,
                                    .two_sided = true};
    both.go_on([&] {
      return pair.may_announce(number) && pair.announce(message, list, nullptr, under_way);
    });
    ASSERT_TRUE(pair.status().ok()) << pair.status().to_string();
  }
}

// Receives for all parts, as the answers have them; what comes is right, or not there.
class Receives {
 public:
  Receives(Both& both, const Case& one) : both_(both), case_(one) {
    block_ = both.network->memory().allocate(kMessages * kAll).value();
    std::memset(block_.data, 0, kMessages * kAll);
    for (const Answer& answer : one.answers) {
      if (used_ < one.parts) post(answer);
    }
  }
  void check() {
    both_.go_on([&] {
      return std::all_of(operations_.begin(), operations_.begin() + used_,
                         [](const wire::Operation& operation) { return operation.done(); });
    });
    for (std::uint32_t i = 0; i < kMessages * kAll; ++i) {
      const std::uint32_t right = awaited_[i / kAll] ? 1 + i / kPieceBytes : 0;
      ASSERT_EQ(static_cast<std::uint32_t>(block_.data[i]), right) << case_.what << ", byte " << i;
    }
  }

 private:
  void post(const Answer& answer) {
    const net::Parts parts = answer.ready.parts();
    awaited_[answer.line] = true;
    for (std::uint32_t part = 0; part < parts.count; ++part) {
      const std::array piece = {block_.piece(answer.line * kAll + parts.begin_of(part),
                                             parts.ends[part] - parts.begin_of(part))};
      const auto posted = both_.network->wire().recv_placed(
          both_.network->peer_of(kVictim).value(), piece,
          net::placed_tag(0, kGeneration, answer.line), operations_[used_]);
      ASSERT_TRUE(posted.ok() && posted.value());
      ++used_;
    }
  }

  Both& both_;
  const Case& case_;
  net::Block block_;
  std::array<wire::Operation, 2 * net::kMostParts> operations_;
  std::uint32_t used_ = 0;
  std::array<bool, kMessages> awaited_ = {};
};

void expect_answered(const Case& one) {
  play_both([&](Both& both, Meeting& meeting, int rank) {
    std::vector<net::Buffer*> under_way;
    if (rank == kVictim) announce_all(both, &under_way);
    go_on_together(*both.network, meeting, rank);
    if (rank == kHostile) {
      Receives receives(both, one);
      for (const Answer& answer : one.answers) {
        const std::span words(&answer.ready, 1);
        put_to_victim(*both.network, std::as_bytes(words),
                      both.blocks[kVictim].at(net::BlockLayout::ready(answer.line)),
                      net::Network::immediate(net::Network::Kind::kStatus, 1 + answer.line, 0));
        if (!one.accepted) receives.check();  // what is right has come before what is not goes
      }
      receives.check();
      return;
    }
    const auto sent = [&] { return both.network->counters().gathered_posts; };
    const net::Pair& pair = both.target->pair;
    both.go_on([&] { return !pair.status().ok() || (one.accepted && sent() == one.parts); });
    EXPECT_EQ(pair.status().ok(), one.accepted) << one.what << ": " << pair.status().to_string();
    EXPECT_EQ(sent(), one.parts) << one.what;
  });
}

TEST(Hostile, AnswersToAnnouncementsAreChecked) {
  const auto first = [](const std::string& what, std::uint32_t parts,
                        const std::vector<std::uint32_t>& ends) {
    return Case{what, {{0, ready(0, 0, ends)}}, parts, parts > 0};
  };
  std::vector<std::uint32_t> many;
  for (std::uint32_t end = 100; end < 100 + net::kMostParts; ++end) many.push_back(end);
  many.push_back(kAll);
  Case garbage = first("garbage", 0, {});
  garbage.answers[0].ready = {.number = 0, .first = kGarbage, .count = kGarbage};
  std::fill(std::begin(garbage.answers[0].ready.ends), std::end(garbage.answers[0].ready.ends),
            kGarbage);
  const Case cases[] = {
      first("as it was announced", 3, {200, 400, 600}),
      first("with more cuts", 5, {50, 200, 350, 400, 600}),
      first("none", 0, {}),
      first("a cut missing", 0, {400, 600}),
      first("all cuts missing", 0, {600}),
      first("another cut instead", 0, {200, 401, 600}),
      first("not to the end", 0, {200, 400}),
      first("beyond the end", 0, {200, 400, 700}),
      first("back", 0, {200, 400, 300, 600}),
      first("twice the same", 0, {200, 200, 400, 600}),
      first("from 0", 0, {0, 200, 400, 600}),
      first("more than there may be", 0, many),
      garbage,
      {"of another message, then right",
       {{0, ready(8, 0, {200, 400, 600})}, {0, ready(0, 0, {200, 400, 600})}},
       3,
       true},
  };
  for (const Case& one : cases) {
    expect_answered(one);
    if (HasFailure() || IsSkipped()) return;
  }
}

TEST(Hostile, TurnsAreChecked) {
  const std::vector<std::uint32_t> ends = {200, 400, 600};
  const auto both = [&](const std::string& what, std::uint32_t first, std::uint32_t second,
                        std::uint32_t parts, bool accepted = false) {
    return Case{what, {{0, ready(0, first, ends)}, {1, ready(1, second, ends)}}, parts, accepted};
  };
  const Case cases[] = {
      both("one after the other", 0, 3, 6, true),
      both("the second first", 3, 0, 6, true),
      both("a turn that has been", 0, 0, 3),
      both("within one that has been", 0, 2, 3),
      both("the same, which has not come", 5, 5, 0),
      both("the end of one that has not come", 5, 7, 0),
      both("the beginning of one that has not come", 5, 3, 0),
      both("far ahead", 0, 1 << 21, 3),
      both("before the first", 0, UINT32_MAX, 3),
  };
  for (const Case& one : cases) {
    expect_answered(one);
    if (HasFailure() || IsSkipped()) return;
  }
}

// The victim awaits 300 bytes, in two parts; so many come, by the parts.
TEST(Hostile, OtherBytesThanAnnouncedAreNoticed) {
  struct Sent {
    std::size_t first, second;
    bool accepted;
  };
  for (const Sent& sent : {Sent{200, 100, true}, Sent{200, 99, false}, Sent{199, 100, false},
                           Sent{200, 0, false}, Sent{199, 101, false}, Sent{200, 101, false}}) {
    play_both([&](Both& both, Meeting& meeting, int rank) {
      net::Network& network = *both.network;
      const net::Block block = network.memory().allocate(kSlotBytes).value();
      const std::uint64_t tag = net::placed_tag(0, kGeneration, 0);
      if (rank == kHostile) {
        go_on_together(network, meeting, rank);  // the victim has its receives
        std::array<wire::Operation, 2> operations;
        std::memset(block.data, 1, kSlotBytes);
        for (int i = 0; i < 2; ++i) {
          const std::array piece = {block.piece(0, i == 0 ? sent.first : sent.second)};
          const auto posted =
              network.wire().send_placed(network.peer_of(kVictim).value(), piece, tag,
                                         operations[static_cast<std::size_t>(i)]);
          ASSERT_TRUE(posted.ok() && posted.value());
        }
        go_on_together(network, meeting, rank);
        return;
      }
      std::memset(block.data, 0, kSlotBytes);
      net::Placed placed;
      placed.to = {block.piece(0, 150), block.piece(200, 50), block.piece(300, 100)};
      net::Parts parts{.ends = {200, 300}, .count = 2};
      placed.start(parts, true, both.target->pair, 0);
      Result<bool> all = false;
      both.go_on([&] {
        all = both.target->pair.receive_placed(0, placed);
        return placed.told || !all.ok();
      });
      go_on_together(network, meeting, rank);
      both.go_on([&] {
        all = both.target->pair.receive_placed(0, placed);
        return !all.ok() || all.value();
      });
      EXPECT_EQ(all.ok(), sent.accepted) << sent.first << " and " << sent.second;
      for (const std::size_t place : {150, 199, 250, 299, 400, 401}) {
        EXPECT_EQ(static_cast<int>(block.data[place]), 0) << "beside the list, at " << place;
      }
      go_on_together(network, meeting, rank);
    });
    if (HasFailure() || IsSkipped()) return;
  }
}

}  // namespace
}  // namespace carillon::test
