// SPDX-License-Identifier: Apache-2.0
//
// Communicators from every function that makes them.
#pragma once

#include <vector>

#include "operation.h"

namespace mpi_test {

/// What kinds make_group knows.
constexpr int kGroupKinds = 13;
/// Collective over the parent. No communicator where this process is not in it.
Group make_group(const Group& parent, int kind, std::uint64_t seed);
/// Some of each kind, the world first.
std::vector<Group> make_groups(std::uint64_t seed);
void free_group(Group& group);

}  // namespace mpi_test
