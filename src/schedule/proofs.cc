// SPDX-License-Identifier: Apache-2.0
#include "schedule/proofs.h"

#include <algorithm>
#include <utility>

namespace carillon {
namespace {

// Of larger teams there are few calls, and their schedules are long.
constexpr Rank kMaxRanks = 192;
constexpr std::size_t kMaxBytes = std::size_t{4} << 20;

// What a call has of each rank's own.
void fill_parts(const TeamCall& call, std::vector<std::int64_t>& parts) {
  parts.clear();
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    const Local local = call.local(rank);
    const Tables& tables = local.tables;
    parts.push_back(local.in_place ? 1 : 0);
    for (const auto table :
         {tables.send_bytes, tables.send_offsets, tables.recv_bytes, tables.recv_offsets}) {
      parts.push_back(static_cast<std::int64_t>(table.size()));
      parts.insert(parts.end(), table.begin(), table.end());
    }
  }
}

// Whether it matters to the schedule where the ranks are.
bool depends_on_nodes(const Schedule& schedule) {
  return std::any_of(schedule.ops.begin(), schedule.ops.end(),
                     [](const Op& op) { return has_readers(op.message.channel); }) ||
         std::any_of(schedule.buffers.begin(), schedule.buffers.end(),
                     [](const Buffer& buffer) { return has_readers(buffer.message.channel); });
}

std::size_t bytes_of(const Schedule& schedule) {
  return sizeof(Schedule) + schedule.ops.size() * sizeof(Op) +
         schedule.buffers.size() * sizeof(Buffer) + schedule.strands.size() * sizeof(Strand) +
         schedule.phases.size() * sizeof(Phase);
}

bool has_stages(const Schedule& schedule) { return schedule.learned.length > 0; }

// Who is right for operators that do not commute is so for those that do.
bool covers(const Report& report, const Shared& proved, const Shared& asked) {
  Shared same = asked;
  same.commutative = proved.commutative;
  return proved == same && (asked.commutative || !proved.commutative || report.in_rank_order);
}

}  // namespace

const Proofs::Proof* Proofs::find(const Proof& wanted) const {
  for (std::size_t i = proofs_.size(); i-- > 0;) {
    if (sizes_[i] != wanted.bytes) continue;
    const Proof& proof = proofs_[i];
    if (covers(proof.report, proof.shared, wanted.shared) && proof.limits == wanted.limits &&
        proof.parts == wanted.parts && proof.schedules == wanted.schedules) {
      return &proof;
    }
  }
  return nullptr;
}

void Proofs::keep_next() {
  bytes_ += next_.bytes;
  sizes_.push_back(next_.bytes);
  proofs_.push_back(std::move(next_));
  next_ = {};
  while (bytes_ > kMaxBytes) {
    next_ = std::move(proofs_.front());
    bytes_ -= sizes_.front();
    sizes_.pop_front();
    proofs_.pop_front();
  }
}

// False if its schedules are not all that is run: of several stages, or there is none.
bool Proofs::prepare(const TeamCall& call, const EmitInto& emit) {
  next_.shared = call.shared;
  next_.limits = call.limits;
  fill_parts(call, next_.parts);
  next_.schedules.resize(static_cast<std::size_t>(call.shared.ranks));
  next_.bytes = sizeof(Proof) + next_.parts.size() * sizeof(std::int64_t);
  bool on_any_nodes = true;
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    Schedule& schedule = next_.schedules[static_cast<std::size_t>(rank)];
    if (!emit(rank, 0, {}, &schedule).ok() || has_stages(schedule)) return false;
    next_.bytes += bytes_of(schedule);
    on_any_nodes = on_any_nodes && !depends_on_nodes(schedule);
  }
  if (on_any_nodes) next_.limits.nodes = next_.limits.domains = nullptr;
  return true;
}

Report Proofs::verify(const TeamCall& call, const EmitInto& emit) {
  if (call.shared.ranks > kMaxRanks || !check_team_call(call).ok() || !prepare(call, emit)) {
    return verifier_.verify(
        call, [&](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
          Schedule schedule;
          Status status = emit(rank, stage, learned, &schedule);
          return status.ok() ? Result<Schedule>(std::move(schedule)) : Result<Schedule>(status);
        });
  }
  if (const Proof* const known = find(next_)) {
    ++known_;
    return known->report;
  }
  Report report = next_.report = verifier_.verify(call, next_.schedules);
  if (report.ok()) keep_next();
  return report;
}

Report Proofs::verify(const TeamCall& call, const Emit& emit) {
  return verify(call, [&](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned,
                          Schedule* schedule) {
    Result<Schedule> emitted = emit(rank, stage, learned);
    if (emitted.ok()) *schedule = std::move(emitted.value());
    return emitted.status();
  });
}

}  // namespace carillon
