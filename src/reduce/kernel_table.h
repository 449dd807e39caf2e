// SPDX-License-Identifier: Apache-2.0
//
// Kernels by operator and type, and the files that provide them. For kernels.cc and the tests.
#pragma once

#include <array>
#include <cstddef>

#include "carillon/carillon.h"
#include "reduce/kernels.h"

namespace carillon {

class KernelTable {
 public:
  [[nodiscard]] Kernel get(crl_op_kind_t op, crl_dtype_kind_t dtype) const {
    const auto row = static_cast<std::size_t>(op);
    const auto column = static_cast<std::size_t>(dtype);
    return row < CRL_OPS && column < CRL_DTYPES ? kernels_[row][column] : nullptr;
  }
  void set(crl_op_kind_t op, crl_dtype_kind_t dtype, Kernel kernel) {
    kernels_[op][dtype] = kernel;
  }

 private:
  std::array<std::array<Kernel, CRL_DTYPES>, CRL_OPS> kernels_{};
};

/// Each adds its kernels, for the best instruction set Highway may use at the time of the call.
void add_arithmetic_kernels(KernelTable& table);  // arithmetic.cc: SUM PROD MIN MAX
void add_logic_kernels(KernelTable& table);       // logic.cc: BAND BOR BXOR LAND LOR LXOR
void add_scalar_kernels(KernelTable& table);      // scalar.cc: long double, MINLOC, MAXLOC

/// All of them.
KernelTable make_kernel_table();

}  // namespace carillon
