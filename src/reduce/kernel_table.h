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

/// What kernels are compiled for, best first. The last one is what every processor has that the
/// library runs on.
enum class InstructionSet { kAvx512, kAvx2, kSse4, kBaseline };
inline constexpr std::array kInstructionSets = {InstructionSet::kAvx512, InstructionSet::kAvx2,
                                                InstructionSet::kSse4, InstructionSet::kBaseline};

/// Whether this processor and its operating system have it.
bool supported(InstructionSet set);

/// Each adds its kernels for an instruction set.
void add_arithmetic_kernels(KernelTable& table, InstructionSet set);  // SUM PROD MIN MAX
void add_logic_kernels(KernelTable& table, InstructionSet set);       // BAND BOR BXOR LAND LOR LXOR
void add_scalar_kernels(KernelTable& table);                          // long double, MINLOC, MAXLOC

/// All of them.
KernelTable make_kernel_table(InstructionSet set);

}  // namespace carillon
