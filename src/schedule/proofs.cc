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
std::vector<std::int64_t> parts_of(const TeamCall& call) {
  std::vector<std::int64_t> parts;
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
  return parts;
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

// All ranks' schedules of the first stage; none if a rank has none.
std::vector<Schedule> schedules_of(const TeamCall& call, const Emit& emit) {
  std::vector<Schedule> schedules;
  schedules.reserve(static_cast<std::size_t>(call.shared.ranks));
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    Result<Schedule> schedule = emit(rank, 0, {});
    if (!schedule.ok()) return {};
    schedules.push_back(std::move(schedule.value()));
  }
  return schedules;
}

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

void Proofs::keep(Proof proof) {
  bytes_ += proof.bytes;
  sizes_.push_back(proof.bytes);
  proofs_.push_back(std::move(proof));
  while (bytes_ > kMaxBytes) {
    bytes_ -= sizes_.front();
    sizes_.pop_front();
    proofs_.pop_front();
  }
}

Report Proofs::verify(const TeamCall& call, const Emit& emit) {
  const auto plainly = [&] { return carillon::verify(call, emit); };
  if (call.shared.ranks > kMaxRanks || !check_team_call(call).ok()) return plainly();
  Proof proof{.shared = call.shared,
              .limits = call.limits,
              .parts = parts_of(call),
              .schedules = schedules_of(call, emit),
              .report = {}};
  const std::vector<Schedule>& schedules = proof.schedules;
  if (schedules.empty() || std::any_of(schedules.begin(), schedules.end(), has_stages)) {
    return plainly();
  }
  if (std::none_of(schedules.begin(), schedules.end(), depends_on_nodes)) {
    proof.limits.nodes = proof.limits.domains = nullptr;
  }
  proof.bytes = sizeof(Proof) + proof.parts.size() * sizeof(std::int64_t);
  for (const Schedule& schedule : schedules) proof.bytes += bytes_of(schedule);
  if (const Proof* const known = find(proof)) {
    ++known_;
    return known->report;
  }
  proof.report = carillon::verify(
      call, [&](Rank rank, std::int32_t /*stage*/, std::span<const std::int64_t> /*learned*/) {
        return Result<Schedule>(schedules[static_cast<std::size_t>(rank)]);
      });
  Report report = proof.report;
  if (report.ok()) keep(std::move(proof));
  return report;
}

}  // namespace carillon
