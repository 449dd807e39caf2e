// SPDX-License-Identifier: Apache-2.0
//
// The processes of a communicator, in a function of MPI that all of them have called, ask each
// other whether they can have a world (world.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host.h"
#include "settings.h"

namespace carillon::shim {

struct World;

// A process is in so many worlds at most: each has memory of its own.
inline constexpr std::size_t kMostWorlds = 8;
inline constexpr std::uint16_t kFull = 2;                       // Hello::closed: because of that
inline constexpr std::uint16_t kRecords = 1, kHasRecorded = 2;  // Hello::records

// What every process tells every other. One without the interposer tells nothing.
struct Hello {
  static constexpr std::uint32_t kMagic = 0x6c6c7263;  // "crll"
  std::uint32_t magic = kMagic;
  std::uint16_t on = 1;
  std::uint16_t started = 0;  // of the second round: carillon's context is there
  std::uint16_t records = 0;  // CARILLON_RECORD is set, and whether this process has a recording
  std::uint16_t checks = 0;   // CARILLON_CHECK is
  std::uint16_t reduces = 0;  // reduces_locally
  std::uint16_t grid_orders = 0;  // neighbours.h
  std::uint16_t refused = 0;      // this process cannot
  std::uint16_t by_session = 0;   // it has begun so (begin_by_session)
  std::uint16_t closed = 0;       // it makes no more worlds, or none with these
  std::uint16_t joins = 0;        // CARILLON_MERGED is on
  std::int32_t left = 0;          // how often it has left all worlds
  std::uint32_t random = 0;
  std::uint32_t clock = 0;                             // of its latest world
  std::array<std::uint64_t, kMostWorlds> worlds = {};  // ids of those that have all of these
};

// The processes of a communicator, in a function of MPI.
struct Meeting {
  MPI_Comm comm{};
  const char* function = "";
  int rank = 0, size = 0;
  std::vector<int> places;
  bool joins = false;     // jobs
  World* made = nullptr;  // by it
  Settings settings;
};

/// Gathers a Hello from every rank. Bounded: a rank without an interposer never answers, and then
/// the job ends with a line that says so.
std::vector<Hello> exchange(const Meeting& meeting, const Hello& mine);

[[noreturn]] void end_job_over_settings(const Meeting& meeting, const char* what);

/// Whether it is that of MPI_Init.
bool is_of_init(const Meeting& meeting);
/// What is left to the host where a meeting comes to nothing. In a program of sessions others, and
/// some of these without the others, may start carillon all the same.
std::string scope_of(const Meeting& meeting);

/// The first rank whose Hello fits, or -1.
template <typename Predicate>
int first_rank(const std::vector<Hello>& all, Predicate predicate) {
  const auto found = std::find_if(all.begin(), all.end(), predicate);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

}  // namespace carillon::shim
