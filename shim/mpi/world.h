// SPDX-License-Identifier: Apache-2.0
//
// Who runs carillon together. MPI_Init makes one world, of MPI_COMM_WORLD. In a program of sessions
// there is no such moment: there a communicator that is made of a group, or merged, or a part
// of one that was left, makes one, unless its processes have one in common already. A communicator
// is served by the latest world that has all its processes, and left to the host if there is none.
// Communicators of several jobs have worlds of their own (joined.h).
// (Where threads make worlds at once, the latest may be another one on another rank: then its
// processes agree to leave it.)
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "carillon/carillon.h"
#include "host.h"
#include "process.h"

namespace carillon::shim {

struct World {
  std::uint64_t id = 0;  // the later of two that have a process in common has the larger one
  crl_context_h context = nullptr;
  // Of each process that was started with this one (Process::world_group): how often it had left
  // all its worlds before it entered this one. Below 0: it has not, or has left this one since.
  std::vector<std::int32_t> lives;
  bool checked = false;           // their calls are compared (check.h)
  bool reduces = false;           // all can let the host combine elements (reduces_locally)
  std::uint16_t grid_orders = 0;  // that all have (neighbours.h)
  bool joined = false;            // of several jobs; no `lives` then
  std::atomic<int> users = 0;     // communicators that it serves, and those that are marked
  std::atomic<World*> earlier = nullptr;
};

/// Those that this process is in, the last one first, and after them those of several jobs. One of
/// sessions goes when a later one has all that are left of it and it has no users; one of several
/// jobs, when it has none; and all when this process leaves.
extern constinit std::atomic<World*> g_worlds;

/// Who walks along g_worlds: what is there stays meanwhile. (Without sessions and threads nobody
/// else changes them then.)
extern constinit std::atomic<int> g_walkers;
class WorldsStay {
 public:
  WorldsStay()
      : needed_(process().threaded ||
                process().begun.load(std::memory_order_relaxed) != Begun::kByInit) {
    if (!needed_) return;
    g_walkers.fetch_add(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // partner: release_worlds
  }
  ~WorldsStay() {
    if (needed_) g_walkers.fetch_sub(1, std::memory_order_release);
  }
  WorldsStay(const WorldsStay&) = delete;
  WorldsStay& operator=(const WorldsStay&) = delete;

 private:
  bool needed_;
};

/// The processes of a communicator, as ranks in Process::world_group; MPI_UNDEFINED: not there.
/// Empty: the host does not say. Local.
std::vector<int> places_of(MPI_Comm comm, int size);
/// Whether it has processes that were not started with this one. Local.
bool has_strangers(MPI_Comm comm);

/// Null: none has all processes of the communicator, which is no intercommunicator. Else the caller
/// is a user of it. Local; whether there is one is the same on all of them.
World* use_world(MPI_Comm comm, int size);
/// Null: nothing.
void drop_world(World* world);
/// The same for who may come when the world has gone: false.
bool use_again(const World* world);
void drop_again(const World* world);

/// Why a process cannot, in words for the user.
inline constexpr char kNoSession[] = "the MPI refuses carillon a session of its own";

/// Collective over the communicator, in which nothing else happens meanwhile: its processes make a
/// world, or find that they are in one, or that they cannot be: false. `refused`: why this process
/// cannot, in words for the user. Ends the job with one clear line where a setting is wrong or a
/// rank has no interposer. `function`: of MPI, that the program is in.
bool join_world(MPI_Comm comm, const char* function, const std::string& refused);

/// The same of processes of several jobs, all of which come. The caller is a user of the world.
/// Null: they cannot have one.
World* join_jobs(MPI_Comm comm, const char* function, const std::string& refused);

/// At the end, when no team is left.
void leave_worlds();

/// Moves on what is in flight in all of them, but in one.
inline void progress_worlds(const World* but = nullptr) {
  const WorldsStay stay;
  // Partner: enter.
  for (const World* one = g_worlds.load(std::memory_order_acquire); one != nullptr;
       one = one->earlier.load(std::memory_order_acquire)) {
    if (one != but) (void)crl_context_progress(one->context);
  }
}

}  // namespace carillon::shim
