// SPDX-License-Identifier: Apache-2.0
//
// BAND, BOR, BXOR, LAND, LOR and LXOR of integers and bool.
#include "reduce/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/logic.cc"
#include "hwy/foreach_target.h"  // includes this file again for each target

#include <cstddef>
#include <cstdint>

#include "reduce/dispatch.h"
#include "reduce/kernel_table.h"
#include "reduce/vector_loop-inl.h"

#ifndef CARILLON_REDUCE_LOGIC_CC_
#define CARILLON_REDUCE_LOGIC_CC_
namespace carillon {
/// Specialized below, once for each target.
template <std::int64_t kTarget>
struct LogicKernels : NoKernels {};
}  // namespace carillon
#endif

HWY_BEFORE_NAMESPACE();
namespace carillon {
namespace HWY_NAMESPACE {
namespace {

struct BitAnd {
  static constexpr std::size_t kUnit = 1;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V left, V right) {
    return hn::And(left, right);
  }
};

struct BitOr {
  static constexpr std::size_t kUnit = 1;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V left, V right) {
    return hn::Or(left, right);
  }
};

struct BitXor {
  static constexpr std::size_t kUnit = 1;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D, V left, V right) {
    return hn::Xor(left, right);
  }
};

/// 1 where value is not 0, else 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V truth(D d, V value) {
  return hn::IfThenElseZero(hn::Ne(value, hn::Zero(d)), hn::Set(d, hn::TFromD<D>{1}));
}

/// A logical operation is the bitwise one on truth values.
template <class Bitwise>
struct Logical {
  static constexpr std::size_t kUnit = 1;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V apply(D d, V left, V right) {
    return Bitwise::apply(d, truth(d, left), truth(d, right));
  }
};

template <class Unsigned>
void add_type(KernelTable& table, crl_dtype_kind_t dtype) {
  table.set(CRL_BAND, dtype, &vector_kernel<BitAnd, Unsigned>);
  table.set(CRL_BOR, dtype, &vector_kernel<BitOr, Unsigned>);
  table.set(CRL_BXOR, dtype, &vector_kernel<BitXor, Unsigned>);
  table.set(CRL_LAND, dtype, &vector_kernel<Logical<BitAnd>, Unsigned>);
  table.set(CRL_LOR, dtype, &vector_kernel<Logical<BitOr>, Unsigned>);
  table.set(CRL_LXOR, dtype, &vector_kernel<Logical<BitXor>, Unsigned>);
}

void add_logic(KernelTable& table) {
  add_type<std::uint8_t>(table, CRL_BOOL);
  add_type<std::uint8_t>(table, CRL_INT8);
  add_type<std::uint8_t>(table, CRL_UINT8);
  add_type<std::uint16_t>(table, CRL_INT16);
  add_type<std::uint16_t>(table, CRL_UINT16);
  add_type<std::uint32_t>(table, CRL_INT32);
  add_type<std::uint32_t>(table, CRL_UINT32);
  add_type<std::uint64_t>(table, CRL_INT64);
  add_type<std::uint64_t>(table, CRL_UINT64);
}

}  // namespace
}  // namespace HWY_NAMESPACE

template <>
struct LogicKernels<HWY_TARGET> {
  static constexpr AddKernels kAdd = &HWY_NAMESPACE::add_logic;
};

}  // namespace carillon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carillon {

void add_logic_kernels(KernelTable& table, InstructionSet set) {
  kernels_for<LogicKernels>(set)(table);
}

}  // namespace carillon
#endif
