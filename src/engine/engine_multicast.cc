// SPDX-License-Identifier: Apache-2.0
//
// What the multicasts of all teams need of the engine: progress, and a place in what it sleeps on.
#include <sys/epoll.h>

#include <algorithm>
#include <string>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/team.h"

namespace carillon {

void Engine::stop_multicasting(const Status& why, bool tells) {
  multicast_.kind = MulticastWish::kOff;
  if (tells)
    log(multicast_.later ? LogLevel::kInfo : LogLevel::kWarning,
        "there is no multicast: " + why.to_string());
}

// Groups that cannot be slept on are looked after when a sleep ends by itself.
void Engine::start_multicasting(const TeamMulticast& groups) {
  multicasts_ = true;
  if (!multicast_events_.valid()) multicast_events_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  for (const int descriptor : groups.wait_descriptors()) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
    // It leaves the set when it is closed.
    (void)epoll_ctl(multicast_events_.get(), EPOLL_CTL_ADD, descriptor, &event);
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
  multicast::Nanoseconds due = multicast::kNever;
  each_multicast([&](const TeamMulticast& groups) { due = std::min(due, groups.due()); });
  if (due == multicast::kNever) return most_us;
  const multicast::Nanoseconds now = TeamMulticast::now();
  // What is still due after progress has found no room at the network.
  constexpr std::uint64_t kLeastUs = 50;
  const std::uint64_t left_us = due <= now ? 0 : (due - now) / multicast::kMicrosecond + 1;
  return static_cast<int>(std::clamp(left_us, kLeastUs, static_cast<std::uint64_t>(most_us)));
}

void Engine::progress_multicasts() {
  for (Team* const team : teams_) team->progress_multicast();
  if (!retired_.empty()) reap_teams();
}

}  // namespace carillon
