// SPDX-License-Identifier: Apache-2.0
//
// Handles and places that are NULL, for every function of the C API: an error or nothing, and never
// a crash. And which function an error names.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

void expect_names(crl_status_t status, const std::string& function) {
  EXPECT_EQ(status, CRL_ERR_INVALID_ARGUMENT) << function;
  const std::string error = crl_last_error();
  EXPECT_NE(error.find(": " + function + ": "), std::string::npos) << function << ": " << error;
}

void on_team(int ranks, const std::function<void(crl_context_h, crl_team_h, int)>& body) {
  Meeting world(ranks), members(ranks);
  expect_processes_ok(ranks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    body(context, team, rank);
    std::int64_t mine = rank, sum = 0;
    expect_ok(crl_allreduce(team, &mine, &sum, 1, CRL_INT64, CRL_SUM));
    EXPECT_EQ(sum, ranks * (ranks - 1) / 2);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

TEST(NullArguments, OfHandles) {
  EXPECT_EQ(crl_team_rank(nullptr), -1);
  EXPECT_NE(std::string(crl_last_error()).find("crl_team_rank"), std::string::npos);
  EXPECT_EQ(crl_team_size(nullptr), -1);
  EXPECT_NE(std::string(crl_last_error()).find("crl_team_size"), std::string::npos);
  EXPECT_STREQ(crl_team_last_algorithm(nullptr), "");
  EXPECT_STREQ(crl_request_algorithm(nullptr), "");
  EXPECT_EQ(crl_team_decisions(nullptr, nullptr, 0), 0);
  EXPECT_EQ(crl_team_last_call(nullptr).call, nullptr);
  crl_status_t status = CRL_OK;
  EXPECT_EQ(crl_repeat(nullptr, {}, nullptr, nullptr, &status), 0);
  crl_traffic_t traffic;
  std::memset(&traffic, 1, sizeof traffic);
  crl_context_traffic(nullptr, &traffic);
  expect_names(crl_context_progress(nullptr), "crl_context_progress");
  expect_names(crl_team_test(nullptr), "crl_team_test");
  expect_names(crl_context_create(nullptr, nullptr), "crl_context_create");
  expect_names(crl_team_create(nullptr, nullptr, nullptr), "crl_team_create");
  expect_names(crl_window_create(nullptr, nullptr, nullptr, nullptr, nullptr), "crl_window_create");
  expect_names(crl_op_create(nullptr, nullptr, 1, nullptr), "crl_op_create");
  expect_names(crl_free(nullptr, &traffic), "crl_free");
  EXPECT_EQ(crl_alloc(nullptr, 8), nullptr);
  EXPECT_EQ(crl_window_close(nullptr), CRL_OK);
  crl_window_abandon(nullptr);
  crl_window_destroy(nullptr);
  crl_team_set_name(nullptr, "nobody's");
  crl_team_fail(nullptr, CRL_ERR_NO_MEMORY);
  crl_team_destroy(nullptr);
  crl_context_destroy(nullptr);
  crl_op_free(0);
  for (const int code : {-9, -1000, 2, 1000}) {
    EXPECT_NE(crl_status_string(static_cast<crl_status_t>(code)), nullptr);
  }
}

TEST(NullArguments, OfPlaces) {
  on_team(2, [](crl_context_h context, crl_team_h team, int /*rank*/) {
    crl_context_traffic(context, nullptr);
    EXPECT_EQ(crl_team_decisions(team, nullptr, 100), 0);
    std::int64_t mine = 1, sum = 0;
    expect_ok(crl_allreduce(team, &mine, &sum, 1, CRL_INT64, CRL_SUM));
    EXPECT_EQ(crl_repeat(team, crl_team_last_call(team), &mine, &sum, nullptr), 0);
    std::vector<std::int64_t> bytes(2, 8), offsets{0, 8}, in(2), out(2);
    expect_ok(crl_alltoallv(team, in.data(), bytes.data(), offsets.data(), out.data(), bytes.data(),
                            offsets.data()));
    EXPECT_GE(crl_team_decisions(team, nullptr, 100), 0);
    crl_team_set_name(team, nullptr);
    expect_ok(crl_free(context, nullptr));
  });
}

// By the function that was called.
TEST(NullArguments, ErrorsNameTheFunction) {
  on_team(2, [](crl_context_h /*context*/, crl_team_h team, int /*rank*/) {
    std::int64_t v[2] = {}, w[2] = {};
    const std::int64_t n[2] = {-1, 8}, o[2] = {0, 8};
    crl_request_h q = nullptr;
    constexpr crl_dtype_t kType = CRL_INT64;
    constexpr crl_op_t kOp = CRL_SUM;
    for (crl_request_h* const r : {&q, static_cast<crl_request_h*>(nullptr)}) {
      crl_team_h none = nullptr;
      expect_names(crl_ibarrier(none, r), "crl_ibarrier");
      expect_names(crl_ibcast(team, v, 8, 2, r), "crl_ibcast");
      expect_names(crl_ireduce(team, v, w, 1, kType, kOp, 2, r), "crl_ireduce");
      expect_names(crl_iallreduce(team, v, w, 1, CRL_DTYPES, kOp, r), "crl_iallreduce");
      expect_names(crl_iallgather(team, v, CRL_IN_PLACE, 8, r), "crl_iallgather");
      expect_names(crl_igather(team, nullptr, w, 8, 0, r), "crl_igather");
      expect_names(crl_iscatter(team, v, w, 8, -1, r), "crl_iscatter");
      expect_names(crl_ireduce_scatter_block(team, nullptr, w, 1, kType, kOp, r),
                   "crl_ireduce_scatter_block");
      expect_names(crl_ialltoall(team, v, w, SIZE_MAX, r), "crl_ialltoall");
      expect_names(crl_ialltoallv(team, v, n, o, w, n, o, r), "crl_ialltoallv");
      expect_names(crl_iallgatherv(team, v, 8, w, n, o, r), "crl_iallgatherv");
      expect_names(crl_igatherv(team, v, 8, w, n, o, 2, r), "crl_igatherv");
      expect_names(crl_iscatterv(team, v, n, o, w, 8, 2, r), "crl_iscatterv");
      expect_names(crl_ireduce_scatter(team, v, w, n, kType, kOp, r), "crl_ireduce_scatter");
      expect_names(crl_iscan(team, v, nullptr, 1, kType, kOp, r), "crl_iscan");
      expect_names(crl_iexscan(none, v, w, 1, kType, kOp, r), "crl_iexscan");
    }
    // There is no place for the request of a call that is right.
    expect_names(crl_ibarrier(team, nullptr), "crl_ibarrier");
    expect_names(crl_iallreduce(team, v, w, 1, kType, kOp, nullptr), "crl_iallreduce");
    // The blocking form of what has been called so before, and the other way round.
    expect_names(crl_bcast(team, v, 8, 2), "crl_bcast");
    expect_names(crl_allreduce(team, v, w, 1, CRL_DTYPES, kOp), "crl_allreduce");
    expect_names(crl_alltoallv(team, v, n, o, w, n, o), "crl_alltoallv");
    expect_names(crl_reduce_scatter(team, v, w, n, kType, kOp), "crl_reduce_scatter");
    EXPECT_EQ(q, nullptr);
  });
}

}  // namespace
}  // namespace carillon::test
