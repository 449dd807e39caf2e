// SPDX-License-Identifier: Apache-2.0
//
// Communicators of processes that were not started together: parents and those that they have
// spawned, or those that MPI_Comm_connect has brought together, merged. Where CARILLON_MERGED is
// on, such a communicator has a world of its own, which its processes make as it is merged. An
// attribute of the host's tells which it is, because a process of another job is at no place by
// which other worlds know theirs. Copies have it, too, and parts in which there is such a process.
#pragma once

#include "host.h"

namespace carillon::shim {

struct World;

/// The caller's use of the world becomes the communicator's. Local.
void mark_joined(MPI_Comm comm, World& world);
/// Null: none. The communicator is a user of it.
World* joined_world(MPI_Comm comm);
/// `part` was made of `whole`, and has processes of other jobs. Local.
void mark_part(MPI_Comm whole, MPI_Comm part);

/// The program has neither MPI_Init nor a session any more: such communicators are gone.
void forget_joined();

}  // namespace carillon::shim
