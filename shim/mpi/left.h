// SPDX-License-Identifier: Apache-2.0
//
// Communicators that are left to the host for good. In a program of sessions the processes of a
// communicator ask each other as it is made, and may find that they cannot be served together
// (world.h). Later another group that has them all may be; but they come to that, and to the first
// collective of the communicator, in no common order.
//
// An attribute of the host's tells which they are. It stays as long as MPI is there, which may be
// longer than carillon.
#pragma once

#include "host.h"

namespace carillon::shim {

/// Copies of it are, too. Local.
void leave_for_good(MPI_Comm comm);
bool is_left_for_good(MPI_Comm comm);

/// The program has neither MPI_Init nor a session any more: such communicators are gone.
void forget_who_is_left();

}  // namespace carillon::shim
