// SPDX-License-Identifier: Apache-2.0
//
// Reduction kernels: element-wise dst = left (op) right for every pair of operator and type that
// MPI defines (MPI 4.0, 6.9.2 and 6.9.4; MPI 3.1, 5.9.2 and 5.9.4).
//
//                      SUM PROD  MIN MAX  BAND BOR BXOR  LAND LOR LXOR  MINLOC MAXLOC
//   integers               x        x           x              x
//   float, long double     x        x
//   bool                                        x (1)          x
//   complex                x
//   value and index                                                          x
//   (1) Not in MPI, which leaves it undefined; bytewise, so 0 and 1 stay 0 and 1.
//
// Meaning, where the standard leaves room:
//   integers         wrap around.
//   logical          any non-zero operand (bool: byte) is true; the result is 0 or 1.
//   MIN, MAX         a NaN operand gives a NaN (left's, if both are), so that a NaN does not
//                    vanish depending on the order of the ranks. Equal values, such as zeros of
//                    different sign: right's.
//   MINLOC, MAXLOC   a NaN is before every number, for both, and equal to another NaN: the result
//                    is the first NaN, if there is one. Equal values: the whole element with the
//                    lower index; left's if that is equal too.
//   SUM, PROD        left (op) right. If both are NaN, which one's payload the result has is open.
//   complex PROD     (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each operation rounded: infinite
//                    parts may give NaN, as with C's CX_LIMITED_RANGE.
//
// The result of an element depends on its two operands only, bit for bit (NaN payloads aside):
// not on the count, its place in the vector, the alignment or the instruction set. Hence this
// folder is compiled with -ffp-contract=off.
#pragma once

#include <cstddef>

#include "carillon/carillon.h"

namespace carillon {

/// dst[i] = left[i] (op) right[i]. dst is exactly left, exactly right, or disjoint from both; left
/// may be right. Pointers need no alignment; with count 0 they are not looked at.
using Kernel = void (*)(void* dst, const void* left, const void* right, std::size_t count);

/// The kernel for this processor: a direct pointer, to be looked up once and kept. nullptr if the
/// pair is not defined. Any thread.
Kernel find_kernel(crl_op_kind_t op, crl_dtype_kind_t dtype);

/// Bytes of one element, padding included; 0 for an invalid type.
std::size_t dtype_bytes(crl_dtype_kind_t dtype);

}  // namespace carillon
