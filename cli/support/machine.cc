// SPDX-License-Identifier: Apache-2.0
#include "support/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/cores.h"
#include "support/median.h"

namespace carillon::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSamples = 15;  // of each figure; their median counts
constexpr std::size_t kCopyBytes = 1 << 20;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct alignas(128) Line {
  std::atomic<std::uint64_t> value{0};
};

// Spins until the line holds at least `value`; acquire: partner of the other side's release.
void wait_for(const Line& line, std::uint64_t value) {
  while (line.value.load(std::memory_order_acquire) < value) {
  }
}

// Two threads, each on a core, in step: `here` runs on this one after `there` ran on the other.
template <typename There, typename Here>
void in_turns(int rounds, There there, Here here) {
  const std::vector<int> cores = allowed_cores();
  Line to_there, to_here;
  std::thread other([&] {
    pin_to_core(cores[1]);
    for (int round = 1; round <= rounds; ++round) {
      wait_for(to_there, static_cast<std::uint64_t>(round));
      there();
      to_here.value.store(static_cast<std::uint64_t>(round), std::memory_order_release);
    }
  });
  std::thread one([&] {
    pin_to_core(cores[0]);
    for (int round = 1; round <= rounds; ++round) {
      to_there.value.store(static_cast<std::uint64_t>(round), std::memory_order_release);
      wait_for(to_here, static_cast<std::uint64_t>(round));
      here(round);
    }
  });
  other.join();
  one.join();
}

double measure_cache_line_ns() {
  constexpr int kRounds = 2000;
  std::vector<double> samples;
  Clock::time_point start;
  in_turns(
      kRounds * (kSamples + 1), [] {},
      [&](int round) {
        if (round % kRounds != 0) return;
        if (round > kRounds) samples.push_back(seconds_since(start) * 1e9 / kRounds / 2);
        start = Clock::now();
      });
  return median(std::move(samples));
}

double measure_copy() {
  std::vector<char> from(kCopyBytes, 1), to(kCopyBytes, 2);
  std::vector<double> samples;
  for (int sample = 0; sample < kSamples; ++sample) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < 8; ++i) {
      std::memcpy(to.data(), from.data(), kCopyBytes);
      asm volatile("" : : "r"(to.data()) : "memory");  // the copy is wanted
    }
    samples.push_back(8 * kCopyBytes / seconds_since(start) / 1e9);
  }
  return median(std::move(samples));
}

double measure_load() {
  std::vector<char> from(kCopyBytes, 1), to(kCopyBytes, 2);
  std::vector<double> samples;
  char value = 0;
  in_turns(
      kSamples, [&] { std::memset(from.data(), ++value, kCopyBytes); },
      [&](int) {
        const Clock::time_point start = Clock::now();
        std::memcpy(to.data(), from.data(), kCopyBytes);
        asm volatile("" : : "r"(to.data()) : "memory");
        samples.push_back(kCopyBytes / seconds_since(start) / 1e9);
      });
  return median(std::move(samples));
}

}  // namespace

int usable_cores() { return std::max<int>(1, static_cast<int>(allowed_cores().size())); }

Floor measure_floor() {
  Floor floor{.cores = usable_cores()};
  floor.copy_gb_per_s = measure_copy();
  if (floor.cores > 1) {
    floor.cache_line_ns = measure_cache_line_ns();
    floor.load_gb_per_s = measure_load();
  }
  return floor;
}

Json to_json(const Floor& floor) {
  Json json;
  json["cores"] = floor.cores;
  json["cache_line_ns"] = nullptr;
  if (floor.cache_line_ns) json["cache_line_ns"] = *floor.cache_line_ns;
  json["copy_gb_per_s"] = floor.copy_gb_per_s;
  json["load_gb_per_s"] = nullptr;
  if (floor.load_gb_per_s) json["load_gb_per_s"] = *floor.load_gb_per_s;
  return json;
}

std::string to_text(const Floor& floor) {
  std::string text = fmt::format("{} core{}", floor.cores, floor.cores == 1 ? "" : "s");
  if (floor.cache_line_ns) {
    text += fmt::format(", a cache line from core to core {:.0f} ns", *floor.cache_line_ns);
  }
  text += fmt::format(", copying 1 MiB {:.1f} GB/s ({:.1f} us)", floor.copy_gb_per_s,
                      kCopyBytes / floor.copy_gb_per_s / 1e3);
  if (floor.load_gb_per_s) {
    text += fmt::format(", from another core's cache {:.1f} GB/s ({:.1f} us)", *floor.load_gb_per_s,
                        kCopyBytes / *floor.load_gb_per_s / 1e3);
  }
  return text;
}

}  // namespace carillon::cli
