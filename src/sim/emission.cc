// SPDX-License-Identifier: Apache-2.0
#include "sim/emission.h"

#include <algorithm>

namespace carillon::sim {
namespace {

constexpr std::int64_t kWindowPositions = 128;

}  // namespace

Emission::Emission(const Job& job, const machine::Machine& machine, TransferTable* transfers)
    : job_(job),
      call_(job.call),
      transfers_(*transfers),
      compiler_(machine, transfers),
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

Status Emission::prepare(std::int64_t whole_positions) {
  windows_ = false;
  for (const Rank rank : {Rank{0}, job_.call.shared.ranks - 1}) {
    if (Status status = emit(rank, {0, 0}); !status.ok()) return status;
    if (!builder_.has_windows()) {
      windows_ = false;
      return {};
    }
    windows_ = windows_ || builder_.positions() > whole_positions;
  }
  return {};
}

Status Emission::begin(Rank rank, std::vector<StrandParts>* strands) {
  strands->clear();
  const Window all{};
  if (Status status = emit(rank, windows_ ? Window{0, 0} : all); !status.ok()) return status;
  if (!windows_) {
    for (const Strand& strand : builder_.built().strands) {
      strands->push_back(
          {compiler_.compile(builder_.built(), strand, call_.local, call_.limits, true)});
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
    const Window window{strand->next, std::min(strand->next + kWindowPositions, strand->last)};
    if (Status status = emit(rank, window); !status.ok()) return status;
    strand->next = window.last;
    const Schedule& schedule = builder_.built();
    if (schedule.ops.empty()) continue;
    strand->part =
        compiler_.compile(schedule, schedule.strands.front(), call_.local, call_.limits, false);
    return {};
  }
  return {};
}

}  // namespace carillon::sim
