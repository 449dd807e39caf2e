// SPDX-License-Identifier: Apache-2.0
//
// The calendar gives back what it was given: window by window, each window's events by their keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "sim/calendar.h"

namespace carillon::sim {
namespace {

struct Event {
  std::int64_t time = 0;
  std::uint32_t host = 0;
  std::uint32_t name = 0;
};

constexpr std::int32_t kShift = 10;  // of the windows

// So many events at random, a part of them pushed while the windows before theirs are taken.
void check(std::size_t events, std::uint32_t max_host, std::int64_t windows) {
  std::mt19937_64 random(events + max_host);
  Calendar<Event> calendar(kShift);
  std::vector<Event> later, taken;
  for (std::uint32_t name = 0; name < events; ++name) {
    const Event event{static_cast<std::int64_t>(random() % (windows << kShift)),
                      static_cast<std::uint32_t>(random() % (std::uint64_t{max_host} + 1)), name};
    if (name % 3 == 0 && event.time >> kShift > 0) {
      later.push_back(event);
    } else {
      calendar.push(event);
    }
  }
  HugeVector<Event> part;
  std::int64_t window_end = 0;
  const auto host = [](const Event& event) { return event.host; };
  while (calendar.next_window()) {
    ASSERT_GT(calendar.window_end(), window_end);
    window_end = calendar.window_end();
    std::uint32_t last_host = 0;
    while (calendar.take(&part, max_host, host)) {
      ASSERT_FALSE(part.empty());
      for (const Event& event : part) {
        ASSERT_EQ((event.time >> kShift) + 1, window_end >> kShift);
        ASSERT_GE(event.host, last_host);
        last_host = event.host;
        taken.push_back(event);
      }
      for (; !later.empty() && later.back().time >= window_end; later.pop_back()) {
        calendar.push(later.back());
      }
    }
  }
  for (const Event& event : later) taken.push_back(event);  // too early for those
  ASSERT_EQ(taken.size(), events);
  std::sort(taken.begin(), taken.end(),
            [](const Event& a, const Event& b) { return a.name < b.name; });
  for (std::uint32_t name = 0; name < events; ++name) ASSERT_EQ(taken[name].name, name);
}

TEST(Calendar, GivesBackAll) {
  for (const std::uint32_t max_host : {0U, 1U, 63U, 64U, 5000U, (1U << 20) - 1, UINT32_MAX}) {
    for (const std::int64_t windows : {1, 3, 40, 100'000}) {
      check(3, max_host, windows);
      check(1000, max_host, windows);
      check(70'000, max_host, windows);
      if (HasFatalFailure()) FAIL() << max_host << " hosts, " << windows << " windows";
    }
  }
}

// As many as are cut into the most parts.
TEST(Calendar, OfOneLargeWindow) { check(1'500'000, (1U << 20) - 1, 1); }

}  // namespace
}  // namespace carillon::sim
