// SPDX-License-Identifier: Apache-2.0
//
// One rank's part of one call through the C API, with its memory, checked against the oracle.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "algorithms/registry.h"
#include "support/calls.h"
#include "support/oracle.h"

namespace carillon::test {

inline constexpr std::int32_t kElement = 8;
inline constexpr std::size_t kGuard = 64;  // bytes behind the output that nobody may touch

inline void affine_op(void* /*arg*/, const void* left, void* right, std::size_t count) {
  apply_affine(left, right, count);
}

inline std::string text_of(const Case& problem) {
  const Shared& s = problem.shared;
  return std::string(collective_name(s.collective)) + " ranks=" + std::to_string(s.ranks) +
         " root=" + std::to_string(s.root) + " count=" + std::to_string(s.count) +
         (problem.in_place ? " in place" : "") + (s.commutative ? "" : " non-commutative");
}

// One rank's part of one call, with its memory.
class Trial {
 public:
  Trial(const Case& problem, crl_team_h team, crl_op_t affine)
      : problem_(problem),
        team_(team),
        rank_(crl_team_rank(team)),
        op_(problem.shared.commutative ? crl_op_t{CRL_SUM} : affine),
        dtype_(problem.shared.commutative ? crl_dtype_t{CRL_UINT64} : CRL_OPAQUE(kElement)),
        tables_(problem, rank_),
        in_(input_of(problem, rank_)) {
    const Shared& s = problem.shared;
    const Local local{.in_place = false, .tables = tables_.view()};
    out_bytes_ = static_cast<std::size_t>(output_bytes(s, local, rank_));
    if (s.collective == Collective::kBcast && rank_ == s.root) {
      out_ = in_;  // the one buffer
      out_bytes_ = in_.size();
    } else if (problem.in_place_at(rank_) && s.collective != Collective::kScatter) {
      const auto shift = static_cast<std::size_t>(in_place_shift(s, rank_));
      out_bytes_ = std::max(out_bytes_, shift + in_.size());
      out_.resize(out_bytes_, kUntouched);
      std::copy(in_.begin(), in_.end(), out_.begin() + static_cast<std::ptrdiff_t>(shift));
    } else {
      out_.resize(out_bytes_, kUntouched);
    }
    out_.resize(out_bytes_ + kGuard, kUntouched);
  }

  crl_status_t call() { return run(nullptr); }
  crl_status_t start() { return run(&request_); }
  crl_status_t wait() { return crl_request_wait(&request_); }

  // Empty if all is right.
  [[nodiscard]] std::string complaint() const {
    const Shared& s = problem_.shared;
    const bool in_place = problem_.in_place_at(rank_);
    Bytes expected = expected_output(problem_, rank_);
    if (s.collective == Collective::kBcast && rank_ == s.root) expected = in_;
    // In place, the root's block of scatter stays in the input.
    if (in_place && s.collective == Collective::kScatter) expected.clear();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (out_[i] != expected[i]) return "output byte " + std::to_string(i) + " is wrong";
    }
    for (std::size_t i = out_bytes_; i < out_.size(); ++i) {
      if (out_[i] != kUntouched) return "wrote behind the output";
    }
    return in_ == input_of(problem_, rank_) ? "" : "changed the input";
  }

 private:
  crl_status_t run(crl_request_h* r) {
    const Shared& s = problem_.shared;
    const bool in_place = problem_.in_place_at(rank_);
    const bool scatter = s.collective == Collective::kScatter;
    const void* const in = in_place && !scatter ? CRL_IN_PLACE : in_.data();
    void* const out = in_place && scatter ? CRL_IN_PLACE : out_.data();
    const auto n = static_cast<std::size_t>(s.count);
    const std::size_t bytes = n * kElement;
    const OwnedTables& t = tables_;
    switch (s.collective) {
      case Collective::kBarrier: return r ? crl_ibarrier(team_, r) : crl_barrier(team_);
      case Collective::kBcast:
        return r ? crl_ibcast(team_, out, bytes, s.root, r) : crl_bcast(team_, out, bytes, s.root);
      case Collective::kReduce:
        return r ? crl_ireduce(team_, in, out, n, dtype_, op_, s.root, r)
                 : crl_reduce(team_, in, out, n, dtype_, op_, s.root);
      case Collective::kAllreduce:
        return r ? crl_iallreduce(team_, in, out, n, dtype_, op_, r)
                 : crl_allreduce(team_, in, out, n, dtype_, op_);
      case Collective::kAllgather:
        return r ? crl_iallgather(team_, in, out, bytes, r) : crl_allgather(team_, in, out, bytes);
      case Collective::kGather:
        return r ? crl_igather(team_, in, out, bytes, s.root, r)
                 : crl_gather(team_, in, out, bytes, s.root);
      case Collective::kScatter:
        return r ? crl_iscatter(team_, in, out, bytes, s.root, r)
                 : crl_scatter(team_, in, out, bytes, s.root);
      case Collective::kReduceScatterBlock:
        return r ? crl_ireduce_scatter_block(team_, in, out, n, dtype_, op_, r)
                 : crl_reduce_scatter_block(team_, in, out, n, dtype_, op_);
      case Collective::kAlltoall:
        return r ? crl_ialltoall(team_, in, out, bytes, r) : crl_alltoall(team_, in, out, bytes);
      case Collective::kAlltoallv:
        return r ? crl_ialltoallv(team_, in, t.send_bytes.data(), t.send_offsets.data(), out,
                                  t.recv_bytes.data(), t.recv_offsets.data(), r)
                 : crl_alltoallv(team_, in, t.send_bytes.data(), t.send_offsets.data(), out,
                                 t.recv_bytes.data(), t.recv_offsets.data());
      case Collective::kAllgatherv:
        return r ? crl_iallgatherv(team_, in, own_bytes(t.send_bytes), out, t.recv_bytes.data(),
                                   t.recv_offsets.data(), r)
                 : crl_allgatherv(team_, in, own_bytes(t.send_bytes), out, t.recv_bytes.data(),
                                  t.recv_offsets.data());
      case Collective::kGatherv:
        return r ? crl_igatherv(team_, in, own_bytes(t.send_bytes), out, t.recv_bytes.data(),
                                t.recv_offsets.data(), s.root, r)
                 : crl_gatherv(team_, in, own_bytes(t.send_bytes), out, t.recv_bytes.data(),
                               t.recv_offsets.data(), s.root);
      case Collective::kScatterv:
        return r ? crl_iscatterv(team_, in, t.send_bytes.data(), t.send_offsets.data(), out,
                                 own_bytes(t.recv_bytes), s.root, r)
                 : crl_scatterv(team_, in, t.send_bytes.data(), t.send_offsets.data(), out,
                                own_bytes(t.recv_bytes), s.root);
      case Collective::kReduceScatter: {
        std::vector<std::int64_t> counts = t.send_bytes;
        for (std::int64_t& count : counts) count /= kElement;
        return r ? crl_ireduce_scatter(team_, in, out, counts.data(), dtype_, op_, r)
                 : crl_reduce_scatter(team_, in, out, counts.data(), dtype_, op_);
      }
      case Collective::kScan:
        return r ? crl_iscan(team_, in, out, n, dtype_, op_, r)
                 : crl_scan(team_, in, out, n, dtype_, op_);
      case Collective::kExscan:
        return r ? crl_iexscan(team_, in, out, n, dtype_, op_, r)
                 : crl_exscan(team_, in, out, n, dtype_, op_);
    }
    return CRL_ERR_INTERNAL;
  }

  // Of the table of a side where this rank has one block.
  [[nodiscard]] std::size_t own_bytes(const std::vector<std::int64_t>& table) const {
    return static_cast<std::size_t>(table[static_cast<std::size_t>(problem_.shared.root)]);
  }

  Case problem_;
  crl_team_h team_;
  int rank_;
  crl_op_t op_;
  crl_dtype_t dtype_;
  OwnedTables tables_;
  Bytes in_, out_;
  std::size_t out_bytes_ = 0;
  crl_request_h request_ = nullptr;
};

}  // namespace carillon::test
