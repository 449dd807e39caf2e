// SPDX-License-Identifier: Apache-2.0
//
// The hardware's reduction tree of five ports and two lanes against the reference: all operations,
// all sets of ports that are present, beats with gaps between them, and a reset.
// CARILLON_TEST_RTL_OPERANDS: random beats.
#include <ReduceTree.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "switch/rtl/module.h"
#include "switch/rtl/operands.h"

namespace carillon::rtl {
namespace {

constexpr std::size_t kPorts = 5, kLanes = 2;
constexpr std::uint64_t kCycles = 3 * 8;       // three levels of CombineCycles
constexpr std::uint64_t kQuickCycles = 3 * 2;  // and of QuickCycles
constexpr std::uint64_t kBeats = 100'000;
constexpr int kMaxFailures = 10;

using Beat = std::array<std::uint64_t, kLanes>;

struct Input {
  bool valid = false, quick = false;
  Operation operation = {Op::kSum, Type::kInt32};
  unsigned present = 0;
  std::array<Beat, kPorts> beats = {};
};

std::optional<Beat> reference(Input input) {
  std::array<std::byte*, kPorts> ports{};
  for (std::size_t port = 0; port < kPorts; ++port) {
    if ((input.present >> port & 1) == 0) continue;
    ports[port] = reinterpret_cast<std::byte*>(input.beats[port].data());
  }
  const auto count = sizeof(Beat) / aggregate::type_bytes(input.operation.type);
  const std::byte* const result =
      aggregate::combine_ports(input.operation.op, input.operation.type, ports, count);
  if (result == nullptr) return std::nullopt;
  Beat beat;
  std::memcpy(beat.data(), result, sizeof(Beat));
  return beat;
}

class ReduceTreeTest : public testing::Test {
 protected:
  ReduceTreeTest() { forget(); }

  void forget() {
    tree_->valid_i = 0;
    reset(*tree_);
    pending_.clear();
    slow_until_ = 0;
  }

  void cycle(const Input& input) {
    tree_->valid_i = input.valid;
    tree_->quick_i = input.quick;
    tree_->operation_i = operation_bits(input.operation);
    tree_->present_i = static_cast<std::uint8_t>(input.present);
    std::memcpy(tree_->beats_i.data(), input.beats.data(), sizeof(input.beats));
    ++now_;
    const std::uint64_t due = now_ + (input.quick ? kQuickCycles : kCycles) - 1;
    if (input.valid) pending_[due] = input;
    if (input.valid && !input.quick) slow_until_ = due;
    rise(*tree_);
    check(pending_[now_]);
    pending_.erase(now_);
    fall(*tree_);
  }

  // No beat that is not quick is on its way.
  [[nodiscard]] bool may_be_quick() const { return now_ >= slow_until_; }

  void TearDown() override {
    for (std::uint64_t i = 1; i < kCycles; ++i) cycle({});
    EXPECT_LE(failures_, kMaxFailures) << "and more";
  }

  void check(const Input& input) {
    if (input.valid != (tree_->valid_o != 0)) {
      if (++failures_ <= kMaxFailures) ADD_FAILURE() << "valid is not " << input.valid;
      return;
    }
    if (!input.valid) return;
    ++checked_;
    EXPECT_EQ(tree_->quick_o != 0, input.quick);
    const auto expected = reference(input);
    Beat beat;
    std::memcpy(beat.data(), tree_->beat_o.data(), sizeof(beat));
    const bool right = expected.has_value() == (tree_->present_o != 0) &&
                       (!expected.has_value() || beat == *expected);
    if (right || ++failures_ > kMaxFailures) return;
    ADD_FAILURE() << name_of(input.operation.op) << " " << name_of(input.operation.type)
                  << " of ports " << std::hex << input.present << ": " << beat[0] << " " << beat[1]
                  << ", present " << int{tree_->present_o};
  }

  Input random_input(Operands& operands, const Operation& operation, unsigned present) const {
    Input input = {.valid = true, .operation = operation, .present = present};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (std::size_t port = 0; port < kPorts; port += 2) {
        const auto [left, right] = operands.pair(operation.type);
        input.beats[port][lane] = left;
        if (port + 1 < kPorts) input.beats[port + 1][lane] = right;
      }
    }
    return input;
  }

  ModulePointer<ReduceTree> tree_ = make_module<ReduceTree>();
  std::map<std::uint64_t, Input> pending_;  // by the cycle in which its result comes
  std::uint64_t now_ = 0, slow_until_ = 0, checked_ = 0;
  int failures_ = 0;
};

TEST_F(ReduceTreeTest, EachOperationWithEachSetOfPorts) {
  Operands operands(3);
  for (const Operation& operation : all_operations()) {
    for (unsigned present = 0; present < 1U << kPorts; ++present) {
      for (int i = 0; i < 20; ++i) cycle(random_input(operands, operation, present));
    }
  }
}

// Sums of floats depend on which pairs come first: here is no other order with this result.
TEST_F(ReduceTreeTest, OrderOfTheTree) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  Input input = {.valid = true, .operation = {Op::kSum, Type::kFloat64}, .present = 0x1f};
  const double big = 0x1p53;
  const double values[] = {big, 1, 1, 1, -big};
  for (std::size_t port = 0; port < kPorts; ++port) {
    input.beats[port] = {bits(values[port]), bits(-values[port])};
  }
  // (2^53 + 1) is 2^53; with (1 + 1) 2^53 + 2; less 2^53 it is 2.
  EXPECT_EQ(reference(input), (Beat{bits(2), bits(-2)}));
  cycle(input);
}

TEST_F(ReduceTreeTest, BeatsWithGaps) {
  const std::uint64_t beats = setting("CARILLON_TEST_RTL_OPERANDS", kBeats);
  const auto operations = all_operations();
  Operands operands(4);
  while (checked_ < beats) {
    const Operation& operation = operations[operands.below(operations.size())];
    Input input = random_input(operands, operation, static_cast<unsigned>(operands.below(32)));
    input.valid = operands.below(4) != 0;
    cycle(input);
  }
}

bool is_quick(const Operation& operation) {
  return operation.op != Op::kSum || operation.type == Type::kInt32 ||
         operation.type == Type::kInt64;
}

TEST_F(ReduceTreeTest, QuickBeatsWithEachSetOfPorts) {
  Operands operands(6);
  for (const Operation& operation : all_operations()) {
    if (!is_quick(operation)) continue;
    for (unsigned present = 0; present < 1U << kPorts; ++present) {
      Input input = random_input(operands, operation, present);
      input.quick = true;
      cycle(input);
    }
  }
  EXPECT_GE(checked_, 500U);
}

// Quick ones, then others right behind them, which they do not wait for, and so on.
TEST_F(ReduceTreeTest, QuickBeatsBetweenOthers) {
  const std::uint64_t beats = setting("CARILLON_TEST_RTL_OPERANDS", kBeats);
  const auto operations = all_operations();
  Operands operands(7);
  std::uint64_t quick_beats = 0;
  bool wants_quick = true;
  while (checked_ < beats) {
    if (operands.below(16) == 0) wants_quick = !wants_quick;
    const Operation& operation = operations[operands.below(operations.size())];
    Input input = random_input(operands, operation, static_cast<unsigned>(operands.below(32)));
    input.quick = wants_quick;
    input.valid =
        operands.below(4) != 0 && (!wants_quick || (is_quick(operation) && may_be_quick()));
    if (input.valid && input.quick) ++quick_beats;
    cycle(input);
  }
  EXPECT_GT(quick_beats, beats / 100);
}

TEST_F(ReduceTreeTest, ResetForgetsWhatIsOnItsWay) {
  Operands operands(5);
  for (const bool quick : {false, true}) {
    for (std::uint64_t gone = 1; gone <= kCycles; ++gone) {
      for (std::uint64_t i = 0; i < gone; ++i) {
        Input input = random_input(operands, {Op::kMax, Type::kFloat32}, 0x15);
        input.quick = quick;
        cycle(input);
      }
      forget();
      for (std::uint64_t i = 0; i < kCycles; ++i) cycle({});
    }
  }
}

}  // namespace
}  // namespace carillon::rtl
