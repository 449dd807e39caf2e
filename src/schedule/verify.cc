// SPDX-License-Identifier: Apache-2.0
#include "schedule/verify.h"

#include <memory>
#include <string>
#include <vector>

#include "schedule/symbolic.h"

namespace carillon {
namespace {

// What output bytes [begin, begin + length) must be: bytes from `index` on of one rank's input, or
// (from < 0) of the reduction over the first `operands` ranks.
struct Expected {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  Rank from = -1;
  std::int64_t index = 0;
  Rank operands = 0;
};

std::vector<Expected> expected_output(const TeamCall& call, Rank rank) {
  const Shared& shared = call.shared;
  const std::int64_t block = shared.block_bytes();
  std::vector<Expected> all;
  switch (shared.collective) {
    case Collective::kBarrier: break;
    case Collective::kBcast:
      if (rank != shared.root) all.push_back({0, block, shared.root, 0});
      break;
    case Collective::kReduce:
      if (rank == shared.root) all.push_back({0, block, -1, 0, shared.ranks});
      break;
    case Collective::kAllreduce: all.push_back({0, block, -1, 0, shared.ranks}); break;
    case Collective::kReduceScatterBlock:
      all.push_back({0, block, -1, rank * block, shared.ranks});
      break;
    case Collective::kScan: all.push_back({0, block, -1, 0, rank + 1}); break;
    case Collective::kExscan:
      if (rank > 0) all.push_back({0, block, -1, 0, rank});
      break;
    case Collective::kScatter: all.push_back({0, block, shared.root, rank * block}); break;
    case Collective::kGather:
      if (rank != shared.root) break;
      [[fallthrough]];
    case Collective::kAllgather:
      for (Rank from = 0; from < shared.ranks; ++from)
        all.push_back({from * block, block, from, 0});
      break;
    case Collective::kAlltoall:
      for (Rank from = 0; from < shared.ranks; ++from) {
        all.push_back({from * block, block, from, rank * block});
      }
      break;
    case Collective::kReduceScatter: {
      const Tables own = call.local(rank).tables;
      const auto r = static_cast<std::size_t>(rank);
      all.push_back({0, own.send_bytes[r], -1, own.send_offsets[r], shared.ranks});
      break;
    }
    case Collective::kAlltoallv:
    case Collective::kAllgatherv:
    case Collective::kGatherv:
    case Collective::kScatterv: {
      const Tables own = call.local(rank).tables;
      for (Rank from = 0; from < shared.ranks; ++from) {
        if (!moves_block(shared, from, rank)) continue;
        const auto f = static_cast<std::size_t>(from);
        const auto r = static_cast<std::size_t>(rank);
        all.push_back({own.recv_offsets[f], own.recv_bytes[f], from,
                       call.local(from).tables.send_offsets[r]});
      }
      break;
    }
  }
  return all;
}

class Verification {
 public:
  Verification(const TeamCall& call, std::span<const std::vector<std::byte>> inputs,
               const RunOptions& options, SymbolicMemory& memory)
      : call_(call), inputs_(inputs), options_(options), memory_(memory) {}

  Report run(const Emit& emit) {
    Result<RunStats> run = run_team(call_, emit, memory_, options_);
    if (!run.ok()) return {.status = run.status(), .stats = {}};
    Report report{.status = {}, .stats = run.value()};
    if (call_.shared.collective == Collective::kBarrier) check_barrier();
    for (Rank rank = 0; rank < call_.shared.ranks; ++rank) check_output(rank);
    if (call_.shared.collective == Collective::kAllreduce) check_same_trees();
    report.status = status_;
    report.in_rank_order = in_rank_order_;
    return report;
  }

 private:
  void fail(Rank rank, std::int64_t begin, std::int64_t end, const std::string& reason) {
    if (!status_.ok()) return;
    status_ = Status(Code::kInternal, "rank " + std::to_string(rank) + ": output[" +
                                          std::to_string(begin) + "+" +
                                          std::to_string(end - begin) + "] " + reason);
  }

  void check_output(Rank rank) {
    const IntervalMap<Symbol>& output = memory_.output(rank);
    for (const Expected& expected : expected_output(call_, rank)) {
      const std::int64_t end = expected.begin + expected.length;
      const std::int64_t gap = output.first_gap(expected.begin, end);
      if (gap < end) return fail(rank, gap, gap + 1, "is never written");
      output.each(expected.begin, end,
                  [&](std::int64_t from, std::int64_t to, const Symbol& symbol) {
                    check_symbol(rank, expected, from, to, symbol);
                  });
    }
  }

  void check_symbol(Rank rank, const Expected& expected, std::int64_t begin, std::int64_t end,
                    const Symbol& symbol) {
    if (!status_.ok()) return;
    const Expressions& expressions = memory_.expressions();
    const std::int64_t index = begin + symbol.delta;
    const std::int64_t wanted = expected.index + begin - expected.begin;
    const bool right_node = expected.from < 0 || symbol.node == expressions.input(expected.from);
    if (index != wanted || !right_node) {
      fail(rank, begin, end,
           "holds byte " + std::to_string(index) + " of " + expressions.text(symbol.node) +
               ", not byte " + std::to_string(wanted) + " of " +
               (expected.from < 0 ? "the reduction" : std::to_string(expected.from)));
    } else if (expected.from < 0) {
      const std::int64_t element = call_.shared.element_bytes;
      const bool whole =
          (begin - expected.begin) % element == 0 && (end - expected.begin) % element == 0;
      fail_if(rank, begin, end,
              whole ? incomplete(symbol.node, expected.operands)
                    : "ends inside an element, whose other bytes are computed otherwise");
    }
  }

  void fail_if(Rank rank, std::int64_t begin, std::int64_t end, const std::string& reason) {
    if (!reason.empty()) fail(rank, begin, end, reason);
  }

  // Remembers for how many operands nodes have passed: ranks and blocks share them.
  std::string incomplete(Node node, Rank operands) {
    if (passed_.size() <= node) passed_.resize(node + 1);
    if (passed_[node] == operands) return {};
    std::string reason =
        memory_.expressions().check_complete(node, operands, !call_.shared.commutative);
    if (call_.shared.commutative && reason.empty() && in_rank_order_) {
      in_rank_order_ = memory_.expressions().check_complete(node, operands, true).empty();
    }
    if (reason.empty() && call_.limits.reproducible &&
        !memory_.expressions().is_left_fold(node, operands)) {
      reason = "is computed as " + memory_.expressions().text(node) +
               ", not from left to right, as reproducible sums are";
    }
    if (reason.empty()) passed_[node] = operands;
    return reason;
  }

  void check_same_trees() {
    const IntervalMap<Symbol>& first = memory_.output(0);
    for (Rank rank = 1; rank < call_.shared.ranks && status_.ok(); ++rank) {
      const auto compare = [&](std::int64_t begin, std::int64_t end, const Symbol& symbol) {
        first.each(begin, end, [&](std::int64_t from, std::int64_t to, const Symbol& other) {
          if (other.node == symbol.node) return;
          fail(rank, from, to,
               "is computed as " + memory_.expressions().text(symbol.node) + ", on rank 0 as " +
                   memory_.expressions().text(other.node) + ": the bits can differ");
        });
      };
      memory_.output(rank).each(0, call_.shared.block_bytes(), compare);
    }
  }

  void check_barrier() {
    for (Rank rank = 0; rank < call_.shared.ranks; ++rank) {
      const Rank late = memory_.ordering().not_before_end(rank);
      if (late < 0) continue;
      status_ = Status(Code::kInternal, "rank " + std::to_string(rank) +
                                            " can leave the barrier before rank " +
                                            std::to_string(late) + " has entered it");
      return;
    }
  }

  const TeamCall& call_;
  std::span<const std::vector<std::byte>> inputs_;
  const RunOptions& options_;
  SymbolicMemory& memory_;
  Status status_;
  bool in_rank_order_ = true;
  std::vector<Rank> passed_;
};

}  // namespace

Report verify(const TeamCall& call, const Emit& emit,
              std::span<const std::vector<std::byte>> inputs) {
  return Verifier().verify(call, emit, inputs);
}

struct Verifier::Kept {
  Workspace workspace;
  SymbolicMemory memory;

  Report verify(const TeamCall& call, const Emit& emit,
                std::span<const std::vector<std::byte>> inputs,
                std::span<const Schedule> schedules) {
    Status status = check_team_call(call);
    if (!status.ok()) return {.status = status, .stats = {}};
    memory.begin(call, inputs);
    const RunOptions options{.schedules = schedules, .workspace = &workspace};
    return Verification(call, inputs, options, memory).run(emit);
  }
};

Verifier::Verifier() : kept_(std::make_unique<Kept>()) {}
Verifier::~Verifier() = default;

Report Verifier::verify(const TeamCall& call, const Emit& emit,
                        std::span<const std::vector<std::byte>> inputs) {
  return kept_->verify(call, emit, inputs, {});
}

Report Verifier::verify(const TeamCall& call, std::span<const Schedule> schedules) {
  return kept_->verify(call, {}, {}, schedules);
}

}  // namespace carillon
