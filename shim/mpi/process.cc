// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "base/fabric_environment.h"
#include "check.h"
#include "communicator.h"
#include "datatype.h"
#include "device_runtime.h"
#include "errors.h"
#include "flight.h"
#include "fortran.h"
#include "host_progress.h"
#include "joined.h"
#include "left.h"
#include "neighbours.h"
#include "observe.h"
#include "record.h"
#include "reduction.h"
#include "settings.h"
#include "stats.h"
#include "windows.h"
#include "world.h"

namespace carillon::shim {

constinit Process g_process;

namespace {

// What begins and ends, and how. Nobody waits for other processes with the lock held.
struct Life {
  std::mutex mutex;
  int sessions = 0;
  std::atomic<bool> has_init = false;
  bool ending = false;   // one thread ends it; who would begin anything waits
  bool refused = false;  // by the host, which is asked no more

  [[nodiscard]] bool is_used() const { return has_init || sessions > 0; }
};
constinit Life g_life;

// While nothing is ending. Who ends it makes the host's progress, too.
std::unique_lock<std::mutex> lock_life() {
  std::unique_lock lock(g_life.mutex);
  while (g_life.ending) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
  return lock;
}

// body(), if is_last() says so, before anything else begins or ends.
template <typename IsLast, typename Body>
void end_if(IsLast is_last, Body body) {
  {
    const auto lock = lock_life();
    if (!is_last()) return;
    g_life.ending = true;
  }
  body();
  const std::lock_guard lock(g_life.mutex);
  g_life.ending = false;
}

// Of what MPI_Init or a session has started. Local, but for recording and checking.
void end_process(Use last);

pid_t g_registered_by = 0;

void end_at_exit() {
  if (getpid() != g_registered_by) return;  // a copy of it by fork has no MPI
  end_if([] { return !g_life.is_used() && process().begun == Begun::kBySession; },
         [] { end_process(Use::kSession); });
}

// With the lock held.
bool is_over(Use dropped) {
  if (process().begun != Begun::kBySession) {
    return process().begun == Begun::kByInit && dropped == Use::kInit;
  }
  if (g_life.is_used()) return false;
  if (!is_observed_by(kChecking) && !has_recording()) return true;
  // The others may have sessions still, which they end in an order of their own.
  if (g_registered_by == getpid()) return false;
  g_registered_by = getpid();
  return std::atexit(end_at_exit) != 0;
}

int on_finalize(MPI_Comm /*comm*/, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  // MPICH may come here only when the last session goes, which may be carillon's, at its end.
  if (g_life.has_init) drop_use(Use::kInit);
  return MPI_SUCCESS;
}

// MPI_Finalize begins with the callbacks of MPI_COMM_SELF's attributes, the last one first: ours is
// set in MPI_Init, so it comes after those of the program's libraries.
bool watch_finalize() {
  int keyval = MPI_KEYVAL_INVALID;
  return host().Comm_create_keyval(copy_no_attribute<MPI_Comm>, on_finalize, &keyval, nullptr) ==
             MPI_SUCCESS &&
         host().Comm_set_attr(g_host.comm_self, keyval, nullptr) == MPI_SUCCESS &&
         host().Comm_free_keyval(&keyval) == MPI_SUCCESS;
}

bool make_self() {
  Process& state = process();
  if (state.begun == Begun::kBySession) return open_session();
  return host().Comm_dup(g_host.comm_self, &state.self) == MPI_SUCCESS &&
         host().Comm_group(g_host.comm_world, &state.world_group) == MPI_SUCCESS;
}

void begin_by_init() {
  Process& state = process();
  const auto lock = lock_life();
  if (state.begun != Begun::kNot) return;
  int thread_level = MPI_THREAD_SINGLE;
  host().Query_thread(&thread_level);
  state.threaded = thread_level == MPI_THREAD_MULTIPLE;
  host().Comm_rank(g_host.comm_world, &state.world_rank);
  host().Comm_size(g_host.comm_world, &state.world_size);
  state.begun = Begun::kByInit;
}

void start_in(MPI_Comm comm, const char* function, const std::string& refused) {
  Process& state = process();
  const bool on = join_world(comm, function, refused);
  if (on) start_devices();
  // What MPI_Init makes where there are no sessions is served from then on, or never.
  const bool sessions = state.begun == Begun::kBySession || state.beside_sessions;
  if (!on && (comm != g_host.comm_world || sessions)) leave_for_good(comm);
  const std::lock_guard lock(g_life.mutex);
  if (on) {
    state.phase.store(Phase::kRunning, std::memory_order_release);
  } else if (state.phase != Phase::kRunning) {  // of another thread's group
    state.phase.store(Phase::kOff, std::memory_order_release);
  }
}

// With the lock held.
bool make_objects() {
  Process& state = process();
  if (state.has_objects) return true;
  if (state.begun == Begun::kNot) return false;
  state.has_objects =
      make_self() && host().Comm_set_errhandler(state.self, MPI_ERRORS_RETURN) == MPI_SUCCESS &&
      host().Irecv(nullptr, 0, g_host.byte, 0, kNeverSentTag, state.self, &state.never_received) ==
          MPI_SUCCESS &&
      start_types() && find_orders_of_blocks() && start_communicators();
  return state.has_objects;
}

// With the lock held, where there are no objects yet.
bool make_objects_by_session() {
  Process& state = process();
  if (g_life.refused) return false;
  const Begun before = state.begun.exchange(Begun::kBySession);
  if (!state.threaded) state.threaded = true;
  if (make_objects()) {
    host().Group_rank(state.world_group, &state.world_rank);
    host().Group_size(state.world_group, &state.world_size);
    return true;
  }
  close_session();
  state.begun = before;
  g_life.refused = true;
  return false;
}

// Makes carillon live as long as the program has sessions, unless MPI_Init has begun. Local. False:
// the host refuses.
bool begin_by_session() {
  const auto lock = lock_life();
  const Process& state = process();
  return state.has_objects || state.begun == Begun::kByInit || make_objects_by_session();
}

// Those of another job do not come to the meeting, and see these as strangers, too.
void start_among_strangers(MPI_Comm comm, const char* function) {
  bool strange = false;
  {
    const InsideHost guard;
    strange = begin_by_session() && has_strangers(comm);
    if (strange) leave_for_good(comm);
  }
  if (!strange) start_group(comm, function);
}

// Of all its processes, whose users have said that all come here.
void start_jobs(MPI_Comm comm, const char* function) {
  const InsideHost guard;
  if (!process().joins || !has_strangers(comm)) return;
  const bool running = process().phase.load(std::memory_order_acquire) == Phase::kRunning;
  World* const world = join_jobs(comm, function, running ? "" : "carillon is off in a job");
  if (world != nullptr) mark_joined(comm, *world);
}

}  // namespace

bool begin_as_others() {
  const auto lock = lock_life();
  return process().has_objects || make_objects_by_session();
}

bool make_host_objects() {
  const auto lock = lock_life();
  return make_objects();
}

void add_use(Use use) {
  const auto lock = lock_life();
  if (use == Use::kInit) {
    g_life.has_init = true;
  } else {
    ++g_life.sessions;
    process().has_sessions = true;
  }
}

void drop_use(Use use) {
  const auto is_last = [use] {
    if (use == Use::kSession) {
      process().has_sessions = --g_life.sessions > 0;
    } else if (!g_life.has_init.exchange(false)) {
      return false;  // it was dropped before
    }
    if (!g_life.is_used()) {
      forget_who_is_left();
      forget_joined();
    }
    return is_over(use);
  };
  end_if(is_last, [use] { end_process(use); });
}

void after_finalize() {
  drop_use(Use::kInit);  // see on_finalize
  end_if([] { return !g_life.is_used() && process().begun == Begun::kNot; }, close_session);
}

void progress_host() {
  const InsideHost guard;
  int done = 0;
  host().Request_get_status(process().never_received, &done, MPI_STATUS_IGNORE);
}

void prepare_process() {
  if (read_settings().on) set_fabric_environment();
  hear_of_failed_teams();
  syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

void start_process() {
  static std::atomic<bool> started = false;
  if (started.exchange(true)) return;
  add_use(Use::kInit);
  const std::string refused = serve_fortran();
  const InsideHost guard;
  begin_by_init();
  start_in(g_host.comm_world, "MPI_Init", refused);
  if (!watch_finalize()) {
    host().Abort(g_host.comm_world, 1);
    _exit(1);
  }
}

void start_group(MPI_Comm comm, const char* function) {
  if (t_cache.depth > 0) return;
  // One process alone has nobody to share memory with; and MPICH 4.0 crashes as soon as it looks
  // for messages where there was no communicator of all processes yet.
  int size = 0;
  host().Comm_size(comm, &size);
  if (size < 2) return;
  std::string refused = serve_fortran();
  const InsideHost guard;
  if (!begin_by_session()) refused = kNoSession;
  start_in(comm, function, refused);
}

void start_merged(MPI_Comm comm) {
  if (t_cache.depth > 0) return;
  bool by_init = false;
  {
    const auto lock = lock_life();
    const Begun begun = process().begun;
    // By others' sessions this process may have begun, too (begin_as_others).
    if (begun == Begun::kNot && g_life.sessions == 0) return;
    by_init = begun == Begun::kByInit && !process().beside_sessions;
  }
  if (by_init) {
    start_jobs(comm, "MPI_Intercomm_merge");
  } else {
    start_among_strangers(comm, "MPI_Intercomm_merge");
  }
}

void start_part(MPI_Comm whole, MPI_Comm part, const char* function) {
  if (t_cache.depth > 0 || part == g_host.comm_null) return;
  {
    const InsideHost guard;
    mark_part(whole, part);
    if (!is_left_for_good(whole)) return;
  }
  start_among_strangers(part, function);
}

namespace {

void end_process(Use last) {
  Process& state = process();
  const bool by_session = state.begun == Begun::kBySession;
  if (state.phase == Phase::kRunning) {
    finish_checking();
    finish_flights();
  }
  const bool running = state.phase.exchange(Phase::kFinished) == Phase::kRunning;
  be_called_no_more();
  const InsideHost guard;
  if (running) {
    finish_recording();
    stop_communicators();
  }
  print_stats();
  if (state.has_objects) {
    leave_worlds();
    if (by_session) {  // another life may follow, with other objects of the same handles
      stop_types();
      stop_windows();
      forget_reductions();
      forget_error_codes();
    }
    host().Cancel(&state.never_received);
    host().Wait(&state.never_received, MPI_STATUS_IGNORE);
    host().Group_free(&state.world_group);
    host().Comm_free(&state.self);
    state.has_objects = false;
  }
  if (by_session && last == Use::kSession) close_session();  // else see drop_idle_session
  state.beside_sessions = false;
  state.begun = Begun::kNot;
}

}  // namespace

void say(const char* format, ...) {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "carillon: %s\n", line);
}

}  // namespace carillon::shim
