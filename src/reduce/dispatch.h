// SPDX-License-Identifier: Apache-2.0
//
// Choosing among what one file was compiled to for several targets of Highway. Not by Highway's own
// means, which live in its shared library: that would have to be there wherever the interposer is
// loaded, and costs every process milliseconds at its start.
#pragma once

#include <cstdint>

#include "hwy/highway.h"
#include "reduce/kernel_table.h"

namespace carillon {

using AddKernels = void (*)(KernelTable& table);

/// Of a target that was not compiled for.
struct NoKernels {
  static constexpr AddKernels kAdd = nullptr;
};

/// Kernels<T>::kAdd adds the kernels for Highway's target T.
template <template <std::int64_t> class Kernels>
AddKernels kernels_for(InstructionSet set) {
  AddKernels add = nullptr;
  switch (set) {
    case InstructionSet::kAvx512: add = Kernels<HWY_AVX3>::kAdd; break;
    case InstructionSet::kAvx2: add = Kernels<HWY_AVX2>::kAdd; break;
    case InstructionSet::kSse4: add = Kernels<HWY_SSE4>::kAdd; break;
    case InstructionSet::kBaseline: break;
  }
  return add != nullptr ? add : Kernels<HWY_STATIC_TARGET>::kAdd;
}

}  // namespace carillon
