// SPDX-License-Identifier: Apache-2.0
//
// What the reduction kernels must compute: one element at a time, with other means than the
// kernels' (128-bit integers, <cmath>, branches), and operands to try.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "carillon/carillon.h"

namespace carillon::reduce_test {

template <class V, class I>
struct Pair {
  using Value = V;
  using Index = I;
  V value;
  I index;
};

template <class T>
constexpr bool kIsPair = false;
template <class V, class I>
constexpr bool kIsPair<Pair<V, I>> = true;
template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<std::complex<T>> = true;

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

/// One defined pair of operator and type; functions work on one element at any address.
struct Case {
  crl_op_kind_t op;
  crl_dtype_kind_t dtype;
  std::string name;
  std::size_t bytes;
  /// Writes operand number i of the given side (0: left, 1: right).
  void (*make)(void* out, unsigned side, std::size_t i);
  void (*combine)(crl_op_kind_t op, void* out, const void* left, const void* right);
  /// Bit for bit, but a NaN of SUM and PROD may be any NaN and padding of numbers is ignored.
  bool (*same)(crl_op_kind_t op, const void* a, const void* b);
};

/// GoogleTest's name for a case in messages.
inline void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

template <class T>
T get(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Well mixed bits of (side, i): splitmix64.
inline std::uint64_t bits_of(unsigned side, std::size_t i) {
  std::uint64_t z = (2 * i + side + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// Full mantissas, so that every operation rounds, with zeros, infinities and NaN among them.
template <class T>
T make_float(unsigned side, std::size_t i) {
  const std::uint64_t bits = bits_of(side, i);
  using Limits = std::numeric_limits<T>;
  switch (bits % 64) {
    case 0: return T{0};
    case 1: return -T{0};
    case 2: return Limits::infinity();
    case 3: return -Limits::infinity();
    case 4: return Limits::quiet_NaN();
    case 5: return Limits::denorm_min();
    case 6: return Limits::max();
    case 7:
    case 8:
    case 9: return T{3};  // equal on both sides now and then
    default: break;
  }
  const T mantissa = static_cast<T>(bits >> 8) / static_cast<T>(std::uint64_t{1} << 55);
  const T value = std::ldexp(mantissa, static_cast<int>(bits_of(side + 2, i) % 9) - 4);
  return bits & 64 ? -value : value;
}

template <class T>
T make_integer(unsigned side, std::size_t i) {
  const std::uint64_t bits = bits_of(side, i);
  switch (bits % 16) {
    case 0: return std::numeric_limits<T>::min();
    case 1: return std::numeric_limits<T>::max();
    case 2:
    case 3:
    case 4: return T{0};
    case 5: return static_cast<T>(-1);
    default: return static_cast<T>(bits >> 8);
  }
}

template <class T>
void make(void* out, unsigned side, std::size_t i) {
  if constexpr (kIsPair<T>) {
    std::memset(out, static_cast<int>(0xA0 + side), sizeof(T));  // tells whose padding it is
    const std::uint64_t bits = bits_of(side + 4, i);
    typename T::Value value;
    if constexpr (std::is_floating_point_v<typename T::Value>) {
      value = bits % 3 ? static_cast<typename T::Value>(bits % 4)
                       : make_float<typename T::Value>(side, i);
      if (i % 11 == 0) value = side ? -0.0f : 0.0f;
      if (i % 13 == 0) value = std::numeric_limits<typename T::Value>::quiet_NaN();
    } else {
      value = bits % 3 ? static_cast<typename T::Value>(bits % 4)
                       : make_integer<typename T::Value>(side, i);
    }
    const auto index = static_cast<typename T::Index>((bits >> 8) % 5);
    std::memcpy(static_cast<char*>(out) + offsetof(T, value), &value, sizeof value);
    std::memcpy(static_cast<char*>(out) + offsetof(T, index), &index, sizeof index);
  } else if constexpr (kIsComplex<T>) {
    make<typename T::value_type>(out, side, 2 * i);
    make<typename T::value_type>(static_cast<char*>(out) + sizeof(T) / 2, side, 2 * i + 1);
  } else if constexpr (std::is_floating_point_v<T>) {
    const T value = make_float<T>(side, i);
    std::memcpy(out, &value, sizeof value);
  } else {
    const T value = std::is_same_v<T, bool> ? bits_of(side, i) % 2 : make_integer<T>(side, i);
    std::memcpy(out, &value, sizeof value);
  }
}

/// Each operation through memory, so that no compiler fuses two.
template <class T>
T add(T a, T b) {
  volatile T sum = a + b;
  return sum;
}
template <class T>
T multiply(T a, T b) {
  volatile T product = a * b;
  return product;
}

template <class T>
T combine_float(crl_op_kind_t op, T left, T right) {
  switch (op) {
    case CRL_SUM: return add(left, right);
    case CRL_PROD: return multiply(left, right);
    default: break;
  }
  if (std::isnan(left)) return left;
  if (std::isnan(right)) return right;
  if (left == right) return right;
  return (left < right) == (op == CRL_MIN) ? left : right;
}

template <class T>
T combine_integer(crl_op_kind_t op, T left, T right) {
  const Wide l = left;
  const Wide r = right;
  switch (op) {
    case CRL_SUM: return static_cast<T>(l + r);
    case CRL_PROD:
      return static_cast<T>(static_cast<UnsignedWide>(l) * static_cast<UnsignedWide>(r));
    case CRL_MIN: return static_cast<T>(l <= r ? l : r);
    case CRL_MAX: return static_cast<T>(l >= r ? l : r);
    case CRL_BAND: return static_cast<T>(l & r);
    case CRL_BOR: return static_cast<T>(l | r);
    case CRL_BXOR: return static_cast<T>(l ^ r);
    case CRL_LAND: return left && right ? 1 : 0;
    case CRL_LOR: return left || right ? 1 : 0;
    default: return !left != !right ? 1 : 0;
  }
}

template <class T>
std::complex<T> combine_complex(crl_op_kind_t op, std::complex<T> l, std::complex<T> r) {
  if (op == CRL_SUM) return {add(l.real(), r.real()), add(l.imag(), r.imag())};
  return {add(multiply(l.real(), r.real()), -multiply(l.imag(), r.imag())),
          add(multiply(l.real(), r.imag()), multiply(l.imag(), r.real()))};
}

/// -1: a is better, 1: b is better, 0: equal.
template <class T>
int compare(crl_op_kind_t op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) && std::isnan(b)) return 0;
    if (std::isnan(a)) return -1;
    if (std::isnan(b)) return 1;
  }
  if (a == b) return 0;
  return (a < b) == (op == CRL_MINLOC) ? -1 : 1;
}

template <class T>
void combine(crl_op_kind_t op, void* out, const void* left, const void* right) {
  const T l = get<T>(left);
  const T r = get<T>(right);
  if constexpr (kIsPair<T>) {
    const int order = compare(op, l.value, r.value);
    std::memcpy(out, order > 0 || (order == 0 && r.index < l.index) ? right : left, sizeof(T));
  } else {
    T result;
    if constexpr (kIsComplex<T>) {
      result = combine_complex(op, l, r);
    } else if constexpr (std::is_floating_point_v<T>) {
      result = combine_float(op, l, r);
    } else {
      result = combine_integer(op, l, r);
    }
    std::memcpy(out, &result, sizeof result);
  }
}

template <class T>
bool same(crl_op_kind_t op, const void* a, const void* b) {
  if constexpr (kIsComplex<T>) {
    const auto* a_imag = static_cast<const char*>(a) + sizeof(T) / 2;
    const auto* b_imag = static_cast<const char*>(b) + sizeof(T) / 2;
    using Part = typename T::value_type;
    return same<Part>(op, a, b) && same<Part>(op, a_imag, b_imag);
  } else if constexpr (std::is_floating_point_v<T>) {
    const T x = get<T>(a);
    const T y = get<T>(b);
    if (std::isnan(x) || std::isnan(y)) {
      const bool any = op == CRL_SUM || op == CRL_PROD || std::is_same_v<T, long double>;
      return std::isnan(x) && std::isnan(y) && (any || std::memcmp(a, b, sizeof x) == 0);
    }
    return x == y && std::signbit(x) == std::signbit(y);
  } else {
    return std::memcmp(a, b, sizeof(T)) == 0;
  }
}

template <class T>
void add_cases(std::vector<Case>& cases, crl_dtype_kind_t dtype, const std::string& name,
               std::initializer_list<crl_op_kind_t> ops) {
  static const char* const kOpNames[] = {"sum",  "prod", "min", "max",  "band",   "bor",
                                         "bxor", "land", "lor", "lxor", "minloc", "maxloc"};
  for (const auto op : ops) {
    cases.push_back({op, dtype, std::string(kOpNames[op]) + "_" + name, sizeof(T), &make<T>,
                     &combine<T>, &same<T>});
  }
}

/// Every pair the standard defines (and bitwise ones of bool), written out apart from the library.
inline std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const auto integers = {CRL_SUM, CRL_PROD, CRL_MIN,  CRL_MAX, CRL_BAND,
                         CRL_BOR, CRL_BXOR, CRL_LAND, CRL_LOR, CRL_LXOR};
  const auto floats = {CRL_SUM, CRL_PROD, CRL_MIN, CRL_MAX};
  const auto complexes = {CRL_SUM, CRL_PROD};
  const auto pairs = {CRL_MINLOC, CRL_MAXLOC};
  add_cases<std::int8_t>(cases, CRL_INT8, "int8", integers);
  add_cases<std::int16_t>(cases, CRL_INT16, "int16", integers);
  add_cases<std::int32_t>(cases, CRL_INT32, "int32", integers);
  add_cases<std::int64_t>(cases, CRL_INT64, "int64", integers);
  add_cases<std::uint8_t>(cases, CRL_UINT8, "uint8", integers);
  add_cases<std::uint16_t>(cases, CRL_UINT16, "uint16", integers);
  add_cases<std::uint32_t>(cases, CRL_UINT32, "uint32", integers);
  add_cases<std::uint64_t>(cases, CRL_UINT64, "uint64", integers);
  add_cases<float>(cases, CRL_FLOAT32, "float32", floats);
  add_cases<double>(cases, CRL_FLOAT64, "float64", floats);
  add_cases<long double>(cases, CRL_LONG_DOUBLE, "long_double", floats);
  add_cases<bool>(cases, CRL_BOOL, "bool",
                  {CRL_BAND, CRL_BOR, CRL_BXOR, CRL_LAND, CRL_LOR, CRL_LXOR});
  add_cases<std::complex<float>>(cases, CRL_COMPLEX_FLOAT32, "complex_float32", complexes);
  add_cases<std::complex<double>>(cases, CRL_COMPLEX_FLOAT64, "complex_float64", complexes);
  add_cases<std::complex<long double>>(cases, CRL_COMPLEX_LONG_DOUBLE, "complex_long_double",
                                       complexes);
  add_cases<Pair<float, int>>(cases, CRL_FLOAT32_INT, "float32_int", pairs);
  add_cases<Pair<double, int>>(cases, CRL_FLOAT64_INT, "float64_int", pairs);
  add_cases<Pair<long, int>>(cases, CRL_LONG_INT, "long_int", pairs);
  add_cases<Pair<int, int>>(cases, CRL_INT_INT, "int_int", pairs);
  add_cases<Pair<short, int>>(cases, CRL_SHORT_INT, "short_int", pairs);
  add_cases<Pair<long double, int>>(cases, CRL_LONG_DOUBLE_INT, "long_double_int", pairs);
  add_cases<Pair<float, float>>(cases, CRL_FLOAT32_FLOAT32, "float32_float32", pairs);
  add_cases<Pair<double, double>>(cases, CRL_FLOAT64_FLOAT64, "float64_float64", pairs);
  return cases;
}

}  // namespace carillon::reduce_test
