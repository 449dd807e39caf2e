// SPDX-License-Identifier: Apache-2.0
//
// SUM, PROD, MIN and MAX of integers, float and double; SUM and PROD of complex numbers of these.
#include "reduce/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/arithmetic.cc"
#include "hwy/foreach_target.h"  // includes this file again for each target

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "reduce/element.h"
#include "reduce/dispatch.h"
#include "reduce/kernel_table.h"
#include "reduce/vector_loop-inl.h"

#ifndef CARILLON_REDUCE_ARITHMETIC_CC_
#define CARILLON_REDUCE_ARITHMETIC_CC_
namespace carillon {
/// Specialized below, once for each target.
template <std::int64_t kTarget>
struct ArithmeticKernels : NoKernels {};
}  // namespace carillon
#endif

HWY_BEFORE_NAMESPACE();
namespace carillon {
namespace HWY_NAMESPACE {
namespace {

struct Sum {
  static constexpr std::size_t kUnit = 1;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V left, V right) {
    return hn::Add(left, right);
  }
};

/// Also the sum of complex numbers, as twice as many lanes.
struct ComplexSum : Sum {
  static constexpr std::size_t kUnit = 2;
};

struct Prod {
  static constexpr std::size_t kUnit = 1;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D d, V left, V right) {
    if constexpr (sizeof(hn::TFromD<D>) > 1) {
      return hn::Mul(left, right);
    } else if constexpr (hn::MaxLanes(D()) == 1) {
      const unsigned product = unsigned{hn::GetLane(left)} * unsigned{hn::GetLane(right)};
      return hn::Set(d, static_cast<hn::TFromD<D>>(product));
    } else {  // There is no multiplication of bytes: as 16-bit halves, of which the lower counts.
      const hn::Repartition<std::uint16_t, D> d16;
      const auto l16 = hn::BitCast(d16, left);
      const auto r16 = hn::BitCast(d16, right);
      const auto even = hn::And(hn::Mul(l16, r16), hn::Set(d16, std::uint16_t{0xFF}));
      const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(l16), hn::ShiftRight<8>(r16)));
      return hn::BitCast(d, hn::Or(even, odd));
    }
  }
};

struct Min {
  static constexpr std::size_t kUnit = 1;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V left, V right) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      return hn::IfThenElse(hn::Or(hn::Lt(left, right), hn::IsNaN(left)), left, right);
    } else {
      return hn::Min(left, right);
    }
  }
};

struct Max {
  static constexpr std::size_t kUnit = 1;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V left, V right) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      return hn::IfThenElse(hn::Or(hn::Gt(left, right), hn::IsNaN(left)), left, right);
    } else {
      return hn::Max(left, right);
    }
  }
};

#if HWY_TARGET == HWY_SCALAR  // has no pairs of lanes
template <class T>
void complex_prod_kernel(void* dst, const void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto l = load_element<Complex<T>>(left, i);
    const auto r = load_element<Complex<T>>(right, i);
    store_element(dst, i,
                  Complex<T>{l.real * r.real - l.imag * r.imag, l.real * r.imag + l.imag * r.real});
  }
}
template <class T>
void complex_sum_kernel(void* dst, const void* left, const void* right, std::size_t count) {
  vector_kernel<Sum, T>(dst, left, right, 2 * count);
}
#else
struct ComplexProd {
  static constexpr std::size_t kUnit = 2;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D d, V left, V right) {
    const V real_times = hn::Mul(hn::DupEven(left), right);                  // ac  ad
    const V imag_times = hn::Mul(hn::DupOdd(left), hn::Reverse2(d, right));  // bd  bc
    return hn::OddEven(hn::Add(real_times, imag_times), hn::Sub(real_times, imag_times));
  }
};
template <class T>
void complex_prod_kernel(void* dst, const void* left, const void* right, std::size_t count) {
  vector_kernel<ComplexProd, T>(dst, left, right, count);
}
template <class T>
void complex_sum_kernel(void* dst, const void* left, const void* right, std::size_t count) {
  vector_kernel<ComplexSum, T>(dst, left, right, count);
}
#endif

/// Sums and products that wrap around are the same for both signs.
template <class T>
void add_integer(KernelTable& table, crl_dtype_kind_t dtype) {
  using Unsigned = std::make_unsigned_t<T>;
  table.set(CRL_SUM, dtype, &vector_kernel<Sum, Unsigned>);
  table.set(CRL_PROD, dtype, &vector_kernel<Prod, Unsigned>);
  table.set(CRL_MIN, dtype, &vector_kernel<Min, T>);
  table.set(CRL_MAX, dtype, &vector_kernel<Max, T>);
}

template <class T>
void add_float(KernelTable& table, crl_dtype_kind_t real, crl_dtype_kind_t complex) {
  table.set(CRL_SUM, real, &vector_kernel<Sum, T>);
  table.set(CRL_PROD, real, &vector_kernel<Prod, T>);
  table.set(CRL_MIN, real, &vector_kernel<Min, T>);
  table.set(CRL_MAX, real, &vector_kernel<Max, T>);
  table.set(CRL_SUM, complex, &complex_sum_kernel<T>);
  table.set(CRL_PROD, complex, &complex_prod_kernel<T>);
}

void add_arithmetic(KernelTable& table) {
  add_integer<std::int8_t>(table, CRL_INT8);
  add_integer<std::int16_t>(table, CRL_INT16);
  add_integer<std::int32_t>(table, CRL_INT32);
  add_integer<std::int64_t>(table, CRL_INT64);
  add_integer<std::uint8_t>(table, CRL_UINT8);
  add_integer<std::uint16_t>(table, CRL_UINT16);
  add_integer<std::uint32_t>(table, CRL_UINT32);
  add_integer<std::uint64_t>(table, CRL_UINT64);
  add_float<float>(table, CRL_FLOAT32, CRL_COMPLEX_FLOAT32);
  add_float<double>(table, CRL_FLOAT64, CRL_COMPLEX_FLOAT64);
}

}  // namespace
}  // namespace HWY_NAMESPACE

template <>
struct ArithmeticKernels<HWY_TARGET> {
  static constexpr AddKernels kAdd = &HWY_NAMESPACE::add_arithmetic;
};

}  // namespace carillon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carillon {

void add_arithmetic_kernels(KernelTable& table, InstructionSet set) {
  kernels_for<ArithmeticKernels>(set)(table);
}

}  // namespace carillon
#endif
