// SPDX-License-Identifier: Apache-2.0
//
// From a call to a schedule (registry.h).
#include <string>

#include "algorithms/registry.h"

namespace carillon {
namespace {

using enum Collective;

// What is left of each collective in a team of one.
void emit_alone(const Call& call, Builder& b) {
  if (call.shared.collective == kBarrier || call.shared.collective == kBcast ||
      call.shared.collective == kExscan) {
    return;
  }
  if (sends_by_tables(call.shared.collective)) {
    b.copy(b.output_of(0), b.input_of(0));
    return;
  }
  Range all{0, call.shared.block_bytes()};
  if (emits_by_tables(call.shared.collective)) all.length = call.local.tables.recv_bytes[0];
  for (const Rank weight : call.weights) {
    all.length *= call.shared.collective == kAlltoall ? weight * weight : weight;
  }
  b.copy(b.output(all), b.input(all));
}

}  // namespace

Result<Call> prepare(const Algorithm& algorithm, const Call& call) {
  if (Status status = check(algorithm, call.shared, call.params, call.limits); !status.ok()) {
    return status;
  }
  if (call.rank < 0 || call.rank >= call.shared.ranks) {
    return Status(Code::kInvalidArgument, "rank " + std::to_string(call.rank) + " is not in 0.." +
                                              std::to_string(call.shared.ranks - 1));
  }
  if (has_reduction(call.shared.collective) && call.shared.element_bytes > call.limits.slot_bytes) {
    return Status(Code::kUnsupported, "an element of " + std::to_string(call.shared.element_bytes) +
                                          " bytes does not fit in a slot of " +
                                          std::to_string(call.limits.slot_bytes) +
                                          "; raise CARILLON_SLOT_BYTES");
  }
  Call filled = call;
  if (filled.shared.element_bytes > filled.limits.slot_bytes) {  // nobody minds where it is cut
    filled.shared.count = filled.shared.block_bytes();
    filled.shared.element_bytes = 1;
  }
  if (filled.params.k == 0) filled.params.k = algorithm.k.fallback;
  return filled;
}

void emit_prepared(const Algorithm& algorithm, const Call& call, Builder& builder) {
  const bool lacks_tables = call.local.tables.send_bytes.empty();
  if (emits_by_tables(call.shared.collective) && lacks_tables) {
    builder.fail({Code::kInvalidArgument,
                  std::string(algorithm.id) + " is emitted by tables; there are none"});
  } else if (call.shared.ranks == 1) {
    emit_alone(call, builder);
  } else {
    algorithm.emit(call, builder);
  }
}

Result<Schedule> emit(const Algorithm& algorithm, const Call& call) {
  const Result<Call> prepared = prepare(algorithm, call);
  if (!prepared.ok()) return prepared.status();
  Builder builder(prepared.value());
  emit_prepared(algorithm, prepared.value(), builder);
  return builder.finish();
}

void emit_on(const GroupCall& group, const AlgorithmChoice& choice, const Call& call, Builder& b) {
  Call own{.shared = group.shared,
           .local = {},
           .rank = group.rank,
           .limits = call.limits,
           .params = choice.params,
           .stage = 0,
           .learned = {},
           .weights = group.weights};
  own.shared.ranks = group.members.size();
  if (!group.whole) own.limits.nodes = nullptr;  // the Builder knows who can read what
  if (Status status = check(*choice.algorithm, own.shared, own.params, own.limits); !status.ok()) {
    b.fail(status);
    return;
  }
  own = b.enter(own, group.members, group.input, group.output);
  if (own.params.k == 0) own.params.k = choice.algorithm->k.fallback;
  emit_prepared(*choice.algorithm, own, b);
  b.leave();
}

}  // namespace carillon
