// SPDX-License-Identifier: Apache-2.0
#include "sim/emission.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace carillon::sim {
namespace {

// Whether the messages of a channel are all posted, and all waited for, by one strand: then they
// are so in the order of their numbers.
bool is_in_order(const Schedule& schedule) {
  std::map<std::tuple<bool, Rank, Channel>, std::size_t> strands;
  for (std::size_t s = 0; s < schedule.strands.size(); ++s) {
    const Strand& strand = schedule.strands[s];
    for (std::uint32_t i = 0; i < strand.op_count; ++i) {
      const Op& op = schedule.ops[strand.first_op + i];
      if (op.kind == OpKind::kCopy || op.kind == OpKind::kReduce || op.kind == OpKind::kRepeat) {
        continue;
      }
      const bool reads = op.kind == OpKind::kWait || op.kind == OpKind::kRecv;
      const auto key = std::tuple(reads, op.message.peer, op.message.channel);
      if (strands.try_emplace(key, s).first->second != s) return false;
    }
  }
  return true;
}

}  // namespace

Emission::Emission(const Job& job, const machine::Machine& machine, TransferTable* transfers)
    : job_(job),
      call_(job.call),
      transfers_(*transfers),
      compiler_(machine, job.call.limits.window, transfers),
      builder_(job.call) {}

Status Emission::emit(Rank rank, Window window) {
  call_.rank = rank;
  if (!job_.locals.empty()) call_.local = job_.locals[static_cast<std::size_t>(rank)];
  builder_.restart(call_, window);
  job_.emit(call_, builder_);
  if (Status status = builder_.end(); !status.ok()) return status;
  if (builder_.built().learned.length == 0) return {};
  return {Code::kUnsupported,
          "schedules of several stages cannot be simulated: what they learn is not known"};
}

Status Emission::prepare(const Options& options) {
  window_positions_ = std::max<std::int64_t>(options.window_positions, 1);
  windows_ = false;
  for (const Rank rank : {Rank{0}, job_.call.shared.ranks - 1}) {
    if (Status status = emit(rank, {0, 0}); !status.ok()) return status;
    if (!builder_.has_windows()) {
      windows_ = false;
      return {};
    }
    windows_ = windows_ || builder_.positions() > options.whole_positions;
  }
  if (!windows_) return {};
  // A window does not tell how many messages its channels have in all; a few whole ranks do.
  messages_ = Compiler::Messages::kInOrder;
  const Rank ranks = job_.call.shared.ranks;
  for (const Rank rank : {Rank{0}, job_.call.shared.root, ranks / 2, ranks - 1}) {
    if (Status status = emit(rank, {}); !status.ok()) return status;
    if (!is_in_order(builder_.built())) {
      messages_ = Compiler::Messages::kNumbered;
      windows_ = false;
      return {};
    }
    if (compiler_.needs_credits(builder_.built())) {
      messages_ = Compiler::Messages::kInOrderCredited;
    }
  }
  return {};
}

Status Emission::begin(Rank rank, std::vector<StrandParts>* strands) {
  strands->clear();
  const Window all{};
  if (Status status = emit(rank, windows_ ? Window{0, 0} : all); !status.ok()) return status;
  if (!windows_) {
    for (const Strand& strand : builder_.built().strands) {
      strands->push_back({compiler_.compile(builder_.built(), strand, call_.local, messages_)});
    }
    return {};
  }
  const auto starts = builder_.strand_positions();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : builder_.positions();
    strands->push_back({.next = starts[i], .last = end});
  }
  for (StrandParts& strand : *strands) {
    if (Status status = advance(rank, &strand); !status.ok()) return status;
  }
  return {};
}

Status Emission::advance(Rank rank, StrandParts* strand) {
  compiler_.give_back(&strand->part);
  while (strand->next < strand->last) {
    const Window window{strand->next, std::min(strand->next + window_positions_, strand->last)};
    if (Status status = emit(rank, window); !status.ok()) return status;
    strand->next = window.last;
    const Schedule& schedule = builder_.built();
    if (schedule.ops.empty()) continue;
    strand->part = compiler_.compile(schedule, schedule.strands.front(), call_.local, messages_);
    return {};
  }
  return {};
}

}  // namespace carillon::sim
