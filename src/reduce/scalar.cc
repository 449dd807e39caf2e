// SPDX-License-Identifier: Apache-2.0
//
// Kernels without vector instructions: long double, for which there are none, and the pairs of
// value and index.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "reduce/element.h"
#include "reduce/kernel_table.h"

namespace carillon {
namespace {

using Long = long double;

/// What comes first wins: the orders of MIN and MINLOC, MAX and MAXLOC.
struct Less {
  template <class T>
  static bool before(T a, T b) {
    return a < b;
  }
};
struct Greater {
  template <class T>
  static bool before(T a, T b) {
    return a > b;
  }
};

struct Sum {
  static Long apply(Long left, Long right) { return left + right; }
  static Complex<Long> apply(Complex<Long> left, Complex<Long> right) {
    return {left.real + right.real, left.imag + right.imag};
  }
};
struct Prod {
  static Long apply(Long left, Long right) { return left * right; }
  static Complex<Long> apply(Complex<Long> left, Complex<Long> right) {
    return {left.real * right.real - left.imag * right.imag,
            left.real * right.imag + left.imag * right.real};
  }
};
template <class Order>
struct First {
  static Long apply(Long left, Long right) {
    return std::isnan(left) || Order::before(left, right) ? left : right;
  }
};

template <class Op, class Element>
void apply_kernel(void* dst, const void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    store_element(dst, i,
                  Op::apply(load_element<Element>(left, i), load_element<Element>(right, i)));
  }
}

template <class Order, class Value, class Index>
bool right_wins(const Located<Value, Index>& left, const Located<Value, Index>& right) {
  const bool right_is_lower = right.index < left.index;
  if constexpr (std::is_floating_point_v<Value>) {
    if (std::isunordered(left.value, right.value)) [[unlikely]] {
      return std::isnan(right.value) & (!std::isnan(left.value) | right_is_lower);
    }
  }
  return Order::before(right.value, left.value) | ((right.value == left.value) & right_is_lower);
}

/// Takes whole elements, so that padding is a copy too and results compare bytewise. As masked
/// words, because a branch on which side wins cannot be predicted.
template <class Order, class Value, class Index>
void located_kernel(void* dst, const void* left, const void* right, std::size_t count) {
  using Element = Located<Value, Index>;
  using Words = std::array<std::uint64_t, sizeof(Element) / sizeof(std::uint64_t)>;
  static_assert(sizeof(Words) == sizeof(Element));
  for (std::size_t i = 0; i < count; ++i) {
    const auto winner =
        std::uint64_t{0} - std::uint64_t{right_wins<Order>(load_element<Element>(left, i),
                                                           load_element<Element>(right, i))};
    auto words = load_element<Words>(left, i);
    const auto right_words = load_element<Words>(right, i);
    for (std::size_t w = 0; w < words.size(); ++w) {
      words[w] ^= (words[w] ^ right_words[w]) & winner;
    }
    store_element(dst, i, words);
  }
}

template <class Value, class Index>
void add_located(KernelTable& table, crl_dtype_kind_t dtype) {
  table.set(CRL_MINLOC, dtype, &located_kernel<Less, Value, Index>);
  table.set(CRL_MAXLOC, dtype, &located_kernel<Greater, Value, Index>);
}

}  // namespace

void add_scalar_kernels(KernelTable& table) {
  table.set(CRL_SUM, CRL_LONG_DOUBLE, &apply_kernel<Sum, Long>);
  table.set(CRL_PROD, CRL_LONG_DOUBLE, &apply_kernel<Prod, Long>);
  table.set(CRL_MIN, CRL_LONG_DOUBLE, &apply_kernel<First<Less>, Long>);
  table.set(CRL_MAX, CRL_LONG_DOUBLE, &apply_kernel<First<Greater>, Long>);
  table.set(CRL_SUM, CRL_COMPLEX_LONG_DOUBLE, &apply_kernel<Sum, Complex<Long>>);
  table.set(CRL_PROD, CRL_COMPLEX_LONG_DOUBLE, &apply_kernel<Prod, Complex<Long>>);

  add_located<float, int>(table, CRL_FLOAT32_INT);
  add_located<double, int>(table, CRL_FLOAT64_INT);
  add_located<long, int>(table, CRL_LONG_INT);
  add_located<int, int>(table, CRL_INT_INT);
  add_located<short, int>(table, CRL_SHORT_INT);
  add_located<Long, int>(table, CRL_LONG_DOUBLE_INT);
  add_located<float, float>(table, CRL_FLOAT32_FLOAT32);
  add_located<double, double>(table, CRL_FLOAT64_FLOAT64);
}

}  // namespace carillon
