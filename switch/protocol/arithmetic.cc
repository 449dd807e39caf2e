// SPDX-License-Identifier: Apache-2.0
#include "switch/protocol/arithmetic.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace carillon::aggregate {
namespace {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// Floats as the protocol has them, while one lives: to nearest, and subnormals kept. A program's
// thread may have it otherwise, as -ffast-math does; it has that again afterwards. The assembly
// orders what is read and written in memory, and so what is computed between.
class ProtocolFloats {
 public:
  ProtocolFloats() : before_(read()) {
    if ((before_ & kDiffers) != 0) write(before_ & ~kDiffers);
  }
  ~ProtocolFloats() {
    if ((before_ & kDiffers) != 0) write(read() | (before_ & kDiffers));
  }
  ProtocolFloats(const ProtocolFloats&) = delete;
  ProtocolFloats& operator=(const ProtocolFloats&) = delete;

 private:
#if defined(__x86_64__)
  using Control = std::uint32_t;
  static constexpr Control kDiffers = 0xe040;  // flush to zero, rounding, subnormals are zeros
  static Control read() {
    Control control;
    asm volatile("stmxcsr %0" : "=m"(control) : : "memory");
    return control;
  }
  static void write(Control control) { asm volatile("ldmxcsr %0" : : "m"(control) : "memory"); }
#elif defined(__aarch64__)
  using Control = std::uint64_t;
  // FZ16, FZ, rounding, and FIZ of FEAT_AFP.
  static constexpr Control kDiffers = 0x1c80001;
  static Control read() {
    Control control;
    asm volatile("mrs %0, fpcr" : "=r"(control) : : "memory");
    return control;
  }
  static void write(Control control) { asm volatile("msr fpcr, %0" : : "r"(control) : "memory"); }
#else
  // Of other processors the setting is not known: there the thread's own has to be the usual one.
  using Control = std::uint32_t;
  static constexpr Control kDiffers = 0;
  static Control read() { return 0; }
  static void write(Control) {}
#endif
  Control before_;
};

static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<double>::is_iec559);

// The one NaN that an operation gives: positive, quiet, without payload.
template <class Float>
constexpr Float kNan = std::bit_cast<Float>(sizeof(Float) == 4
                                                ? static_cast<Bits<Float>>(0x7fc00000)
                                                : static_cast<Bits<Float>>(0x7ff8000000000000));

struct Sum {
  template <class T>
  static T apply(T left, T right) {
    if constexpr (std::is_floating_point_v<T>) {
      const T sum = left + right;
      return sum == sum ? sum : kNan<T>;
    } else {
      return static_cast<T>(static_cast<Bits<T>>(left) + static_cast<Bits<T>>(right));
    }
  }
};

// Equal numbers have the same bits, but for zeros: there the sign of either makes the least.
template <bool kLeast>
struct Extreme {
  template <class T>
  static T apply(T left, T right) {
    if constexpr (std::is_floating_point_v<T>) {
      if (left != left || right != right) return kNan<T>;
      if (left == right) {
        const auto a = std::bit_cast<Bits<T>>(left), b = std::bit_cast<Bits<T>>(right);
        return std::bit_cast<T>(kLeast ? a | b : a & b);
      }
    }
    return (left < right) == kLeast ? left : right;
  }
};

struct And {
  template <class T>
  static T apply(T left, T right) {
    return left & right;
  }
};
struct Or {
  template <class T>
  static T apply(T left, T right) {
    return left | right;
  }
};
struct Xor {
  template <class T>
  static T apply(T left, T right) {
    return left ^ right;
  }
};

template <class Operation, class T>
void apply_all(std::byte* left, const std::byte* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, left + i * sizeof(T), sizeof(T));
    std::memcpy(&b, right + i * sizeof(T), sizeof(T));
    a = Operation::apply(a, b);
    std::memcpy(left + i * sizeof(T), &a, sizeof(T));
  }
}

template <class T>
void apply_op(Op op, std::byte* left, const std::byte* right, std::size_t count) {
  switch (op) {
    case Op::kSum: apply_all<Sum, T>(left, right, count); return;
    case Op::kMin: apply_all<Extreme<true>, T>(left, right, count); return;
    case Op::kMax: apply_all<Extreme<false>, T>(left, right, count); return;
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == Op::kAnd) apply_all<And, T>(left, right, count);
    if (op == Op::kOr) apply_all<Or, T>(left, right, count);
    if (op == Op::kXor) apply_all<Xor, T>(left, right, count);
  }
}

}  // namespace

void combine(Op op, Type type, std::byte* left, const std::byte* right, std::size_t count) {
  switch (type) {
    case Type::kInt32: apply_op<std::int32_t>(op, left, right, count); return;
    case Type::kInt64: apply_op<std::int64_t>(op, left, right, count); return;
    case Type::kFloat32: {
      const ProtocolFloats floats;
      apply_op<float>(op, left, right, count);
      return;
    }
    case Type::kFloat64: {
      const ProtocolFloats floats;
      apply_op<double>(op, left, right, count);
      return;
    }
  }
}

std::byte* combine_ports(Op op, Type type, std::span<std::byte*> ports, std::size_t count) {
  for (std::size_t dist = 1; dist < ports.size(); dist *= 2) {
    for (std::size_t left = 0; left + dist < ports.size(); left += 2 * dist) {
      std::byte* const right = ports[left + dist];
      if (right == nullptr) continue;
      if (ports[left] == nullptr) {
        ports[left] = right;
      } else {
        combine(op, type, ports[left], right, count);
      }
    }
  }
  return ports.empty() ? nullptr : ports[0];
}

}  // namespace carillon::aggregate
