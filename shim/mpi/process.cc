// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string>

#include "base/fabric_environment.h"
#include "check.h"
#include "communicator.h"
#include "datatype.h"
#include "device_runtime.h"
#include "errors.h"
#include "flight.h"
#include "fortran.h"
#include "memory.h"
#include "neighbours.h"
#include "record.h"
#include "reduction.h"
#include "settings.h"
#include "stats.h"
#include "world.h"

namespace carillon::shim {

constinit Process g_process;

namespace {

std::mutex g_beginning;  // of what begins, and how; nobody waits for other processes with it

int on_finalize(MPI_Comm /*comm*/, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  if (process().begun == Begun::kByInit) end_process();
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
  const std::lock_guard lock(g_beginning);
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
  if (join_world(comm, function, refused)) {
    start_devices();
    state.phase.store(Phase::kRunning, std::memory_order_release);
  } else if (state.phase != Phase::kRunning) {
    state.phase.store(Phase::kOff, std::memory_order_release);
  }
}

}  // namespace

bool begin_by_session() {
  Process& state = process();
  static bool refused = false;  // once is enough
  const std::lock_guard lock(g_beginning);
  if (state.has_objects) return true;
  if (refused) return false;
  state.begun = Begun::kBySession;
  state.threaded = true;
  if (make_host_objects()) {
    host().Group_rank(state.world_group, &state.world_rank);
    host().Group_size(state.world_group, &state.world_size);
    return true;
  }
  close_session();
  state.begun = Begun::kNot;
  refused = true;
  return false;
}

bool make_host_objects() {
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

void progress_host() {
  const InsideHost guard;
  int done = 0;
  host().Request_get_status(process().never_received, &done, MPI_STATUS_IGNORE);
}

void prepare_process() {
  if (read_settings().on) set_fabric_environment();
  syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

void start_process() {
  static std::atomic<bool> started = false;
  if (started.exchange(true)) return;
  add_use();
  const std::string refused = serve_fortran();
  const InsideHost guard;
  begin_by_init();
  start_in(g_host.comm_world, "MPI_Init", refused);
  if (process().begun == Begun::kByInit && !watch_finalize()) {
    host().Abort(g_host.comm_world, 1);
    _exit(1);
  }
}

void start_group(MPI_Comm comm, const char* function) {
  if (t_cache.depth > 0 || process().begun == Begun::kByInit) return;
  // One process alone has nobody to share memory with; and MPICH 4.0 crashes as soon as it looks
  // for messages where there was no communicator of all processes yet.
  int size = 0;
  host().Comm_size(comm, &size);
  if (size < 2) return;
  std::string refused = serve_fortran();
  const InsideHost guard;
  if (!begin_by_session()) refused = "the MPI refuses carillon a session of its own";
  start_in(comm, function, refused);
}

void end_process() {
  Process& state = process();
  const bool by_session = state.begun == Begun::kBySession;
  if (state.phase == Phase::kRunning) {
    finish_checking();
    finish_flights();
  }
  const bool running = state.phase.exchange(Phase::kFinished) == Phase::kRunning;
  const InsideHost guard;
  if (running) {
    finish_recording();
    stop_communicators();
  }
  print_stats();
  if (state.has_objects) {
    forget_memory();
    leave_worlds();
    if (by_session) {  // another life may follow, with other objects of the same handles
      stop_types();
      forget_reductions();
      forget_error_codes();
    }
    host().Cancel(&state.never_received);
    host().Wait(&state.never_received, MPI_STATUS_IGNORE);
    host().Group_free(&state.world_group);
    host().Comm_free(&state.self);
    state.has_objects = false;
  }
  if (by_session) close_session();
  state.begun = Begun::kNot;
}

void say(const char* format, ...) {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "carillon: %s\n", line);
}

}  // namespace carillon::shim
