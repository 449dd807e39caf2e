// SPDX-License-Identifier: Apache-2.0
//
// Collectives that have been started and are to be completed by MPI_Wait, MPI_Test and their like.
//
// The program's handle is a request of the host's own: it goes through every function of the host,
// alone or among others. It is a generalized request, completed by the thread that is in a
// completion call (request.cc): those move all flights on, complete the handles of the ones that
// have ended, and then ask the host.
//
// A persistent collective is a flight that is begun again and again (persistent.h); its handle is a
// persistent receive from this process itself.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "call.h"
#include "communicator.h"
#include "reduction.h"

namespace carillon::shim {

struct Staging;  // staging.h
/// Its collective has ended: MPI's status of its results' way to the device.
[[nodiscard]] int give_back(const Staging& staging);

struct Flight {
  /// The host's own form of the call, on a communicator.
  using HostCall = std::function<int(MPI_Comm, MPI_Request*)>;

  Communicator* communicator = nullptr;
  std::size_t counted = 0;          // as which call
  crl_request_h request = nullptr;  // carillon's; null: nothing is to be done, or it is done
  crl_status_t ended = CRL_OK;      // how that ended
  MPI_Request handle{};             // the program's
  bool has_handle = false;          // it is good, also between two flights
  int code = MPI_SUCCESS;           // how it ended
  bool told = false;                // the program was told of `code` by a call of its own
  std::uint8_t held = 0;            // no end is looked for, because of the following
  bool persistent = false;          // it is begun again and again
  bool by_host = false;             // the host does it
  Flight* next = nullptr;           // that the host has given back
  unsigned observers = 0;           // of its call (observe.h)
  std::uint32_t recorded = 0;       // as which one in flight; 0: not (record.h)
  Reason left = Reason::kNone;      // why the host does it, if it does
  MPI_Request host_request{};
  HostCall host_call;  // if it is early or persistent

  static constexpr std::uint8_t kEarly = 1;    // its team is not ready: the host may have to do it
  static constexpr std::uint8_t kUnnamed = 2;  // its algorithm is still to be asked for

  // What is counted when it has ended (tally.h).
  struct Tally {
    int place = 0;  // of its communicator
    std::int64_t in_bytes = 0, out_bytes = 0;
    const char* algorithm = "";
    std::chrono::steady_clock::duration time{};
  };
  Tally tally;

  // What the collective needs until it has ended.
  std::vector<std::int64_t> tables;
  HostReduction host_reduction;
  std::shared_ptr<void> kept;
  std::function<int()> unpack;
  std::array<int, 2> pins = {-1, -1};      // of its buffers (heap_pins.h); -1: there is none
  std::shared_ptr<const Staging> staging;  // null: no buffer of its is in a device's memory

  // Of a persistent one (persistent.h).
  std::function<Outcome()> begin;
  std::atomic<bool> active = false;    // begun, and the program was not told of its end
  std::atomic<unsigned> happened = 0;  // since then, of the following
  MPI_Comm asked{};                    // what the program called its communicator
  int tag = 0;                         // of its message to this process itself
  std::uint32_t known_as = 0;          // its call in a recording

  static constexpr unsigned kShown = 1;   // the host waits for it, too
  static constexpr unsigned kLanded = 2;  // it has ended
  static constexpr unsigned kFreed = 4;   // the program has freed its handle
};

/// Begins the collective: now, or, if it is persistent, each time that it is started.
template <typename Function>
Outcome at_start(Flight* flight, Function function) {
  if (flight == nullptr || !flight->persistent) [[likely]]
    return function();
  flight->begin = std::move(function);
  return {};
}

/// At the end of the collective: now, if it is a blocking one.
template <typename Function>
int at_end(Flight* flight, Function function) {
  if (flight == nullptr) return function();
  if (!flight->unpack) flight->unpack = std::move(function);  // a persistent one has it already
  return MPI_SUCCESS;
}

/// For byte counts and offsets of the blocks of all ranks.
inline std::int64_t* tables_of(Communicator& communicator, Flight* flight) {
  if (flight == nullptr) return communicator.tables.data();
  flight->tables.resize(communicator.tables.size());
  return flight->tables.data();
}

/// How many things there are that the completion calls have to look after.
extern constinit std::atomic<int> g_flights;
// Partner: complete_handle of another thread. The host knows of the ends of those that are not
// there.
inline bool any_flights() { return g_flights.load(std::memory_order_acquire) > 0; }

/// A flight for a call, and back if the call was left or failed.
Flight* new_flight(Communicator& communicator, std::size_t counted);
void drop_flight(Flight* flight);
/// One that has a handle already has begun.
void take_off(Flight* flight);
/// A handle is known until carillon has completed it.
void know_handle(Flight* flight);
void forget_handle(MPI_Request handle);
/// Null: none of carillon's.
Flight* find_flight(MPI_Request handle);
/// Its collective has begun: makes the program's handle.
int launch_flight(Flight* flight, MPI_Request* handle);

/// A communicator whose team is in the making: it is looked after until it is settled.
void watch_agreement(Communicator& communicator);
/// Waits until the communicator's team is made, or never will be: until then it may be being copied
/// (bootstrap.h).
void await_team(MPI_Comm comm);

/// Whether something may need more than the progress that carillon makes while it waits.
bool settles_slowly();

/// Whether this thread is within advance_flights().
bool is_sweeping();
/// Moves everything on and completes the handles of what has ended. Does nothing within itself,
/// or while carillon is calling the host.
void advance_flights();

/// The flight of a handle, if it is one that can be waited for alone; nobody else will complete it.
Flight* claim_flight(MPI_Request handle);
/// Whether a claimed flight ends within a few polls; and back, if nobody waits for it alone.
[[nodiscard]] bool ends_soon(Flight* flight);
void unclaim_flight(Flight* flight);
/// One that has ended with an error, of which the host has yet to tell the program. Null: none.
extern constinit std::atomic<int> g_failed_flights;
inline bool any_failed_flights() { return g_failed_flights.load(std::memory_order_relaxed) > 0; }
Flight* find_failed(MPI_Request handle);
/// Waits for a claimed flight's end. If all went well, `handle` is MPI_REQUEST_NULL then, and the
/// host hears nothing of it: its request serves the next flight. Else it is completed there, and an
/// error, if so asked, is left for the caller to raise.
struct Ending {
  bool ours = false;
  MPI_Comm comm{};  // the collective's
  int code = MPI_SUCCESS;
  bool taken_back = false;
};
Ending end_flight(Flight* flight, bool alone, MPI_Request* handle);
/// What the host would say of a request that has ended so.
void tell_nothing(MPI_Status* status);

/// In MPI_Finalize: waits for what the program has left.
void finish_flights();

}  // namespace carillon::shim
