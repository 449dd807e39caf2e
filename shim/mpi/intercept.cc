// SPDX-License-Identifier: Apache-2.0
//
// The functions the program calls instead of its MPI's.
#include <strings.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check.h"
#include "communicator.h"
#include "early.h"
#include "errors.h"
#include "heap_pins.h"
#include "kept_arguments.h"
#include "left_persistent.h"
#include "observe.h"
#include "persistent.h"
#include "process.h"
#include "reduction.h"
#include "repeat.h"
#include "run.h"
#include "staging.h"
#include "stats.h"
#include "thread_cache.h"

namespace carillon::shim {

constinit Generation g_communicators, g_types, g_reductions;
constinit thread_local ThreadCache t_cache;

namespace {

template <Collective kCollective, typename HostCall>
Outcome intercept_observed(const Call& call, HostCall call_host);

// A call that is the host's. What it is to refuse, it tells an error handler of the program's.
template <typename HostCall>
int leave(Reason reason, HostCall call_host) {
  std::optional<Unobserved> guard;
  if (reason == Reason::kSuspect) guard.emplace();
  return call_host();
}

// Else every call on it is the host's, whatever its arguments.
bool is_served(const Communicator& communicator) {
  return communicator.team != nullptr || communicator.broken != CRL_OK;
}

// Why a call is the host's whatever its arguments, by no more than what the last call has learnt;
// kNone: that is to be found out.
inline Reason reason_at_once(MPI_Comm comm) {
  if (observers() != 0) return Reason::kNone;
  if (const Communicator* const communicator = last_communicator(comm)) [[likely]] {
    return is_served(*communicator) || communicator->bootstrap.own.begun() ? Reason::kNone
                                                                           : communicator->reason;
  }
  const bool off = process().phase.load(std::memory_order_acquire) == Phase::kOff;
  return off && t_cache.depth == 0 ? Reason::kOff : Reason::kNone;
}

// Such a call costs hardly more than without carillon.
inline bool left_at_once(Collective collective, Form form, MPI_Comm comm) {
  const Reason reason = reason_at_once(comm);
  if (reason == Reason::kNone) [[likely]]
    return false;
  count_left(call_index(collective, form), reason);
  return true;
}

// The outcome's code is the call's, whoever did it.
template <Collective kCollective, typename HostCall>
inline Outcome intercept(const Call& call, HostCall call_host) {
  Communicator& communicator = find_communicator(call.comm);
  const Outcome outcome = run_anywhere<kCollective>(communicator, call, nullptr);
  if (outcome.left == Reason::kNone) [[likely]]
    return outcome;
  if (observers() != 0) return intercept_observed<kCollective>(call, call_host);
  count_left(call_index(kCollective), outcome.left);
  return {leave(outcome.left,
                [&] { return call_host(communicator.for_host(call.comm, outcome.left)); }),
          outcome.left};
}

template <Collective kCollective, typename HostCall>
[[gnu::noinline]] Outcome intercept_observed(const Call& call, HostCall call_host) {
  std::optional<CheckedCall> checked;
  if ((observers() & kChecking) != 0) checked.emplace(call_index(kCollective), call);
  std::optional<ObservedCall> observed;
  if (observers() != 0) observed.emplace(&call);
  const Outcome outcome = intercept<kCollective>(call, call_host);
  if (observed) observed->write(call_index(kCollective), outcome);
  return outcome;
}

template <Collective kCollective, typename HostCall>
Outcome start_observed(const Call& call, MPI_Request* request, HostCall call_host);

// What the host is asked if carillon cannot do it after all, when the call has returned.
template <typename HostCall>
Flight::HostCall kept_call(Collective collective, Communicator& communicator, const Call& call,
                           HostCall call_host) {
  return
      [call_host, kept = std::make_shared<const KeptArguments>(collective, communicator, call)](
          MPI_Comm comm, MPI_Request* request) { return call_host(comm, request, kept->call()); };
}

struct KeptOutcome {
  Outcome outcome;
  ErrorsKept::Kept error;  // to be raised
};

template <Collective kCollective>
KeptOutcome run_and_keep_errors(Communicator& communicator, const Call& call, Flight* flight) {
  const ErrorsKept errors(communicator.handle);
  const Outcome outcome = run_anywhere<kCollective>(communicator, call, flight);
  return {outcome, errors.kept()};
}

// The non-blocking forms. call_host(communicator, place for the request, the call's lists), which
// may be kept.
template <Collective kCollective, typename HostCall>
Outcome intercept_started(const Call& call, MPI_Request* request, HostCall call_host) {
  constexpr std::size_t kCounted = call_index(kCollective, Form::kStarted);
  Communicator& communicator = find_communicator(call.comm, MayWait::kNo);
  Starting starting(communicator);
  Reason reason = Reason::kSuspect;
  if (!is_served(communicator)) {
    reason = communicator.reason;
  } else if (request != nullptr) {
    Flight* const flight = new_flight(communicator, kCounted);
    pin_blocks<kCollective>(*flight, call);
    const auto [outcome, error] = run_and_keep_errors<kCollective>(communicator, call, flight);
    if (outcome.left == Reason::kNone && outcome.code == MPI_SUCCESS) [[likely]] {
      if (communicator.agreeing) {
        flight->host_call = kept_call(kCollective, communicator, call, call_host);
      }
      return {launch_flight(flight, request)};
    }
    drop_flight(flight);
    if (outcome.left == Reason::kNone) {
      starting.stop();
      return {error.error_class == MPI_SUCCESS ? outcome.code : error.raise()};
    }
    reason = outcome.left;
  }
  if (observers() != 0 || reason == Reason::kSuspect) starting.stop();
  if (observers() != 0) return start_observed<kCollective>(call, request, call_host);
  count_left(kCounted, reason);
  return {leave(reason,
                [&] { return call_host(communicator.for_host(call.comm, reason), request, call); }),
          reason};
}

template <Collective kCollective, typename HostCall>
[[gnu::noinline]] Outcome start_observed(const Call& call, MPI_Request* request,
                                         HostCall call_host) {
  constexpr std::size_t kCounted = call_index(kCollective, Form::kStarted);
  std::optional<CheckedCall> checked;
  if ((observers() & kChecking) != 0) checked.emplace(kCounted, call);
  std::optional<ObservedCall> observed;
  if (observers() != 0) observed.emplace(&call);
  const Outcome outcome = intercept_started<kCollective>(call, request, call_host);
  if (observed) observed->write(kCounted, outcome);
  return outcome;
}

// The persistent forms. call_host(communicator, info, place for the request), which may be kept,
// but the info may be gone by then. The call is only prepared here; as MPI has it, that may wait
// for the other ranks.
template <Collective kCollective, typename HostCall>
int intercept_persistent(const Call& call, MPI_Info info, MPI_Request* request,
                         HostCall call_host) {
  constexpr std::size_t kCounted = call_index(kCollective, Form::kPersistent);
  std::optional<CheckedCall> checked;
  if ((observers() & kChecking) != 0) checked.emplace(kCounted, call);
  std::optional<ObservedCall> observed;
  if (observers() != 0) observed.emplace(&call);
  Communicator& communicator = find_communicator(call.comm);
  Reason reason = Reason::kSuspect;
  if (!is_served(communicator)) {
    reason = communicator.reason;
  } else if (request != nullptr) {
    Flight* const flight = new_persistent(communicator, kCounted, call.comm);
    Communicator& own = *flight->communicator;
    const auto [outcome, error] = is_served(own)
                                      ? run_and_keep_errors<kCollective>(own, call, flight)
                                      : KeptOutcome{{MPI_SUCCESS, own.reason}, {}};
    if (outcome.left == Reason::kNone && outcome.code == MPI_SUCCESS) [[likely]] {
      flight->host_call = [call_host](MPI_Comm comm, MPI_Request* made) {
        return call_host(comm, MPI_INFO_NULL, made);
      };
      if (observed) observed->know(kCounted, flight);
      return keep_persistent(flight, request);
    }
    drop_persistent(flight);
    if (outcome.left == Reason::kNone) {
      return error.error_class == MPI_SUCCESS ? outcome.code : error.raise();
    }
    reason = outcome.left;
  }
  count_left(kCounted, reason);
  const int code = leave(
      reason, [&] { return call_host(communicator.for_host(call.comm, reason), info, request); });
  if (code == MPI_SUCCESS && request != nullptr) note_left_persistent(*request);
  if (observed) observed->write_left(kCounted, {code, reason});
  return code;
}

template <typename Initialise>
int start(Initialise initialise) {
  prepare_process();
  const int status = initialise();
  if (status == MPI_SUCCESS) start_process();
  return status;
}

bool find_call(const char* name, std::size_t* call) {
  for (*call = 0; *call < kCalls; ++*call) {
    if (strcasecmp(call_name(*call).c_str(), name) == 0) return true;
  }
  return false;
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::AnyList;
using carillon::shim::Call;
using carillon::shim::Collective;
using carillon::shim::Form;
using carillon::shim::host;
using carillon::shim::intercept;
using carillon::shim::intercept_persistent;
using carillon::shim::intercept_started;
using carillon::shim::left_at_once;
using carillon::shim::raise_error;
using carillon::shim::repeat;

extern "C" {

// The lambdas' `comm` and `request` stand for the functions' in the arguments, and so do these
// lists.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#define CARILLON_LISTS                                                                           \
  [[maybe_unused]] const AnyList in_counts{lists.in_blocks.counts};                              \
  [[maybe_unused]] const AnyList in_offsets{lists.in_blocks.offsets};                            \
  [[maybe_unused]] const AnyList out_counts{lists.out_blocks.counts};                            \
  [[maybe_unused]] const AnyList out_offsets{lists.out_blocks.offsets};                          \
  [[maybe_unused]] const MPI_Datatype* const in_types = lists.in_blocks.types;                   \
  [[maybe_unused]] const MPI_Datatype* const out_types = lists.out_blocks.types;                 \
  /* Of those that have one side's only. */                                                      \
  [[maybe_unused]] const AnyList counts = in_counts.address != nullptr ? in_counts : out_counts; \
  [[maybe_unused]] const AnyList offsets = in_offsets.address != nullptr ? in_offsets : out_offsets;
/* Behind a call, which is no jump then: what fails in it names the function (errors.cc). */
#define CARILLON_STAYS_A_CALLER asm volatile("")
#define CARILLON_COLLECTIVE(symbol, started, collective, parameters, arguments, ...) \
  CARILLON_INTERCEPT(symbol, started, collective, parameters, arguments, __VA_ARGS__)
#define CARILLON_INTERCEPT(symbol, started, collective, parameters, arguments, ...)           \
  [[gnu::noinline]] static int first_##symbol parameters {                                    \
    if (left_at_once(Collective::k##collective, Form::kBlocking, comm)) [[unlikely]]          \
      return host().symbol arguments;                                                         \
    return intercept<Collective::k##collective>(                                              \
               Call{__VA_ARGS__}, [&](MPI_Comm comm) { return host().symbol arguments; })     \
        .code;                                                                                \
  }                                                                                           \
  CARILLON_EXPORT int MPI_##symbol parameters {                                               \
    int code = MPI_SUCCESS;                                                                   \
    if (repeat<Collective::k##collective>(Call{__VA_ARGS__}, &code)) return code;             \
    code = first_##symbol arguments;                                                          \
    CARILLON_STAYS_A_CALLER;                                                                  \
    return code;                                                                              \
  }                                                                                           \
  CARILLON_EXPORT int MPI_##started(CARILLON_LIST parameters, MPI_Request* request) {         \
    if (left_at_once(Collective::k##collective, Form::kStarted, comm)) [[unlikely]]           \
      return host().started(CARILLON_LIST arguments, request);                                \
    return intercept_started<Collective::k##collective>(                                      \
               Call{__VA_ARGS__}, request,                                                    \
               [=](MPI_Comm comm, MPI_Request* request, [[maybe_unused]] const Call& lists) { \
                 CARILLON_LISTS                                                               \
                 return host().started(CARILLON_LIST arguments, request);                     \
               })                                                                             \
        .code;                                                                                \
  }
#include "collectives.def"
#undef CARILLON_INTERCEPT
#undef CARILLON_COLLECTIVE
#undef CARILLON_LISTS

#define CARILLON_PERSISTENT(...) CARILLON_INTERCEPT_PERSISTENT(__VA_ARGS__)
#define CARILLON_INTERCEPT_PERSISTENT(symbol, collective, parameters, arguments, ...)              \
  CARILLON_EXPORT int MPI_##symbol(CARILLON_LIST parameters, MPI_Info info,                        \
                                   MPI_Request* request) {                                         \
    return intercept_persistent<Collective::k##collective>(                                        \
        Call{__VA_ARGS__}, info, request,                                                          \
        [=](MPI_Comm comm, MPI_Info info, MPI_Request* request) {                                  \
          return host().symbol == nullptr ? raise_error(comm, MPI_ERR_UNSUPPORTED_OPERATION)       \
                                          : host().symbol(CARILLON_LIST arguments, info, request); \
        });                                                                                        \
  }                                                                                                \
  CARILLON_OLDER_NAME(symbol, parameters)
#ifdef OPEN_MPI  // whose version 4 has them under these names only
#define CARILLON_OLDER_NAME(symbol, parameters)                                       \
  CARILLON_EXPORT int MPIX_##symbol(CARILLON_LIST parameters, MPI_Info, MPI_Request*) \
      __attribute__((alias("MPI_" #symbol)));
#else
#define CARILLON_OLDER_NAME(symbol, parameters)
#endif
#include "persistent.def"
#undef CARILLON_OLDER_NAME
#undef CARILLON_INTERCEPT_PERSISTENT
#undef CARILLON_PERSISTENT
#pragma GCC diagnostic pop

CARILLON_EXPORT int MPI_Init(int* argc, char*** argv) {
  return carillon::shim::start([&] { return host().Init(argc, argv); });
}

CARILLON_EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return carillon::shim::start([&] { return host().Init_thread(argc, argv, required, provided); });
}

// MPI's own Fortran functions call these (fortran.cc), and tools.
CARILLON_EXPORT int PMPI_Init(int* argc, char*** argv) {
  return carillon::shim::start([&] { return host().Init(argc, argv); });
}

CARILLON_EXPORT int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return carillon::shim::start([&] { return host().Init_thread(argc, argv, required, provided); });
}

CARILLON_EXPORT int MPI_Op_free(MPI_Op* op) {
  return op != nullptr ? carillon::shim::free_op(op) : host().Op_free(op);
}

CARILLON_EXPORT int MPI_Type_free(MPI_Datatype* type) {
  return type != nullptr ? carillon::shim::free_type(type) : host().Type_free(type);
}

// For tests, and for tools that want to know: calls of a collective, e.g. "allreduce" or
// "iallreduce", that carillon took, or left to the MPI, in this process.
CARILLON_EXPORT unsigned long long carillon_shim_taken(const char* name) {
  std::size_t call = 0;
  return carillon::shim::find_call(name, &call) ? carillon::shim::taken_calls(call) : 0;
}

CARILLON_EXPORT unsigned long long carillon_shim_left(const char* name) {
  std::size_t call = 0;
  return carillon::shim::find_call(name, &call) ? carillon::shim::left_calls(call) : 0;
}

// The calls that are counted, e.g. "Iallreduce" for MPI_Iallreduce; null after the last one.
CARILLON_EXPORT const char* carillon_shim_call_name(int index) {
  static const std::vector<std::string>& names = *new std::vector<std::string>([] {
    std::vector<std::string> all;
    all.reserve(carillon::shim::kCalls);
    for (std::size_t i = 0; i < carillon::shim::kCalls; ++i) {
      all.push_back(carillon::shim::call_name(i));
    }
    return all;
  }());
  const auto at = static_cast<std::size_t>(index);  // a negative one is past the end, too
  return at < names.size() ? names[at].c_str() : nullptr;
}

// The algorithm of this thread's last collective, e.g. "allreduce.flat"; "" if it was left.
CARILLON_EXPORT const char* carillon_shim_last_algorithm(void) {
  const carillon::shim::ThreadCache::Comm& last = carillon::shim::t_cache.last;
  const std::uint64_t now = carillon::shim::g_communicators.now();
  if (last.generation != now && carillon::shim::t_cache.observed != now) return "";
  const crl_team_h team = last.communicator->team;
  return team == nullptr ? "" : crl_team_last_algorithm(team);
}

}  // extern "C"
