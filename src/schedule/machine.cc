// SPDX-License-Identifier: Apache-2.0
#include "schedule/machine.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "schedule/check.h"
#include "schedule/machine_impl.h"
#include "schedule/text.h"

namespace carillon {

Workspace::Workspace() : books_(std::make_unique<Books>()) {}
Workspace::~Workspace() = default;

Result<RunStats> Machine::run() {
  Status status = check_team_call(call_);
  if (!status.ok()) return status;
  random_.seed(options_.seed);
  links_.begin(call_.shared.ranks, call_.limits);
  aggregations_.clear();
  ready_.clear();
  stats_ = {};
  ranks_.resize(static_cast<std::size_t>(call_.shared.ranks));
  for (RankState& state : ranks_) state.begin();
  strands_.clear();
  for (Rank rank = 0; rank < call_.shared.ranks && status.ok(); ++rank) {
    status = start_stage(rank, {});
  }
  if (!status.ok()) return status;
  return run_ready();
}

Result<RunStats> Machine::run_ready() {
  while (!ready_.empty()) {
    const std::size_t id = take_ready();
    strands_[id].queued = false;
    // It waits for nothing while it runs, and is woken by nothing that it does itself.
    strands_[id].block = Block::kNone;
    Status status = run_strand(id);
    if (!status.ok()) return status;
  }
  const auto unfinished = [](const RankState& state) { return state.running > 0; };
  if (std::any_of(ranks_.begin(), ranks_.end(), unfinished)) return deadlock();
  const std::string leftover = links_.leftover();
  if (!leftover.empty()) return Status(Code::kInternal, leftover);
  return stats_;
}

Status Machine::start_stage(Rank rank, std::span<const std::int64_t> learned) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (!options_.schedules.empty()) {
    if (options_.schedules.size() != ranks_.size()) {
      return {Code::kInvalidArgument, "not one schedule for each rank"};
    }
    if (state.stage > 0) return {Code::kInvalidArgument, "schedules of several stages"};
    state.schedule = &options_.schedules[static_cast<std::size_t>(rank)];
  } else {
    Result<Schedule> emitted = emit_(rank, state.stage, learned);
    if (!emitted.ok()) return emitted.status();
    state.emitted = std::move(emitted.value());
    state.schedule = &state.emitted;
  }
  state.local = call_.local(rank);
  const Call call{.shared = call_.shared,
                  .local = state.local,
                  .rank = rank,
                  .limits = call_.limits,
                  .params = {},
                  .stage = state.stage,
                  .learned = learned};
  Status status = check_schedule(*state.schedule, call);
  if (!status.ok()) return status;
  stats_.stages = std::max(stats_.stages, state.stage + 1);
  note_releases(state);
  for (std::size_t i = state.strands.size(); i < state.schedule->strands.size(); ++i) {
    state.strands.push_back(strands_.size());
    strands_.push_back({.rank = rank, .index = static_cast<std::int32_t>(i)});
    state.large_in_use.push_back(0);
  }
  begin_strands(state);
  return memory_.begin_stage(rank, *state.schedule);
}

void Machine::begin_strands(RankState& state) {
  const std::vector<Strand>& strands = state.schedule->strands;
  for (std::size_t i = 0; i < strands.size(); ++i) {
    StrandState& strand = strands_[state.strands[i]];
    strand.open.clear();
    strand = {.rank = strand.rank,
              .index = strand.index,
              .pc = strands[i].first_op,
              .end = strands[i].first_op + strands[i].op_count,
              .open = std::move(strand.open),
              .queued = true};
    ready_.push_back(state.strands[i]);
  }
  state.running = strands.size();
}

void Machine::note_releases(RankState& state) {
  const std::vector<std::int64_t> points = release_points(*state.schedule);
  state.first_release.assign(points.size(), 0);
  state.next_release.assign(points.size(), 0);
  for (std::size_t i = points.size(); i-- > 0;) {
    if (points[i] < 0) continue;
    std::uint32_t& first = state.first_release[static_cast<std::size_t>(points[i])];
    state.next_release[i] = first;
    first = static_cast<std::uint32_t>(i + 1);
  }
}

// Adds the stage's messages to the bases, reads what it learned and goes on with the next.
Status Machine::end_stage(Rank rank) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const Schedule& schedule = *state.schedule;
  if (schedule.learned.length == 0) return {};
  Bases sent = state.sent;
  Bases received = state.received;
  std::size_t loop_end = 0;
  std::int64_t rounds = 1;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (i >= loop_end) rounds = 1;
    if (op.kind == OpKind::kRepeat) {
      loop_end = i + op.body + 1;
      rounds = op.count;
    }
    if (!is_outgoing(op.kind) && !is_incoming(op.kind)) continue;
    const std::int64_t key = base_key(op.message.channel, op.message.peer);
    (is_outgoing(op.kind) ? sent : received)[key] += rounds;
  }
  state.sent = std::move(sent);
  state.received = std::move(received);
  std::vector<std::int64_t> values;
  Status status = memory_.learn(rank, schedule.learned, &values);
  if (!status.ok()) {
    return {status.code(), "rank " + std::to_string(rank) + ", end of stage " +
                               std::to_string(state.stage) + ": " + std::string(status.message())};
  }
  ++state.stage;
  return start_stage(rank, values);
}

std::size_t Machine::take_ready() {
  if (options_.seed != 0) std::swap(ready_.front(), ready_[random_() % ready_.size()]);
  const std::size_t id = ready_.front();
  ready_.pop_front();
  return id;
}

void Machine::wake(std::vector<std::size_t>& blocked) {
  for (const std::size_t id : blocked) wake(id);
  blocked.clear();
}

void Machine::wake(std::size_t id) {
  if (strands_[id].queued) return;
  strands_[id].queued = true;
  ready_.push_back(id);
}

Status Machine::run_strand(std::size_t id) {
  std::uint64_t budget = options_.seed != 0 ? 1 + random_() % 4 : ~std::uint64_t{0};
  while (strands_[id].pc < strands_[id].end) {
    if (budget-- == 0) {
      strands_[id].queued = true;
      ready_.push_back(id);
      return {};
    }
    Block block = Block::kNone;
    Status status = step(id, &block);
    if (!status.ok()) return status;
    strands_[id].block = block;
    if (block != Block::kNone) return {};
  }
  const Rank rank = strands_[id].rank;
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  return --state.running == 0 ? end_stage(rank) : Status();
}

Status Machine::step(std::size_t id, Block* block) {
  StrandState& strand = strands_[id];
  const Op& op = rank_of(strand).schedule->ops[strand.pc];
  if (op.kind == OpKind::kRepeat) {
    strand.loop = strand.pc++;
    strand.iteration = 0;
    return {};
  }
  Status status = execute(id, op, block);
  if (!status.ok() || *block != Block::kNone) return status;
  if (++stats_.ops > options_.max_ops) return error(strand, "the schedules run too many ops");
  finish_op(strand);
  return {};
}

void Machine::finish_op(StrandState& strand) {
  const Schedule& schedule = *rank_of(strand).schedule;
  release(strand, strand.pc++);
  if (strand.loop < 0) return;
  const auto loop = static_cast<std::uint32_t>(strand.loop);
  if (strand.pc != loop + 1 + schedule.ops[loop].body) return;
  if (++strand.iteration < schedule.ops[loop].count) {
    strand.pc = loop + 1;
    return;
  }
  strand.loop = -1;
  strand.iteration = 0;
  release(strand, loop);
}

void Machine::release(StrandState& strand, std::uint32_t op) {
  const RankState& state = rank_of(strand);
  for (std::uint32_t next = state.first_release[op]; next > 0;) {
    const std::uint32_t wait_op = next - 1;
    next = state.next_release[wait_op];
    for (std::size_t i = 0; i < strand.open.size(); ++i) {
      if (strand.open[i].wait_op != wait_op) continue;
      release(strand.open[i]);
      strand.open.erase(strand.open.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
}

std::string Machine::where(const StrandState& strand) const {
  const RankState& state = ranks_[static_cast<std::size_t>(strand.rank)];
  std::string text = "rank " + std::to_string(strand.rank);
  if (state.stage > 0) text += ", stage " + std::to_string(state.stage);
  text += ", strand " + std::to_string(strand.index) + ", op " + std::to_string(strand.pc) + " (" +
          op_text(*state.schedule, strand.pc) + ")";
  if (strand.loop >= 0) text += ", round " + std::to_string(strand.iteration);
  return text;
}

Status Machine::at(const StrandState& strand, const Status& status) const {
  return status.ok() ? Status() : error(strand, std::string(status.message()));
}

Status Machine::error(const StrandState& strand, const std::string& reason) const {
  return {Code::kInternal, where(strand) + ": " + reason};
}

std::string Machine::waits_for(const StrandState& strand) {
  const RankState& state = rank_of(strand);
  const Op& op = state.schedule->ops[strand.pc];
  const bool outgoing = is_outgoing(op.kind);
  const std::int64_t number = number_of(strand, op.message, outgoing);
  const std::string message = "message #" + std::to_string(number);
  switch (strand.block) {
    case Block::kLeaders: return "waits for the aggregates of other leaders";
    case Block::kMessage:
      return "waits for " + message + " of rank " + std::to_string(op.message.peer) +
             (ranks_[static_cast<std::size_t>(op.message.peer)].running == 0
                  ? ", which has finished without it"
                  : "");
    case Block::kWindow:
      return "waits for the window: " + message + " needs an earlier message released by its " +
             "readers (window " + std::to_string(call_.limits.window) + ")";
    case Block::kLargeSlot:
      return "waits for one of its " + std::to_string(call_.limits.large_slots) + " large slots";
    case Block::kTurn: return "waits for its turn behind another strand";
    case Block::kNone: break;
  }
  return "is blocked";
}

Status Machine::deadlock() {
  constexpr int kShown = 16;
  std::string text = "deadlock:";
  int blocked = 0;
  for (const StrandState& strand : strands_) {
    if (strand.block == Block::kNone) continue;
    if (++blocked <= kShown) text += "\n  " + where(strand) + " " + waits_for(strand);
  }
  if (blocked > kShown) text += "\n  and " + std::to_string(blocked - kShown) + " more";
  return {Code::kInternal, text};
}

Result<RunStats> run_team(const TeamCall& call, const Emit& emit, Memory& memory,
                          const RunOptions& options) {
  return Machine(call, emit, memory, options).run();
}

}  // namespace carillon
