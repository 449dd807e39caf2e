// SPDX-License-Identifier: Apache-2.0
//
// carillon run --check (CARILLON_CHECK=1): each collective call is compared with those of the other
// ranks of its communicator: function, root, operator, count and type signature. At the first that
// does not fit the job ends, and both calls are named. Checked calls go the slow way (observe.h).
//
// Each rank describes its calls to rank 0 of the communicator, on a copy of it. A blocking call
// waits for the answer, so that nobody begins what does not fit; the others go on.
#pragma once

#include <cstddef>

#include "call.h"

namespace carillon::shim {

/// Collective over a communicator of all processes of a world (world.h), whose calls among
/// themselves are compared. False: the host refuses.
[[nodiscard]] bool start_checking(MPI_Comm world);
/// At the end, on all ranks of each such world: the calls that are not compared yet.
void finish_checking();
/// The program frees this communicator: waits until our copy of it is there, as await_team does.
void await_copy(MPI_Comm comm);
/// While the host frees a communicator (BeingFreed), our attribute is not to be among those that it
/// asks; calls on it are compared all the same. `show`: it stays. `end`: if it has not stayed.
void hide_channel(MPI_Comm comm);
void show_channel(MPI_Comm comm);
void end_channel(MPI_Comm comm);
/// Whether our copy of this communicator is in the making. Calls the host.
[[nodiscard]] bool is_copied_for_checks(MPI_Comm comm);
/// What to copy instead of it: our copy, on which the program calls nothing; itself if there is
/// none.
[[nodiscard]] MPI_Comm copy_for_checks(MPI_Comm comm);
/// Moves on what is under way; calls the host. For all who wait.
void advance_checks();

/// One call, while it runs.
class CheckedCall {
 public:
  /// Compares it. Blocking and persistent forms return when that is done.
  CheckedCall(std::size_t called, const Call& call);
  ~CheckedCall();
  CheckedCall(const CheckedCall&) = delete;
  CheckedCall& operator=(const CheckedCall&) = delete;
};

}  // namespace carillon::shim
