// SPDX-License-Identifier: Apache-2.0
//
// Which reductions switches compute, in the names of the C API.
#pragma once

#include "carillon/carillon.h"
#include "engine/run.h"

namespace carillon {

/// False if switches do not compute the predefined operator on the type; else sets what they are
/// asked for. Sums and bits of unsigned integers are those of signed ones.
bool find_switch_operation(crl_op_t op, crl_dtype_t dtype, Reduction& reduction);

}  // namespace carillon
