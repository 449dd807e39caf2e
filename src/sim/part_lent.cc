// SPDX-License-Identifier: Apache-2.0
//
// Which messages of a rank's schedule are lent to ranks of its node, and where those that it takes
// land.
#include <algorithm>
#include <optional>

#include "base/lent_messages.h"
#include "machine/costs.h"
#include "schedule/lifetimes.h"
#include "sim/part.h"

namespace carillon::sim {
namespace {

// Whether all that read the message can read the writer's memory.
bool is_for_node(const Call& call, const Schedule& schedule, const Message& message) {
  const Limits& limits = call.limits;
  if (is_shared(message.channel)) {
    return readers_of(message.channel, schedule.rank, schedule.ranks, limits) <= kMostLentReaders;
  }
  return message.peer != schedule.rank && limits.share_node(schedule.rank, message.peer);
}

class Lender {
 public:
  Lender(const machine::Machine& machine, const Schedule& schedule, const Call& call)
      : machine_(machine),
        schedule_(schedule),
        call_(call),
        lifetimes_(schedule, call),
        one_way_(is_one_way(schedule)),
        reduces_(has_reduction(call.shared.collective)),
        may_lend_(!reduces_ ||
                  call.limits.node_size(schedule.rank, schedule.ranks) <= kMostLendingReducers) {}

  // The copy that a lent message spares, if this wait takes one.
  [[nodiscard]] std::optional<std::size_t> landing(std::size_t wait) const {
    return lifetimes_.landing(wait);
  }

  // Of a put or send; `waited`: the message that its strand has taken last, in the same loop.
  [[nodiscard]] Lending of(std::size_t post, bool in_loop, const std::size_t* waited) const {
    const Op& op = schedule_.ops[post];
    if (op.src_count != 1 || !may_lend_) return Lending::kNone;
    const std::int64_t bytes = length_of(schedule_.src(op), call_.local.tables);
    const machine::Taking taking{.reduces = reduces_, .streamed = one_way_ && in_loop};
    if (bytes < lent_from_bytes(one_way_) || !is_for_node(call_, schedule_, op.message) ||
        !machine::lending_pays(machine_, bytes, taking)) {
      return Lending::kNone;
    }
    const Buffer& source = schedule_.src(op)[0];
    if (source.space != Space::kSlot) {
      return lifetimes_.lasts(post, source) ? Lending::kAlways : Lending::kNone;
    }
    if (waited == nullptr || schedule_.ops[*waited].message != source.message) {
      return Lending::kNone;
    }
    const auto copy = landing(*waited);
    const bool lasts = copy.has_value() && lifetimes_.lasts_landed(post, source, *copy);
    return lasts ? Lending::kIfLanded : Lending::kNone;
  }

 private:
  const machine::Machine& machine_;
  const Schedule& schedule_;
  const Call& call_;
  Lifetimes lifetimes_;
  bool one_way_, reduces_, may_lend_;
};

}  // namespace

// False: none is, and none can be taken.
bool Compiler::mark_lent(const Context& context) {
  const Schedule& schedule = context.schedule;
  const std::size_t first = context.strand.first_op, end = first + context.strand.op_count;
  // A wait does not say how long its message is, but what is copied from it does.
  const auto is_long = [&](const Op& op) {
    const Tables& tables = context.local.tables;
    return std::max(length_of(schedule.src(op), tables), length_of(schedule.dst(op), tables)) >=
           lent_from_bytes(true);
  };
  const Op* const ops = schedule.ops.data();
  if (std::none_of(ops + first, ops + end, is_long)) return false;
  const Lender lender(machine_, schedule, *context.rules.lender);
  const auto lending_of = [&](std::size_t op) -> Lending& {
    return steps_[places_[op - first]].lending;
  };
  bool has_waited = false;
  std::size_t waited = 0, loop_end = 0;
  for (std::size_t i = first; i < end; ++i) {
    const Op& op = ops[i];
    if (i == loop_end || op.kind == OpKind::kRepeat || is_incoming(op.kind)) has_waited = false;
    if (op.kind == OpKind::kRepeat) loop_end = i + 1 + op.body;
    if (op.kind == OpKind::kRecv && op.dst_count == 1 && is_long(op)) {
      lending_of(i) = Lending::kLands;
    }
    if (op.kind == OpKind::kWait) {
      has_waited = true;
      waited = i;
      if (const auto copy = lender.landing(i)) lending_of(i) = lending_of(*copy) = Lending::kLands;
    }
    if ((op.kind == OpKind::kPut || op.kind == OpKind::kSend) && is_long(op)) {
      lending_of(i) = lender.of(i, i < loop_end, has_waited ? &waited : nullptr);
    }
  }
  return true;
}

}  // namespace carillon::sim
