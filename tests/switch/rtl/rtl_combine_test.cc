// SPDX-License-Identifier: Apache-2.0
//
// A node of the hardware's reduction tree against the reference, bit by bit: all operations one
// after the other and mixed, numbers at the edges, all distances of exponents, random ones, and
// absent operands. CARILLON_TEST_RTL_OPERANDS: random pairs per operation.
#include <Combine.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <tuple>

#include "switch/rtl/module.h"
#include "switch/rtl/operands.h"

namespace carillon::rtl {
namespace {

constexpr std::size_t kCycles = 8;  // CombineCycles
constexpr std::uint64_t kPairs = 200'000;
constexpr int kMaxFailures = 10;

struct Input {
  Operation operation;
  std::uint64_t left = 0, right = 0;
  bool left_present = true, right_present = true;
};

class CombineTest : public testing::Test {
 protected:
  // Every cycle takes a pair. What comes out belongs to the one of eight cycles ago.
  void feed(const Input& input) {
    node_->operation_i = operation_bits(input.operation);
    node_->left_present_i = input.left_present;
    node_->right_present_i = input.right_present;
    node_->left_i = input.left;
    node_->right_i = input.right;
    node_->quick_valid_i = 0;
    pending_.push_back(input);
    rise(*node_);
    if (pending_.size() == kCycles) {
      check(pending_.front(), node_->present_o != 0, node_->result_o);
      pending_.pop_front();
    }
    fall(*node_);
  }

  void feed(const Operation& operation, std::uint64_t left, std::uint64_t right) {
    feed({.operation = operation, .left = left, .right = right});
  }

  // The last pairs come out when others go in.
  void TearDown() override {
    for (std::size_t i = 1; i < kCycles; ++i) feed({Op::kXor, Type::kInt64}, i, 0);
    EXPECT_LE(failures_, kMaxFailures) << "and more, of " << checked_;
    RecordProperty("pairs", std::to_string(checked_));
  }

  void check(const Input& input, bool result_present, std::uint64_t result) {
    ++checked_;
    const bool present = input.left_present || input.right_present;
    std::uint64_t expected = input.left_present ? input.left : input.right;
    if (input.left_present && input.right_present) {
      expected = reference(input.operation, input.left, input.right);
    }
    const bool right = result_present == present && (!present || result == expected);
    if (right || ++failures_ > kMaxFailures) return;
    ADD_FAILURE() << name_of(input.operation.op) << " " << name_of(input.operation.type) << std::hex
                  << ": left " << input.left << " right " << input.right << " is " << expected
                  << ", not " << result << "; present " << present << ", " << result_present;
  }

  ModulePointer<Combine> node_ = make_module<Combine>();
  std::deque<Input> pending_;
  std::uint64_t checked_ = 0;
  int failures_ = 0;
};

// The quick way: a result two cycles after its operands, whatever the other operands are.
TEST_F(CombineTest, QuickWay) {
  Operands operands(11);
  std::deque<Input> quick;
  for (int i = 0; i < 20'000; ++i) {
    const auto operations = all_operations();
    Input input = {.operation = operations[operands.below(operations.size())]};
    const bool is_float_sum =
        input.operation.op == Op::kSum &&
        (input.operation.type == Type::kFloat32 || input.operation.type == Type::kFloat64);
    if (is_float_sum) continue;
    std::tie(input.left, input.right) = operands.pair(input.operation.type);
    input.left_present = operands.below(4) != 0;
    input.right_present = operands.below(4) != 0;
    node_->operation_i = operation_bits(operations[operands.below(operations.size())]);
    node_->left_present_i = node_->right_present_i = 1;
    node_->left_i = operands.bits();
    node_->quick_valid_i = 1;
    node_->quick_operation_i = operation_bits(input.operation);
    node_->quick_left_present_i = input.left_present;
    node_->quick_right_present_i = input.right_present;
    node_->quick_left_i = input.left;
    node_->quick_right_i = input.right;
    quick.push_back(input);
    rise(*node_);
    if (quick.size() == 2) {
      check(quick.front(), node_->quick_present_o != 0, node_->quick_result_o);
      quick.pop_front();
    }
    fall(*node_);
  }
}

std::uint64_t twice(std::uint64_t low, std::uint64_t high) { return high << 32 | low; }

// In the halves of a lane are different pairs: a half that is the other one's would be seen.
TEST_F(CombineTest, EdgesOfFloat32) {
  const auto numbers = edge_floats(kBinary32);
  for (const Op op : {Op::kSum, Op::kMin, Op::kMax}) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (std::size_t j = 0; j < numbers.size(); ++j) {
        const std::size_t other = (j + 7) % numbers.size();
        feed({op, Type::kFloat32}, twice(numbers[i], numbers[other]),
             twice(numbers[j], numbers[i]));
      }
    }
  }
}

TEST_F(CombineTest, EdgesOfFloat64) {
  for (const Op op : {Op::kSum, Op::kMin, Op::kMax}) {
    for (const std::uint64_t left : edge_floats(kBinary64)) {
      for (const std::uint64_t right : edge_floats(kBinary64)) {
        feed({op, Type::kFloat64}, left, right);
      }
    }
  }
}

// Sums of numbers whose exponents are 0 to more than a significand apart, from subnormals on.
TEST_F(CombineTest, DistancesOfExponents) {
  for (const Format& format : {kBinary32, kBinary64}) {
    const bool wide = format.fraction_bits == kBinary64.fraction_bits;
    const auto reach = static_cast<std::uint64_t>(format.fraction_bits) + 14;
    for (const std::uint64_t low : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{60},
                                    format.exponent_mask() - 1 - reach}) {
      for (std::uint64_t distance = 0; distance <= reach; ++distance) {
        for (const std::uint64_t a : edge_fractions(format)) {
          for (const std::uint64_t b : edge_fractions(format)) {
            const std::uint64_t larger = format.make(false, low + distance, a);
            const std::uint64_t same = format.make(false, low, b);
            const std::uint64_t opposite = format.make(true, low, b);
            if (wide) {
              feed({Op::kSum, Type::kFloat64}, larger, same);
              feed({Op::kSum, Type::kFloat64}, opposite, larger);
            } else {
              feed({Op::kSum, Type::kFloat32}, twice(larger, opposite), twice(same, larger));
            }
          }
        }
      }
    }
  }
}

TEST_F(CombineTest, EdgesOfIntegers) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 63;
  const std::uint64_t numbers[] = {0,
                                   1,
                                   2,
                                   0x7fffffff,
                                   0x80000000,
                                   0xffffffff,
                                   kLeast,
                                   kLeast - 1,
                                   kLeast + 1,
                                   0x7fffffff80000000,
                                   0x80000000ffffffff,
                                   ~std::uint64_t{0},
                                   1ULL << 32,
                                   0x5555555555555555,
                                   0x123456789abcdef0};
  for (const Operation& operation : all_operations()) {
    if (operation.type == Type::kFloat32 || operation.type == Type::kFloat64) continue;
    for (const std::uint64_t left : numbers) {
      for (const std::uint64_t right : numbers) feed(operation, left, right);
    }
  }
}

TEST_F(CombineTest, RandomPairsOfEachOperation) {
  const std::uint64_t pairs = setting("CARILLON_TEST_RTL_OPERANDS", kPairs);
  Operands operands(1);
  for (const Operation& operation : all_operations()) {
    for (std::uint64_t i = 0; i < pairs; ++i) {
      const auto [left, right] = operands.pair(operation.type);
      feed(operation, left, right);
    }
  }
}

// The operation may be another one each cycle, operands may be absent, and both.
TEST_F(CombineTest, OperationsMixedAndAbsentOperands) {
  const std::uint64_t pairs = setting("CARILLON_TEST_RTL_OPERANDS", kPairs);
  const auto operations = all_operations();
  Operands operands(2);
  for (std::uint64_t i = 0; i < 2 * pairs; ++i) {
    const Operation& operation = operations[operands.below(operations.size())];
    const auto [left, right] = operands.pair(operation.type);
    feed({operation, left, right, operands.below(3) != 0, operands.below(3) != 0});
  }
}

}  // namespace
}  // namespace carillon::rtl
