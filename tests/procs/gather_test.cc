// SPDX-License-Identifier: Apache-2.0
//
// Lists reach the network as they are: the runs of a put to another node become the entries of what
// is posted, and the sender copies none of its bytes. Counted are posts, entries and copied bytes.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/list_job.h"

namespace carillon::test {
namespace {

constexpr std::int64_t kBlock = 300;  // bytes from one rank to another

// An alltoall's input and output, from crl_alloc or not.
class Exchange {
 public:
  Exchange(const Member& member, int ranks, bool shared, std::int64_t block = kBlock)
      : member_(member),
        ranks_(ranks),
        block_(block),
        bytes_(static_cast<std::size_t>(ranks * block)) {
    own_.resize(shared ? 0 : 2 * bytes_);
    memory_ =
        shared ? static_cast<std::uint8_t*>(crl_alloc(member.context, 2 * bytes_)) : own_.data();
  }
  ~Exchange() {
    if (own_.empty()) crl_free(member_.context, memory_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void call(int round, bool in_place = false) {
    std::uint8_t* const in = memory_;
    std::uint8_t* const out = memory_ + bytes_;
    for (int to = 0; to < ranks_; ++to) {
      for (std::int64_t i = 0; i < block_; ++i) {
        (in_place ? out : in)[to * block_ + i] = byte_of(member_.rank, to, round, i);
      }
    }
    if (!in_place) std::memset(out, 0, bytes_);
    expect_ok(crl_alltoall(member_.team, in_place ? CRL_IN_PLACE : in, out, block_));
    for (int from = 0; from < ranks_; ++from) {
      for (std::int64_t i = 0; i < block_; ++i) {
        ASSERT_EQ(out[from * block_ + i], byte_of(from, member_.rank, round, i))
            << "byte " << i << " from " << from << " to " << member_.rank << ", round " << round;
      }
    }
  }

 private:
  const Member& member_;
  int ranks_;
  std::int64_t block_;
  std::size_t bytes_;
  std::vector<std::uint8_t> own_;
  std::uint8_t* memory_;
};

// Lists of scratch memory that later steps overwrite.
constexpr const char* kBruck = "alltoall=bruck_inplace:memory=gather";

// The runs that they have, from the algorithm's definition: in step s go the indices with bit s.
std::vector<std::uint64_t> bruck_runs(int ranks) {
  std::vector<std::uint64_t> runs;
  for (int step = 1; step < ranks; step *= 2) {
    std::uint64_t count = 0;
    for (int j = 1; j < ranks; ++j) {
      const bool begins_a_run = (j & step) != 0 && (j & (step - 1)) == 0;
      count += begins_a_run ? 1 : 0;
    }
    runs.push_back(count);
  }
  return runs;
}

// Of a call, all steps together.
std::uint64_t bruck_blocks(int ranks) {
  std::uint64_t blocks = 0;
  for (int j = 1; j < ranks; ++j) {
    blocks += static_cast<std::uint64_t>(std::popcount(static_cast<unsigned>(j)));
  }
  return blocks;
}

class Gather : public ListJob {};

class Bruck : public Gather, public testing::WithParamInterface<int> {};

TEST_P(Bruck, PostsItsListsAndCopiesNothing) {
  const int ranks = GetParam();
  for (const bool shared : {true, false}) {
    run(ranks, kBruck, [&](const Member& member) {
      Exchange exchange(member, ranks, shared);
      exchange.call(0);
      const net::Counters before = member.counters();
      const crl_traffic_t given = member.traffic();
      exchange.call(1);
      const net::Counters work = member.counters() - before;
      EXPECT_EQ(member.traffic().sent_in_place_bytes - given.sent_in_place_bytes,
                bruck_blocks(ranks) * kBlock);
      EXPECT_EQ(member.traffic().sent_copied_bytes, given.sent_copied_bytes);
      const auto runs = bruck_runs(ranks);
      std::uint64_t entries = 0, posts = 0;
      for (const std::uint64_t count : runs) {
        entries += count;
        posts += 1 + count / 4;  // three and the head, then four each
      }
      EXPECT_EQ(work.gathered, runs.size());
      EXPECT_EQ(work.gathered_entries, entries);
      EXPECT_EQ(work.gathered_posts, posts);
      EXPECT_EQ(work.sent_copied_bytes, 0);
      for (int round = 2; round < 6; ++round) exchange.call(round, round % 2 == 1);
    });
    if (HasFailure()) return;
  }
}

// A send is one message: in parts, as the first list of 8 ranks goes, a message is put.
TEST_P(Bruck, SendsItsListsAndPutsOnlyTheLongest) {
  const int ranks = GetParam();
  run(ranks, "alltoall=bruck_inplace:memory=gather,transfer=sendrecv", [&](const Member& member) {
    Exchange exchange(member, ranks, true);
    exchange.call(0);
    std::uint64_t sends = 0, posts = 0, entries = 0;
    for (const std::uint64_t count : bruck_runs(ranks)) {
      sends += count <= 3 ? 1 : 0;
      posts += 1 + count / 4;
      entries += count;
    }
    EXPECT_EQ(member.wire_counters().sends, sends);
    EXPECT_EQ(member.counters().gathered, bruck_runs(ranks).size());
    EXPECT_EQ(member.counters().gathered_posts, posts);
    EXPECT_EQ(member.counters().gathered_entries, entries);
    EXPECT_EQ(member.counters().sent_copied_bytes, 0);
    for (int round = 1; round < 5; ++round) exchange.call(round, round % 2 == 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Bruck, testing::Values(2, 3, 5, 7, 8, 13),
                         testing::PrintToStringParamName());

// Short messages with a piece of memory that the network would have to be told of first are copied:
// of all layouts but the one that puts from scratch memory, each of the two has a block of the
// caller's.
TEST_F(Gather, OrdinaryMemoryIsCopiedWhereItMustBeKnown) {
  unsetenv("CARILLON_GATHER_BYTES");
  for (const char* const layout : {"inplace", "resident", "reversed", "zerocopy"}) {
    const bool from_scratch = std::string(layout) == "inplace";
    const std::string algorithm = "alltoall=bruck_" + std::string(layout) + ":memory=gather";
    run(4, algorithm.c_str(), [&](const Member& member) {
      const bool must_know = member.network().wire().capabilities().registers_local;
      const bool copied = must_know && !from_scratch;
      Exchange(member, 4, false).call(0);
      EXPECT_EQ(member.counters().gathered, copied ? 0 : 2) << layout;
      EXPECT_EQ(member.counters().sent_copied_bytes, copied ? 2 * 2 * kBlock : 0) << layout;
    });
    if (HasFailure()) return;
  }
}

TEST_F(Gather, WithoutItTheSenderCopies) {
  set("CARILLON_GATHER_ENTRIES", "0");
  run(5, kBruck, [](const Member& member) {
    Exchange exchange(member, 5, true);
    const net::Counters before = member.counters();
    const crl_traffic_t given = member.traffic();
    exchange.call(0);
    const net::Counters work = member.counters() - before;
    EXPECT_EQ(work.gathered, 0);
    EXPECT_EQ(work.sent_copied_bytes, (2 + 2 + 1) * kBlock);
    EXPECT_EQ(member.traffic().sent_copied_bytes - given.sent_copied_bytes, (2 + 2 + 1) * kBlock);
    EXPECT_EQ(member.traffic().sent_in_place_bytes, given.sent_in_place_bytes);
    EXPECT_EQ(member.traffic().copied_bytes, given.copied_bytes);  // each rank is a node
  });
}

// Of 8 ranks, blocks go in four runs of one, then in two of two, then in one of four.
TEST_F(Gather, OnlyRunsThatAreLongEnough) {
  set("CARILLON_GATHER_BYTES", std::to_string(2 * kBlock));
  run(8, kBruck, [](const Member& member) {
    Exchange exchange(member, 8, true);
    const net::Counters before = member.counters();
    exchange.call(0);
    const net::Counters work = member.counters() - before;
    EXPECT_EQ(work.gathered, 2);
    EXPECT_EQ(work.gathered_entries, 2 + 1);
    EXPECT_EQ(work.sent_copied_bytes, 4 * kBlock);
  });
}

// Lists of messages that stay in their slots are of other memory in each call.
TEST_F(Gather, TheSecondCallOfALayoutMakesNoLists) {
  for (const char* const layout : {"inplace", "resident", "reversed", "zerocopy"}) {
    const bool in_slots = std::string(layout) == "resident";
    const std::string algorithm = "alltoall=bruck_" + std::string(layout) + ":memory=gather";
    for (const int ranks : {3, 8}) {
      run(ranks, algorithm.c_str(), [&](const Member& member) {
        Exchange exchange(member, ranks, true);
        exchange.call(0);
        const net::Counters before = member.counters();
        const std::uint64_t registrations = member.registrations();
        for (int round = 1; round < 6; ++round) exchange.call(round);
        const net::Counters work = member.counters() - before;
        EXPECT_EQ(work.gathered, 5 * bruck_runs(ranks).size()) << layout;
        EXPECT_EQ(work.sent_copied_bytes, 0) << layout;
        if (!in_slots || ranks > 4) {
          EXPECT_EQ(work.lists_made, 0) << layout;
        }
        EXPECT_EQ(member.registrations(), registrations) << layout;
      });
      if (HasFailure()) return;
    }
  }
}

TEST_F(Gather, TheSecondCallMakesNoLists) {
  for (const int ranks : {2, 5, 8}) {
    run(ranks, "alltoall=pairwise", [&](const Member& member) {
      Exchange exchange(member, ranks, true), other(member, ranks, true);
      exchange.call(0);
      const net::Counters before = member.counters();
      const std::uint64_t registrations = member.registrations();
      for (int round = 1; round < 9; ++round) exchange.call(round);
      net::Counters work = member.counters() - before;
      EXPECT_EQ(work.gathered, 8 * (ranks - 1));
      EXPECT_EQ(work.lists_made, 0);
      EXPECT_EQ(member.registrations(), registrations);
      // Other memory, other lists.
      other.call(9);
      work = member.counters() - before;
      EXPECT_EQ(work.lists_made, ranks - 1);
    });
    if (HasFailure()) return;
  }
}

// A block that is freed and allocated again stands in the same place, and is other memory.
TEST_F(Gather, FreedMemoryIsForgotten) {
  run(3, "alltoall=pairwise", [](const Member& member) {
    for (int round = 0; round < 20; ++round) Exchange(member, 3, true).call(round);
  });
}

// Longer lists than the device takes, where puts stay in order and where they do not.
TEST_F(Gather, ForcedEntriesAreSplit) {
  set("CARILLON_GATHER_ENTRIES", "100");
  set("CARILLON_LOG", "debug");
  for (const char* const fault : {"", "delay=0.3,reorder=0.4,refuse=0.3,seed=5"}) {
    set("CARILLON_FAULT", fault);
    run(8, kBruck, [&](const Member& member) {
      const std::uint64_t most = member.most_entries();
      EXPECT_EQ(member.limits().gather_entries, 100);
      EXPECT_EQ(member.limits().request_entries, most);
      Exchange exchange(member, 8, true);
      const net::Counters before = member.counters();
      for (int round = 0; round < 5; ++round) exchange.call(round);
      const net::Counters work = member.counters() - before;
      std::uint64_t posts = 0;
      for (const std::uint64_t count : bruck_runs(8)) posts += 1 + count / (most + 1);
      EXPECT_EQ(work.sent_copied_bytes, 0);
      if (*fault == '\0') {
        EXPECT_EQ(work.gathered_posts, 5 * posts);
      }
    });
    if (HasFailure()) return;
  }
}

// What the device takes at once counts, not what is asked for: four runs of 100 bytes are a cheap
// list in one request, and cost more than their copy where a request takes three.
TEST_F(Gather, ForcedEntriesHaveThePriceOfTheirParts) {
  set("CARILLON_GATHER_ENTRIES", "100");
  run(8, "alltoall=bruck_inplace:memory=selective", [](const Member& member) {
    Exchange(member, 8, true, 100).call(0);
    EXPECT_EQ(member.counters().gathered_posts, 3);
    EXPECT_EQ(member.counters().gathered_entries,
              member.most_entries() >= 4 ? 4 + 2 + 1 : 1 + 2 + 1);
  });
}

TEST_F(Gather, MoreEntriesThanTheDeviceTakesAreTold) {
  set("CARILLON_LOG", "debug");
  for (const bool too_many : {true, false}) {
    set("CARILLON_GATHER_ENTRIES", too_many ? "100" : "2");
    Meeting world(2);
    expect_processes_ok(2, [&](int rank) {
      testing::internal::CaptureStderr();
      crl_context_h context = make_context(world, rank);
      const std::string told = testing::internal::GetCapturedStderr();
      if (context->engine->network() == nullptr) return;
      EXPECT_EQ(told.find("longer lists are put in parts") != std::string::npos, too_many) << told;
      crl_context_destroy(context);
    });
  }
}

// One rank takes no lists: none is posted, by agreement.
TEST_F(Gather, TheTeamAgreesOnTheLeast) {
  Meeting world(3), members(3);
  set("CARILLON_ALGORITHM", kBruck);
  expect_processes_ok(3, [&](int rank) {
    if (rank == 1) setenv("CARILLON_GATHER_ENTRIES", "1", 1);
    crl_context_h context = make_context(world, rank);
    if (context->engine->network() == nullptr) return;
    const Member member{context, make_team(context, members.oob(rank)), rank};
    expect_ok(settle(member.team));
    EXPECT_EQ(member.team->team->limits().gather_entries, 1);
    {
      Exchange exchange(member, 3, true);
      exchange.call(0);
    }
    EXPECT_EQ(member.counters().gathered, 0);
    crl_team_destroy(member.team);
    crl_context_destroy(context);
  });
}

// One rank says that entries cost as much as copying a terabyte: then nobody chooses lists of
// several. Step 0 of 5 ranks has two runs, the others one.
TEST_F(Gather, TheTeamAgreesOnTheHighestPrice) {
  constexpr std::int64_t kTera = INT64_C(1) << 40;  // the most that there can be
  for (const bool dear : {true, false}) {
    Meeting world(5), members(5);
    set("CARILLON_ALGORITHM", "alltoall=bruck_inplace:memory=selective");
    expect_processes_ok(5, [&](int rank) {
      if (rank == 1 && dear) setenv("CARILLON_GATHER_BYTES", std::to_string(kTera).c_str(), 1);
      crl_context_h context = make_context(world, rank);
      if (context->engine->network() == nullptr) return;
      const Member member{context, make_team(context, members.oob(rank)), rank};
      expect_ok(settle(member.team));
      const ListCosts costs = member.team->team->limits().list_costs;
      EXPECT_EQ(costs.entry_ps, costs.run_ps + (dear ? kTera : 1) * costs.byte_fs / 1000);
      // As much as 5.35 entries, and no less than by default.
      EXPECT_EQ(costs.part_ps, dear ? costs.entry_ps * 107 / 20 : ListCosts().part_ps);
      Exchange(member, 5, true).call(0);
      if (rank != 1) {
        EXPECT_EQ(member.counters().gathered, 3);
        EXPECT_EQ(member.counters().gathered_entries, dear ? 3 : 4);
      }
      crl_team_destroy(member.team);
      crl_context_destroy(context);
    });
  }
}

// Schedules of two ranks by hand, as of an allgather: each puts, and overwrites what it has put.
// What arrives is what was there, though the network reads it late.
class Overwrite : public Gather {
 protected:
  void SetUp() override {
    Gather::SetUp();
    set("CARILLON_FAULT", "delay=0.9,seed=11");
  }
  // `blocks` of 128 bytes are the input; the first `received` of the other rank's must arrive where
  // an allgather has them, or of rank `whose`.
  void expect_old_bytes(std::int64_t blocks, std::int64_t received,
                        const std::function<std::string(int rank)>& ops_of, int whose = -1) {
    run(2, "", [&](const Member& member) {
      const int from = whose < 0 ? 1 - member.rank : whose;
      const auto plan = plan_by_hand(member, blocks * 128, ops_of(member.rank));
      carillon::Run one;
      for (int round = 0; round < 40 && !HasFailure(); ++round) {
        const auto bytes = static_cast<std::size_t>(blocks * 128);
        std::vector<std::uint8_t> in(bytes), out(2 * bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
          in[i] = byte_of(member.rank, 0, round, static_cast<std::int64_t>(i));
        }
        one.prepare(*member.team->team, {.input = in.data(), .output = out.data()});
        one.set_plan(plan);
        member.context->engine->run_to_end(one);
        ASSERT_TRUE(one.status().ok()) << one.status().to_string();
        const std::int64_t start = (1 - member.rank) * blocks * 128;
        for (std::int64_t i = 0; i < received * 128; ++i) {
          ASSERT_EQ(out[static_cast<std::size_t>(start + i)], byte_of(from, 0, round, i))
              << "byte " << i << " at rank " << member.rank << ", round " << round;
        }
      }
      EXPECT_GE(member.counters().gathered, 40);
    });
  }
};

// "$o": the other rank; "$s": this one; "$b": where the other's block is in the output.
std::string filled(std::string ops, int rank, std::int64_t blocks) {
  const std::pair<const char*, std::string> values[] = {
      {"$o", std::to_string(1 - rank)},
      {"$s", std::to_string(rank)},
      {"$b", std::to_string((1 - rank) * blocks * 128)}};
  for (const auto& [name, value] : values) {
    for (std::size_t at; (at = ops.find(name)) != std::string::npos;) ops.replace(at, 2, value);
  }
  return ops;
}

TEST_F(Overwrite, InTheSameStrand) {
  expect_old_bytes(2, 1, [](int rank) {
    return filled(
        "copy scratch[0+64] = input[64+64]\n"
        "copy scratch[64+64] = input[0+64]\n"
        "put $o #0 scratch[64+64] scratch[0+64]\n"
        "copy scratch[100+20] = input[128+20]\n"
        "wait $o #0\n"
        "copy output[$b+128] = slot($o #0)[0+128]\n",
        rank, 2);
  });
}

TEST_F(Overwrite, InALoop) {
  expect_old_bytes(9, 9, [](int rank) {
    return filled(
        "repeat 9 {\n"
        "  copy scratch[0+128] = input[0+128 by 128]\n"
        "  put $o #0 by 1 scratch[0+128]\n"
        "  wait $o #0 by 1\n"
        "  copy output[$b+128 by 128] = slot($o #0 by 1)[0+128]\n"
        "}\n",
        rank, 9);
  });
}

TEST_F(Overwrite, InAnotherStrand) {
  expect_old_bytes(2, 1, [](int rank) {
    return filled(
        "copy scratch[0+128] = input[0+128]\n"
        "put $o #0 scratch[0+128]\n"
        "signal $s #0\n"
        "wait $o #0\n"
        "copy output[$b+128] = slot($o #0)[0+128]\n"
        "strand\n"
        "wait $s #0\n"
        "copy scratch[0+128] = input[128+128]\n",
        rank, 2);
  });
}

// A message is put on from where it has arrived, whose writer may overwrite it once it is released.
TEST_F(Overwrite, ByTheWriterOfAMessage) {
  // The word of the release may overtake what is put on.
  set("CARILLON_FAULT", "delay=0.5,reorder=0.5,seed=3");
  expect_old_bytes(
      40, 40,
      [](int rank) -> std::string {
        const std::string pass_on =
            "repeat 40 {\n"
            "  wait 1 #0 by 1\n"
            "  put 1 #0 by 1 slot(1 #0 by 1)[0+128]\n"
            "  copy output[5120+128 by 128] = slot(1 #0 by 1)[0+128]\n"
            "}\n";
        if (rank == 0) return pass_on;
        return "repeat 40 {\n"
               "  put 0 #0 by 1 input[0+128 by 128]\n"
               "}\n"
               "strand\n"
               "repeat 40 {\n"
               "  wait 0 #0 by 1\n"
               "  copy output[0+128 by 128] = slot(0 #0 by 1)[0+128]\n"
               "}\n";
      },
      1);
}

}  // namespace
}  // namespace carillon::test
