// SPDX-License-Identifier: Apache-2.0
//
// What the multicasts and aggregates of all teams need of the engine: progress, a place in what it
// sleeps on, and time before it leaves.
#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/team.h"

namespace carillon {
namespace {

constexpr auto kLeaveWithin = std::chrono::seconds(2);  // unless multicasts are owed
constexpr auto kBetweenRepairs = std::chrono::milliseconds(1);
// At who has ended: it is a system call. Where others want the core, a round takes what all of them
// do.
constexpr int kRoundsPerLook = 64;
constexpr auto kBetweenLooks = std::chrono::milliseconds(5);

}  // namespace

void Engine::stop_multicasting(const Status& why, bool tells) {
  multicast_.kind = MulticastWish::kOff;
  if (tells)
    log(multicast_.later ? LogLevel::kInfo : LogLevel::kWarning,
        "there is no multicast: " + why.to_string());
}

// Groups that cannot be slept on are looked after when a sleep ends by itself.
void Engine::start_multicasting(const TeamMulticast& groups) {
  multicasts_ = true;
  for (const int descriptor : groups.wait_descriptors()) wait_for_datagrams(descriptor);
}

void Engine::wait_for_datagrams(int descriptor) {
  if (!multicast_events_.valid()) multicast_events_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
  // It leaves the set when it is closed.
  if (epoll_ctl(multicast_events_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    unheard_datagrams_ = true;
  }
}

// One call of the system instead of two for each group.
bool Engine::datagrams_arrived() const {
  epoll_event event;
  return unheard_datagrams_ || epoll_wait(multicast_events_.get(), &event, 1, 0) != 0;
}

void Engine::stop_aggregating(const Status& why, bool tells) {
  switch_.path.clear();
  switch_.state = SwitchWish::State::kFailed;
  if (tells) log(LogLevel::kWarning, "the hosts do without a switch: " + why.to_string());
}

void Engine::start_aggregating(const TeamAggregation& group) {
  multicasts_ = true;
  if (group.wait_descriptor() >= 0) wait_for_datagrams(group.wait_descriptor());
}

template <typename Body>
void Engine::each_aggregation(Body body) {
  if (!multicasts_) return;
  for (Team* const team : teams_) {
    if (team->aggregation() != nullptr) body(*team->aggregation());
  }
  for (const std::unique_ptr<Team>& team : retired_) {
    if (team->aggregation() != nullptr) body(*team->aggregation());
  }
}

template <typename Body>
void Engine::each_multicast(Body body) {
  if (!multicasts_) return;
  for (Team* const team : teams_) {
    if (team->multicast() != nullptr) body(*team->multicast());
  }
  for (const std::unique_ptr<Team>& team : retired_) {
    if (team->multicast() != nullptr) body(*team->multicast());
  }
}

bool Engine::ready_to_wait() {
  bool ready = network_->ready_to_wait();
  each_multicast([&](TeamMulticast& groups) { ready = groups.ready_to_wait() && ready; });
  return ready;
}

int Engine::wait_us(int most_us) {
  // What is still due after progress has found no room at the network.
  constexpr std::int64_t kLeastUs = 50;
  multicast::Nanoseconds due = multicast::kNever;
  each_multicast([&](const TeamMulticast& groups) { due = std::min(due, groups.due()); });
  each_aggregation([&](const TeamAggregation& group) {
    const auto due_ns = group.due_ns();
    if (!due_ns) return;
    const std::int64_t left_us = (*due_ns - TeamAggregation::now_ns()) / 1000 + 1;
    most_us = static_cast<int>(std::clamp<std::int64_t>(left_us, kLeastUs, most_us));
  });
  if (due == multicast::kNever) return most_us;
  const multicast::Nanoseconds now = TeamMulticast::now();
  const std::uint64_t left_us = due <= now ? 0 : (due - now) / multicast::kMicrosecond + 1;
  return static_cast<int>(
      std::clamp<std::uint64_t>(left_us, kLeastUs, static_cast<std::uint64_t>(most_us)));
}

// Whether some member of a team may still lack what only this process can send again, or has to
// tell its source of: somebody who is late, for as long as it lives.
bool Engine::owes_multicasts() {
  if (lifeline_) progress_lifeline();
  bool owes = false;
  for (const std::unique_ptr<Team>& team : retired_) {
    TeamMulticast* const groups = team->multicast();
    if (groups == nullptr) continue;
    team->note_who_has_left(*groups);
    owes = owes || !groups->settled();
  }
  return owes;
}

// Nothing that is on its way, or waits to be, to a process that has died or left ever gets there.
void Engine::give_up_on_ended() {
  if (!lifeline_) return;
  progress_lifeline();
  for (const int process : network_->waited_for()) {
    Status reason;
    if (look_at(process, &reason) == Lifeline::State::kLeft) {
      network_->give_up_on(process, reason);
    }
  }
}

// Others may still wait for what is on its way, and write to memory of teams that they have not
// finished with.
void Engine::leave_network() {
  if (!network_) return;
  int rounds = 0;
  auto looked = std::chrono::steady_clock::now();
  const auto end = looked + kLeaveWithin;
  while (network_->progress().ok()) {
    reap_teams();
    const bool quiet = std::none_of(retired_.begin(), retired_.end(), [](const auto& team) {
      return team->spans_nodes() && team->state() == Team::State::kReady;
    });
    if (quiet && network_->idle()) return;
    const auto now = std::chrono::steady_clock::now();
    if (quiet && (++rounds % kRoundsPerLook == 0 || now > looked + kBetweenLooks)) {
      give_up_on_ended();
      looked = now;
    }
    if (now <= end) {
      sched_yield();
    } else if (owes_multicasts()) {
      std::this_thread::sleep_for(kBetweenRepairs);
    } else {
      return;
    }
  }
}

void Engine::progress_multicasts() {
  std::optional<bool> arrived;
  for (Team* const team : teams_) {
    if (team->multicast() != nullptr) {
      if (!arrived) arrived = datagrams_arrived();
      team->progress_multicast(*arrived);
    }
    team->progress_aggregation();
  }
  if (!retired_.empty()) reap_teams();
}

}  // namespace carillon
