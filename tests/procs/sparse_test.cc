// SPDX-License-Identifier: Apache-2.0
//
// Alltoallvs in which most ranks have nothing for one another: the bytes are right, on one node and
// on several, one by one and many at once, with other collectives between them; who has nothing for
// a rank is not awaited; and ranks that do not agree on what is nothing hear of it.
#include "support/sparse.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "support/calls.h"
#include "support/oracle.h"

namespace carillon::test {
namespace {

// One rank's part of a call.
class Exchange {
 public:
  Exchange(crl_team_h team, const SparsePattern& pattern, int call)
      : team_(team),
        name_(pattern.name),
        call_(call),
        rank_(crl_team_rank(team)),
        tables_(pattern, rank_, crl_team_size(team), call),
        in_(end_of(tables_.send_bytes, tables_.send_offsets)),
        out_(end_of(tables_.recv_bytes, tables_.recv_offsets) + 1, kUntouched),
        expected_(out_) {
    for (Rank peer = 0; peer < crl_team_size(team); ++peer) {
      const auto at = static_cast<std::size_t>(peer);
      for (std::int64_t i = 0; i < tables_.send_bytes[at]; ++i) {
        in_[static_cast<std::size_t>(tables_.send_offsets[at] + i)] =
            sparse_value(rank_, peer, call, i);
      }
      for (std::int64_t i = 0; i < tables_.recv_bytes[at]; ++i) {
        expected_[static_cast<std::size_t>(tables_.recv_offsets[at] + i)] =
            sparse_value(peer, rank_, call, i);
      }
    }
  }
  [[nodiscard]] crl_status_t run() {
    const SparseTables& t = tables_;
    return crl_alltoallv(team_, in_.data(), t.send_bytes.data(), t.send_offsets.data(), out_.data(),
                         t.recv_bytes.data(), t.recv_offsets.data());
  }
  [[nodiscard]] crl_status_t start() {
    const SparseTables& t = tables_;
    return crl_ialltoallv(team_, in_.data(), t.send_bytes.data(), t.send_offsets.data(),
                          out_.data(), t.recv_bytes.data(), t.recv_offsets.data(), &request_);
  }
  [[nodiscard]] crl_status_t wait() { return crl_request_wait(&request_); }
  void expect_right() const {
    EXPECT_TRUE(out_ == expected_) << "rank " << rank_ << ", call " << call_ << ", " << name_;
  }

 private:
  static std::size_t end_of(const std::vector<std::int64_t>& bytes,
                            const std::vector<std::int64_t>& offsets) {
    return static_cast<std::size_t>(bytes.back() + offsets.back());
  }

  crl_team_h team_;
  std::string name_;
  int call_;
  Rank rank_;
  SparseTables tables_;
  Bytes in_, out_, expected_;
  crl_request_h request_ = nullptr;
};

struct Shape {
  int ranks = 1;
  std::string nodes;  // CARILLON_NODE_RANKS; empty: one node
};

void expect_sum(crl_team_h team, int call) {
  const int ranks = crl_team_size(team);
  const auto mine = values_of(crl_team_rank(team), call, 9);
  std::vector<std::int64_t> sums(9);
  expect_ok(crl_allreduce(team, mine.data(), sums.data(), 9, CRL_INT64, CRL_SUM));
  EXPECT_EQ(sums, sums_of(ranks, call, 9)) << "after call " << call;
}

class Sparse : public testing::TestWithParam<Shape> {
 protected:
  static void with_team(const std::function<void(crl_team_h, int, Meeting&)>& body) {
    const Shape& shape = GetParam();
    Meeting world(shape.ranks), meeting(shape.ranks), members(shape.ranks);
    setenv("CARILLON_NODE_RANKS", shape.nodes.c_str(), 1);
    setenv("CARILLON_SLOT_BYTES", "1024", 1);
    expect_processes_ok(shape.ranks, [&](int rank) {
      crl_context_h context = make_context(world, rank, false, 200);
      crl_team_h team = make_team(context, meeting.oob(rank));
      body(team, rank, members);
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
  void TearDown() override {
    unsetenv("CARILLON_NODE_RANKS");
    unsetenv("CARILLON_SLOT_BYTES");
    unsetenv("CARILLON_ALGORITHM");
    unsetenv("CARILLON_SURVEYS");
  }
  // More calls than a window has lines.
  static void run_one_by_one(crl_team_h team) {
    const std::vector<SparsePattern> patterns = sparse_patterns();
    for (int call = 0; call < 48 && !testing::Test::HasFailure(); ++call) {
      const auto which = static_cast<std::size_t>(call + call / 8 * 3);
      Exchange exchange(team, patterns[which % patterns.size()], call);
      expect_ok(exchange.run());
      exchange.expect_right();
      if (call % 6 == 5) expect_sum(team, call);
    }
  }
  // Blocks of nothing, short ones, and some that are longer than go by Bruck, or merged, or than a
  // slot.
  static void by_algorithm(crl_team_h team, const char* id) {
    run_one_by_one(team);
    Exchange last(team, sparse_patterns().back(), 0);
    expect_ok(last.run());
    last.expect_right();
    EXPECT_STREQ(crl_team_last_algorithm(team), id);
  }
};

// The first before the team is ready.
TEST_P(Sparse, OneByOne) {
  with_team([](crl_team_h team, int, Meeting&) { run_one_by_one(team); });
}

TEST_P(Sparse, InTwoPhases) {
  setenv("CARILLON_ALGORITHM", "alltoallv=bruck_two_phase", 1);
  with_team(
      [](crl_team_h team, int, Meeting&) { by_algorithm(team, "alltoallv.bruck_two_phase"); });
}

TEST_P(Sparse, Merged) {
  setenv("CARILLON_ALGORITHM", "alltoallv=merged:k=100", 1);
  with_team([](crl_team_h team, int, Meeting&) { by_algorithm(team, "alltoallv.merged"); });
}

TEST_P(Sparse, ManyAtOnce) {
  with_team([](crl_team_h team, int, Meeting&) {
    const std::vector<SparsePattern> patterns = sparse_patterns();
    for (int round = 0; round < 4 && !testing::Test::HasFailure(); ++round) {
      std::vector<Exchange> exchanges;
      for (std::size_t i = 0; i < 3 * patterns.size(); ++i) {
        exchanges.emplace_back(team, patterns[(i * 5) % patterns.size()],
                               round * 100 + static_cast<int>(i));
      }
      for (Exchange& exchange : exchanges) expect_ok(exchange.start());
      expect_sum(team, round);
      for (std::size_t i = exchanges.size(); i-- > 0;) expect_ok(exchanges[i].wait());
      for (const Exchange& exchange : exchanges) exchange.expect_right();
    }
  });
}

// Empty at the same places, several times in a row; two of them in turn; and others between them.
TEST_P(Sparse, Repeated) {
  with_team([](crl_team_h team, int, Meeting&) {
    int call = 0;
    const auto run = [&](const SparsePattern& pattern) {
      Exchange exchange(team, pattern, call++);
      expect_ok(exchange.run());
      exchange.expect_right();
    };
    const std::vector<SparsePattern> patterns = sparse_patterns();
    for (std::size_t i = 0; i < patterns.size() && !testing::Test::HasFailure(); ++i) {
      for (int k = 0; k < 12; ++k) run(patterns[i]);
      expect_sum(team, call);
      for (int k = 0; k < 3; ++k) run(patterns[i]);
      for (int k = 0; k < 3; ++k) {
        run(patterns[(i + 1) % patterns.size()]);
        run(patterns[i]);
      }
    }
  });
}

// The others' calls end though rank 0, which has nothing for them, has yet to make its own.
// (Whoever surveys tables asks all.)
TEST_P(Sparse, WhoSendsNothingIsNotAwaited) {
  setenv("CARILLON_SURVEYS", "off", 1);
  with_team([](crl_team_h team, int rank, Meeting& members) {
    const SparsePattern without_first{"all but the first", [](Rank from, Rank to, Rank) {
                                        return from > 0 && to > 0 && (from + to) % 2 == 1;
                                      }};
    expect_ok(crl_barrier(team));
    if (rank == 0) members.barrier(rank);
    for (int call = 0; call < 20; ++call) {
      Exchange exchange(team, without_first, call);
      expect_ok(exchange.run());
      exchange.expect_right();
    }
    if (rank > 0) members.barrier(rank);
    expect_sum(team, 0);
  });
}

std::string name_of(const testing::TestParamInfo<Shape>& param) {
  std::string name = std::to_string(param.param.ranks) + "_nodes_" + param.param.nodes;
  for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(OneNode, Sparse,
                         testing::Values(Shape{1, ""}, Shape{2, ""}, Shape{3, ""}, Shape{5, ""},
                                         Shape{7, ""}, Shape{8, ""}, Shape{13, ""}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Nodes, Sparse,
                         testing::Values(Shape{2, "1,1"}, Shape{3, "2,1"}, Shape{5, "rr:2"},
                                         Shape{7, "1,6"}, Shape{8, "2,3,3"}, Shape{13, "4,4,4,1"}),
                         name_of);

// Of a call of two stages the writers hear of what the first one has released though the second one
// has no messages: calls after it find room. Who looks at peers only after a minute would wait so
// long.
TEST(AfterStages, WritersHearOfAllThatIsReleased) {
  constexpr int kRanks = 4, kLooksMs = 240'000;
  Meeting world(kRanks), members(kRanks);
  setenv("CARILLON_NODE_RANKS", "1", 1);
  setenv("CARILLON_ALGORITHM", "alltoallv=survey;bcast=chain:segment=1024", 1);
  const auto body = [&](int rank) {
    crl_context_h context = make_context(world, rank, false, kLooksMs);
    crl_team_h team = make_team(context, members.oob(rank));
    const std::vector<std::int64_t> none(kRanks, 0);
    char nothing = 0;
    for (int i = 0; i < 3; ++i) {
      expect_ok(crl_alltoallv(team, &nothing, none.data(), none.data(), &nothing, none.data(),
                              none.data()));
    }
    std::vector<char> bytes(5 * 1024);
    for (const std::size_t length :
         {std::size_t{8}, std::size_t{8}, std::size_t{8}, bytes.size()}) {
      expect_ok(crl_bcast(team, bytes.data(), length, 0));
    }
    members.barrier(rank);
    crl_team_destroy(team);
    crl_context_destroy(context);
  };
  expect_processes_ok(kRanks, body, 30);
  unsetenv("CARILLON_ALGORITHM");
  unsetenv("CARILLON_NODE_RANKS");
}

// Rank 0 sends `sent` bytes to rank 1, which awaits `awaited`. Then all exchange a word.
class Disagreement : public testing::TestWithParam<const char*> {
 protected:
  void TearDown() override {
    unsetenv("CARILLON_NODE_RANKS");
    unsetenv("CARILLON_ALGORITHM");
  }

  static void expect_mismatch(std::int64_t sent, std::int64_t awaited) {
    Meeting world(2), meeting(2);
    setenv("CARILLON_NODE_RANKS", GetParam(), 1);
    const auto body = [&](int rank) {
      crl_context_h context = make_context(world, rank, false, 200);
      crl_team_h team = make_team(context, meeting.oob(rank));
      expect_ok(crl_barrier(team));
      const Bytes in(static_cast<std::size_t>(sent) + 8, std::byte{1});
      Bytes out(static_cast<std::size_t>(awaited) + 8, kUntouched);
      const Bytes untouched = out;
      const std::vector<std::int64_t> none{0, 0}, words{8, 8}, at{0, 0};
      std::vector<std::int64_t> send = none, recv = none;
      if (rank == 0) send[1] = sent;
      if (rank == 1) recv[0] = awaited;
      crl_status_t status = crl_alltoallv(team, in.data(), send.data(), at.data(), out.data(),
                                          recv.data(), at.data());
      EXPECT_TRUE(out == untouched) << "rank " << rank << ": bytes of another call";
      if (rank == 0 && sent == 0) expect_ok(status, "who has nothing to do");
      if (rank == 1 && awaited == 0) expect_ok(status, "who has nothing to do");
      std::vector<std::int64_t> mine{value_of(rank, 1, 0)}, theirs(2, -1);
      const std::vector<std::int64_t> apart{0, 8};
      for (int i = 0; i < 10 && status == CRL_OK; ++i) {
        status = crl_alltoallv(team, mine.data(), words.data(), at.data(), theirs.data(),
                               words.data(), apart.data());
        if (rank == 1 && status == CRL_OK) {
          EXPECT_EQ(theirs[0], value_of(0, 1, 0));
        }
      }
      // Rank 1 may have gone by then.
      EXPECT_TRUE(status == CRL_ERR_MISMATCH || (rank == 0 && status == CRL_ERR_PEER_DEAD))
          << "rank " << rank << ": " << status << " " << crl_last_error();
      crl_team_destroy(team);
      crl_context_destroy(context);
    };
    expect_processes_ok(2, body, 20);
  }
};

TEST_P(Disagreement, NothingComes) {
  for (const std::int64_t bytes : {8, 5000, 600000}) expect_mismatch(0, bytes);
}

TEST_P(Disagreement, SomethingComesUnasked) {
  for (const std::int64_t bytes : {8, 5000, 600000}) expect_mismatch(bytes, 0);
}

// More unasked messages than a channel has lines: the one awaited at last is none of them.
TEST_P(Disagreement, ManyThingsComeUnasked) {
  Meeting world(2), meeting(2);
  setenv("CARILLON_NODE_RANKS", GetParam(), 1);
  const auto body = [&](int rank) {
    crl_context_h context = make_context(world, rank, false, 200);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(crl_barrier(team));
    std::array<std::int64_t, 2> in{1, 2}, out{3, 4};
    const std::array<std::int64_t, 2> at{0, 8};
    crl_status_t status = CRL_OK;
    for (int i = 0; i < 12 && status == CRL_OK; ++i) {
      // Rank 1 knows nothing of what rank 0 has for it; rank 0 hears of rank 1's progress.
      const std::array<std::int64_t, 2> send =
          rank == 0 ? std::array<std::int64_t, 2>{0, 8} : std::array<std::int64_t, 2>{8, 0};
      const std::array<std::int64_t, 2> recv =
          rank == 0 ? std::array<std::int64_t, 2>{0, 8} : std::array<std::int64_t, 2>{0, 0};
      status = crl_alltoallv(team, in.data(), send.data(), at.data(), out.data(), recv.data(),
                             at.data());
    }
    if (status == CRL_OK) status = crl_barrier(team);
    EXPECT_TRUE(status == CRL_ERR_MISMATCH || (rank == 0 && status == CRL_ERR_PEER_DEAD) ||
                (rank == 0 && status == CRL_OK))
        << "rank " << rank << ": " << status << " " << crl_last_error();
    crl_team_destroy(team);
    crl_context_destroy(context);
  };
  expect_processes_ok(2, body, 20);
}

// In two phases the lengths are told first: who awaits another one says so, and the others end.
TEST_P(Disagreement, InTwoPhasesIsToldByLengths) {
  constexpr int kRanks = 3;
  Meeting world(kRanks), meeting(kRanks);
  setenv("CARILLON_NODE_RANKS", GetParam(), 1);
  setenv("CARILLON_ALGORITHM", "alltoallv=bruck_two_phase:k=2", 1);
  const auto body = [&](int rank) {
    crl_context_h context = make_context(world, rank, false, 200);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(crl_barrier(team));
    const std::vector<std::int64_t> send(kRanks, 8), at{0, 8, 16};
    std::vector<std::int64_t> recv = send;
    if (rank == 1) recv[0] = 5;
    const Bytes in(8 * kRanks, std::byte{1});
    Bytes out(8 * kRanks);
    testing::internal::CaptureStderr();
    const crl_status_t status =
        crl_alltoallv(team, in.data(), send.data(), at.data(), out.data(), recv.data(), at.data());
    const std::string logged = testing::internal::GetCapturedStderr();
    const std::string told = crl_last_error();
    if (rank == 1) {
      EXPECT_EQ(status, CRL_ERR_MISMATCH) << told;
      for (const std::string& text : {told, logged}) {
        EXPECT_NE(text.find("rank 0 sends 8 bytes to rank 1, which receives 5"), std::string::npos)
            << text;
      }
    } else {  // rank 1 may have gone by then
      EXPECT_TRUE(status == CRL_ERR_MISMATCH || status == CRL_ERR_PEER_DEAD) << status << told;
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  };
  expect_processes_ok(kRanks, body, 20);
}

INSTANTIATE_TEST_SUITE_P(Nodes, Disagreement, testing::Values("", "1,1"),
                         [](const auto& param) { return param.index == 0 ? "one" : "two"; });

}  // namespace
}  // namespace carillon::test
