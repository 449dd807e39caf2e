// SPDX-License-Identifier: Apache-2.0
//
// Programs in Fortran: mpif.h, `use mpi` and `use mpi_f08`.
#pragma once

namespace carillon::shim {

/// Lets the host's Fortran functions call carillon's, where libraries with such functions have been
/// loaded since the last time.
void serve_fortran();

}  // namespace carillon::shim
