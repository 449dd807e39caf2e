// SPDX-License-Identifier: Apache-2.0
//
// The functions that make a communicator, a window or a file of a communicator. Open MPI 4 does not
// bear that two copies of one communicator are made at once, and carillon copies a communicator
// whose first collective is a non-blocking one (bootstrap.h). So who would wait for the other ranks
// anyway waits for that copy first; who is alone, lets copies pass that would be in MPICH's way
// (comm_copy.h). And where a communicator is left to the host for good (left.h), parts of it need
// not be.
#include "makers.h"

#include <cstdint>

#include "check.h"
#include "comm_copy.h"
#include "communicator.h"
#include "errors.h"
#include "flight.h"
#include "host.h"
#include "made.h"
#include "poll.h"
#include "process.h"
#include "windows.h"
#include "world.h"

namespace carillon::shim {

void await_copies(MPI_Comm comm) {
  if (comm == g_host.comm_null) return;
  await_copy(comm);
  await_team(comm);
}

namespace {

// What the host has refused has been told to its error handler, which is not to hear of it twice.
struct Refusal {
  bool refused = false;
  int status = MPI_SUCCESS;  // which MPICH 5 with the ABI of MPI 5 returns nevertheless
};

Refusal check_handle(MPI_Comm comm, bool* is_inter) {
  constexpr int kUnanswered = -1;
  int answer = kUnanswered;
  const int status = host().Comm_test_inter(comm, &answer);
  *is_inter = answer != 0;
  return {.refused = status != MPI_SUCCESS || answer == kUnanswered, .status = status};
}

bool is_running() {
  return t_cache.depth == 0 && process().phase.load(std::memory_order_acquire) == Phase::kRunning;
}

// Whether all ranks of an intracommunicator know that all have carillon.
bool all_meet(MPI_Comm comm) {
  int size = 0;
  if (host().Comm_size(comm, &size) != MPI_SUCCESS || size == 1) return false;
  const InsideHost guard;
  World* const world = use_world(comm, size);
  drop_world(world);
  return world != nullptr;
}

// The host's function waits for ranks that may first wait for a collective that this one has begun.
// In there its first one on a communicator would not get on: its copy is held back by what Open MPI
// makes, and in MPICH nothing moves on at all. So that wait is here, with progress.
void meet(MPI_Comm comm) {
  MPI_Request request{};
  const auto guarded = [](auto function) {
    const InsideHost guard;
    return function();
  };
  if (guarded([&] { return host().Ibarrier(comm, &request); }) != MPI_SUCCESS) return;
  int done = 0;
  poll_until(&done, [&] {
    advance_checks();
    return guarded([&] { return host().Test(&request, &done, MPI_STATUS_IGNORE); });
  });
}

// For CARILLON_MAKER's `wrong`. MPICH goes on with numbers below 0 where Open MPI does not.
#ifdef OPEN_MPI
constexpr bool kNegativesAreWrong = true;
#else
constexpr bool kNegativesAreWrong = false;
#endif

// Whether a grid has more places than there are ranks.
bool is_larger(int size, int dims, const int* sizes) {
  if (sizes == nullptr) return false;
  std::int64_t places = 1;
  for (int i = 0; i < dims && places <= size; ++i) {
    if (sizes[i] <= 0) return false;
    places *= sizes[i];
  }
  return places > size;
}

// `wrong`: whether the host refuses the arguments, if there are so many ranks. Such a call waits
// for nobody here, either: the others may not come.
template <typename Wrong>
Refusal before_making(MPI_Comm comm, Wrong wrong) {
  if (comm == g_host.comm_null) return {};
  bool meets = false;
  if (is_running()) {
    bool is_inter = false;
    const Refusal refusal = check_handle(comm, &is_inter);
    if (refusal.refused) return refusal;
    int size = 0;
    if (!is_inter && host().Comm_size(comm, &size) == MPI_SUCCESS) {
      if (wrong(size) && host_checks_arguments()) return {};
      meets = size > 1;
    }
  }
  await_copies(comm);
  if (meets && all_meet(comm)) meet(comm);
  let_pass_if_alone(host().Comm_size, comm);
  return {};
}

// These should not wait for anybody; but Open MPI's requests would never complete.
void before_copying(MPI_Comm comm) {
#ifdef OPEN_MPI
  await_copies(comm);
#else
  if (comm != g_host.comm_null) let_pass_if_alone(host().Comm_size, comm);
#endif
}

int part_made(MPI_Comm comm, Made<MPI_Comm>& made, int status, const char* function) {
  if (made.give(status)) start_part(comm, made.handle(), function);
  return status;
}

int window_made(MPI_Comm comm, Made<MPI_Win>& made, int status) {
  if (made.give(status)) share_window(comm, made.handle());
  return status;
}

int free_comm(MPI_Comm* comm, int (*function)(MPI_Comm*)) {
  // What nobody may free is not marked as being freed: an error handler need not return.
  const bool may_be_freed = comm != nullptr && *comm != g_host.comm_null &&
                            *comm != g_host.comm_world && *comm != g_host.comm_self;
  if (!may_be_freed) return function(comm);
  await_copies(*comm);
  const BeingFreed guard(*comm);
  if (guard.status() != MPI_SUCCESS) return guard.status();
  const int status = function(comm);
  if (*comm != g_host.comm_null) guard.refuse();  // which Open MPI does not always return
  return status;
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::before_copying;
using carillon::shim::before_making;
using carillon::shim::call_newer;
using carillon::shim::free_comm;
using carillon::shim::host;
using carillon::shim::is_larger;
using carillon::shim::kNegativesAreWrong;
using carillon::shim::let_pass_if_alone;
using carillon::shim::Made;
using carillon::shim::part_made;
using carillon::shim::window_made;

extern "C" {

#define CARILLON_MAKES(symbol, parameters, wrong, ...)                                         \
  CARILLON_EXPORT int MPI_##symbol parameters {                                                \
    host();                                                                                    \
    const auto before = before_making(comm, [&]([[maybe_unused]] int size) { return wrong; }); \
    if (before.refused) return before.status;                                                  \
    __VA_ARGS__                                                                                \
  }
#define CARILLON_MAKER(symbol, parameters, arguments, wrong) \
  CARILLON_MAKES(symbol, parameters, wrong, return host().symbol arguments;)
#define CARILLON_PART_MAKER(symbol, parameters, arguments, wrong) \
  CARILLON_MAKES(symbol, parameters, wrong, Made result(made);    \
                 const int status = host().symbol arguments;      \
                 return part_made(comm, result, status, "MPI_" #symbol);)
#define CARILLON_WINDOW_MAKER(symbol, parameters, arguments, wrong) \
  CARILLON_MAKES(symbol, parameters, wrong, Made result(made);      \
                 const int status = host().symbol arguments;        \
                 return window_made(comm, result, status);)
#include "makers.def"
#undef CARILLON_MAKER
#undef CARILLON_MAKES

CARILLON_EXPORT int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  let_pass_if_alone(host().Group_size, group);
  Made result(made);
  const int status = host().Comm_create_group(comm, group, tag, made);
  return part_made(comm, result, status, "MPI_Comm_create_group");
}

CARILLON_EXPORT int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* made, MPI_Request* request) {
  host();
  before_copying(comm);
  return host().Comm_idup(comm, made, request);
}

CARILLON_EXPORT int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made,
                                            MPI_Request* request) {
  host();
  before_copying(comm);
  return call_newer(host().Comm_idup_with_info, comm, info, made, request);
}

CARILLON_EXPORT int MPI_Comm_free(MPI_Comm* comm) { return free_comm(comm, host().Comm_free); }

CARILLON_EXPORT int MPI_Comm_disconnect(MPI_Comm* comm) {
  return free_comm(comm, host().Comm_disconnect);
}

}  // extern "C"
