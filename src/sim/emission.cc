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
      const bool reads = is_incoming(op.kind);
      if (!reads && !is_outgoing(op.kind)) continue;
      const auto key = std::tuple(reads, op.message.peer, op.message.channel);
      if (strands.try_emplace(key, s).first->second != s) return false;
    }
  }
  return true;
}

}  // namespace

Emission::Emission(const Job& job, Compiler* compiler, Sharing sharing)
    : job_(job),
      call_(job.call),
      compiler_(*compiler),
      builder_(job.call),
      shares_(sharing == Sharing::kWhereAlike && job.locals.empty() &&
              job.symmetry.peers != Symmetry::Peers::kOwn),
      shares_nodes_(job.call.limits.one_node() || job.call.limits.nodes->largest() > 1) {
  rules_.window = job.call.limits.window;
  rules_.tells_read = job.call.limits.domains != nullptr;
}

Status Emission::emit(Rank rank, const Local& local, Window window) {
  call_.rank = rank;
  call_.local = local;
  builder_.restart(rank, local, window);
  try {
    job_.emit(call_, builder_);
  } catch (const Builder::Stopped&) {
    return interrupted();
  }
  return builder_.end();
}

Status Emission::prepare(const Options& options) {
  stop_if(options.stops);
  window_positions_ = std::max<std::int64_t>(options.window_positions, 1);
  windows_ = false;
  for (const Rank rank : {Rank{0}, job_.call.shared.ranks - 1}) {
    if (Status status = emit(rank, local_of(rank), {0, 0}); !status.ok()) return status;
    if (!builder_.has_windows() || goes_on()) {
      windows_ = false;
      return {};
    }
    windows_ = windows_ || builder_.positions() > options.whole_positions;
  }
  if (!windows_) return {};
  // A window does not tell how many messages its channels have in all; a few whole ranks do.
  rules_.messages = Compiler::Messages::kInOrder;
  const Rank ranks = job_.call.shared.ranks;
  for (const Rank rank : {Rank{0}, job_.call.shared.root, ranks / 2, ranks - 1}) {
    if (Status status = emit(rank, local_of(rank), {}); !status.ok()) return status;
    if (!is_in_order(builder_.built())) {
      rules_.messages = Compiler::Messages::kNumbered;
      windows_ = false;
      return {};
    }
    if (Compiler::needs_credits(builder_.built(), rules_.window)) {
      rules_.messages = Compiler::Messages::kInOrderCredited;
    }
  }
  return {};
}

Status Emission::begin(Rank rank, const Local& local, Stage stage, std::uint32_t known,
                       std::vector<StrandParts>* strands) {
  if (!shares_) return begin_own(rank, local, stage, strands);
  Status status;
  if (known == 0) known = class_of(rank, &status);
  *strands = classes_[known - 1].strands;
  for (StrandParts& strand : *strands) {
    if (windows_ && status.ok()) status = advance(rank, local, &strand);
  }
  return status;
}

Status Emission::advance(Rank rank, const Local& local, StrandParts* strand) {
  if (!shares_) return advance_own(rank, local, strand);
  strand->part = {};
  while (strand->part.shape == nullptr && strand->next < strand->last) {
    auto& windows = classes_[number_of(rank) - 1].windows;
    const auto [row, is_new] = windows.try_emplace(strand->next, *strand);
    if (is_new) {
      if (Status status = emit_window(rank, local, &row->second); !status.ok()) return status;
      make_relative(rank, row->second.part);
    }
    *strand = row->second;
  }
  return {};
}

void Emission::give_back(Part* part) {
  if (!shares_) return compiler_.give_back(part);
  *part = {};
}

std::uint32_t Emission::number_of(Rank rank) {
  std::uint32_t& number = numbers_[job_.symmetry.class_of(rank)];
  if (number == 0) {
    classes_.emplace_back();
    number = static_cast<std::uint32_t>(classes_.size());
  }
  return number;
}

// The strands of the class are as they are emitted for the first of its ranks that comes.
std::uint32_t Emission::class_of(Rank rank, Status* status) {
  const std::uint32_t number = number_of(rank);
  Class& made = classes_[number - 1];
  if (made.known) return number;
  made.known = true;
  if (windows_) {
    *status = find_strands(rank, local_of(rank), &made.strands);
    return number;
  }
  *status = begin_own(rank, local_of(rank), {}, &made.strands);
  for (const StrandParts& strand : made.strands) make_relative(rank, strand.part);
  const Shape* const shape = made.strands.empty() ? nullptr : made.strands.front().part.shape;
  made.begins_with_wait =
      made.strands.size() == 1 && shape != nullptr && !shape->steps.empty() &&
      (shape->steps.front().kind == OpKind::kWait || shape->steps.front().kind == OpKind::kRecv);
  return number;
}

void Emission::make_relative(Rank rank, const Part& part) const {
  if (part.shape == nullptr) return;
  for (std::size_t i = 0; i < part.shape->peers; ++i) {
    part.peers[i] = job_.symmetry.relative(static_cast<std::uint32_t>(rank), part.peers[i],
                                           static_cast<std::uint32_t>(job_.call.shared.ranks));
  }
}

Status Emission::begin_own(Rank rank, const Local& local, Stage stage,
                           std::vector<StrandParts>* strands) {
  if (windows_) {
    Status status = find_strands(rank, local, strands);
    for (StrandParts& strand : *strands) {
      if (status.ok()) status = advance_own(rank, local, &strand);
    }
    return status;
  }
  strands->clear();
  call_.stage = stage.number;
  call_.learned = stage.learned;
  rules_.stage = stage.number;
  if (Status status = emit(rank, local, {}); !status.ok()) return status;
  rules_.all_credited = goes_on() || stage.number > 0;
  rules_.lender = shares_nodes_ ? &call_ : nullptr;
  for (const Strand& strand : builder_.built().strands) {
    strands->push_back({compiler_.compile(builder_.built(), strand, call_.local, rules_)});
  }
  return {};
}

// Where the strands begin and end; their parts are still to come.
Status Emission::find_strands(Rank rank, const Local& local, std::vector<StrandParts>* strands) {
  strands->clear();
  if (Status status = emit(rank, local, Window{0, 0}); !status.ok()) return status;
  const auto starts = builder_.strand_positions();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : builder_.positions();
    strands->push_back({.next = starts[i], .last = end});
  }
  return {};
}

Status Emission::advance_own(Rank rank, const Local& local, StrandParts* strand) {
  compiler_.give_back(&strand->part);
  while (strand->part.shape == nullptr && strand->next < strand->last) {
    if (Status status = emit_window(rank, local, strand); !status.ok()) return status;
  }
  return {};
}

Window Emission::window_of(const StrandParts& strand) const {
  return {strand.next, std::min(strand.next + window_positions_, strand.last)};
}

// The strand's next window; no part if nothing is in it.
Status Emission::emit_window(Rank rank, const Local& local, StrandParts* strand) {
  const Window window = window_of(*strand);
  if (Status status = emit(rank, local, window); !status.ok()) return status;
  strand->next = window.last;
  const Schedule& schedule = builder_.built();
  if (schedule.ops.empty()) return {};
  strand->part = compiler_.compile(schedule, schedule.strands.front(), call_.local, rules_);
  if (strand->part.shape->steps.empty()) compiler_.give_back(&strand->part);
  return {};
}

}  // namespace carillon::sim
