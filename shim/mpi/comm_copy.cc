// SPDX-License-Identifier: Apache-2.0
#include "comm_copy.h"

#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <utility>

#include "attributes.h"
#include "check.h"
#include "flight.h"
#include "process.h"
#include "thread_cache.h"

namespace carillon::shim {
namespace {

using Clock = std::chrono::steady_clock;

// Whether the host tries for a communicator of one rank again and again at once. (Open MPI does
// not, but holds a copy back while one of a communicator with a lower number is under way.)
#ifdef OPEN_MPI
constexpr bool kTriesAtOnce = false;
#else
constexpr bool kTriesAtOnce = true;
#endif

// Of a rank that has died its copies are under way for ever.
constexpr std::chrono::seconds kPatience{60};
// Of one look the last step may be what lets a copy get on that the first step has looked at.
constexpr int kLooks = 3;

constexpr std::size_t kDirect = 32;  // ranks that tell each other by messages of their own
// Nothing is in them.
constexpr std::array<std::byte, kDirect> kTold{};
std::array<std::byte, kDirect> g_heard{};

// Only counts: nobody reads anything else by them.
std::atomic<int> g_under_way = 0;
std::atomic<int> g_coming_to_an_end = 0;  // of these: all ranks have come

}  // namespace

// A rank that has begun tells all others itself: in a barrier they would depend on the progress of
// those between, and could know too late.
int CommCopy::begin_coming(MPI_Comm original) {
  static constexpr auto kOffsets = [] {
    std::array<int, kDirect> offsets{};
    for (std::size_t i = 0; i < kDirect; ++i) offsets[i] = static_cast<int>(i);
    return offsets;
  }();
  static constexpr auto kCounts = [] {
    std::array<int, kDirect> counts{};
    counts.fill(1);
    return counts;
  }();
  int size = 0;
  host().Comm_size(original, &size);
  if (static_cast<std::size_t>(size) > kDirect) return host().Ibarrier(original, &coming_);
  return host().Ialltoallv(kTold.data(), kCounts.data(), kOffsets.data(), g_host.byte,
                           g_heard.data(), kCounts.data(), kOffsets.data(), g_host.byte, original,
                           &coming_);
}

int CommCopy::begin_copying() {
  const WithoutAttributes guard;
  return host().Comm_idup(original_, &comm_, &copying_);
}

int CommCopy::begin(MPI_Comm original) {
  original_ = original;
  int status = kTriesAtOnce ? begin_coming(original) : host().Ibarrier(original, &coming_);
  if (status == MPI_SUCCESS && kTriesAtOnce) status = begin_copying();
  if (status != MPI_SUCCESS) return status;
  begun_ = under_way_ = true;
  g_under_way.fetch_add(1, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int CommCopy::test(int* there) {
  *there = there_ ? 1 : 0;
  if (there_) return MPI_SUCCESS;
  if (!all_have_come_) {
    int come = 0;
    int status = host().Test(&coming_, &come, MPI_STATUS_IGNORE);
    if (status == MPI_SUCCESS && come != 0 && !kTriesAtOnce) status = begin_copying();
    if (status != MPI_SUCCESS) end();
    if (status != MPI_SUCCESS || come == 0) return status;
    all_have_come_ = true;
    g_coming_to_an_end.fetch_add(1, std::memory_order_relaxed);
  }
  const int status = host().Test(&copying_, there, MPI_STATUS_IGNORE);
  there_ = status == MPI_SUCCESS && *there != 0;
  if (there_ || status != MPI_SUCCESS) end();
  return status;
}

// It is there, or never will be.
void CommCopy::end() {
  if (!std::exchange(under_way_, false)) return;
  if (all_have_come_) g_coming_to_an_end.fetch_sub(1, std::memory_order_relaxed);
  g_under_way.fetch_sub(1, std::memory_order_relaxed);
}

void CommCopy::free() {
  if (!there_) return;
  host().Comm_free(&comm_);
  *this = {};
}

bool copies_are_in_the_way() {
  return kTriesAtOnce && g_under_way.load(std::memory_order_relaxed) > 0;
}

void let_copies_pass() {
  if (t_cache.depth > 0 || is_sweeping()) return;
  const auto until = Clock::now() + kPatience;
  for (int looks = 0; copies_are_in_the_way() && looks < kLooks; ++looks) {
    advance_checks();
    advance_flights();
    if (g_coming_to_an_end.load(std::memory_order_relaxed) == 0) continue;
    looks = 0;
    if (Clock::now() > until) {
      return say(
          "a copy of a communicator has not come to its end in %d s: a rank has ended, or is "
          "without MPI all that time",
          static_cast<int>(kPatience.count()));
    }
    sched_yield();
  }
}

}  // namespace carillon::shim
