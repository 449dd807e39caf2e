// SPDX-License-Identifier: Apache-2.0
//
// The lists of all flights, for flight.cc and early.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "flight.h"
#include "process.h"
#include "request_table.h"

namespace carillon::shim {

struct Flights {
  std::mutex sweeping;             // one thread at a time moves everything on
  std::mutex mutex;                // of what follows
  RequestTable<Flight> by_handle;  // until the handle has been completed, though it fly no more
  RequestTable<Flight> failed;     // the program was not yet told
  std::vector<Flight*> flying;     // in the order in which they were started
  std::size_t next = 0;            // of these, to look at
  std::vector<Flight*> spare;
  std::vector<Communicator*> agreeing;
  std::atomic<Flight*> given_back = nullptr;  // by the host; taken in by take_back
};

// Never destroyed: the host may free requests while the process ends. There from the beginning:
// nothing is to be looked at before it is used.
union FlightsForEver {
  Flights all;
  constexpr FlightsForEver() noexcept : all() {}
  FlightsForEver(const FlightsForEver&) = delete;
  FlightsForEver& operator=(const FlightsForEver&) = delete;
  ~FlightsForEver() {}
};
extern constinit FlightsForEver g_all_flights;
inline Flights& flights() { return g_all_flights.all; }

/// Nothing where the program has one thread.
class FlightsLock {
 public:
  explicit FlightsLock(std::mutex& mutex) : mutex_(mutex), needed_(process().threaded) {
    if (needed_) mutex_.lock();
  }
  ~FlightsLock() {
    if (needed_) mutex_.unlock();
  }
  FlightsLock(const FlightsLock&) = delete;
  FlightsLock& operator=(const FlightsLock&) = delete;

 private:
  std::mutex& mutex_;
  bool needed_;
};

}  // namespace carillon::shim
