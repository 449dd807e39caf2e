// SPDX-License-Identifier: Apache-2.0
//
// From a communicator of the host to carillon's team, made in its first collective.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bootstrap.h"
#include "call.h"
#include "last_calls.h"
#include "neighbours.h"
#include "reduction.h"
#include "thread_cache.h"

namespace carillon::shim {

/// Whether messages may have arrived that the host has not yet looked at (probe.cc).
extern constinit std::atomic<bool> g_collective_since_probe;

struct World;

struct Communicator {
  MPI_Comm handle{};
  int rank = 0, size = 0;
  crl_team_h team = nullptr;  // null: left to the host
  Reason reason = Reason::kNone;
  crl_status_t broken = CRL_OK;  // the team could not be made, and not all members know
  static constexpr int kTeamNotKnown = -1, kNoTeam = -2;
  int recorded_team = kTeamNotKnown;  // its number among those of the recording
  int tallied_as = -1;                // its number in tally.cc, with its lock
  World* world = nullptr;         // its team's, which it uses; of a sibling, before there is one
  bool host_reduces = true;       // for carillon, if it alone knows how (World::reduces)
  std::uint16_t grid_orders = 0;  // all its ranks' (World::grid_orders)
  Bootstrap bootstrap;
  std::atomic<bool> agreeing = false;        // the team is in the making, and already used
  int starting = 0;                          // calls that start one then (early.h), with its lock
  std::atomic<int> in_flight = 0;            // collectives that need this, though it be freed
  std::size_t place = 0;                     // in the list of all
  const Communicator* sibling_of = nullptr;  // it is one (make_sibling), while that one is there
  HostReduction host_reduction;              // of one call at a time
  std::vector<std::int64_t> tables;          // of byte counts and offsets, for one call at a time
  LastCalls last_calls;
  std::unique_ptr<const Neighbours> neighbours;   // once it has had a neighbourhood collective
  std::atomic<std::uint64_t> taken[kCalls] = {};  // one writer at a time

  void count(std::size_t call) {
    auto& counter = taken[call];
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!g_collective_since_probe.load(std::memory_order_relaxed)) [[unlikely]] {
      g_collective_since_probe.store(true, std::memory_order_relaxed);
    }
  }
  /// What had begun is left to the host after all.
  void uncount(std::size_t call) { taken[call].fetch_sub(1, std::memory_order_relaxed); }
  /// Where the host does what is left to it. What it alone can do it does on the original on all
  /// ranks, also while some do not know yet whether the team is served.
  [[nodiscard]] MPI_Comm for_host(MPI_Comm asked, Reason left) const {
    return bootstrap.own.begun() && left == Reason::kNotServed ? bootstrap.comm_for_program()
                                                               : asked;
  }
};

enum class MayWait : bool { kNo, kYes };
Communicator& find_communicator_slow(MPI_Comm comm, MayWait may_wait);

/// Never fails: a communicator that carillon does not serve says why. One whose team is in the
/// making is returned only to those who may not wait for that.
inline Communicator& find_communicator(MPI_Comm comm, MayWait may_wait = MayWait::kYes) {
  const ThreadCache::Comm& last = t_cache.last;
  if (last.handle == comm && last.generation == g_communicators.now()) [[likely]] {
    return *last.communicator;
  }
  return find_communicator_slow(comm, may_wait);
}

/// Another team of the same ranks, for what they start in no common order with the communicator's
/// other collectives. Collective; waits for the others. Never fails, as above. `drop_sibling`:
/// local; the team stays until nothing is in flight.
Communicator& make_sibling(Communicator& communicator);
void drop_sibling(const Communicator& sibling);

/// While the host frees a communicator, and calls back for its attributes: collectives on it are
/// the host's. Carillon's own attribute has gone before all others, and another one would stay
/// behind with a handle that the host gives to the next communicator.
class BeingFreed {
 public:
  explicit BeingFreed(MPI_Comm comm);
  ~BeingFreed();
  BeingFreed(const BeingFreed&) = delete;
  BeingFreed& operator=(const BeingFreed&) = delete;
  /// What the host has said of the handle, and its error handler has heard.
  [[nodiscard]] int status() const { return status_; }
  /// The host has not freed it, because an attribute's function would not have it: so it stays
  /// what it was.
  void refuse() const;
  /// By this thread.
  static bool is_any(MPI_Comm comm);

 private:
  MPI_Comm comm_;
  int status_ = MPI_SUCCESS;
};

/// Of communicators that the program has freed, where nothing is in flight any more.
void destroy_freed_teams();

/// Before the first context is made, and before the contexts go.
[[nodiscard]] bool start_communicators();
void stop_communicators();

/// How many calls of a collective were taken, over all communicators that ever were.
std::uint64_t taken_calls(std::size_t call);

}  // namespace carillon::shim
