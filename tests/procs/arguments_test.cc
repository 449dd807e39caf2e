// SPDX-License-Identifier: Apache-2.0
//
// Wrong calls: of one rank alone, and calls of several ranks that do not fit together. A clear
// answer, no hang, no crash. And users' operators, right and wrong.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

void expect_invalid(crl_status_t status, const char* word) {
  EXPECT_EQ(status, CRL_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(crl_last_error()).find(word), std::string::npos) << crl_last_error();
}

// Runs body(team, rank) on every rank; the team must still work afterwards.
void with_team(int ranks, const std::function<void(crl_team_h, int)>& body, bool works = true) {
  Meeting world(ranks), meeting(ranks);
  expect_processes_ok(
      ranks,
      [&](int rank) {
        crl_context_h context = make_context(world, rank, false, 200);
        crl_team_h team = make_team(context, meeting.oob(rank));
        expect_ok(settle(team));
        body(team, rank);
        if (works) {
          const auto mine = values_of(rank, 9, 10);
          std::vector<std::int64_t> sums(10);
          expect_ok(crl_allreduce(team, mine.data(), sums.data(), 10, CRL_INT64, CRL_SUM));
          EXPECT_EQ(sums, sums_of(ranks, 9, 10));
        }
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      20);
}

TEST(WrongArguments, AreRefusedAndDoNoHarm) {
  with_team(3, [](crl_team_h team, int rank) {
    std::vector<std::int64_t> in(30), out(30);
    void* const here = CRL_IN_PLACE;
    crl_request_h request = nullptr;
    for (const int root : {-1, 3, 1000000, std::numeric_limits<int>::min()}) {
      expect_invalid(crl_bcast(team, in.data(), 8, root), "root");
      expect_invalid(crl_ibcast(team, in.data(), 8, root, &request), "root");
      expect_invalid(crl_gather(team, in.data(), out.data(), 8, root), "root");
      expect_invalid(crl_scatter(team, in.data(), out.data(), 8, root), "root");
      expect_invalid(crl_reduce(team, in.data(), out.data(), 1, CRL_INT64, CRL_SUM, root), "root");
    }
    expect_invalid(crl_bcast(team, here, 8, 0), "CRL_IN_PLACE");
    expect_invalid(crl_allreduce(team, in.data(), here, 1, CRL_INT64, CRL_SUM), "CRL_IN_PLACE");
    expect_invalid(crl_allreduce(team, here, here, 1, CRL_INT64, CRL_SUM), "CRL_IN_PLACE");
    expect_invalid(crl_allgather(team, in.data(), here, 8), "CRL_IN_PLACE");
    expect_invalid(crl_scatter(team, here, out.data(), 8, 0), "CRL_IN_PLACE");
    if (rank != 0) {
      expect_invalid(crl_gather(team, here, out.data(), 8, 0), "CRL_IN_PLACE");
      expect_invalid(crl_scatter(team, in.data(), here, 8, 0), "CRL_IN_PLACE");
      expect_invalid(crl_reduce(team, here, out.data(), 1, CRL_INT64, CRL_SUM, 0), "CRL_IN_PLACE");
    }
    const std::vector<std::int64_t> table(3, 8), negative{8, -8, 8};
    expect_invalid(crl_alltoallv(team, here, table.data(), table.data(), out.data(), table.data(),
                                 table.data()),
                   "CRL_IN_PLACE");
    expect_invalid(crl_alltoallv(team, in.data(), negative.data(), table.data(), out.data(),
                                 table.data(), table.data()),
                   "negative");
    expect_invalid(crl_alltoallv(team, in.data(), nullptr, table.data(), out.data(), table.data(),
                                 table.data()),
                   "NULL");
    const std::vector<std::int64_t> longer(3, 9);  // also what a rank has for itself
    for (const auto& [send, recv] : {std::pair(table, longer), std::pair(longer, table)}) {
      expect_invalid(crl_alltoallv(team, in.data(), send.data(), table.data(), out.data(),
                                   recv.data(), table.data()),
                     "two lengths");
    }
    const auto* const eight = table.data();
    expect_invalid(crl_request_test(nullptr), "NULL");
    expect_invalid(crl_request_wait(nullptr), "NULL");
    expect_invalid(crl_allgatherv(team, in.data(), 8, out.data(), negative.data(), eight),
                   "negative");
    expect_invalid(crl_allgatherv(team, in.data(), 16, out.data(), eight, eight), "two lengths");
    expect_invalid(crl_allgatherv(team, in.data(), 8, out.data(), eight, nullptr), "NULL");
    expect_invalid(crl_gatherv(team, in.data(), 8, out.data(), eight, eight, 3), "root");
    expect_invalid(crl_scatterv(team, in.data(), eight, eight, out.data(), 8, -1), "root");
    if (rank != 0) {
      expect_invalid(crl_gatherv(team, here, 8, out.data(), eight, eight, 0), "CRL_IN_PLACE");
      expect_invalid(crl_scatterv(team, in.data(), eight, eight, here, 8, 0), "CRL_IN_PLACE");
    }
    expect_invalid(
        crl_reduce_scatter(team, in.data(), out.data(), negative.data(), CRL_INT64, CRL_SUM),
        "negative");
    expect_invalid(crl_reduce_scatter(team, in.data(), out.data(), eight, CRL_DTYPES, CRL_SUM),
                   "dtype");
    expect_invalid(crl_scan(team, in.data(), here, 1, CRL_INT64, CRL_SUM), "CRL_IN_PLACE");
    expect_invalid(crl_allgatherv(nullptr, in.data(), 8, out.data(), eight, eight), "team");
    expect_invalid(crl_bcast(nullptr, in.data(), 8, 0), "team");
    expect_invalid(crl_ibarrier(team, nullptr), "request");
    expect_invalid(crl_allgather(team, in.data(), out.data(), SIZE_MAX), "bounds");
    expect_invalid(crl_allreduce(team, in.data(), out.data(), SIZE_MAX / 8, CRL_INT64, CRL_SUM),
                   "bounds");
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t most : {std::int64_t{1} << 46, kMost}) {
      const std::vector<std::int64_t> huge(3, most);
      const auto* const long_ones = huge.data();
      expect_invalid(crl_alltoallv(team, in.data(), long_ones, eight, out.data(), long_ones, eight),
                     "bounds");
      expect_invalid(crl_allgatherv(team, in.data(), 8, out.data(), long_ones, eight), "bounds");
      expect_invalid(crl_reduce_scatter(team, in.data(), out.data(), long_ones, CRL_INT8, CRL_SUM),
                     "bounds");
    }
    // Where a rank says only what it has itself.
    for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 7, std::size_t{1} << 62}) {
      expect_invalid(crl_gatherv(team, in.data(), size, out.data(), eight, eight, 0), "bounds");
      expect_invalid(crl_scatterv(team, in.data(), eight, eight, out.data(), size, 0), "bounds");
    }
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(crl_request_test(&request), CRL_OK);
    EXPECT_EQ(crl_request_wait(&request), CRL_OK);
  });
}

// Where this rank's part of the call has bytes in it, and only there.
TEST(WrongArguments, MissingBuffers) {
  with_team(3, [](crl_team_h team, int rank) {
    std::vector<std::int64_t> data(30);
    crl_request_h request = nullptr;
    void* const some = data.data();
    expect_invalid(crl_bcast(team, nullptr, 8, 0), "NULL");
    expect_invalid(crl_ibcast(team, nullptr, 8, 0, &request), "NULL");
    expect_invalid(crl_allreduce(team, nullptr, some, 1, CRL_INT64, CRL_SUM), "NULL");
    expect_invalid(crl_allreduce(team, some, nullptr, 1, CRL_INT64, CRL_SUM), "NULL");
    expect_invalid(crl_allreduce(team, CRL_IN_PLACE, nullptr, 1, CRL_INT64, CRL_SUM), "NULL");
    expect_invalid(crl_reduce(team, nullptr, some, 1, CRL_INT64, CRL_SUM, 0), "NULL");
    expect_invalid(crl_reduce_scatter_block(team, nullptr, some, 1, CRL_INT64, CRL_SUM), "NULL");
    expect_invalid(crl_allgather(team, nullptr, some, 8), "NULL");
    expect_invalid(crl_alltoall(team, some, nullptr, 8), "NULL");
    expect_invalid(crl_gather(team, nullptr, some, 8, 0), "NULL");
    expect_invalid(crl_scatter(team, some, nullptr, 8, 0), "NULL");
    const std::vector<std::int64_t> table(3, 8), nothing(3, 0);
    const auto* const eight = table.data();
    const auto* const zero = nothing.data();
    expect_invalid(crl_alltoallv(team, nullptr, eight, zero, some, eight, zero), "NULL");
    expect_invalid(crl_alltoallv(team, some, eight, zero, nullptr, eight, zero), "NULL");
    expect_invalid(crl_allgatherv(team, nullptr, 8, some, eight, zero), "NULL");
    expect_invalid(crl_gatherv(team, nullptr, 8, some, eight, zero, 0), "NULL");
    expect_invalid(crl_reduce_scatter(team, nullptr, some, eight, CRL_INT8, CRL_SUM), "NULL");
    expect_invalid(crl_scan(team, some, nullptr, 1, CRL_INT64, CRL_SUM), "NULL");
    expect_invalid(crl_exscan(team, CRL_IN_PLACE, nullptr, 1, CRL_INT64, CRL_SUM), "NULL");
    EXPECT_EQ(request, nullptr);
    void* const not_first = rank == 0 ? nullptr : some;
    expect_ok(crl_exscan(team, data.data() + 20, not_first, 1, CRL_INT64, CRL_SUM));
    void* const at_root = rank == 0 ? some : nullptr;
    expect_ok(crl_reduce(team, data.data() + 20, at_root, 1, CRL_INT64, CRL_SUM, 0));
    expect_ok(crl_gather(team, data.data() + 20, at_root, 8, 0));
    expect_ok(crl_scatter(team, at_root, data.data() + 20, 8, 0));
    expect_ok(crl_bcast(team, nullptr, 0, 0));
    expect_ok(crl_allreduce(team, nullptr, nullptr, 0, CRL_INT64, CRL_SUM));
    expect_ok(crl_alltoallv(team, nullptr, zero, zero, nullptr, zero, zero));
  });
}

TEST(WrongArguments, OperatorsAndTypes) {
  with_team(2, [](crl_team_h team, int) {
    std::vector<std::int64_t> in(30), out(30);
    for (const crl_op_t op : {crl_op_t{CRL_OPS}, crl_op_t{CRL_OPS + 1}, crl_op_t{4095}}) {
      expect_invalid(crl_allreduce(team, in.data(), out.data(), 1, CRL_INT64, op), "crl_op_t");
      EXPECT_EQ(crl_op_supports(op, CRL_INT64), 0);
      crl_op_free(op);
    }
    expect_invalid(crl_allreduce(team, in.data(), out.data(), 1, CRL_DTYPES, CRL_SUM), "dtype");
    expect_invalid(crl_allreduce(team, in.data(), out.data(), 1, CRL_OPAQUE(0), CRL_SUM), "dtype");
    expect_invalid(crl_allreduce(team, in.data(), out.data(), 1, CRL_OPAQUE(8), CRL_SUM),
                   "not defined");
    expect_invalid(crl_allreduce(team, in.data(), out.data(), 1, CRL_FLOAT64, CRL_BAND),
                   "not defined");
    expect_invalid(crl_reduce_scatter_block(team, in.data(), out.data(), 1, CRL_INT64, CRL_MINLOC),
                   "not defined");
  });
}

TEST(WrongArguments, ContextsAndTeams) {
  Meeting meeting(1);
  crl_context_h context = nullptr;
  crl_context_config_t config = {};
  config.oob = meeting.oob(0);
  EXPECT_EQ(crl_context_create(&config, &context), CRL_ERR_INVALID_ARGUMENT);  // struct_bytes
  config.struct_bytes = sizeof config;
  EXPECT_EQ(crl_context_create(nullptr, &context), CRL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(crl_context_create(&config, nullptr), CRL_ERR_INVALID_ARGUMENT);
  config.oob.rank = 1;
  EXPECT_EQ(crl_context_create(&config, &context), CRL_ERR_INVALID_ARGUMENT);
  config.oob.rank = 0;
  setenv("CARILLON_SLOT_BYTES", "lots", 1);
  EXPECT_EQ(crl_context_create(&config, &context), CRL_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(crl_last_error()).find("CARILLON_SLOT_BYTES"), std::string::npos);
  unsetenv("CARILLON_SLOT_BYTES");
  EXPECT_EQ(context, nullptr);
  expect_ok(crl_context_create(&config, &context));
  crl_team_h team = nullptr;
  EXPECT_EQ(crl_team_create(context, nullptr, &team), CRL_ERR_INVALID_ARGUMENT);
  crl_oob_t oob = meeting.oob(0);
  oob.size = 0;
  EXPECT_EQ(crl_team_create(context, &oob, &team), CRL_ERR_INVALID_ARGUMENT);
  oob = meeting.oob(0);
  oob.allgather_post = nullptr;
  expect_invalid(crl_team_create(context, &oob, &team), "both functions");
  void* part = &team;
  const std::size_t bytes = sizeof team;
  crl_window_h window = nullptr;
  expect_invalid(crl_window_create(context, &oob, &part, &bytes, &window), "both functions");
  oob = meeting.oob(0);
  oob.allgather_test = nullptr;
  expect_invalid(crl_team_create(context, &oob, &team), "both functions");
  oob = meeting.oob(0);
  oob.allgather_post = [](void*, const void*, void*, size_t, void**) { return 5; };
  expect_ok(crl_team_create(context, &oob, &team));
  EXPECT_EQ(crl_team_test(team), CRL_ERR_SYSTEM);
  EXPECT_EQ(crl_barrier(team), CRL_ERR_SYSTEM);
  crl_team_destroy(team);
  crl_context_destroy(context);
  crl_context_destroy(nullptr);
  crl_team_destroy(nullptr);
}

TEST(WrongArguments, HandlesThatAreNull) {
  std::int64_t some = 0;
  expect_invalid(crl_context_progress(nullptr), "the context is NULL");
  expect_invalid(crl_team_test(nullptr), "the team is NULL");
  EXPECT_EQ(crl_alloc(nullptr, 8), nullptr);
  EXPECT_STREQ(crl_last_error(), "invalid argument: crl_alloc: the context is NULL");
  expect_invalid(crl_free(nullptr, &some), "the context is NULL");
  EXPECT_STREQ(crl_request_algorithm(nullptr), "");  // that of a request that is complete
}

// The ranks' calls differ; `call` is made by every rank, and then barriers follow.
using Call = std::function<crl_status_t(crl_team_h, int rank)>;

void expect_mismatch(int ranks, const Call& call) {
  with_team(
      ranks,
      [&](crl_team_h team, int rank) {
        crl_status_t status = call(team, rank);
        for (int i = 0; i < 10 && status == CRL_OK; ++i) status = crl_barrier(team);
        EXPECT_EQ(status, CRL_ERR_MISMATCH) << "rank " << rank;
        EXPECT_NE(std::string(crl_last_error()).find("rank"), std::string::npos)
            << crl_last_error();
      },
      false);
}

class Mismatch : public testing::TestWithParam<int> {};  // ranks

TEST_P(Mismatch, OfSizes) {
  const std::vector<std::size_t> sizes{0, 8, 56, 64, 5000, 70000, 600000};
  for (const std::size_t a : sizes) {
    for (const std::size_t b : sizes) {
      if (a == b) continue;
      SCOPED_TRACE(std::to_string(a) + " bytes at rank 0, " + std::to_string(b) + " at others");
      const auto size = [a, b](int rank) { return rank == 0 ? a : b; };
      expect_mismatch(GetParam(), [&](crl_team_h team, int rank) {
        std::vector<char> data(600000);
        return crl_bcast(team, data.data(), size(rank), 0);
      });
      expect_mismatch(GetParam(), [&](crl_team_h team, int rank) {
        std::vector<std::int64_t> in(75000), out(75000);
        return crl_allreduce(team, in.data(), out.data(), size(rank) / 8, CRL_INT64, CRL_SUM);
      });
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST_P(Mismatch, OfRoots) {
  for (const std::size_t bytes : {8, 5000}) {
    expect_mismatch(GetParam(), [&](crl_team_h team, int rank) {
      std::vector<char> data(bytes);
      return crl_bcast(team, data.data(), bytes, rank == 0 ? 0 : 1);
    });
    expect_mismatch(GetParam(), [&](crl_team_h team, int rank) {
      std::vector<char> in(bytes), out(bytes * 8);
      return crl_gather(team, in.data(), out.data(), bytes, rank == 0 ? 0 : 1);
    });
  }
}

TEST_P(Mismatch, OfCollectivesAndOperators) {
  expect_mismatch(GetParam(), [&](crl_team_h team, int rank) {
    std::int64_t in = 0, out[8] = {};
    return rank == 0 ? crl_allreduce(team, &in, &out, 1, CRL_INT64, CRL_SUM)
                     : crl_allgather(team, &in, &out, 8);
  });
  expect_mismatch(GetParam(), [&](crl_team_h team, int rank) {
    std::int64_t in = 0, out = 0;
    return crl_allreduce(team, &in, &out, 1, CRL_INT64, rank == 0 ? CRL_SUM : CRL_MAX);
  });
  expect_mismatch(GetParam(), [&](crl_team_h team, int rank) {
    std::int64_t in = 0, out = 0;
    return rank == 0 ? crl_barrier(team) : crl_reduce(team, &in, &out, 1, CRL_INT64, CRL_SUM, 0);
  });
}

TEST_P(Mismatch, OfTables) {
  for (const std::int64_t more : {8, 100, 100000}) {
    expect_mismatch(GetParam(), [&](crl_team_h team, int rank) {
      const auto size = static_cast<std::size_t>(crl_team_size(team));
      std::vector<std::int64_t> send(size, 64), recv(size, 64), at(size, 0);
      if (rank == 0) send[1] += more;  // more than rank 1 expects
      std::vector<char> in(200000), out(200000);
      return crl_alltoallv(team, in.data(), send.data(), at.data(), out.data(), recv.data(),
                           at.data());
    });
    expect_mismatch(GetParam(), [&](crl_team_h team, int rank) {
      const auto size = static_cast<std::size_t>(crl_team_size(team));
      std::vector<std::int64_t> send(size, 64), recv(size, 64), at(size, 0);
      if (rank == 1) recv[0] += more;  // more than rank 0 sends
      std::vector<char> in(200000), out(200000);
      return crl_alltoallv(team, in.data(), send.data(), at.data(), out.data(), recv.data(),
                           at.data());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Mismatch, testing::Values(2, 3));

// ---- Users' operators.

// 2x2 matrices modulo 2^64 do not commute.
struct Matrix {
  std::uint64_t a, b, c, d;
  bool operator==(const Matrix&) const = default;
};

Matrix product(const Matrix& x, const Matrix& y) {
  return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
          x.c * y.b + x.d * y.d};
}

void multiply(void* arg, const void* left, void* right, std::size_t count) {
  if (arg != nullptr) ++*static_cast<int*>(arg);
  const auto* const l = static_cast<const Matrix*>(left);
  auto* const r = static_cast<Matrix*>(right);
  for (std::size_t i = 0; i < count; ++i) r[i] = product(l[i], r[i]);
}

Matrix matrix_of(int rank, std::size_t i) {
  const auto x = static_cast<std::uint64_t>(rank) * 1000 + i;
  return {x + 1, x * 3 + 2, x * 5 + 1, x * 7 + 3};
}

TEST(UserOperators, NonCommutativeInRankOrder) {
  constexpr int kRanks = 5;
  with_team(kRanks, [](crl_team_h team, int rank) {
    int calls = 0;
    crl_op_t op = 0;
    expect_ok(crl_op_create(multiply, &calls, 0, &op));
    EXPECT_EQ(crl_op_supports(op, CRL_OPAQUE(sizeof(Matrix))), 1);
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{9000}}) {
      std::vector<Matrix> in, expected, out(count);
      for (std::size_t i = 0; i < count; ++i) {
        in.push_back(matrix_of(rank, i));
        Matrix all = matrix_of(0, i);
        for (int other = 1; other < kRanks; ++other) all = product(all, matrix_of(other, i));
        expected.push_back(all);
      }
      expect_ok(crl_allreduce(team, in.data(), out.data(), count, CRL_OPAQUE(sizeof(Matrix)), op));
      EXPECT_EQ(out, expected);
      for (int root = 0; root < kRanks; ++root) {
        std::vector<Matrix> result(count);
        crl_request_h request = nullptr;
        expect_ok(crl_ireduce(team, in.data(), result.data(), count, CRL_OPAQUE(sizeof(Matrix)), op,
                              root, &request));
        expect_ok(crl_request_wait(&request));
        if (rank == root) {
          EXPECT_EQ(result, expected);
        }
      }
    }
    EXPECT_GT(calls, 0);
    crl_op_free(op);
  });
}

// A new operator may get the address of a freed one: its function counts, and its kind.
TEST(UserOperators, FreedAndMadeAgain) {
  with_team(3, [](crl_team_h team, int rank) {
    for (int round = 0; round < 20; ++round) {
      const auto add = [](void* arg, const void* left, void* right, std::size_t) {
        *static_cast<std::int64_t*>(right) +=
            *static_cast<const std::int64_t*>(left) + *static_cast<const int*>(arg);
      };
      const auto keep_left = [](void*, const void* left, void* right, std::size_t) {
        std::memcpy(right, left, 8);
      };
      crl_op_t op = 0;
      const bool sum = round % 2 == 0;
      int bonus = round;
      expect_ok(sum ? crl_op_create(add, &bonus, 1, &op)
                    : crl_op_create(keep_left, nullptr, 0, &op));
      const std::int64_t in = rank + 10;
      std::int64_t out = 0;
      expect_ok(crl_allreduce(team, &in, &out, 1, CRL_INT64, op));
      EXPECT_EQ(out, sum ? 33 + 2 * round : 10) << round;
      crl_op_free(op);
    }
  });
}

TEST(UserOperators, ThrowingEndsTheTeamNotTheProcess) {
  with_team(
      3,
      [](crl_team_h team, int rank) {
        const auto thrower = [](void* arg, const void*, void*, std::size_t) {
          if (*static_cast<int*>(arg) == 1) throw std::runtime_error("cannot combine these");
        };
        crl_op_t op = 0;
        int own_rank = rank;
        expect_ok(crl_op_create(thrower, &own_rank, 0, &op));
        const std::int64_t in = 1;
        std::int64_t out = 0;
        crl_status_t status = crl_allreduce(team, &in, &out, 1, CRL_INT64, op);
        for (int i = 0; i < 10 && status == CRL_OK; ++i) status = crl_barrier(team);
        EXPECT_EQ(status, CRL_ERR_INTERNAL);
        EXPECT_NE(std::string(crl_last_error()).find(rank == 1 ? "cannot combine these" : "rank "),
                  std::string::npos)
            << crl_last_error();
        crl_op_free(op);
      },
      false);
}

// Scratch that cannot be had is an answer on all ranks.
TEST(UserOperators, OutOfMemory) {
  with_team(3, [](crl_team_h team, int) {
    setenv("CARILLON_ALGORITHM", "", 1);
    crl_op_t op = 0;
    expect_ok(crl_op_create(multiply, nullptr, 0, &op));
    std::int64_t in = 0, out = 0;
    crl_status_t status =
        crl_reduce(team, &in, &out, 1, CRL_OPAQUE(100000), op, 0);  // more than a slot
    EXPECT_NE(status, CRL_OK);
    crl_op_free(op);
  });
}

// Of a context of one rank on one node, where hardly any of them is used.
TEST(WrongSettings, AreRefusedThoughNothingUsesThem) {
  const std::pair<const char*, const char*> wrong[] = {
      {"CARILLON_NETWORK", "bogus"},     {"CARILLON_NETWORK", ":mlx5_0"},
      {"CARILLON_NETWORK", "verbs:"},    {"CARILLON_NETWORK", "off:lo"},
      {"CARILLON_MULTICAST", "tcp"},     {"CARILLON_MULTICAST", "auto:lo"},
      {"CARILLON_MULTICAST", "udp:"},    {"CARILLON_SWITCH", "notanip"},
      {"CARILLON_SWITCH", "10.0.0.1:"},  {"CARILLON_NODE_RANKS", "3,x"},
      {"CARILLON_NODE_RANKS", "rr:"},    {"CARILLON_NODE_RANKS", "rr:2,3"},
      {"CARILLON_DOMAIN_RANKS", "rr:0"}, {"CARILLON_SURVEYS", "maybe"},
      {"CARILLON_SLOT_BYTES", "1023"},   {"CARILLON_LOG", "loud"},
      {"CARILLON_SERVLET", "maybe"},     {"CARILLON_WATCHDOG", "soon"},
  };
  for (const auto& [name, value] : wrong) {
    Meeting world(1);
    crl_context_config_t config{};
    config.struct_bytes = sizeof config;
    config.oob = world.oob(0);
    crl_context_h context = nullptr;
    setenv(name, value, 1);
    expect_invalid(crl_context_create(&config, &context),
                   (std::string(name) + "=" + value).c_str());
    EXPECT_EQ(context, nullptr);
    unsetenv(name);
  }
}

TEST(RightSettings, AreTakenThoughNothingIsThere) {
  const std::pair<const char*, const char*> right[] = {
      {"CARILLON_NETWORK", "verbs:nope"},         {"CARILLON_NETWORK", "fabric:udp;ofi_rxd"},
      {"CARILLON_MULTICAST", "udp:nope"},         {"CARILLON_MULTICAST", "ud"},
      {"CARILLON_SWITCH", "10.0.0.1:9,10.0.0.2"}, {"CARILLON_NODE_RANKS", "rr:2"},
      {"CARILLON_DOMAIN_RANKS", "3,1,2"},
  };
  for (const auto& [name, value] : right) {
    Meeting world(1);
    setenv(name, value, 1);
    crl_context_destroy(make_context(world, 0));
    unsetenv(name);
  }
}

}  // namespace
}  // namespace carillon::test
