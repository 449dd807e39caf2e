// SPDX-License-Identifier: Apache-2.0
//
// Pins of the shared heap: which blocks stay, and when they go.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "pins.h"

namespace carillon::heap {
namespace {

class PinsTest : public testing::Test {
 protected:
  std::vector<std::byte> memory_ = std::vector<std::byte>(1000);
  std::byte* at(std::size_t offset) { return memory_.data() + offset; }
  std::unique_ptr<Pins> pins_ = std::make_unique<Pins>();
};

TEST_F(PinsTest, AreFoundInTheirBlockOnly) {
  EXPECT_EQ(pins_->find(at(0), 1000), std::nullopt);
  const int number = pins_->add(at(300), 7);
  EXPECT_GE(number, 0);
  EXPECT_EQ(pins_->find(at(0), 300), std::nullopt);
  EXPECT_EQ(pins_->find(at(0), 301), 7U);
  EXPECT_EQ(pins_->find(at(300), 1), 7U);
  EXPECT_EQ(pins_->find(at(301), 600), std::nullopt);
  EXPECT_EQ(pins_->take_out(number), std::nullopt) << "its block was not freed";
  EXPECT_EQ(pins_->find(at(0), 1000), std::nullopt);
}

TEST_F(PinsTest, TheLastOneFreesTheBlock) {
  const int first = pins_->add(at(10), 1), second = pins_->add(at(90), 2);
  const int other = pins_->add(at(100), 3);
  pins_->keep(at(0), 100, 0);  // the first of all blocks
  EXPECT_EQ(pins_->take_out(second), std::nullopt);
  EXPECT_EQ(pins_->take_out(second), std::nullopt) << "it is out";
  EXPECT_EQ(pins_->take_out(first), 0U);
  pins_->keep(at(100), 100, 25);
  pins_->keep(at(100), 100, 25);
  EXPECT_EQ(pins_->take_out(other), 25U);
}

TEST_F(PinsTest, AreManyAndThenNone) {
  std::vector<int> numbers;
  for (int number = 0; (number = pins_->add(at(5), 9)) != Pins::kNone;) numbers.push_back(number);
  EXPECT_EQ(numbers.size(), 4096U);
  EXPECT_EQ(pins_->take_out(numbers[17]), std::nullopt);
  EXPECT_EQ(pins_->add(at(6), 9), numbers[17]);
  EXPECT_EQ(pins_->add(at(6), 9), Pins::kNone);
  EXPECT_EQ(pins_->take_out(Pins::kNone), std::nullopt);
  EXPECT_EQ(pins_->take_out(100000), std::nullopt);
  pins_->clear();
  EXPECT_EQ(pins_->find(at(0), 1000), std::nullopt);
  EXPECT_EQ(pins_->add(at(6), 9), 0);
}

}  // namespace
}  // namespace carillon::heap
