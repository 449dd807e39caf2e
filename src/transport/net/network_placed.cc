// SPDX-License-Identifier: Apache-2.0
//
// In which order what is placed goes to a process: that in which it posted the receives, whichever
// team's they are.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "transport/net/network.h"

namespace carillon::net {
namespace {

// No more receives can be posted at once.
constexpr std::uint32_t kMostAhead = 1 << 20;

}  // namespace

// Who is told of turns need not hear of them in their order.
bool Network::take_turn(int process, std::uint32_t first, const Turn& turn) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  if (first - other.turn > kMostAhead || !other.turns.emplace(first, turn).second) return false;
  if (first == other.turn) turning_.push_back(process);
  return true;
}

// True: nothing is to be sent there now.
bool Network::send_turns(int process) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  for (;;) {
    const auto next = other.turns.find(other.turn);
    if (next == other.turns.end()) return true;
    Turn& turn = next->second;
    while (turn.sent < turn.count) {
      const auto posted = turn.pair != nullptr
                              ? turn.pair->send_part(turn.line, turn.sent, turn.tag)
                              : send_nothing(process, turn.tag);
      if (!posted.ok()) {
        give_up_on(process, posted.status());
        return true;
      }
      if (!posted.value()) return false;
      ++turn.sent;
    }
    other.turn += turn.count;
    other.turns.erase(next);
  }
}

Result<bool> Network::send_nothing(int process, std::uint64_t tag) {
  const auto buffer = buffers_.take(Pair::kHeadBytes);
  const auto peer = peer_of(process);
  if (!buffer.ok() || !peer.ok()) return buffer.ok() ? peer.status() : buffer.status();
  return wire_->send_placed(peer.value(), {}, tag, buffer.value()->operation);
}

std::vector<int> Network::lent_to(const std::function<bool(const Pair*)>& pairs) const {
  std::vector<int> processes = buffers_.lent_to(pairs);
  const std::vector<int> more = placed_buffers_.lent_to(pairs);
  processes.insert(processes.end(), more.begin(), more.end());
  return processes;
}

void Network::progress_placed() {
  std::erase_if(turning_, [&](int process) { return send_turns(process); });
  std::erase_if(placing_, [](Pair* pair) { return pair->settle_placed(); });
}

void Network::watch_placed(Pair& pair) {
  if (std::find(placing_.begin(), placing_.end(), &pair) == placing_.end()) {
    placing_.push_back(&pair);
  }
}

std::optional<std::uint32_t> Network::number_placed(int process, const Placed& placed) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  if (other.numbering != nullptr && other.numbering != &placed) return std::nullopt;
  return other.placed_posted;
}

void Network::count_placed(int process, const Placed& placed) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  ++other.placed_posted;
  other.numbering = placed.posted < placed.parts.count ? &placed : nullptr;
}

void Network::forget_placed(const Pair& pair) {
  std::erase(placing_, &pair);
  for (auto& [first, turn] : processes_[static_cast<std::size_t>(pair.place().process)].turns) {
    if (turn.pair == &pair) turn.pair = nullptr;
  }
}

}  // namespace carillon::net
