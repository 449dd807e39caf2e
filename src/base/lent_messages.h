// SPDX-License-Identifier: Apache-2.0
//
// Which messages within a node are lent: not copied to shared memory and from there, but read once,
// in the writer's private memory. One rule for the engine, which does that, and for the simulator,
// which predicts it. Both lend only bytes that keep their value to the end of the schedule
// (schedule/lifetimes.h), and only where it is quicker: the engine learns that, the simulator has
// it from the machine's numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace carillon {

/// Messages are lent from so many bytes on; `one_way`: of a rank that only writes, or only takes.
/// Shorter ones are not worth a system call, and that somebody waits until they have been read.
constexpr std::int64_t lent_from_bytes(bool one_way) { return one_way ? 16384 : 32768; }

/// More readers would wait for each other in the kernel, which shared memory serves at once.
inline constexpr std::int32_t kMostLentReaders = 2;

/// Among more ranks of a node nothing that is reduced is lent: it would be read to memory of the
/// reader's own before it is reduced.
inline constexpr std::int32_t kMostLendingReducers = 2;

/// What a message takes by shared memory, from what its copy to there takes and the copy or
/// reduction from there: one after the other; pieces of a stream are written while those before
/// them are taken.
template <typename Cost>
constexpr Cost by_shared_memory(Cost written, Cost taken, bool streamed) {
  return streamed ? std::max(written, taken) : written + taken;
}

}  // namespace carillon
