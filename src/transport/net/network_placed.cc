// SPDX-License-Identifier: Apache-2.0
//
// In which order what is placed goes to a process: that in which it posted the receives, whichever
// team's they are.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "transport/net/network.h"

namespace carillon::net {
namespace {

// No more receives can be posted at once.
constexpr std::uint32_t kMostAhead = 1 << 20;

Status nonsense(int process) {
  return {Code::kMismatch, "network: process " + std::to_string(process) +
                               " of the job awaits what nobody sends to it"};
}

// No receive is of two turns.
bool overlap(const Turn& one, const Turn& other) {
  return other.first - one.first < one.count || one.first - other.first < other.count;
}

}  // namespace

// Who is told of turns need not hear of them in their order.
void Network::take_turn(int process, const Turn& turn) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  if (!other.trouble.ok()) return;
  const bool taken = std::any_of(other.turns.begin(), other.turns.end(),
                                 [&](const Turn& one) { return overlap(one, turn); });
  if (taken || turn.first - other.turn > kMostAhead) {
    give_up_on(process, nonsense(process));
    return;
  }
  other.turns.push_back(turn);
  if (turn.first == other.turn) turning_.push_back(process);
}

// The reader had its receives before it heard that the writer had given the team up.
void Network::answer_unsent(std::uint32_t id, unsigned line) {
  const auto message = std::find_if(unsent_.begin(), unsent_.end(), [&](const Unsent& one) {
    return one.id == id && one.line == line;
  });
  if (message == unsent_.end()) return;
  Ready ready;
  std::memcpy(&ready, message->ready, sizeof ready);
  if (!ready.answers(message->number)) return;
  const Unsent one = *message;
  unsent_.erase(message);
  if (ready.is_of(one.bytes, {})) {
    take_turn(one.process,
              {.first = ready.first, .line = line, .tag = one.tag, .count = ready.count});
  } else {
    give_up_on(one.process, nonsense(one.process));
  }
}

// True: nothing is to be sent there now.
bool Network::send_turns(int process) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  for (;;) {
    const auto next = std::find_if(other.turns.begin(), other.turns.end(),
                                   [&](const Turn& one) { return one.first == other.turn; });
    if (next == other.turns.end()) return true;
    Turn& turn = *next;
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
    turn = other.turns.back();
    other.turns.pop_back();
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
  for (Turn& turn : processes_[static_cast<std::size_t>(pair.place().process)].turns) {
    if (turn.pair == &pair) turn.pair = nullptr;
  }
}

}  // namespace carillon::net
