// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that kernels are compiled for; include before anything of Highway. The
// others would cost compile time and size for little: on x86-64 AVX-512, AVX2, SSE4 and, for what
// is older, plain loops remain; on Arm NEON.
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
