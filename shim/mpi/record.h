// SPDX-License-Identifier: Apache-2.0
//
// Recording: which collectives the program calls, and how long it computes between them, to one
// file for carillon sim --program. A recorded call goes the slow way, so that recording costs
// nothing where it is off: find_communicator_slow says Reason::kObserved, and intercept.cc, which
// looks at that where a call is left anyway, comes here.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "call.h"
#include "communicator.h"
#include "flight.h"
#include "run.h"
#include "staging.h"
#include "stats.h"

namespace carillon::shim {

/// Set while this process records; then while this thread is in a call that is being recorded.
extern constinit std::atomic<bool> g_recording;
extern constinit thread_local bool t_recorded __attribute__((tls_model("initial-exec")));

/// Whether a call of this thread is to be recorded.
inline bool records() {
  return g_recording.load(std::memory_order_relaxed) && !t_recorded && t_cache.depth == 0;
}

/// In MPI_Init and MPI_Finalize; collective over MPI_COMM_WORLD. The file is written by rank 0, if
/// the recordings of all ranks are whole.
void start_recording(const std::string& file);
void finish_recording();

/// One call, from its begin to its end.
class RecordedCall {
 public:
  RecordedCall();
  ~RecordedCall();
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;
  /// It has ended.
  void write(std::size_t called, Communicator& communicator, const Call& call,
             const Outcome& outcome) const;
  /// It has begun: what ends it is recorded, too, when it comes. The call must be known.
  void write_start(Flight* flight) const;
  /// What a flight does, each time that it begins.
  void know(std::size_t called, const Call& call, Flight* flight) const;

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// A function that asks until something has ended: of the time in it, what came before the end of
/// a recorded flight is no computation.
class RecordedPolling {
 public:
  RecordedPolling();
  ~RecordedPolling();
  RecordedPolling(const RecordedPolling&) = delete;
  RecordedPolling& operator=(const RecordedPolling&) = delete;

 private:
  bool outermost_ = false;
};

/// The end of a flight that was recorded: from when it is waited for until it has ended.
class RecordedEnd {
 public:
  explicit RecordedEnd(const Flight& flight) : recorded_(flight.recorded) {
    if (recorded_ != 0) [[unlikely]]
      begin();
  }
  ~RecordedEnd() {
    if (recorded_ != 0) [[unlikely]]
      end();
  }
  RecordedEnd(const RecordedEnd&) = delete;
  RecordedEnd& operator=(const RecordedEnd&) = delete;

 private:
  void begin();
  void end();

  std::uint32_t recorded_;
  std::chrono::steady_clock::time_point begin_;
};

template <Collective kCollective, typename HostCall>
[[gnu::noinline]] int run_recorded(const Call& call, HostCall call_host) {
  const RecordedCall recorded;
  Communicator& communicator = find_communicator(call.comm);
  const Outcome outcome = run_anywhere<kCollective>(communicator, call, nullptr);
  int code = outcome.code;
  if (outcome.left != Reason::kNone) {
    count_left(call_index(kCollective), outcome.left);
    code = call_host(communicator.for_host(call.comm, outcome.left));
  }
  recorded.write(call_index(kCollective), communicator, call, outcome);
  return code;
}

}  // namespace carillon::shim
