// SPDX-License-Identifier: Apache-2.0
//
// Trees of switches with fewer or more children than usual, cycle by cycle: what Verilator makes of
// their ports are numbers of some sizes, or arrays. Tree::allreduce compares each host's result
// with the reference.
#include <gtest/gtest.h>

#include "machine/sheet.h"
#include "switch/tree/tree.h"

namespace carillon::tree {
namespace {

using aggregate::Op;
using aggregate::Type;

class RtlRadixTest : public testing::TestWithParam<std::size_t> {};

// Frames that end anywhere in a word, in blocks and in bursts of more packets than there are slots.
TEST_P(RtlRadixTest, Results) {
  TreeConfig config = {.hosts = static_cast<std::uint32_t>(GetParam()),
                       .machine = machine::load("hu2013").value()};
  config.machine.in_switch.ports = kRadix;
  config.machine.in_switch.window = 4;
  config.machine.in_switch.operand_bytes = 512;
  Result<std::unique_ptr<Tree>> tree = Tree::make(config);
  ASSERT_TRUE(tree.ok()) << tree.status().message();
  EXPECT_EQ(tree.value()->radix(), kRadix);
  for (const Message& message :
       {Message{Op::kSum, Type::kFloat64, 1}, Message{Op::kXor, Type::kInt32, 3},
        Message{Op::kSum, Type::kFloat32, 9 * 128 + 5}}) {
    const Result<Call> call = tree.value()->allreduce(message);
    ASSERT_TRUE(call.ok()) << call.status().message();
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, RtlRadixTest, testing::Values(3, kRadix, 4 * kRadix + 1));

}  // namespace
}  // namespace carillon::tree
