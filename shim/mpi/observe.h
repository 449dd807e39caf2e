// SPDX-License-Identifier: Apache-2.0
//
// Calls that are looked at: compared with those of other ranks (check.h), recorded (record.h),
// counted by communicator (tally.h). They go the slow way, so that nothing is paid where nobody
// looks: find_communicator_slow says Reason::kObserved, and intercept.cc, which looks at that where
// a call is left anyway, comes here.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

#include "call.h"
#include "flight.h"
#include "thread_cache.h"

namespace carillon::shim {

/// Who looks.
inline constexpr unsigned kChecking = 1, kRecording = 2, kCounting = 4;

/// Those in this process; and those that know of the call that this thread is in.
extern constinit std::atomic<unsigned> g_observing;
extern constinit thread_local unsigned t_observed __attribute__((tls_model("initial-exec")));

inline void observe(unsigned what) { g_observing.fetch_or(what, std::memory_order_relaxed); }
inline void observe_no_more(unsigned what) {
  g_observing.fetch_and(~what, std::memory_order_relaxed);
}
inline bool is_observed_by(unsigned what) {
  return (g_observing.load(std::memory_order_relaxed) & what) != 0;
}

/// Those that are to look at a call of this thread.
inline unsigned observers() {
  const unsigned all = g_observing.load(std::memory_order_relaxed);
  if (all == 0) [[likely]]
    return 0;
  return t_cache.depth == 0 ? all & ~t_observed : 0;
}

using ObserverClock = std::chrono::steady_clock;

/// While a function of the program's may be called that need not return, or calls MPI itself.
class Unobserved {
 public:
  Unobserved();
  ~Unobserved();
  Unobserved(const Unobserved&) = delete;
  Unobserved& operator=(const Unobserved&) = delete;

 private:
  unsigned observed_;
  class ObservedCall* call_;
};

/// One call that is recorded or counted, from its begin to its end.
class ObservedCall {
 public:
  /// MPI_Start has no arguments that say what it begins: null.
  explicit ObservedCall(const Call* call);
  ~ObservedCall();
  ObservedCall(const ObservedCall&) = delete;
  ObservedCall& operator=(const ObservedCall&) = delete;

  /// It has ended, or, if it has launched a flight, begun.
  void write(std::size_t called, const Outcome& outcome);
  /// A persistent one is made: what it does each time that it begins.
  void know(std::size_t called, Flight* flight) const;
  /// One was to be made, and is the host's.
  void write_left(std::size_t called, const Outcome& outcome) const;
  /// One has begun.
  void write_start() const;

 private:
  friend void observe_launch(Flight* flight);
  [[nodiscard]] bool is_wrong(const Outcome& outcome) const;
  [[nodiscard]] bool is_for(unsigned who) const { return (observers_ & who) != 0; }

  const Call* call_;
  unsigned observers_;
  Flight* launched_ = nullptr;
  ObserverClock::time_point begin_;
};

/// The flight of the call that this thread is in takes off, and others may see it end from then on.
void observe_launch(Flight* flight);

/// A function that asks until something has ended: in it, what has ended was waited for.
class ObservedPolling {
 public:
  ObservedPolling();
  ~ObservedPolling();
  ObservedPolling(const ObservedPolling&) = delete;
  ObservedPolling& operator=(const ObservedPolling&) = delete;

 private:
  bool outermost_ = false;
};

/// The end of a flight: from when it is waited for, or what was before it has ended, until it has.
class ObservedEnd {
 public:
  explicit ObservedEnd(const Flight& flight) : flight_(flight), observers_(flight.observers) {
    if (observers_ != 0) [[unlikely]]
      begin();
  }
  ~ObservedEnd() {
    if (observers_ != 0) [[unlikely]]
      end();
  }
  ObservedEnd(const ObservedEnd&) = delete;
  ObservedEnd& operator=(const ObservedEnd&) = delete;

 private:
  void begin();
  void end();

  const Flight& flight_;
  unsigned observers_;
  Reason left_ = Reason::kNone;
  ObserverClock::time_point begin_;
};

}  // namespace carillon::shim
