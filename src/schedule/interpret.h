// SPDX-License-Identifier: Apache-2.0
//
// The reference reading of schedules: a whole team run on real bytes, in one thread, with no
// transport. What it yields is what the engine has to yield; it is the oracle of the tests.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "schedule/machine.h"

namespace carillon {

using Bytes = std::vector<std::byte>;

/// dst <- left (op) right over `bytes` bytes; dst is disjoint from an operand or equal to it.
using Operator = std::function<void(std::byte* dst, const std::byte* left, const std::byte* right,
                                    std::int64_t bytes)>;

struct InterpretOptions {
  RunOptions run;
  /// What output and scratch hold before anything is written to them.
  std::byte fill{0xcd};
};

struct Interpretation {
  std::vector<Bytes> outputs;  ///< one per rank, output_bytes() long
  RunStats stats;
};

/// Runs the call. `inputs` has one entry per rank, input_bytes() long, also in place (it is then
/// laid into the output first). `reduce` may be empty for collectives without a reduction.
Result<Interpretation> interpret(const TeamCall& call, const Emit& emit,
                                 std::span<const Bytes> inputs, const Operator& reduce,
                                 const InterpretOptions& options = {});

}  // namespace carillon
