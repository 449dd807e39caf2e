// SPDX-License-Identifier: Apache-2.0
#include "reduce/kernels.h"

#include <algorithm>
#include <cstddef>

#include "reduce/element.h"
#include "reduce/kernel_table.h"

namespace carillon {

bool supported(InstructionSet set) {
#if defined(__x86_64__)
  switch (set) {
    // What Highway wants for its targets AVX3, AVX2 and SSE4; what is not asked for (f16c, lzcnt,
    // movbe) is in every processor that has the rest.
    case InstructionSet::kAvx512:
      return supported(InstructionSet::kAvx2) && __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512cd") != 0 &&
             __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
    case InstructionSet::kAvx2:
      return supported(InstructionSet::kSse4) && __builtin_cpu_supports("avx2") != 0 &&
             __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("bmi") != 0 &&
             __builtin_cpu_supports("bmi2") != 0;
    case InstructionSet::kSse4:
      return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0 &&
             __builtin_cpu_supports("aes") != 0;
    case InstructionSet::kBaseline: break;
  }
#endif
  return set == InstructionSet::kBaseline;
}

KernelTable make_kernel_table(InstructionSet set) {
  KernelTable table;
  add_arithmetic_kernels(table, set);
  add_logic_kernels(table, set);
  add_scalar_kernels(table);
  return table;
}

Kernel find_kernel(crl_op_kind_t op, crl_dtype_kind_t dtype) {
  static const KernelTable table =
      make_kernel_table(*std::find_if(kInstructionSets.begin(), kInstructionSets.end(), supported));
  return table.get(op, dtype);
}

std::size_t dtype_bytes(crl_dtype_kind_t dtype) {
  switch (dtype) {
    case CRL_INT8:
    case CRL_UINT8:
    case CRL_BOOL: return 1;
    case CRL_INT16:
    case CRL_UINT16: return 2;
    case CRL_INT32:
    case CRL_UINT32:
    case CRL_FLOAT32: return 4;
    case CRL_INT64:
    case CRL_UINT64:
    case CRL_FLOAT64: return 8;
    case CRL_LONG_DOUBLE: return sizeof(long double);
    case CRL_COMPLEX_FLOAT32: return 2 * sizeof(float);
    case CRL_COMPLEX_FLOAT64: return 2 * sizeof(double);
    case CRL_COMPLEX_LONG_DOUBLE: return 2 * sizeof(long double);
    case CRL_FLOAT32_INT: return sizeof(Located<float, int>);
    case CRL_FLOAT64_INT: return sizeof(Located<double, int>);
    case CRL_LONG_INT: return sizeof(Located<long, int>);
    case CRL_INT_INT: return sizeof(Located<int, int>);
    case CRL_SHORT_INT: return sizeof(Located<short, int>);
    case CRL_LONG_DOUBLE_INT: return sizeof(Located<long double, int>);
    case CRL_FLOAT32_FLOAT32: return sizeof(Located<float, float>);
    case CRL_FLOAT64_FLOAT64: return sizeof(Located<double, double>);
    case CRL_DTYPES: break;
  }
  return 0;
}

}  // namespace carillon
