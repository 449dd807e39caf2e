// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/fabric_environment.h"
#include "bootstrap.h"
#include "check.h"
#include "communicator.h"
#include "datatype.h"
#include "device_runtime.h"
#include "flight.h"
#include "fortran.h"
#include "neighbours.h"
#include "record.h"
#include "settings.h"
#include "stats.h"

namespace carillon::shim {

constinit Process g_process;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kForwardUs = 100000;

// What every rank tells every other in MPI_Init. A rank without the interposer tells nothing.
struct Hello {
  static constexpr std::uint32_t kMagic = 0x6c6c7263;  // "crll"
  std::uint32_t magic = kMagic;
  std::uint16_t on = 1;
  std::uint16_t started = 0;  // of the second round: carillon's context is there
  std::uint16_t records = 0;  // CARILLON_RECORD is set
  std::uint16_t checks = 0;   // CARILLON_CHECK is
  std::uint16_t refused = 0;  // Fortran's calls cannot be taken here
  std::uint16_t unused = 0;
};

[[noreturn]] void end_job() {
  usleep(kForwardUs);  // launchers drop what they have not yet forwarded
  host().Abort(g_host.comm_world, 1);
  _exit(1);
}

// Mostly all ranks have the same settings: then rank 0's line comes first, and alone.
[[noreturn]] void end_job_over_settings(const Process& process, const char* what) {
  if (process.world_rank != 0) usleep(2 * kForwardUs);
  say("%s", what);
  end_job();
}

constexpr char kMissing[] =
    "rank %d has waited %d s in MPI_Init for the interposer of other ranks; start all ranks with "
    "it (carillon run, or carillon exec behind mpirun or srun), or none";

// Gathers a Hello from every rank. Bounded: a rank without an interposer never answers.
std::vector<Hello> exchange(const Process& process, const Settings& settings, const Hello& mine) {
  Bootstrap bootstrap{g_host.comm_world, process.world_rank, process.world_size};
  const crl_oob_t oob = bootstrap.oob();
  std::vector<Hello> all(static_cast<std::size_t>(process.world_size));
  void* request = nullptr;
  if (oob.allgather_post(oob.arg, &mine, all.data(), sizeof(Hello), &request) != 0) end_job();
  const auto begin = Clock::now();
  bool warned = false;
  for (int status = 1; status != 0;) {
    status = oob.allgather_test(oob.arg, request);
    if (status < 0) end_job();
    if (status == 0) break;
    sched_yield();
    const auto waited =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
    if (waited >= settings.join_timeout_s) {
      say(kMissing, process.world_rank, settings.join_timeout_s);
      end_job();
    }
    if (!warned && waited >= settings.warn_after_s) {
      warned = true;
      if (process.world_rank < 2) say(kMissing, process.world_rank, settings.warn_after_s);
    }
  }
  for (const Hello& hello : all) {
    if (hello.magic == Hello::kMagic) continue;
    say("rank %d got an answer in MPI_Init that is not an interposer's; start all ranks with the "
        "same version of carillon, or none",
        process.world_rank);
    end_job();
  }
  return all;
}

// The first rank whose Hello fits, or -1.
template <typename Predicate>
int first_rank(const std::vector<Hello>& all, Predicate predicate) {
  const auto found = std::find_if(all.begin(), all.end(), predicate);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

// Called by carillon while it waits.
void idle(void* /*arg*/) {
  if (settles_slowly()) advance_flights();
  advance_checks();
  progress_host();
}

int on_finalize(MPI_Comm /*comm*/, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  Process& state = process();
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
  if (!running) return MPI_SUCCESS;
  crl_context_destroy(state.context);
  state.context = nullptr;
  host().Cancel(&state.never_received);
  host().Wait(&state.never_received, MPI_STATUS_IGNORE);
  host().Group_free(&state.world_group);
  host().Comm_free(&state.self);
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

crl_status_t make_context(Process& state) {
  Bootstrap bootstrap{g_host.comm_world, state.world_rank, state.world_size};
  crl_context_config_t config{};
  config.struct_bytes = sizeof(config);
  config.oob = bootstrap.oob();
  config.idle = idle;
  config.threaded = state.threaded ? 1 : 0;
  return crl_context_create(&config, &state.context);
}

bool make_host_objects(Process& state) {
  return host().Comm_dup(g_host.comm_self, &state.self) == MPI_SUCCESS &&
         host().Comm_set_errhandler(state.self, MPI_ERRORS_RETURN) == MPI_SUCCESS &&
         host().Irecv(nullptr, 0, g_host.byte, 0, kNeverSentTag, state.self,
                      &state.never_received) == MPI_SUCCESS &&
         host().Comm_group(g_host.comm_world, &state.world_group) == MPI_SUCCESS && start_types() &&
         find_orders_of_blocks() && start_communicators();
}

// All ranks together: on, or off with one line that says why.
bool agree_to_start(const Process& state, const Settings& settings, const std::string& refused) {
  if (!settings.error.empty()) end_job_over_settings(state, settings.error.c_str());
  const auto all =
      exchange(state, settings,
               {.on = settings.on, .refused = static_cast<std::uint16_t>(refused.empty() ? 0 : 1)});
  const int off = first_rank(all, [](const Hello& hello) { return hello.on == 0; });
  const int on = first_rank(all, [](const Hello& hello) { return hello.on != 0; });
  if (off >= 0 && on == state.world_rank) {
    say("off on all ranks, because CARILLON=off on rank %d", off);
  }
  const int without = first_rank(all, [](const Hello& hello) { return hello.refused != 0; });
  if (off < 0 && without == state.world_rank) say("off on all ranks: %s", refused.c_str());
  return off < 0 && without < 0;
}

bool start_together(Process& state, Settings& settings) {
  const crl_status_t status = make_host_objects(state) ? make_context(state) : CRL_ERR_SYSTEM;
  // The library may have found this before it met the other ranks: they would wait.
  if (status == CRL_ERR_INVALID_ARGUMENT) end_job_over_settings(state, crl_last_error());
  const auto all = exchange(state, settings,
                            {.started = status == CRL_OK,
                             .records = static_cast<std::uint16_t>(settings.record.empty() ? 0 : 1),
                             .checks = static_cast<std::uint16_t>(settings.check ? 1 : 0)});
  const int failed = first_rank(all, [](const Hello& hello) { return hello.started == 0; });
  const int silent = first_rank(all, [](const Hello& hello) { return hello.records == 0; });
  if (silent >= 0 && !std::exchange(settings.record, {}).empty() && state.world_rank < 2) {
    say("nothing is recorded, because CARILLON_RECORD is not set on rank %d", silent);
  }
  const int careless = first_rank(all, [](const Hello& hello) { return hello.checks == 0; });
  if (careless >= 0 && std::exchange(settings.check, false) && state.world_rank < 2) {
    say("nothing is checked, because CARILLON_CHECK is not set on rank %d", careless);
  }
  if (failed < 0) return true;
  if (failed == state.world_rank) say("off on all ranks: %s", crl_last_error());
  if (status == CRL_OK) crl_context_destroy(state.context);
  return false;
}

}  // namespace

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
  Process& state = process();
  if (state.phase != Phase::kNotStarted) return;
  const std::string refused = serve_fortran();
  const InsideHost guard;
  Settings settings = read_settings();
  int thread_level = MPI_THREAD_SINGLE;
  host().Query_thread(&thread_level);
  state.threaded = thread_level == MPI_THREAD_MULTIPLE;
  host().Comm_rank(g_host.comm_world, &state.world_rank);
  host().Comm_size(g_host.comm_world, &state.world_size);
  const bool on = agree_to_start(state, settings, refused) && start_together(state, settings);
  set_stats(settings.stats);
  if (!watch_finalize()) end_job();
  if (!settings.record.empty()) {
    if (on) start_recording(settings.record);
    if (!on && state.world_rank == 0) say("nothing is recorded, because carillon is off");
  }
  if (settings.check && !(on && start_checking()) && state.world_rank == 0) {
    say("nothing is checked, because carillon is off");
  }
  if (on) start_devices();
  state.phase.store(on ? Phase::kRunning : Phase::kOff, std::memory_order_release);
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
