// SPDX-License-Identifier: Apache-2.0
//
// Programs in Fortran: mpif.h, `use mpi` and `use mpi_f08`.
#pragma once

#include <string>

namespace carillon::shim {

/// Lets the host's Fortran functions call carillon's, where libraries with such functions have been
/// loaded since the last time. Empty; or why one of these libraries cannot be changed, in words for
/// the user. Any thread.
std::string serve_fortran();
/// The same while the program runs, when it is too late to agree with the other ranks: says it.
void serve_late_fortran();

/// Whether the code at this address is of a library that calls carillon's. Any thread.
bool is_served_fortran(const void* address);

}  // namespace carillon::shim
