// SPDX-License-Identifier: Apache-2.0
//
// The program's attributes of communicators stay behind where carillon makes a copy of one for
// itself: the program has not asked for a copy, and may refuse it in an attribute's function, or do
// there what it means to do once.
//
// That is so under Open MPI, where a key's functions are the ones that MPI_Comm_create_keyval was
// given. MPICH's Fortran and C++ call the same function, and tell afterwards how the key's
// functions are to be called: what carillon would put in their place is called so, too.
#pragma once

#include "host.h"

namespace carillon::shim {

/// While carillon makes a copy.
class WithoutAttributes {
 public:
#ifdef OPEN_MPI
  WithoutAttributes() { ++t_copies; }
  ~WithoutAttributes() { --t_copies; }
  static bool now() { return t_copies > 0; }
#else
  WithoutAttributes() {}   // NOLINT(modernize-use-equals-default): it is no unused variable
  ~WithoutAttributes() {}  // NOLINT(modernize-use-equals-default)
#endif
  WithoutAttributes(const WithoutAttributes&) = delete;
  WithoutAttributes& operator=(const WithoutAttributes&) = delete;

 private:
  static constinit thread_local int t_copies;
};

}  // namespace carillon::shim
