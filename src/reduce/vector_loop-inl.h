// SPDX-License-Identifier: Apache-2.0
//
// Applies a vector operation to whole arrays. Compiled once per instruction set, hence Highway's
// include guard.
//
// Every element is computed by the same vector operation, whatever the count: no scalar tail.
// Instead, a piece between n and 2n elements long is two vectors of n that overlap:
//
//      0        n       count            count = 11, n = 8
//      |------first-----|
//            |------last------|
//
// All operands are read before anything is written, so that dst may be left or right although the
// overlap is computed twice. Longer arrays have a loop between first and last, which are written
// last, when the loop has read the operands they share with it. The loop begins where dst is
// aligned: vector stores across cache lines cost twice.
//
// An Op is a struct of
//   kUnit                        lanes that belong together (2 for complex numbers)
//   V apply(D d, V left, V right)
#if defined(CARILLON_REDUCE_VECTOR_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CARILLON_REDUCE_VECTOR_LOOP_INL_H_
#undef CARILLON_REDUCE_VECTOR_LOOP_INL_H_
#else
#define CARILLON_REDUCE_VECTOR_LOOP_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace carillon {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// The arrays of a call; offsets into them are in lanes.
struct Arrays {
  Arrays(void* dst_array, const void* left_array, const void* right_array)
      : dst(static_cast<std::byte*>(dst_array)),
        left(static_cast<const std::byte*>(left_array)),
        right(static_cast<const std::byte*>(right_array)) {}
  std::byte* dst;
  const std::byte* left;
  const std::byte* right;
};

template <class D>
constexpr std::size_t lanes() {
  return hn::MaxLanes(D());
}

/// Small pieces go by way of an aligned copy, which compiles to one move; Highway's own loads
/// would want the alignment of the element.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const std::byte* array, std::size_t at) {
  using T = hn::TFromD<D>;
  const std::byte* from = array + at * sizeof(T);
  if constexpr (lanes<D>() * sizeof(T) < 16) {
    alignas(16) T copy[lanes<D>()];
    std::memcpy(copy, from, sizeof copy);
    return hn::Load(d, copy);
  } else {
    return hn::LoadU(d, reinterpret_cast<const T*>(from));
  }
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, std::byte* array, std::size_t at) {
  using T = hn::TFromD<D>;
  std::byte* to = array + at * sizeof(T);
  if constexpr (lanes<D>() * sizeof(T) < 16) {
    alignas(16) T copy[lanes<D>()];
    hn::Store(value, d, copy);
    std::memcpy(to, copy, sizeof copy);
  } else {
    hn::StoreU(value, d, reinterpret_cast<T*>(to));
  }
}

template <class Op, class D>
HWY_INLINE hn::Vec<D> combine(D d, Arrays a, std::size_t at) {
  return Op::apply(d, load(d, a.left, at), load(d, a.right, at));
}

/// First lane at which dst is aligned to a vector, 1 to n, in whole units. Arbitrary (and legal)
/// if dst is not even aligned to its elements.
template <class Op, class D>
HWY_INLINE std::size_t aligned_start(D, const std::byte* dst) {
  constexpr std::size_t n = lanes<D>();
  const auto past = reinterpret_cast<std::uintptr_t>(dst) / sizeof(hn::TFromD<D>) % n;
  return (n - past) / Op::kUnit * Op::kUnit;
}

/// count >= n lanes. Not inlined, and called with its caller's arguments, so that small counts
/// need no stack frame.
template <class Op, class T>
HWY_NOINLINE void apply_many(void* dst, const void* left, const void* right, std::size_t count) {
  const hn::ScalableTag<T> d;
  constexpr std::size_t n = lanes<decltype(d)>();
  const Arrays a(dst, left, right);
  const std::size_t last_at = count - n;
  const auto first = combine<Op>(d, a, 0);
  const auto last = combine<Op>(d, a, last_at);
  std::size_t at = aligned_start<Op>(d, a.dst);
  for (; at + 3 * n < last_at; at += 4 * n) {
    const auto v0 = combine<Op>(d, a, at);
    const auto v1 = combine<Op>(d, a, at + n);
    const auto v2 = combine<Op>(d, a, at + 2 * n);
    const auto v3 = combine<Op>(d, a, at + 3 * n);
    store(d, v0, a.dst, at);
    store(d, v1, a.dst, at + n);
    store(d, v2, a.dst, at + 2 * n);
    store(d, v3, a.dst, at + 3 * n);
  }
  for (; at < last_at; at += n) store(d, combine<Op>(d, a, at), a.dst, at);
  store(d, first, a.dst, 0);
  store(d, last, a.dst, last_at);
}

/// count <= 2 n lanes of D: the widest vector that fits, twice.
template <class Op, class D>
HWY_INLINE void apply_few(D d, Arrays a, std::size_t count) {
  constexpr std::size_t n = lanes<D>();
  if (count >= n) {
    const auto first = combine<Op>(d, a, 0);
    const auto last = combine<Op>(d, a, count - n);
    store(d, first, a.dst, 0);
    store(d, last, a.dst, count - n);
  } else if constexpr (n > Op::kUnit) {
    apply_few<Op>(hn::CappedTag<hn::TFromD<D>, n / 2>(), a, count);
  }
}

/// A Kernel for arrays of Op::kUnit x T.
template <class Op, class T>
void vector_kernel(void* dst, const void* left, const void* right, std::size_t count) {
  const hn::ScalableTag<T> d;
  const std::size_t all = count * Op::kUnit;
  if (all > 2 * lanes<decltype(d)>()) return apply_many<Op, T>(dst, left, right, all);
  apply_few<Op>(d, Arrays(dst, left, right), all);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace carillon
HWY_AFTER_NAMESPACE();

#endif
