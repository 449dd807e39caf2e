// SPDX-License-Identifier: Apache-2.0
//
// The cores that this process may run on. As many as the kernel can have: more than fit a
// cpu_set_t.
#pragma once

#include <vector>

namespace carillon {

/// Of the calling thread, in ascending order; empty if the kernel does not say.
std::vector<int> allowed_cores();

/// From now on the calling thread runs on this one only; false: the kernel does not allow it.
bool pin_to_core(int core);

}  // namespace carillon
