// SPDX-License-Identifier: Apache-2.0
//
// Non-blocking collectives that tests start, and then compute instead of calling carillon: each
// with what comes out of it.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/calls.h"

namespace carillon::test {

inline constexpr std::size_t kStartedCount = 131072;  // of values: 1 MiB
inline constexpr double kPatienceS = 30;

/// Of this rank; `in` are the rank's values_of(rank, 1, kStartedCount).
struct Begun {
  crl_team_h team;
  int rank, ranks;
  const std::int64_t* in;
  std::int64_t* out;
};

struct Started {
  const char* name;
  crl_status_t (*start)(const Begun& begun, crl_request_h* request);
  std::vector<std::int64_t> (*expected)(int rank, int ranks);
};

inline crl_status_t start_allreduce(const Begun& begun, crl_request_h* request) {
  return crl_iallreduce(begun.team, begun.in, begun.out, kStartedCount, CRL_INT64, CRL_SUM,
                        request);
}

inline crl_status_t start_bcast(const Begun& begun, crl_request_h* request) {
  const int root = begun.ranks - 1;
  if (begun.rank == root) std::copy_n(begun.in, kStartedCount, begun.out);
  return crl_ibcast(begun.team, begun.out, kStartedCount * sizeof *begun.out, root, request);
}

// Rank r sends 16 KiB (r + 1) (s + 1) of its input, from its beginning, to rank s.
inline crl_status_t start_alltoallv(const Begun& begun, crl_request_h* request) {
  constexpr std::int64_t kUnit = std::int64_t{kStartedCount} / 8;
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(begun.ranks)), from(bytes), to(bytes);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = kUnit * (begun.rank + 1) * (static_cast<std::int64_t>(i) + 1);
    to[i] = at;
    at += bytes[i];
  }
  return crl_ialltoallv(begun.team, begun.in, bytes.data(), from.data(), begun.out, bytes.data(),
                        to.data(), request);
}

inline std::vector<std::int64_t> alltoallv_of(int rank, int ranks) {
  std::vector<std::int64_t> all;
  for (int from = 0; from < ranks; ++from) {
    const auto part = values_of(from, 1,
                                kStartedCount / 64 * (static_cast<std::size_t>(rank) + 1) *
                                    (static_cast<std::size_t>(from) + 1));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

inline constexpr std::array<Started, 3> kStarted = {{
    {"allreduce", start_allreduce,
     [](int /*rank*/, int ranks) { return sums_of(ranks, 1, kStartedCount); }},
    {"bcast", start_bcast,
     [](int /*rank*/, int ranks) { return values_of(ranks - 1, 1, kStartedCount); }},
    {"alltoallv", start_alltoallv, alltoallv_of},
}};

/// Looks at memory that another thread is writing to; no call into carillon.
__attribute__((no_sanitize("thread"))) inline std::int64_t look_at(const std::int64_t* place) {
  return *static_cast<const volatile std::int64_t*>(place);
}

/// Until the values stand in `out`; false: they do not come.
inline bool compute_until(const std::vector<std::int64_t>& out,
                          const std::vector<std::int64_t>& expected) {
  const Stopwatch watch;
  for (std::size_t i = out.size(); i-- > 0;) {
    while (look_at(&out[i]) != expected[i]) {
      if (watch.seconds() > kPatienceS) return false;
      sched_yield();  // the ranks may be more than the cores
    }
  }
  return true;
}

}  // namespace carillon::test
