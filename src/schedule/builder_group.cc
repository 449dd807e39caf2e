// SPDX-License-Identifier: Apache-2.0
//
// The Builder's groups: whose ranks and memory the ops that follow mean, and how the strands of a
// group's part are kept between what comes before it and what comes after.
//
// A group's strands meet the rest by signals of the rank to itself. With two strands:
//
//   what comes before             wait fork
//   signal fork                   the second strand
//   the first strand              wait join
//   signal join                   what comes after
//
// The fork is put in front of the part when its second strand begins: most parts have only one.
#include <utility>

#include "schedule/builder.h"

namespace carillon {

Call Builder::enter(const Call& call, const Members& members, const Buffer& input,
                    const Buffer& output) {
  if (in_loop_) fail("a group inside a loop");
  Scope scope{.members = members, .input = input, .output = output};
  if (members.size() == 0) fail("a group of no ranks");
  Call own = call;
  own.shared.ranks = members.size();
  if (call_.limits.domains) {
    std::vector<std::int32_t> domains;
    domains.reserve(static_cast<std::size_t>(members.size()));
    for (Rank place = 0; place < members.size(); ++place) {
      if (!is_member(members[place])) continue;
      domains.push_back(call_.limits.domains->node_of(team_rank(members[place])));
    }
    own.limits.domains = std::make_shared<const Nodes>(domains);
  }
  scope.reaches_all = whole_node(members);
  own.local = {};
  // Members of several blocks: only an allgather is made in place on them.
  const std::int64_t shift = own.weights.empty()
                                 ? in_place_shift(own.shared, own.rank)
                                 : own.blocks_before(own.rank) * own.shared.block_bytes();
  own.local.in_place = in_place_allowed(own.shared, own.rank) &&
                       real(placed(input, {})) == real(placed(output, {shift}));
  scope.own = std::make_shared<const Call>(own);
  begin(std::move(scope));
  return own;
}

void Builder::begin(Scope scope) {
  scope.begin = scope.part = schedule_.ops.size();
  scope.forks = 0;
  scope.fork_number = channel(true, Channel::kPair, call_.rank).next;
  scopes_.push_back(std::move(scope));
}

void Builder::leave() {
  if (scopes_.size() == 1) return fail("no group to leave");
  const std::int32_t joins = scopes_.back().forks;
  scopes_.pop_back();
  ChannelState& state = channel(false, Channel::kPair, call_.rank);
  for (std::int32_t i = 0; i < joins; ++i) {
    Op& op = add(OpKind::kWait, {}, {});
    op.message = {Channel::kPair, call_.rank, state.next++, 0};
  }
}

// Ends the current strand of the group's part and begins another. Signals of a rank to itself are
// numbered by where they stand, so that those behind the new fork move up by one.
void Builder::fork() {
  forked_ = true;
  Scope& scope = scopes_.back();
  const std::int32_t number = scope.fork_number + scope.forks;
  const std::size_t at = scope.begin + static_cast<std::size_t>(scope.forks++);
  Op signal{.kind = OpKind::kSignal, .first_buffer = schedule_.ops[at].first_buffer};
  signal.message = {Channel::kPair, call_.rank, number, 0};
  schedule_.ops.insert(schedule_.ops.begin() + static_cast<std::ptrdiff_t>(at), signal);
  for (std::size_t i = at + 1; i < schedule_.ops.size(); ++i) {
    Op& op = schedule_.ops[i];
    const bool to_itself = (op.kind == OpKind::kSignal || op.kind == OpKind::kWait) &&
                           op.message.channel == Channel::kPair && op.message.peer == call_.rank;
    if (to_itself && op.message.index >= number) ++op.message.index;
  }
  for (Phase& phase : schedule_.phases) {
    if (phase.first_op > at) ++phase.first_op;
  }
  bool found = false;
  for (auto strand = schedule_.strands.rbegin(); strand != schedule_.strands.rend(); ++strand) {
    if (strand->first_op > at) {
      ++strand->first_op;
    } else if (!found) {
      ++strand->op_count;
      found = true;
    }
  }
  ChannelState& signals = channel(true, Channel::kPair, call_.rank);
  ++signals.next;
  Op& join = add(OpKind::kSignal, {}, {});
  join.message = {Channel::kPair, call_.rank, signals.next++, 0};
  begin_strand();
  ++channel(false, Channel::kPair, call_.rank).next;
  Op& wait = add(OpKind::kWait, {}, {});
  wait.message = {Channel::kPair, call_.rank, number, 0};
  scope.part = schedule_.ops.size();
}

Builder::Near Builder::near() const {
  const Limits& limits = call_.limits;
  Near near;
  for (Rank rank = 0; rank < here().shared.ranks; ++rank) {
    if (limits.share_domain(team_rank(rank), call_.rank)) near.ranks.push_back(rank);
  }
  const Rank whole = limits.domain_size(call_.rank, call_.shared.ranks);
  if (call_.params.two_sided || whole <= 2 || std::cmp_less(near.ranks.size(), whole)) return near;
  const bool is_node = whole == limits.node_size(call_.rank, call_.shared.ranks);
  near.channel = is_node ? Channel::kAll : Channel::kDomain;
  return near;
}

void Builder::put_domain(const BufferList& src) {
  const Near others = near();
  if (others.channel != Channel::kPair) return post(OpKind::kPut, others.channel, -1, src);
  for (const Rank peer : others.ranks) {
    if (peer != here().rank) put(peer, src);
  }
}

Message Builder::wait_domain(Rank peer, std::int64_t bytes) {
  const Channel channel = near().channel;
  if (channel == Channel::kPair) return wait(peer, bytes);
  return expect(OpKind::kWait, channel, peer, {});
}

void Builder::enter_staged() {
  if (in_loop_) fail("a group inside a loop");
  Scope scope = scopes_.back();
  scope.members = Members::all(scope.members.size());
  const Call& call = here();
  const std::int64_t bytes = input_bytes(call.shared, call.local, call.rank);
  const Range stage = allocate_scratch(bytes);
  copy(scratch(stage), input({0, bytes}));
  scope.input = scratch({stage.offset});
  begin(std::move(scope));
}

}  // namespace carillon
