// SPDX-License-Identifier: Apache-2.0
//
// The switches that are tested, as CMakeLists.txt has them made by Verilator: a small one, with as
// many frames as there are things to see, and with CARILLON_RTL_WIDE one with the children and the
// window of a real one and the longest operands.
#pragma once

#ifdef CARILLON_RTL_WIDE
#include <WideSwitchRtl.h>
#else
#include <SwitchRtl.h>
#endif

#include <cstddef>
#include <cstdint>

namespace carillon::rtl {

inline constexpr std::size_t kPorts = 7, kPortFrames = 3;

#ifdef CARILLON_RTL_WIDE
using SwitchModule = WideSwitchRtl;
inline constexpr std::size_t kChildren = 16, kGroups = 3, kWindow = 16, kOperandBytes = 8192;
inline constexpr std::size_t kTagWordCycles = 4;
inline constexpr std::uint64_t kFrames = 300;  // of a test
// Six of the children are sent to at once, then six more, and four: the frame takes 13 cycles for
// each round, while the addresses of the next one are read. Of the tag of four cycles a word.
inline constexpr std::uint64_t kOneBlockCycles = 107;
// The header's words in the tag take longer than the quick way through the tree.
inline constexpr std::uint64_t kHeaderTagCycles = 4;
#else
using SwitchModule = SwitchRtl;
inline constexpr std::size_t kChildren = 5, kGroups = 4, kWindow = 4, kOperandBytes = 1408;
inline constexpr std::size_t kTagWordCycles = 1;
inline constexpr std::uint64_t kFrames = 5000;
// Without the tree of adders.
inline constexpr std::uint64_t kOneBlockCycles = 36;
inline constexpr std::uint64_t kHeaderTagCycles = 0;
#endif

}  // namespace carillon::rtl
