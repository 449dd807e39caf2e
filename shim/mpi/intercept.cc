// SPDX-License-Identifier: Apache-2.0
//
// The functions the program calls instead of its MPI's.
#include <strings.h>

#include "communicator.h"
#include "process.h"
#include "reduction.h"
#include "run.h"
#include "stats.h"
#include "thread_cache.h"

#define CARILLON_EXPORT __attribute__((visibility("default")))

namespace carillon::shim {

constinit Generation g_communicators, g_types, g_reductions;
constinit thread_local ThreadCache t_cache;

namespace {

template <Collective kCollective, typename HostCall>
inline int intercept(const Call& call, HostCall call_host) {
  const Outcome outcome = run<kCollective>(find_communicator(call.comm), call);
  if (outcome.left == Reason::kNone) [[likely]]
    return outcome.code;
  count_left(kCollective, outcome.left);
  return call_host();
}

bool find_collective(const char* name, Collective* collective) {
  for (std::size_t i = 0; i < kCollectives; ++i) {
    if (strcasecmp(kRules[i].name, name) != 0) continue;
    *collective = static_cast<Collective>(i);
    return true;
  }
  return false;
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::Call;
using carillon::shim::Collective;
using carillon::shim::host;
using carillon::shim::intercept;

extern "C" {

#define CARILLON_COLLECTIVE(symbol, collective, parameters, arguments, ...) \
  CARILLON_INTERCEPT(symbol, collective, parameters, arguments, __VA_ARGS__)
#define CARILLON_INTERCEPT(symbol, collective, parameters, arguments, ...)                \
  CARILLON_EXPORT int MPI_##symbol parameters {                                           \
    return intercept<Collective::k##collective>(Call{__VA_ARGS__},                        \
                                                [&] { return host().symbol arguments; }); \
  }
#include "collectives.def"
#undef CARILLON_INTERCEPT
#undef CARILLON_COLLECTIVE

CARILLON_EXPORT int MPI_Init(int* argc, char*** argv) {
  carillon::shim::prepare_process();
  const int status = host().Init(argc, argv);
  if (status == MPI_SUCCESS) carillon::shim::start_process();
  return status;
}

CARILLON_EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  carillon::shim::prepare_process();
  const int status = host().Init_thread(argc, argv, required, provided);
  if (status == MPI_SUCCESS) carillon::shim::start_process();
  return status;
}

CARILLON_EXPORT int MPI_Op_free(MPI_Op* op) {
  return op != nullptr ? carillon::shim::free_op(op) : host().Op_free(op);
}

CARILLON_EXPORT int MPI_Type_free(MPI_Datatype* type) {
  return type != nullptr ? carillon::shim::free_type(type) : host().Type_free(type);
}

// For tests, and for tools that want to know: calls of a collective, e.g. "allreduce", that
// carillon took, or left to the MPI, in this process.
CARILLON_EXPORT unsigned long long carillon_shim_taken(const char* name) {
  Collective collective{};
  return carillon::shim::find_collective(name, &collective)
             ? carillon::shim::taken_calls(collective)
             : 0;
}

CARILLON_EXPORT unsigned long long carillon_shim_left(const char* name) {
  Collective collective{};
  return carillon::shim::find_collective(name, &collective) ? carillon::shim::left_calls(collective)
                                                            : 0;
}

// The algorithm of this thread's last collective, e.g. "allreduce.flat"; "" if it was left.
CARILLON_EXPORT const char* carillon_shim_last_algorithm(void) {
  const carillon::shim::ThreadCache::Comm& last = carillon::shim::t_cache.last;
  if (last.generation != carillon::shim::g_communicators.now()) return "";
  const crl_team_h team = last.communicator->team;
  return team == nullptr ? "" : crl_team_last_algorithm(team);
}

}  // extern "C"
