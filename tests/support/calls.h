// SPDX-License-Identifier: Apache-2.0
//
// Small change of the engine's tests: expectations on statuses, waiting for requests, memory.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "carillon/carillon.h"
#include "support/job.h"

namespace carillon::test {

inline void expect_ok(crl_status_t status, const char* what = "") {
  EXPECT_EQ(status, CRL_OK) << what << ": " << (status == CRL_OK ? "" : crl_last_error());
}

inline void expect_all_ok(const std::vector<int>& exits) {
  for (std::size_t rank = 0; rank < exits.size(); ++rank) {
    EXPECT_EQ(exits[rank], 0) << "exit of rank " << rank << " (-14: timed out)";
  }
}

/// run_processes, and every rank must end well.
inline void expect_processes_ok(int ranks, const std::function<void(int)>& body,
                                int timeout_s = 60) {
  expect_all_ok(run_processes(ranks, body, timeout_s));
}

/// Polls until the team is ready or has failed.
inline crl_status_t settle(crl_team_h team) {
  for (;;) {
    const crl_status_t status = crl_team_test(team);
    if (status != CRL_IN_PROGRESS) return status;
  }
}

/// A barrier of the meeting's members in which the library goes on: others may still need something
/// of this rank.
inline void meet(crl_context_h context, Meeting& meeting, int rank) {
  const crl_oob_t oob = meeting.oob(rank);
  const char mine = 0;
  std::vector<char> all(static_cast<std::size_t>(oob.size));
  void* request = nullptr;
  ASSERT_EQ(oob.allgather_post(oob.arg, &mine, all.data(), 1, &request), 0);
  int answer = 1;
  while ((answer = oob.allgather_test(oob.arg, request)) == 1) {
    expect_ok(crl_context_progress(context));
  }
  EXPECT_EQ(answer, 0);
}

/// A value that differs for every (rank, round, index).
inline std::int64_t value_of(std::int64_t rank, std::int64_t round, std::int64_t index) {
  return (rank + 1) * 1000003 + round * 7919 + index * 31;
}

inline std::vector<std::int64_t> values_of(std::int64_t rank, std::int64_t round,
                                           std::size_t count) {
  std::vector<std::int64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = value_of(rank, round, static_cast<std::int64_t>(i));
  }
  return values;
}

/// The sum of all ranks' values.
inline std::vector<std::int64_t> sums_of(int ranks, std::int64_t round, std::size_t count) {
  std::vector<std::int64_t> sums(count);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < count; ++i) {
      sums[i] += value_of(rank, round, static_cast<std::int64_t>(i));
    }
  }
  return sums;
}

/// Bytes of this process, shared pages counted in part (PSS).
inline std::int64_t pss_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word) {
    std::int64_t kib = 0;
    if (word == "Pss:" && file >> kib) return kib * 1024;
  }
  return 0;
}

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace carillon::test
