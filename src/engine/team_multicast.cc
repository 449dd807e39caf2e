// SPDX-License-Identifier: Apache-2.0
//
// A team's multicast: the groups are set up while the team is made, where they were asked for, or
// else by the first calls that gain by them, in which all members are.
#include <algorithm>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "engine/run.h"
#include "engine/team.h"
#include "engine/wake.h"

namespace carillon {
namespace {

// What a team's calls have moved that would have been multicast, before it joins its groups: that
// takes some tens of milliseconds, and up to MulticastWish::patience where it turns out to be in
// vain; the trial that follows moves a tenth as much.
constexpr std::int64_t kJoinFromBytes = std::int64_t{4} << 20;

}  // namespace

MulticastOffer Team::offer_multicast() {
  const MulticastWish& wish = engine_.multicast_wish();
  MulticastOffer mine{.kind = wish.kind, .pays = static_cast<std::uint16_t>(wish.pays)};
  if (wish.later && !joining_) {
    mine.later = 1;
    return mine;
  }
  if (mine.kind == MulticastWish::kOff || !area_) return {};
  engine_.reap_teams();
  reception_ = engine_.control_memory().allocate(
      reception_bytes(), Reception::head_bytes(static_cast<std::size_t>(size())));
  if (!reception_) return {};
  mine.reception_offset = *reception_;
  return mine;
}

// Not if a member does not want it, or has seen it fail.
bool Team::begin_multicast(const crl_oob_t& oob, std::span<const MulticastOffer> offers) {
  const MulticastOffer& first = offers.front();
  const auto is_alike = [&](const MulticastOffer& offer) {
    return offer.kind == first.kind && offer.later == first.later;
  };
  if (!links_ || first.kind == MulticastWish::kOff ||
      !std::all_of(offers.begin(), offers.end(), is_alike)) {
    return false;
  }
  limits_.multicast_pays = std::all_of(offers.begin(), offers.end(),
                                       [](const MulticastOffer& offer) { return offer.pays != 0; });
  may_join_ = first.later != 0;
  if (may_join_) return false;
  multicast_ = std::make_unique<TeamMulticast>(oob, *limits_.nodes, engine_.multicast_wish(),
                                               engine_.settings().fault, reception_place(offers),
                                               limits_.crowded);
  return true;
}

ReceptionPlace Team::reception_place(std::span<const MulticastOffer> offers) const {
  const std::span<const Rank> on_node = limits_.nodes->members(limits_.nodes->node_of(rank()));
  const auto leader = static_cast<std::size_t>(on_node.front());
  const auto own = std::find(on_node.begin(), on_node.end(), rank());
  return {.memory = engine_.segment().base() + offers[leader].reception_offset,
          .members = static_cast<std::size_t>(size()),
          .processes = on_node.size(),
          .own = static_cast<std::size_t>(own - on_node.begin())};
}

// True when it is over: there are groups, or there will be none.
bool Team::set_up_multicast() {
  const auto over = multicast_->set_up();
  // By a collective that is under way, while an exchange of the setup's was begun.
  if (state() == State::kFailed) return false;
  if (!over.ok()) fail(over.status());
  if (!over.ok() || !over.value()) return false;
  if (multicast_->status().ok()) {
    limits_.multicast_bytes = multicast_->longest_message();
    engine_.start_multicasting(*multicast_);
  } else {
    engine_.stop_multicasting(multicast_->status(), rank() == 0);
    multicast_.reset();
  }
  return true;
}

bool Team::note_wish(std::int64_t bytes) {
  wished_bytes_ += bytes;
  return wished_bytes_ >= kJoinFromBytes;
}

void Team::begin_joining(const crl_oob_t& oob) {
  joining_ = std::make_unique<Joining>();
  joining_->oob = oob;
  Status status = joining_->offers.post(oob, offer_multicast());
  if (!status.ok() && state() != State::kFailed) fail(std::move(status));
}

// Nothing of the team's joining is on the stack here, so that it can go.
bool Team::progress_joining() {
  if (joining_ == nullptr) return false;
  const bool over = state() == State::kReady && move_joining_on();
  if (state() == State::kFailed) {
    multicast_.reset();
  } else if (over) {
    may_join_ = false;
  } else {
    return true;
  }
  joining_.reset();
  return false;
}

// True when it is over.
bool Team::move_joining_on() {
  if (multicast_) return set_up_multicast();
  const Code code = joining_->offers.test();
  if (code == Code::kInProgress) return false;
  if (code == Code::kOk) return !begin_multicast(joining_->oob, joining_->offers.all());
  if (state() != State::kFailed) {
    const Status why = joining_->offers.failure(code);
    fail(Status(code, "multicast: " + std::string(why.message())));
  }
  return false;
}

// Nothing is prepared for them any more: plans are made by the limits.
void Team::leave_multicast() {
  limits_.multicast_bytes = 0;
  multicast_.reset();
}

void Team::progress_multicast(bool arrived) {
  if (const Status status = multicast_->progress(arrived); !status.ok()) {
    const bool idle = in_flight_.empty();
    return fail(about_groups(
        status, idle ? std::nullopt : std::optional(in_flight_.front()->collective())));
  }
  tell_reception();
}

// What a group says of itself is about members, and not about a call.
Status Team::about_groups(const Status& status, std::optional<std::uint64_t> collective) const {
  return {
      status.code(),
      "rank " + std::to_string(rank()) + " of a team of " + std::to_string(size()) +
          (collective ? " (its collective " + std::to_string(*collective) + " on the team)" : "") +
          ": " + std::string(status.message())};
}

void Team::note_who_has_left(TeamMulticast& groups) {
  for (Rank i = 0; i < size(); ++i) {
    if (i == rank() || !groups.awaits(i)) continue;
    const int node_rank = endpoint_->peer(i).node_rank;
    Status reason;
    const Lifeline::State life = node_rank >= 0
                                     ? Lifeline::State::kUnknown
                                     : engine_.look_at(links_->pair(i)->place().process, &reason);
    const bool ended = node_rank >= 0
                           ? engine_.segment().left(node_rank) || engine_.segment().died(node_rank)
                           : life == Lifeline::State::kLeft || life == Lifeline::State::kDead;
    if (ended) groups.member_left(i);
  }
}

void Team::tell_reception() {
  if (multicast_->take_news()) wake_readers(*this, shm::Pool::kToAll);
}

}  // namespace carillon
