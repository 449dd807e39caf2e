// SPDX-License-Identifier: Apache-2.0
//
// Every kernel of every instruction set this processor has, against the oracle: all counts that
// take different paths, all legal overlaps, unaligned arrays; and results that do not depend on
// any of these.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reduce/kernel_table.h"
#include "reduce/kernels.h"
#include "reduce_oracle.h"

namespace carillon::reduce_test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kMost = 3001;
constexpr std::byte kGuard{0x5C};

struct Target {
  std::string name;
  KernelTable kernels;
};

/// The kernels as made for each instruction set of this processor, worst last.
const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> result;
    const std::array names = {"AVX-512", "AVX2", "SSE4", "baseline"};
    for (const InstructionSet set : kInstructionSets) {
      if (!supported(set)) continue;
      result.push_back({names[static_cast<std::size_t>(set)], make_kernel_table(set)});
    }
    return result;
  }();
  return all;
}

std::vector<std::size_t> counts() {
  std::vector<std::size_t> result;
  for (std::size_t count = 0; count <= 67; ++count) result.push_back(count);
  for (const std::size_t count : {127, 128, 129, 255, 257, 511, 513, 1000, 3001}) {
    result.push_back(count);
  }
  return result;
}

Bytes operands(const Case& test, unsigned side) {
  Bytes result(kMost * test.bytes);
  for (std::size_t i = 0; i < kMost; ++i) test.make(&result[i * test.bytes], side, i);
  return result;
}

Bytes expected(const Case& test, const Bytes& left, const Bytes& right) {
  Bytes result(left.size());
  for (std::size_t at = 0; at < result.size(); at += test.bytes) {
    test.combine(test.op, &result[at], &left[at], &right[at]);
  }
  return result;
}

/// Empty, or what is the first difference.
std::string difference(const Case& test, const std::byte* result, const Bytes& want,
                       std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!test.same(test.op, result + i * test.bytes, &want[i * test.bytes])) {
      return "element " + std::to_string(i) + " of " + std::to_string(count);
    }
  }
  return "";
}

/// A copy of the operand at an address that is `offset` past a multiple of 64, between guards.
class Placed {
 public:
  Placed(const Bytes& data, std::size_t bytes, std::size_t offset)
      : memory_(bytes + 256, kGuard), bytes_(bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = 64 + (64 - address % 64) % 64 + offset;
    std::copy_n(data.begin(), std::min(bytes, data.size()),
                memory_.begin() + static_cast<std::ptrdiff_t>(start_));
  }
  std::byte* at() { return memory_.data() + start_; }
  [[nodiscard]] bool guards_intact() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < start_ || i >= start_ + bytes_) && memory_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  Bytes memory_;
  std::size_t bytes_;
  std::size_t start_;
};

enum class Overlap { kNone, kLeft, kRight, kOperands, kAll };

class ReduceKernels : public ::testing::TestWithParam<Case> {
 protected:
  /// One call; checks result, guards, and that operands that are not dst stay.
  void check(Kernel kernel, std::size_t count, Overlap overlap, std::size_t offset) {
    const bool one_operand = overlap == Overlap::kOperands || overlap == Overlap::kAll;
    const std::size_t bytes = count * test_.bytes;
    const Bytes& right_data = one_operand ? left_ : right_;
    Placed left(left_, bytes, offset);
    Placed right(right_data, bytes, offset * 5 % 64);
    Placed separate(Bytes(bytes, kGuard), bytes, offset * 3 % 64);
    Placed& right_or_left = one_operand ? left : right;
    Placed& dst = overlap == Overlap::kLeft || overlap == Overlap::kAll ? left
                  : overlap == Overlap::kRight                          ? right
                                                                        : separate;
    kernel(dst.at(), left.at(), right_or_left.at(), count);

    ASSERT_EQ(difference(test_, dst.at(), one_operand ? want_same_ : want_, count), "");
    ASSERT_TRUE(left.guards_intact() && right.guards_intact() && separate.guards_intact());
    if (bytes == 0) return;
    ASSERT_TRUE(&dst == &left || std::memcmp(left.at(), left_.data(), bytes) == 0);
    ASSERT_TRUE(&dst == &right || std::memcmp(right.at(), right_data.data(), bytes) == 0);
  }

  const Case test_ = GetParam();
  const Bytes left_ = operands(test_, 0);
  const Bytes right_ = operands(test_, 1);
  const Bytes want_ = expected(test_, left_, right_);
  const Bytes want_same_ = expected(test_, left_, left_);
};

TEST_P(ReduceKernels, MeetTheOracle) {
  for (const Target& target : targets()) {
    const Kernel kernel = target.kernels.get(test_.op, test_.dtype);
    ASSERT_NE(kernel, nullptr);
    for (const std::size_t count : counts()) {
      for (const auto overlap :
           {Overlap::kNone, Overlap::kLeft, Overlap::kRight, Overlap::kOperands, Overlap::kAll}) {
        for (const std::size_t offset : {0, 1, 7, 16, 60}) {
          SCOPED_TRACE(target.name + ", count " + std::to_string(count) + ", overlap " +
                       std::to_string(static_cast<int>(overlap)) + ", offset " +
                       std::to_string(offset));
          check(kernel, count, overlap, offset);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

/// Any piece of an array, reduced by itself, has the same bits as within the whole array.
TEST_P(ReduceKernels, ResultDoesNotDependOnCountOrPlace) {
  for (const Target& target : targets()) {
    const Kernel kernel = target.kernels.get(test_.op, test_.dtype);
    for (std::size_t start = 0; start < 70; ++start) {
      const std::size_t count = 1 + bits_of(9, start) % 200;
      const std::size_t at = start * test_.bytes;
      Bytes piece(count * test_.bytes);
      kernel(piece.data(), &left_[at], &right_[at], count);
      const Bytes want(want_.begin() + static_cast<std::ptrdiff_t>(at), want_.end());
      ASSERT_EQ(difference(test_, piece.data(), want, count), "")
          << target.name << ", from " << start;
    }
  }
}

TEST_P(ReduceKernels, ElementSizeIsThatOfTheCType) {
  EXPECT_EQ(dtype_bytes(test_.dtype), test_.bytes);
}

INSTANTIATE_TEST_SUITE_P(All, ReduceKernels, ::testing::ValuesIn(all_cases()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(ReduceKernelTable, HasTheDefinedPairsOnly) {
  std::set<std::pair<int, int>> defined;
  for (const Case& test : all_cases()) defined.insert({test.op, test.dtype});
  for (int op = 0; op < CRL_OPS; ++op) {
    for (int dtype = 0; dtype < CRL_DTYPES; ++dtype) {
      const Kernel kernel =
          find_kernel(static_cast<crl_op_kind_t>(op), static_cast<crl_dtype_kind_t>(dtype));
      EXPECT_EQ(kernel != nullptr, defined.contains({op, dtype})) << op << " " << dtype;
    }
  }
}

TEST(ReduceKernelTable, RefusesWhatIsNoOperatorOrType) {
  EXPECT_EQ(find_kernel(CRL_OPS, CRL_INT32), nullptr);
  EXPECT_EQ(find_kernel(CRL_SUM, CRL_DTYPES), nullptr);
  EXPECT_EQ(dtype_bytes(CRL_DTYPES), 0u);
}

TEST(ReduceKernelTable, FindsTheBestTarget) {
  std::set<Kernel> different;
  for (const Target& target : targets()) {
    std::cout << "target " << target.name << "\n";
    different.insert(target.kernels.get(CRL_SUM, CRL_FLOAT64));
  }
  EXPECT_EQ(different.size(), targets().size());
  EXPECT_EQ(find_kernel(CRL_SUM, CRL_FLOAT64), targets().front().kernels.get(CRL_SUM, CRL_FLOAT64));
}

template <class T>
T reduce_one(crl_op_kind_t op, crl_dtype_kind_t dtype, T left, T right) {
  T result;
  find_kernel(op, dtype)(&result, &left, &right, 1);
  return result;
}

TEST(ReduceMeaning, IntegersWrapAround) {
  const auto least = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(reduce_one<std::int32_t>(CRL_SUM, CRL_INT32, least, -1),
            std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(reduce_one<std::int32_t>(CRL_PROD, CRL_INT32, least, -1), least);
}

TEST(ReduceMeaning, LogicalResultsAreZeroOrOne) {
  EXPECT_EQ(reduce_one(CRL_LAND, CRL_INT32, 4, 8), 1);
  EXPECT_EQ(reduce_one(CRL_LOR, CRL_INT32, 0, -8), 1);
  EXPECT_EQ(reduce_one(CRL_LXOR, CRL_INT32, 4, 8), 0);
  EXPECT_EQ(reduce_one<std::uint8_t>(CRL_LAND, CRL_BOOL, 2, 4), 1);
}

TEST(ReduceMeaning, NaNStaysWhateverTheOrder) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto op : {CRL_MIN, CRL_MAX}) {
    EXPECT_TRUE(std::isnan(reduce_one(op, CRL_FLOAT64, nan, 1.0)));
    EXPECT_TRUE(std::isnan(reduce_one(op, CRL_FLOAT64, 1.0, nan)));
  }
}

TEST(ReduceMeaning, LocationOfEqualValuesIsTheLowerOne) {
  using Element = Pair<double, int>;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto op : {CRL_MINLOC, CRL_MAXLOC}) {
    EXPECT_EQ(reduce_one(op, CRL_FLOAT64_INT, Element{2.0, 7}, Element{2.0, 3}).index, 3);
    EXPECT_EQ(reduce_one(op, CRL_FLOAT64_INT, Element{2.0, 3}, Element{2.0, 7}).index, 3);
    EXPECT_EQ(reduce_one(op, CRL_FLOAT64_INT, Element{0.0, 3}, Element{-0.0, 2}).index, 2);
    EXPECT_EQ(reduce_one(op, CRL_FLOAT64_INT, Element{1.0, 1}, Element{nan, 2}).index, 2);
    EXPECT_EQ(reduce_one(op, CRL_FLOAT64_INT, Element{nan, 2}, Element{1.0, 1}).index, 2);
    EXPECT_EQ(reduce_one(op, CRL_FLOAT64_INT, Element{nan, 2}, Element{nan, 1}).index, 1);
  }
  EXPECT_EQ(reduce_one(CRL_MINLOC, CRL_FLOAT64_INT, Element{1.0, 9}, Element{2.0, 3}).index, 9);
  EXPECT_EQ(reduce_one(CRL_MAXLOC, CRL_FLOAT64_INT, Element{1.0, 3}, Element{2.0, 9}).index, 9);
}

}  // namespace
}  // namespace carillon::reduce_test
