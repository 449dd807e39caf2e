// SPDX-License-Identifier: Apache-2.0
//
// The interposer's life in this process: inert until MPI_Init, then running (or off, on all ranks
// alike), and finished inside MPI_Finalize. Where a session (session.cc) comes first, from the
// first communicator that is made of a group to the end of the last session, or of MPI_Init's part
// if that comes later; that may happen several times.
#pragma once

#include <atomic>

#include "call.h"
#include "carillon/carillon.h"
#include "host.h"

namespace carillon::shim {

/// On Process::self: of the receive that never completes, of the threads' messages to themselves,
/// and of the handles of persistent collectives, from here on.
inline constexpr int kNeverSentTag = 0;
inline constexpr int kSelfMessageTags = 16000;  // MPI promises 32767 in all
inline constexpr int kFirstPersistentTag = kNeverSentTag + 1 + kSelfMessageTags;

enum class Phase { kNotStarted, kOff, kRunning, kFinished };

enum class Begun { kNot, kByInit, kBySession };

struct Process {
  std::atomic<Phase> phase = Phase::kNotStarted;
  std::atomic<Begun> begun = Begun::kNot;
  std::atomic<bool> has_sessions = false;  // of the program
  bool has_objects = false;                // the following three
  MPI_Comm self{};                         // ours alone; its errors only return
  MPI_Request never_received{};
  MPI_Group world_group{};  // of all that were started with this process
  int world_rank = 0, world_size = 0;
  bool threaded = false;  // MPI_THREAD_MULTIPLE; sessions may have any level
  bool joins = false;     // CARILLON_MERGED is on, on all ranks of MPI_COMM_WORLD
  // Of MPI_COMM_WORLD's processes some had begun so before MPI_Init: equal on all of them.
  bool beside_sessions = false;
};

extern constinit Process g_process;
inline Process& process() { return g_process; }

/// Whether calls matter to carillon: it runs, or may begin with the next communicator.
inline bool is_awake() {
  return process().phase.load(std::memory_order_relaxed) == Phase::kRunning ||
         process().has_sessions.load(std::memory_order_relaxed);
}

/// For a counter that only calls of MPI change: without threads no other does at the same time, and
/// the change need not be atomic. Partners of the release: whoever reads it to see that nothing
/// remains.
template <typename Integer>
inline void add_to(std::atomic<Integer>& counter, int change) {
  const auto added = static_cast<Integer>(change);
  if (process().threaded) {
    counter.fetch_add(added, std::memory_order_release);
  } else {
    counter.store(counter.load(std::memory_order_relaxed) + added, std::memory_order_release);
  }
}

/// Before MPI_Init: registers for the barriers that carillon sends to those it may have to wake.
/// The library does that, too, but once the host has started its threads the kernel takes 10 ms for
/// it.
void prepare_process();

/// After a successful MPI_Init or MPI_Init_thread. Collective over MPI_COMM_WORLD. Ends the job
/// with one clear line where a setting is wrong or a rank has no interposer.
void start_process();
/// The same of a communicator that was made of a group.
void start_group(MPI_Comm comm, const char* function);
/// The same of one that was merged, where sessions have started carillon, or may, or, where
/// CARILLON_MERGED is on, of processes of several jobs. Its processes are in one world before they
/// come to its first collective.
void start_merged(MPI_Comm comm);
/// The same of one that was made of another one, where that is left for good (left.h), or is of
/// several jobs.
void start_part(MPI_Comm whole, MPI_Comm part, const char* function);

/// MPI_Init has begun, and others have sessions: as by one of this process. Local. False: the host
/// refuses.
bool begin_as_others();
/// What carillon needs of the host, once. False: it refuses.
[[nodiscard]] bool make_host_objects();

/// Why MPI is there: sessions of the program, and MPI_Init. What MPI_Init has begun ends with that;
/// what a session has begun, with the last of all, or if calls are recorded or checked, when the
/// process exits: only then do all have time for each other. While it ends, who would begin waits.
enum class Use { kInit, kSession };
void add_use(Use use);
void drop_use(Use use);
/// After the host's MPI_Finalize, in which it cannot do without carillon's session.
void after_finalize();

/// By a session of carillon's own: process().self and world_group. Not for more than one thread.
[[nodiscard]] bool open_session();
void close_session();

/// Whether the host's MPI_Reduce_local can be called: Open MPI's crashes without MPI_Init, and
/// after MPI_Finalize.
inline bool reduces_locally() {
#ifdef OPEN_MPI
  return process().begun.load(std::memory_order_relaxed) == Begun::kByInit;
#else
  return true;
#endif
}

/// Where errors go that are no communicator's, or of one that is gone.
inline MPI_Comm comm_of_errors() {
  const Process& state = process();
  const bool by_session = state.begun.load(std::memory_order_relaxed) == Begun::kBySession;
  return by_session ? state.self : g_host.comm_world;
}

/// Gives the host progress, by looking at a receive that never completes. (A probe on a
/// communicator of one process makes none in MPICH; any number of threads may look at one request.)
void progress_host();

/// A line for the user on stderr; never stdout.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace carillon::shim
