// SPDX-License-Identifier: Apache-2.0
#include "observe.h"

#include <utility>

#include "communicator.h"
#include "record.h"
#include "tally.h"

namespace carillon::shim {

constinit std::atomic<unsigned> g_observing = 0;
constinit thread_local unsigned t_observed = 0;

namespace {

using Clock = ObserverClock;

constinit thread_local ObservedCall* t_call = nullptr;  // that this thread is in
constinit thread_local bool t_polling = false;
constinit thread_local Clock::rep t_polling_since = 0;  // of the clock

}  // namespace

Unobserved::Unobserved()
    : observed_(std::exchange(t_observed, 0)), call_(std::exchange(t_call, nullptr)) {}

Unobserved::~Unobserved() {
  t_observed = observed_;
  t_call = call_;
}

ObservedCall::ObservedCall(const Call* call)
    : call_(call), observers_(observers() & (kRecording | kCounting)), begin_(Clock::now()) {
  t_observed |= observers_;
  t_call = this;
}

ObservedCall::~ObservedCall() {
  t_call = nullptr;
  t_observed &= ~observers_;
  // The next call goes the slow way, too.
  t_cache.observed = std::exchange(t_cache.last.generation, 0);
}

// Some hosts tell the error handler that there is no communicator, and return no error.
bool ObservedCall::is_wrong(const Outcome& outcome) const {
  return outcome.code != MPI_SUCCESS || call_->comm == g_host.comm_null;
}

void ObservedCall::write(std::size_t called, const Outcome& outcome) {
  const Clock::time_point end = Clock::now();
  if (launched_ != nullptr) {
    if (is_for(kRecording)) record_known(called, *call_, launched_);
    return write_start();
  }
  if (is_wrong(outcome)) return;
  Communicator& communicator = find_communicator(call_->comm, MayWait::kNo);
  if (is_for(kCounting)) {
    const bool blocks = called < kCollectives;
    if (blocks || outcome.left != Reason::kNone) {
      tally_call(called, *call_, communicator, outcome.left, end - begin_);
    }
  }
  if (is_for(kRecording)) {
    record_call({begin_, end}, called, communicator, *call_, outcome.left);
  }
}

void ObservedCall::know(std::size_t called, Flight* flight) const {
  if (is_for(kCounting)) tally_known(*call_, find_communicator(call_->comm), flight);
  if (is_for(kRecording)) record_known(called, *call_, flight);
}

void ObservedCall::write_left(std::size_t called, const Outcome& outcome) const {
  if (!is_for(kCounting) || is_wrong(outcome)) return;
  tally_call(called, *call_, find_communicator(call_->comm), outcome.left, Clock::now() - begin_);
}

void ObservedCall::write_start() const {
  if (is_for(kRecording)) record_start(begin_, launched_);
}

void observe_launch(Flight* flight) {
  ObservedCall* const call = t_call;
  if (call == nullptr) return;  // it is only checked
  call->launched_ = flight;
  flight->observers = call->observers_;
  flight->recorded = 0;
  if (!call->is_for(kCounting)) return;
  if (call->call_ != nullptr) tally_known(*call->call_, *flight->communicator, flight);
  tally_start(flight, Clock::now() - call->begin_);
}

ObservedPolling::ObservedPolling() {
  outermost_ = (observers() & (kRecording | kCounting)) != 0 && !t_polling;
  if (!outermost_) return;
  t_polling = true;
  t_polling_since = Clock::now().time_since_epoch().count();
}

ObservedPolling::~ObservedPolling() {
  if (outermost_) t_polling = false;
}

void ObservedEnd::begin() {
  begin_ = t_polling ? Clock::time_point(Clock::duration(t_polling_since)) : Clock::now();
  if (flight_.by_host) left_ = flight_.left;
}

void ObservedEnd::end() {
  const Clock::time_point end = Clock::now();
  if ((observers_ & kCounting) != 0 && flight_.code == MPI_SUCCESS) {
    // Another call's time is not counted twice.
    const bool in_call = (t_observed & kCounting) != 0;
    tally_end(flight_, left_, in_call ? Clock::duration() : end - begin_);
  }
  if ((observers_ & kRecording) != 0) record_end(begin_, flight_.recorded);
  if (t_polling) t_polling_since = Clock::now().time_since_epoch().count();
}

}  // namespace carillon::shim
