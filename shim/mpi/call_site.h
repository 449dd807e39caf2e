// SPDX-License-Identifier: Apache-2.0
//
// Where in the program an MPI function was called.
#pragma once

#include <string>

namespace carillon::shim {

/// Of the MPI function that this thread is in: the innermost place that is neither in the MPI nor
/// in the interposer, e.g. "solve+0x2f (./app+0x12ab)": the second is what addr2line takes.
std::string call_site();

}  // namespace carillon::shim
