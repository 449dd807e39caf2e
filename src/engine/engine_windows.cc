// SPDX-License-Identifier: Apache-2.0
//
// How the node's processes come to read memory in place that is not carillon's but that all of them
// have mapped, and what becomes of it. The host that gave it goes on as if nothing was.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/team.h"
#include "team/bootstrap.h"

namespace carillon {
namespace {

// What the members of a window tell each other. Plain data: it travels as bytes.
struct WindowHello {
  std::uint64_t segment = 0;  // 0: none, or no such window
  std::uint64_t sizes = 0;    // of the parts, as one number
  std::int32_t node_rank = -1;
  std::uint32_t first_key = 0;  // of the node's first process
  std::uint32_t in_a_row = 0;   // each part begins where the one before ends
};

struct WindowOutcome {
  std::int32_t understood = 0;
};

std::uint64_t number_of(std::span<const WindowPart> parts) {
  std::uint64_t number = parts.size();
  for (const WindowPart& part : parts) number = (number ^ part.bytes) * 0x9E3779B97F4A7C15ULL;
  return number;
}

// All parts as one, if they are in a row.
std::optional<WindowPart> in_one_piece(std::span<const WindowPart> parts) {
  WindowPart all;
  for (const WindowPart& part : parts) {
    if (part.bytes == 0) continue;
    if (all.bytes == 0) all.base = part.base;
    if (part.base != all.base + all.bytes) return std::nullopt;
    all.bytes += part.bytes;
  }
  return all;
}

bool are_small(std::span<const WindowPart> parts) {
  std::uint64_t sum = 0;
  return std::all_of(parts.begin(), parts.end(), [&](const WindowPart& part) {
    if (part.bytes > Windows::kMaxPartBytes) return false;
    sum += part.bytes;
    return sum <= Windows::kMaxPartBytes;
  });
}

// The node's processes, all of them, and they speak of the same: equal on all members.
bool suits(std::span<const WindowHello> all, int ranks) {
  return all.size() == static_cast<std::size_t>(ranks) &&
         std::all_of(all.begin(), all.end(), [&](const WindowHello& one) {
           return one.segment != 0 && one.segment == all.front().segment &&
                  one.sizes == all.front().sizes;
         });
}

std::uint32_t key_of(std::span<const WindowHello> all) {
  const auto first = std::find_if(all.begin(), all.end(),
                                  [](const WindowHello& one) { return one.node_rank == 0; });
  return first == all.end() ? 0 : first->first_key;
}

}  // namespace

// Whoever is late may wait for a collective of this process first.
template <typename T>
Result<std::vector<T>> Engine::tell_all(const crl_oob_t& oob, const T& mine) {
  auto gather = std::make_unique<Gather<T>>();
  if (Status status = gather->post(oob, mine); !status.ok()) return status;
  const std::chrono::milliseconds between_looks(settings_.dead_peer_ms / 4);
  auto next_look = std::chrono::steady_clock::now() + between_looks;
  for (Code code = gather->test(); code != Code::kOk; code = gather->test()) {
    if (code != Code::kInProgress) return gather->failure(code);
    {
      const Lock lock(*this);
      progress_and_watch();
    }
    if (idle_ != nullptr) idle_(idle_arg_);
    if (joined() && std::chrono::steady_clock::now() > next_look) {
      if (Status death = find_death_on_node("a window"); !death.ok()) {
        (void)gather.release();  // not done: left alone for ever
        return death;
      }
      next_look = std::chrono::steady_clock::now() + between_looks;
    }
    sched_yield();
  }
  const auto all = gather->all();
  return std::vector<T>(all.begin(), all.end());
}

// Nobody may be told of bytes before all understand that: hence two exchanges.
Result<SharedWindow> Engine::share_window(const crl_oob_t& oob, std::span<const WindowPart> parts) {
  const Status unsupported(Code::kUnsupported,
                           "a window is shared by all processes of a node, and by these alone");
  if (oob.size < 2) return unsupported;
  SharedWindow window{.stands = std::make_shared<std::atomic<bool>>(true)};
  WindowHello mine{.sizes = number_of(parts), .node_rank = node_rank_};
  std::optional<WindowPart> one;
  if (joined() && are_small(parts)) {
    mine.segment = segment_->id();
    one = in_one_piece(parts);
  }
  mine.in_a_row = one ? 1 : 0;
  if (node_rank_ == 0) {
    const Lock lock(*this);
    mine.first_key = windows_.reserve_keys(static_cast<std::uint32_t>(parts.size()));
  }
  auto hellos = tell_all(oob, mine);
  if (!hellos.ok()) return hellos.status();
  const std::span<const WindowHello> all = hellos.value();
  window.first_key = key_of(all);
  if (window.first_key == 0 || !suits(all, joined() ? segment_->ranks() : 0)) {
    return unsupported;
  }
  const bool in_a_row =
      std::all_of(all.begin(), all.end(), [](const auto& each) { return each.in_a_row != 0; });
  const std::span<const WindowPart> known = in_a_row ? std::span(&*one, 1) : parts;
  window.parts = static_cast<std::uint32_t>(known.size());
  WindowOutcome outcome;
  try {
    const Lock lock(*this);
    windows_.add(window, known);
    outcome.understood = 1;
  } catch (const std::bad_alloc&) {  // said to all, below
  }
  auto outcomes = tell_all(oob, outcome);
  const bool understood =
      outcomes.ok() && std::all_of(outcomes.value().begin(), outcomes.value().end(),
                                   [](const WindowOutcome& each) { return each.understood != 0; });
  const Lock lock(*this);
  if (understood) {
    windows_.open(window);
    return window;
  }
  windows_.remove(window);
  return outcomes.ok() ? Status(Code::kNoMemory, "no memory for a window at some process")
                       : outcomes.status();
}

Status Engine::close_window(const SharedWindow& window) {
  for (std::uint32_t i = 0; i < window.parts; ++i) {
    const WindowPart part = windows_.part(window.first_key + i);
    if (Status status = refuse_if_used({part.base, part.bytes}); !status.ok()) return status;
  }
  window.stands->store(false, std::memory_order_release);  // partner: Windows::reference_to
  return {};
}

}  // namespace carillon
