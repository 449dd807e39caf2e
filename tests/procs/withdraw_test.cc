// SPDX-License-Identifier: Apache-2.0
//
// A rank whose collective has failed has its buffer back, and uses it for something else. Nobody
// who comes late takes that for the collective's data.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr std::size_t kCount = 7000;
constexpr std::size_t kBytes = kCount * sizeof(std::int64_t);

struct Way;
// What the root's buffer holds comes to all others' buffers.
crl_status_t broadcast(crl_team_h team, std::int64_t* buffer, int rank, const Way& way);
crl_status_t scatter_uneven(crl_team_h team, std::int64_t* buffer, int rank, const Way& way);
crl_status_t exchange_uneven(crl_team_h team, std::int64_t* buffer, int rank, const Way& way);

struct Way {
  std::string name;
  std::map<std::string, std::string> settings;
  bool in_heap = false;
  std::string algorithm = "bcast=flat";
  int ranks = 3, root = 0;
  crl_status_t (*send)(crl_team_h, std::int64_t* buffer, int rank, const Way& way) = broadcast;
  // The last ones: who sends to the two others, as the root or from the root.
  [[nodiscard]] int sender() const { return ranks - 3; }
  [[nodiscard]] int late() const { return ranks - 2; }
  [[nodiscard]] int victim() const { return ranks - 1; }
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

crl_status_t broadcast(crl_team_h team, std::int64_t* buffer, int /*rank*/, const Way& way) {
  return crl_bcast(team, buffer, kBytes, way.root);
}

crl_status_t scatter_uneven(crl_team_h team, std::int64_t* buffer, int rank, const Way& way) {
  const std::vector<std::int64_t> bytes(static_cast<std::size_t>(way.ranks), kBytes);
  const std::vector<std::int64_t> offsets(bytes.size());
  std::vector<std::int64_t> own(kCount);
  return crl_scatterv(team, buffer, bytes.data(), offsets.data(),
                      rank == way.root ? own.data() : buffer, kBytes, way.root);
}

crl_status_t exchange_uneven(crl_team_h team, std::int64_t* buffer, int rank, const Way& way) {
  std::vector<std::int64_t> send(static_cast<std::size_t>(way.ranks),
                                 rank == way.root ? kBytes : 0);
  std::vector<std::int64_t> receive(send.size()), offsets(send.size());
  receive[static_cast<std::size_t>(way.root)] = kBytes;
  std::vector<std::int64_t> own(kCount);
  return crl_alltoallv(team, buffer, send.data(), offsets.data(),
                       rank == way.root ? own.data() : buffer, receive.data(), offsets.data());
}

// Who waits goes on answering others' gets.
void meet_serving(crl_context_h context, const crl_oob_t& oob) {
  const char mine = 1;
  std::vector<char> all(static_cast<std::size_t>(oob.size));
  void* request = nullptr;
  EXPECT_EQ(oob.allgather_post(oob.arg, &mine, all.data(), 1, &request), 0);
  while (oob.allgather_test(oob.arg, request) == 1) crl_context_progress(context);
}

class Withdraw : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    for (const auto& [name, value] : GetParam().settings) setenv(name.c_str(), value.c_str(), 1);
  }
  void TearDown() override {
    for (const auto& [name, value] : GetParam().settings) unsetenv(name.c_str());
  }
};

// A rank sends, but its call cannot end: a reader died. Only when it has returned, and the buffer
// holds something else, does the other reader call.
TEST_P(Withdraw, WhoComesLateDoesNotReadWhatTheBufferHoldsNow) {
  const Way& way = GetParam();
  setenv("CARILLON_ALGORITHM", way.algorithm.c_str(), 1);
  Meeting world(way.ranks), members(way.ranks), living(way.ranks - 1);
  const auto exits = run_processes(
      way.ranks,
      [&](int rank) {
        crl_context_h context = make_context(world, rank, false, 200);
        crl_team_h team = make_team(context, members.oob(rank));
        const auto data = values_of(way.root, 5, kCount);
        std::vector<std::int64_t> own(kCount);
        std::int64_t* buffer = own.data();
        if (GetParam().in_heap) {
          buffer = static_cast<std::int64_t*>(crl_alloc(context, kBytes));
          ASSERT_NE(buffer, nullptr) << crl_last_error();
        }
        for (int i = 0; i < 3; ++i) {  // all pairs are open, and readers known
          std::copy(data.begin(), data.end(), buffer);
          expect_ok(way.send(team, buffer, rank, way));
        }
        expect_ok(crl_barrier(team));
        if (rank == way.victim()) raise(SIGKILL);
        std::fill_n(buffer, kCount, -1);
        if (rank == way.late()) living.barrier(rank);
        if (rank == way.root) std::copy(data.begin(), data.end(), buffer);
        const crl_status_t status = way.send(team, buffer, rank, way);
        if (status == CRL_OK) {
          EXPECT_NE(rank, way.sender());
          EXPECT_EQ(std::vector<std::int64_t>(buffer, buffer + kCount), data);
        } else {
          EXPECT_EQ(status, CRL_ERR_PEER_DEAD) << crl_last_error();
        }
        if (rank != way.late()) {
          std::fill_n(buffer, kCount, -2);
          living.barrier(rank);
        }
        meet_serving(context, living.oob(rank));
        crl_team_destroy(team);
        if (GetParam().in_heap) crl_free(context, buffer);
        crl_context_destroy(context);
      },
      30);
  unsetenv("CARILLON_ALGORITHM");
  std::vector<int> expected(static_cast<std::size_t>(way.ranks), 0);
  expected.back() = -9;
  EXPECT_EQ(exits, expected);
}

// What an operator's calls do on this rank.
struct Operating {
  int rank = 0;
  bool last = false;  // is it the call in which the victim dies?
  Meeting* living = nullptr;
};
constexpr int kWriter = 0, kReader = 1, kVictim = 2;

void add(void* arg, const void* left, void* right, std::size_t count) {
  auto& how = *static_cast<Operating*>(arg);
  if (how.last && how.rank == kVictim) raise(SIGKILL);
  if (how.last && how.rank == kReader) {
    how.living->barrier(kReader);
    how.last = false;
  }
  const auto* const from = static_cast<const std::int64_t*>(left);
  auto* const to = static_cast<std::int64_t*>(right);
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

// The reader has all that it needs, and works on what stands in the writer's memory, when the
// writer gives up, since a third one will never have read it.
TEST(WithdrawWhileRead, WhoHasReadWhatIsNoMoreHasFailed) {
  constexpr int kRanks = 3;
  setenv("CARILLON_ALGORITHM", "allreduce=flat", 1);
  setenv("CARILLON_LEND_BYTES", "0", 1);
  Meeting world(kRanks), members(kRanks), living(kRanks - 1);
  const auto exits = run_processes(
      kRanks,
      [&](int rank) {
        crl_context_h context = make_context(world, rank, false, 200);
        crl_team_h team = make_team(context, members.oob(rank));
        const auto data = values_of(rank, 5, kCount);
        std::vector<std::int64_t> own(data), sums(kCount);
        std::int64_t* in = own.data();
        if (rank == kWriter) {
          in = static_cast<std::int64_t*>(crl_alloc(context, kBytes));
          ASSERT_NE(in, nullptr) << crl_last_error();
          std::copy(data.begin(), data.end(), in);
        }
        Operating how{.rank = rank, .living = &living};
        crl_op_t op = 0;
        expect_ok(crl_op_create(add, &how, 1, &op));
        for (int i = 0; i < 3; ++i) {  // all pairs are open, and readers known
          expect_ok(crl_allreduce(team, in, sums.data(), kCount, CRL_INT64, op));
          EXPECT_EQ(sums, sums_of(kRanks, 5, kCount));
        }
        how.last = true;
        const crl_status_t status = crl_allreduce(team, in, sums.data(), kCount, CRL_INT64, op);
        EXPECT_EQ(status, CRL_ERR_PEER_DEAD) << crl_last_error();
        if (rank == kWriter) {
          std::fill_n(in, kCount, -2);
          living.barrier(rank);
        }
        meet_serving(context, living.oob(rank));
        crl_op_free(op);
        crl_team_destroy(team);
        if (rank == kWriter) crl_free(context, in);
        crl_context_destroy(context);
      },
      30);
  unsetenv("CARILLON_ALGORITHM");
  unsetenv("CARILLON_LEND_BYTES");
  EXPECT_EQ(exits, (std::vector<int>{0, 0, -SIGKILL}));
}

// Three ranks on as many nodes, the last of which dies. The network gets the bytes from where they
// stand, and they are more than a connection takes that nobody reads.
class WithdrawLists : public testing::Test {
 protected:
  static constexpr int kRanks = 3, kFirst = 0, kLate = 1;
  static constexpr std::size_t kMuch = std::size_t{16} << 20;
  static constexpr std::size_t kOthers = 8;
  using Call = std::function<crl_status_t(crl_team_h team, int rank, std::size_t bytes)>;
  using Teams = std::vector<crl_team_h>;
  using Step = std::function<void(int rank, const Teams& others)>;

  void SetUp() override {
    for (const auto& [name, value] : kSettings) setenv(name, value, 1);
  }
  void TearDown() override {
    for (const auto& [name, value] : kSettings) unsetenv(name);
  }

  // Of both living ranks the call fails when the third has died, and their other teams go on.
  void run(const Call& call, const Step& before, const Step& after) {
    Meeting world(kRanks), members(kRanks);
    std::deque<Meeting> pairs;
    for (std::size_t i = 0; i < kOthers; ++i) pairs.emplace_back(kRanks - 1);
    const auto exits = run_processes(
        kRanks,
        [&](int rank) {
          crl_context_h context = make_context(world, rank, false, 200);
          crl_team_h team = make_team(context, members.oob(rank));
          Teams others;
          if (rank != kVictim) {
            for (Meeting& pair : pairs) others.push_back(make_team(context, pair.oob(rank)));
          }
          // All pairs are open, and no connection's buffers have grown.
          for (int i = 0; i < 2; ++i) expect_ok(call(team, rank, 1000));
          for (crl_team_h other : others) expect_living_sum(other, rank);
          expect_ok(crl_barrier(team));
          if (rank == kVictim) raise(SIGKILL);
          before(rank, others);
          EXPECT_EQ(call(team, rank, kMuch), CRL_ERR_PEER_DEAD) << crl_last_error();
          after(rank, others);
          for (crl_team_h other : others) expect_living_sum(other, rank);
          meet_serving(context, living_.oob(rank));
          crl_team_destroy(team);
          for (crl_team_h other : others) crl_team_destroy(other);
          crl_context_destroy(context);
        },
        60);
    EXPECT_EQ(exits, (std::vector<int>{0, 0, -SIGKILL}));
  }

  Meeting living_{kRanks - 1};

 private:
  static void expect_living_sum(crl_team_h others, int rank) {
    const std::int64_t mine = rank + 1;
    std::int64_t sum = 0;
    expect_ok(crl_allreduce(others, &mine, &sum, 1, CRL_INT64, CRL_SUM));
    EXPECT_EQ(sum, 3);
  }
  static constexpr std::array<std::pair<const char*, const char*>, 6> kSettings = {
      {{"CARILLON_ALGORITHM", "gather=flat;alltoallv=pairwise;bcast=flat"},
       {"CARILLON_NODE_RANKS", "1"},
       {"CARILLON_GATHER_ENTRIES", "3"},
       {"CARILLON_GATHER_BYTES", "32768"},
       {"CARILLON_FETCH_BYTES", "0"},
       {"CARILLON_SLOT_BYTES", "262144"}}};
};

// The receiver has given the team up, and calls nothing more. The call that comes later lends the
// network nothing for it, and ends.
TEST_F(WithdrawLists, WhoComesLateLendsNothingToWhoHasGivenUp) {
  const auto to_first = [](crl_team_h team, int rank, std::size_t bytes) {
    const std::vector<char> mine(bytes, static_cast<char>('a' + rank));
    std::vector<char> all(rank == kFirst ? kRanks * bytes : 0);
    return crl_gather(team, mine.data(), all.data(), bytes, kFirst);
  };
  const auto first_is_done = [&](int rank) { living_.barrier(rank); };
  run(
      to_first,
      [&](int rank, const Teams&) {
        if (rank == kLate) first_is_done(rank);
      },
      [&](int rank, const Teams&) {
        if (rank == kFirst) first_is_done(rank);
        living_.barrier(rank);
      });
}

// The receiver is only busy, for longer than it takes to notice the death and to end what ends by
// itself. Before the lists of the team that fails, those of others lie on the connection. The
// sender's call waits for the receiver, and closes no connection: what the others have under way
// arrives. (However long it takes, the test passes; were it shorter, it could not fail.)
TEST_F(WithdrawLists, WhoIsBusyIsWaitedFor) {
  constexpr std::size_t kCountOfOthers = std::size_t{4} << 17;
  const auto from_first_to_late = [](crl_team_h team, int rank, std::size_t bytes) {
    std::vector<std::int64_t> send(kRanks), receive(kRanks), offsets(kRanks);
    if (rank == kFirst) send[kLate] = receive[kVictim] = static_cast<std::int64_t>(bytes);
    if (rank == kLate) receive[kFirst] = static_cast<std::int64_t>(bytes);
    if (rank == kVictim) send[kFirst] = static_cast<std::int64_t>(bytes);
    std::vector<char> in(bytes, static_cast<char>('a' + rank)), out(bytes);
    return crl_alltoallv(team, in.data(), send.data(), offsets.data(), out.data(), receive.data(),
                         offsets.data());
  };
  std::vector<std::vector<std::int64_t>> data(kOthers);
  std::vector<crl_request_h> requests(kOthers);
  const auto broadcast_to_late = [&](int rank, const Teams& others) {
    for (std::size_t i = 0; i < kOthers; ++i) {
      data[i] = values_of(rank, static_cast<std::int64_t>(i), kCountOfOthers);
      expect_ok(crl_ibcast(others[i], data[i].data(), kCountOfOthers * sizeof(std::int64_t), kFirst,
                           &requests[i]));
    }
  };
  run(
      from_first_to_late,
      [&](int rank, const Teams& others) {
        if (rank == kFirst) return broadcast_to_late(rank, others);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        while (std::chrono::steady_clock::now() < end) sched_yield();
      },
      [&](int rank, const Teams& others) {
        if (rank == kLate) broadcast_to_late(rank, others);
        for (std::size_t i = 0; i < kOthers; ++i) {
          expect_ok(crl_request_wait(&requests[i]));
          EXPECT_EQ(data[i], values_of(kFirst, static_cast<std::int64_t>(i), kCountOfOthers));
        }
      });
}

// Who fails first says why before others hear of it: they may end the job. It stays in its call for
// rank 2, which is busy elsewhere.
TEST(WithdrawReason, WhoFailsFirstSaysWhyBeforeOthersAreTold) {
  constexpr int kRanks = 4, kFirst = 0, kTold = 1, kDead = 3;
  constexpr std::size_t kLong = std::size_t{16} << 20;
  const std::map<std::string, std::string> settings = {{"CARILLON_ALGORITHM", "gather=flat"},
                                                       {"CARILLON_NODE_RANKS", "1"},
                                                       {"CARILLON_GATHER_ENTRIES", "3"},
                                                       {"CARILLON_FETCH_BYTES", "0"}};
  for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
  Meeting world(kRanks), members(kRanks), living(kRanks - 1);
  const int said = memfd_create("said", 0);
  ASSERT_GE(said, 0);
  const auto exits = run_processes(
      kRanks,
      [&](int rank) {
        if (rank == kFirst) dup2(said, STDERR_FILENO);
        // Only the first looks who has died.
        crl_context_h context = make_context(world, rank, false, rank == kFirst ? 200 : 1000000);
        crl_team_h team = make_team(context, members.oob(rank));
        const auto gather = [&](std::size_t bytes) {
          const std::vector<char> mine(bytes, static_cast<char>('a' + rank));
          std::vector<char> all(rank == kFirst ? kRanks * bytes : 0);
          return crl_gather(team, mine.data(), all.data(), bytes, kFirst);
        };
        expect_ok(gather(1000));  // all pairs are open
        expect_ok(gather(1000));
        members.barrier(rank);
        if (rank == kDead) raise(SIGKILL);
        if (rank == kFirst) {
          EXPECT_EQ(gather(kLong), CRL_ERR_PEER_DEAD);
        }
        if (rank == kTold) {
          crl_status_t status = CRL_OK;
          while (status == CRL_OK) status = gather(kLong);  // one may have arrived
          EXPECT_EQ(status, CRL_ERR_PEER_DEAD);
          std::array<char, 1000> text = {};
          EXPECT_GT(pread(said, text.data(), text.size() - 1, 0), 0);
          EXPECT_NE(std::string(text.data()).find("rank 3 of a team of 4 "), std::string::npos)
              << text.data();
        }
        living.barrier(rank);
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      60);
  close(said);
  for (const auto& [name, value] : settings) unsetenv(name.c_str());
  EXPECT_EQ(exits, (std::vector<int>{0, 0, 0, -SIGKILL}));
}

// In a NUMA domain of three its head passes on what the root, alone in another one, has written.
const std::map<std::string, std::string> kHead = {{"CARILLON_DOMAIN_RANKS", "1,3"},
                                                  {"CARILLON_CROSS_PS", "1000000"},
                                                  {"CARILLON_LEND_BYTES", "64"}};
// Between nodes the root itself writes for its domain.
const std::map<std::string, std::string> kRootOfDomain = {
    {"CARILLON_DOMAIN_RANKS", "1,3"}, {"CARILLON_NODE_RANKS", "1,4"}, {"CARILLON_LEND_BYTES", "0"}};

INSTANTIATE_TEST_SUITE_P(
    Ways, Withdraw,
    testing::Values(Way{"lent_to_domain", kHead, false, "bcast=domains", 4},
                    Way{"heap_to_domain", kRootOfDomain, true, "bcast=domains", 5, 2},
                    Way{"lent", {{"CARILLON_LEND_BYTES", "64"}}},
                    Way{"heap", {{"CARILLON_LEND_BYTES", "0"}}, true},
                    Way{"lent_scatterv",
                        {{"CARILLON_LEND_BYTES", "64"}},
                        false,
                        "scatterv=flat",
                        3,
                        0,
                        scatter_uneven},
                    Way{"heap_scatterv",
                        {{"CARILLON_LEND_BYTES", "0"}},
                        true,
                        "scatterv=flat",
                        3,
                        0,
                        scatter_uneven},
                    Way{"lent_alltoallv",
                        {{"CARILLON_LEND_BYTES", "64"}},
                        false,
                        "alltoallv=pairwise",
                        3,
                        0,
                        exchange_uneven},
                    Way{"heap_alltoallv",
                        {{"CARILLON_LEND_BYTES", "0"}},
                        true,
                        "alltoallv=pairwise",
                        3,
                        0,
                        exchange_uneven},
                    Way{"exposed", {{"CARILLON_NODE_RANKS", "1"}, {"CARILLON_FETCH_BYTES", "64"}}}),
    [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace carillon::test
