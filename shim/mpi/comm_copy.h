// SPDX-License-Identifier: Apache-2.0
//
// Copies of communicators that are made for carillon while the program goes on.
#pragma once

#include "host.h"

namespace carillon::shim {

/// A copy of a communicator of several ranks. (Of one rank alone none is needed: nobody else can
/// come to its collectives in another order.)
///
/// MPICH finds the number of a new communicator in tries of all its ranks; of those that have
/// failed in their first one, one at a time gets on. A rank that makes a communicator of itself
/// alone meanwhile tries again and again at once, without progress for anything else: it stands
/// still for ever, if a copy that it would have to let get on first is under way, and another one
/// besides. So makers of such communicators call let_copies_pass() first.
///
/// Open MPI 4.1 holds a copy back while one of a communicator with a lower number is under way: if
/// that one needed a rank that waits for the other copy, both would stand still for ever. So there
/// none is begun before all ranks have come: then it needs nothing more than progress.
class CommCopy {
 public:
  /// On all ranks, between the same collectives on `original`. The host's status.
  int begin(MPI_Comm original);
  [[nodiscard]] bool begun() const { return begun_; }
  /// Once begun: whether it is there. The host's status.
  int test(int* there);
  /// Not to be used until it is there.
  [[nodiscard]] MPI_Comm comm() const { return comm_; }
  /// It is not needed any more. Nothing if it is not there.
  void free();

 private:
  [[nodiscard]] int begin_coming(MPI_Comm original);
  [[nodiscard]] int begin_copying();
  void end();

  MPI_Comm original_{}, comm_{};
  MPI_Request copying_{};
  MPI_Request coming_{};  // of all ranks
  bool begun_ = false, there_ = false, all_have_come_ = false;
  bool under_way_ = false;  // and counted
};

/// Whether makers of communicators of one rank may have to wait.
[[nodiscard]] bool copies_are_in_the_way();
/// Waits for the copies to which all ranks have come: they need nothing more than that all make
/// progress. (Who has yet to come to the others may wait for what this rank does next.) Says so if
/// that takes a minute, and waits no longer then.
void let_copies_pass();
/// Before a maker of what is of the ranks of a communicator or group: that, if it is of one rank.
template <typename Object>
void let_pass_if_alone(int (*size_of)(Object, int*), Object object) {
  if (!copies_are_in_the_way()) return;
  int size = 0;
  if (size_of(object, &size) == MPI_SUCCESS && size == 1) let_copies_pass();
}

}  // namespace carillon::shim
