// SPDX-License-Identifier: Apache-2.0
//
// Flights that begin while their communicator's team is in the making. Once it is made they are as
// others; if it cannot be, the host does them.
#pragma once

#include "flight.h"

namespace carillon::shim {

/// While one lives, a communicator whose team is in the making stays so for other threads: what
/// this one starts there is known as early, and goes to the host if it must. An error handler of
/// the program's that is called meanwhile may wait for others that are; it must return.
class Starting {
 public:
  explicit Starting(Communicator& communicator);
  ~Starting() { stop(); }
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
  /// Nothing is started any more: an error handler may be called that does not return.
  void stop() {
    if (communicator_ != nullptr) [[unlikely]]
      end();
  }
  /// How many of the communicator's are this thread's.
  static int by_this_thread(const Communicator& communicator);

 private:
  void end();
  static constinit thread_local const Starting* t_innermost;
  Communicator* communicator_ = nullptr;  // null: its team was not in the making
  const Starting* outer_ = nullptr;
};

/// Looks at all teams that are in the making.
void settle_agreements();

}  // namespace carillon::shim
