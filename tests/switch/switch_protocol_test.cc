// SPDX-License-Identifier: Apache-2.0
//
// Packets of the switch protocol: what is read is what was built, and nothing else is read. And its
// arithmetic, at the values where processors differ.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "switch/protocol/arithmetic.h"
#include "switch/protocol/packet.h"

namespace carillon::aggregate {
namespace {

using Bytes = std::vector<std::byte>;
constexpr SipKey kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

Header contribution() {
  return {.version = kVersion,
          .kind = Kind::kContribute,
          .flags = kBurstFlag | kLastFlag,
          .op = Op::kMax,
          .type = Type::kInt64,
          .count = 3,
          .job = 0x01020304,
          .group = 0x05060708,
          .sequence = 0x090a0b0c,
          .offset = 0x0d0e0f10,
          .slot = 0x1112,
          .child = 19};
}

Bytes built(const Header& header, std::size_t payload) {
  Bytes bytes(kHeaderBytes + payload);
  for (std::size_t i = 0; i < payload; ++i) bytes[kHeaderBytes + i] = static_cast<std::byte>(i);
  seal(kKey, header, bytes);
  return bytes;
}

TEST(SwitchProtocol, TheHeaderLiesAsItIsDefined) {
  const Bytes bytes = built(contribution(), 24);
  const std::array<int, 30> front = {1, 1, 6,  2,  1,  0,  0,  3,  1,  2,  3,  4, 5,  6, 7,
                                     8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 0, 19, 0, 0};
  for (std::size_t i = 0; i < front.size(); ++i) {
    EXPECT_EQ(std::to_integer<int>(bytes[i]), front[i]) << i;
  }
  // The tag is that of the words which a data path of 64 bits sees.
  Bytes words(2);
  words.insert(words.end(), bytes.begin(), bytes.begin() + 30);
  words.insert(words.end(), bytes.begin() + kHeaderBytes, bytes.end());
  EXPECT_EQ(load_header(bytes.data()).tag, siphash(kKey, words));
}

TEST(SwitchProtocol, APacketIsReadAsItWasBuilt) {
  const Bytes bytes = built(contribution(), 24);
  const auto packet = parse(bytes);
  ASSERT_TRUE(packet);
  Header header = packet->header;
  header.tag = 0;
  EXPECT_EQ(header, contribution());
  EXPECT_EQ(packet->payload.size(), 24U);
  EXPECT_EQ(packet->payload[23], std::byte{23});
  EXPECT_TRUE(is_authentic(kKey, bytes));
  EXPECT_FALSE(is_authentic({kKey.low, kKey.high + 1}, bytes));
}

TEST(SwitchProtocol, NoBitMayBeWrongAndNoByteMissing) {
  const Bytes whole = built(contribution(), 24);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes damaged = whole;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(parse(damaged) && is_authentic(kKey, damaged)) << bit;
  }
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(parse(std::span(whole).first(bytes))) << bytes;
  }
}

TEST(SwitchProtocol, WhatHasNoMeaningIsNotRead) {
  const auto reads = [](auto change, std::size_t payload) {
    Header header = contribution();
    change(header);
    return parse(built(header, payload)).has_value();
  };
  EXPECT_TRUE(reads([](Header&) {}, 24));
  EXPECT_TRUE(reads([](Header& h) { h.flags |= kEmptyFlag; }, 0));
  EXPECT_FALSE(reads([](Header& h) { h.flags |= kEmptyFlag; }, 24)) << "empty, but is not";
  EXPECT_FALSE(reads([](Header&) {}, 16)) << "fewer than it says";
  EXPECT_FALSE(reads([](Header&) {}, 32)) << "more than it says";
  EXPECT_FALSE(reads([](Header& h) { h.count = 0; }, 0)) << "nothing, but not empty";
  EXPECT_FALSE(reads([](Header& h) { h.version = 2; }, 24));
  EXPECT_FALSE(reads([](Header& h) { h.zero = 1; }, 24));
  EXPECT_FALSE(reads([](Header& h) { h.flags = 0x10; }, 24));
  EXPECT_FALSE(reads([](Header& h) { h.kind = static_cast<Kind>(4); }, 24));
  EXPECT_FALSE(reads([](Header& h) { h.op = static_cast<Op>(6); }, 24));
  EXPECT_FALSE(reads([](Header& h) { h.type = static_cast<Type>(4); }, 24));
  EXPECT_FALSE(reads([](Header& h) { h.reason = Reason::kQuota; }, 24));
  EXPECT_FALSE(reads([](Header& h) { h.job = 0; }, 24));
  EXPECT_FALSE(reads([](Header& h) { h.child = kMaxChildren; }, 24));
  const auto bitwise = [](Type type) {
    return [type](Header& h) {
      h.op = Op::kXor;
      h.type = type;
      h.count = 24 / static_cast<std::uint16_t>(type_bytes(type));
    };
  };
  EXPECT_TRUE(reads(bitwise(Type::kInt32), 24));
  EXPECT_FALSE(reads(bitwise(Type::kFloat32), 24)) << "bits of floats";
  const auto of_block = [](std::uint16_t count) {
    return [count](Header& h) {
      h.flags = 0;
      h.count = count;
    };
  };
  EXPECT_TRUE(reads(of_block(32), 256));
  EXPECT_FALSE(reads(of_block(33), 264)) << "longer than a block";
}

TEST(SwitchProtocol, EachInstanceOfAJobHasItsKey) {
  const SipKey key = job_key(kKey, 1, 1);
  EXPECT_NE(key.low, key.high);
  for (const SipKey& other : {job_key(kKey, 1, 2), job_key(kKey, 2, 1), job_key({1, 2}, 1, 1)}) {
    EXPECT_NE(key.low, other.low);
    EXPECT_NE(key.high, other.high);
  }
}

// ---- arithmetic

template <class T>
T apply(Op op, Type type, T left, T right) {
  combine(op, type, reinterpret_cast<std::byte*>(&left), reinterpret_cast<std::byte*>(&right), 1);
  return left;
}

template <class T>
class SwitchFloats : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SwitchFloats, Floats);

TYPED_TEST(SwitchFloats, NansZerosAndSubnormalsAreAsWrittenDown) {
  using T = TypeParam;
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Type kType = sizeof(T) == 4 ? Type::kFloat32 : Type::kFloat64;
  constexpr Bits kQuiet = sizeof(T) == 4 ? Bits{0x7fc00000} : static_cast<Bits>(0x7ff8000000000000);
  const auto bits = [](Op op, T left, T right) {
    return std::bit_cast<Bits>(apply(op, kType, left, right));
  };
  const auto from = [](Bits b) { return std::bit_cast<T>(b); };
  const T infinity = std::numeric_limits<T>::infinity();
  const T odd_nan = from(kQuiet | Bits{1} << (8 * sizeof(T) - 1) | 0x123);  // negative, a payload
  const T least = std::numeric_limits<T>::denorm_min();
  for (const Op op : {Op::kSum, Op::kMin, Op::kMax}) {
    EXPECT_EQ(bits(op, odd_nan, T(1)), kQuiet);
    EXPECT_EQ(bits(op, T(1), odd_nan), kQuiet);
    EXPECT_EQ(bits(op, odd_nan, odd_nan), kQuiet);
  }
  EXPECT_EQ(bits(Op::kSum, infinity, -infinity), kQuiet);
  EXPECT_EQ(bits(Op::kMin, T(0), T(-0.0)), std::bit_cast<Bits>(T(-0.0)));
  EXPECT_EQ(bits(Op::kMin, T(-0.0), T(0)), std::bit_cast<Bits>(T(-0.0)));
  EXPECT_EQ(bits(Op::kMax, T(0), T(-0.0)), Bits{0});
  EXPECT_EQ(bits(Op::kMax, T(-0.0), T(0)), Bits{0});
  EXPECT_EQ(bits(Op::kMax, T(-0.0), T(-0.0)), std::bit_cast<Bits>(T(-0.0)));
  EXPECT_EQ(bits(Op::kSum, T(-0.0), T(0)), Bits{0});
  EXPECT_EQ(bits(Op::kMin, T(-2), T(3)), std::bit_cast<Bits>(T(-2)));
  EXPECT_EQ(bits(Op::kMax, T(-2), T(3)), std::bit_cast<Bits>(T(3)));
  EXPECT_EQ(bits(Op::kSum, least, least), Bits{2}) << "subnormals are kept";
  EXPECT_EQ(bits(Op::kSum, T(1), std::numeric_limits<T>::epsilon() / 2), std::bit_cast<Bits>(T(1)))
      << "a tie goes to even";
}

TEST(SwitchFloats, AreRoundedToNearestWhateverTheThreadDoes) {
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    ASSERT_EQ(std::fesetround(rounding), 0);
    const float up = apply(Op::kSum, Type::kFloat32, 1.0F, 0x1.8p-24F);
    const double down = apply(Op::kSum, Type::kFloat64, 1.0, 0x1p-54);
    const double zero = apply(Op::kSum, Type::kFloat64, 1.0, -1.0);
    const int after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(up, 0x1.000002p0F);
    EXPECT_EQ(down, 1.0);
    EXPECT_FALSE(std::signbit(zero));
    EXPECT_EQ(after, rounding) << "the thread's own is changed";
  }
}

#if defined(__x86_64__)
TEST(SwitchFloats, KeepSubnormalsWhateverTheThreadDoes) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // as -ffast-math has it
  const auto sum = std::bit_cast<std::uint32_t>(
      apply(Op::kSum, Type::kFloat32, std::bit_cast<float>(3U), std::bit_cast<float>(4U)));
  const auto least = std::bit_cast<std::uint32_t>(
      apply(Op::kMin, Type::kFloat32, std::bit_cast<float>(6U), std::bit_cast<float>(9U)));
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(sum, 7U);
  EXPECT_EQ(least, 6U);
  EXPECT_EQ(after & 0xffc0, (before | 0x8040) & 0xffc0) << "the thread's own is changed";
}
#endif

TEST(SwitchIntegers, SumsWrapAround) {
  EXPECT_EQ(apply<std::int32_t>(Op::kSum, Type::kInt32, INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(apply<std::int64_t>(Op::kSum, Type::kInt64, INT64_MIN, -1), INT64_MAX);
  EXPECT_EQ(apply<std::int32_t>(Op::kMin, Type::kInt32, -1, 1), -1);
  EXPECT_EQ(apply<std::int64_t>(Op::kMax, Type::kInt64, INT64_MIN, 7), 7);
  EXPECT_EQ(apply<std::int32_t>(Op::kAnd, Type::kInt32, 0b1100, 0b1010), 0b1000);
  EXPECT_EQ(apply<std::int32_t>(Op::kOr, Type::kInt32, 0b1100, 0b1010), 0b1110);
  EXPECT_EQ(apply<std::int64_t>(Op::kXor, Type::kInt64, 0b1100, 0b1010), 0b0110);
}

// Written as a formula: the order of floats is seen in their sum.
TEST(SwitchPorts, AreCombinedInABalancedTreeWithoutTheAbsent) {
  const auto sum = [](std::array<double, 7> v, unsigned present) {
    std::array<std::byte*, 7> ports{};
    for (std::size_t i = 0; i < 7; ++i) {
      if ((present >> i & 1) != 0) ports[i] = reinterpret_cast<std::byte*>(&v[i]);
    }
    const std::byte* const at = combine_ports(Op::kSum, Type::kFloat64, ports, 1);
    double out = -1;
    if (at != nullptr) std::memcpy(&out, at, sizeof out);
    return out;
  };
  const std::array<double, 7> v = {1, 1e16, -1e16, 1, 0.1, 7, 1e-3};
  EXPECT_EQ(sum(v, 0b1111111), ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + v[6]));
  EXPECT_EQ(sum(v, 0b1110101), (v[0] + v[2]) + ((v[4] + v[5]) + v[6]));
  EXPECT_EQ(sum(v, 0b0011110), (v[1] + (v[2] + v[3])) + v[4]);
  EXPECT_EQ(sum(v, 0b0100000), v[5]);
  EXPECT_EQ(sum(v, 0), -1) << "there is none";
  EXPECT_NE(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + v[6]),
            v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6])
      << "this test sees no order";
}

}  // namespace
}  // namespace carillon::aggregate
