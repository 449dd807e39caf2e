// SPDX-License-Identifier: Apache-2.0
//
// The switches that are tested, as CMakeLists.txt has them made by Verilator: a small one, with as
// many frames as there are things to see; with CARILLON_RTL_WIDE one with the children and the
// window of a real one and the longest operands, and wide ports; with CARILLON_RTL_CHIP the one
// that is put on a chip (switch/synthesis/sw_switch_registered.sv), with a port more; with
// CARILLON_RTL_MOST one with as many ports and children as there may be; and else small ones, each
// of another kind inside, too. Ports have CARILLON_RTL_BITS, or 64.
#pragma once

#ifdef CARILLON_RTL_WIDE
#include <WideSwitchRtl.h>
#elif defined(CARILLON_RTL_CHIP)
#include <ChipSwitchRtl.h>
#elif defined(CARILLON_RTL_MOST)
#include <MostSwitchRtl.h>
#elif defined(CARILLON_RTL_BITS)
#if CARILLON_RTL_BITS == 8
#include <Bits8SwitchRtl.h>
#elif CARILLON_RTL_BITS == 16
#include <Bits16SwitchRtl.h>
#elif CARILLON_RTL_BITS == 32
#include <Bits32SwitchRtl.h>
#else
#include <Bits256SwitchRtl.h>
#endif
#else
#include <SwitchRtl.h>
#endif

#include <cstddef>
#include <cstdint>

namespace carillon::rtl {

#ifdef CARILLON_RTL_MOST
inline constexpr std::size_t kPorts = 66;
#else
inline constexpr std::size_t kPorts = 7;
#endif
#ifndef CARILLON_RTL_BITS
#define CARILLON_RTL_BITS 64
#endif
// That a port keeps; 0: a queue of them.
#if defined(CARILLON_RTL_CHIP) || CARILLON_RTL_BITS == 8 || CARILLON_RTL_BITS == 16
inline constexpr std::size_t kPortFrames = 0;
#else
inline constexpr std::size_t kPortFrames = CARILLON_RTL_BITS == 32 ? 2 : 3;
#endif
inline constexpr std::size_t kDataBytes = CARILLON_RTL_BITS / 8;  // of a beat

// kOneBlockCycles: of an element of each child, from the last word to the last of the results, but
// for kTreeCycles, of a quick operation and of a sum of floats, and up to kPhaseCycles more.
// kOneByOneCycles: more, if contributions that come at once are worked off one after the other.
// kRoundsTogether: of so many rounds of contributions at once, one is worked off at once; 0: none.

#ifdef CARILLON_RTL_WIDE
using SwitchModule = WideSwitchRtl;
inline constexpr std::size_t kChildren = 16, kGroups = 3, kWindow = 16, kOperandBytes = 8192;
inline constexpr std::size_t kLongestFrame = 8272;
inline constexpr std::uint64_t kFrames = 300;  // of a test
// Six of the children are sent to at once, then six more, and four: the frame takes 13 cycles for
// each round, while the addresses of the next one are read. Of the tag of four cycles a word. From
// beats to words and back takes a cycle each.
inline constexpr std::uint64_t kOneBlockCycles = 113, kPhaseCycles = 0;
// The header's words in the tag take 4 cycles longer than the quick way through the tree.
inline constexpr std::uint64_t kTreeCycles = 2 * 4 + 4, kFloatTreeCycles = 8 * 4;
inline constexpr std::uint64_t kRoundsTogether = 32;
#elif defined(CARILLON_RTL_CHIP)
using SwitchModule = ChipSwitchRtl;
inline constexpr std::size_t kChildren = 4, kGroups = 4, kWindow = 4, kOperandBytes = 1024;
inline constexpr std::size_t kLongestFrame = 1518;
inline constexpr std::uint64_t kFrames = 2000;  // of a test
// A word is reduced when its turn in four cycles comes.
inline constexpr std::uint64_t kOneBlockCycles = 129, kPhaseCycles = 3;
inline constexpr std::uint64_t kTreeCycles = 24, kFloatTreeCycles = 24, kOneByOneCycles = 42;
inline constexpr std::uint64_t kBurstPacketCycles = 695;
inline constexpr std::uint64_t kRoundsTogether = 0;
#elif defined(CARILLON_RTL_MOST)
using SwitchModule = MostSwitchRtl;
inline constexpr std::size_t kChildren = 64, kGroups = 2, kWindow = 4, kOperandBytes = 512;
inline constexpr std::size_t kLongestFrame = 1518;
inline constexpr std::uint64_t kFrames = 100;  // of a test
inline constexpr std::uint64_t kOneBlockCycles = 36, kPhaseCycles = 0;
inline constexpr std::uint64_t kTreeCycles = 2 * 6, kFloatTreeCycles = 8 * 6, kOneByOneCycles = 0;
inline constexpr std::uint64_t kBurstPacketCycles = 78;
inline constexpr std::uint64_t kRoundsTogether = 16;
#elif CARILLON_RTL_BITS != 64
inline constexpr std::size_t kChildren = 4, kGroups = 4, kWindow = 4, kOperandBytes = 512;
inline constexpr std::size_t kLongestFrame = 1518;
#if CARILLON_RTL_BITS == 16
using SwitchModule = Bits16SwitchRtl;
inline constexpr std::uint64_t kFrames = 500;  // of a test
// One inlet for all ports, which takes a word a cycle of one frame after the other. A word is
// reduced when its turn in four cycles comes.
inline constexpr std::uint64_t kOneBlockCycles = 86, kPhaseCycles = 3, kOneByOneCycles = 78;
inline constexpr std::uint64_t kTreeCycles = 24, kFloatTreeCycles = 24;
inline constexpr std::uint64_t kBurstPacketCycles = 608;
inline constexpr std::uint64_t kRoundsTogether = 0;
#else
inline constexpr std::uint64_t kFrames = 1000;  // of a test
inline constexpr std::uint64_t kTreeCycles = 2 * 2, kFloatTreeCycles = 8 * 2, kPhaseCycles = 0;
#endif
#if CARILLON_RTL_BITS == 8
using SwitchModule = Bits8SwitchRtl;
// Two inlets for all ports.
inline constexpr std::uint64_t kOneBlockCycles = 130, kOneByOneCycles = 18;
inline constexpr std::uint64_t kBurstPacketCycles = 592;  // a frame's bytes
inline constexpr std::uint64_t kRoundsTogether = 0;
#elif CARILLON_RTL_BITS == 32
using SwitchModule = Bits32SwitchRtl;
// A fast clock, and an inlet for each port: words leave in four cycles each.
inline constexpr std::uint64_t kOneBlockCycles = 90, kOneByOneCycles = 0;
inline constexpr std::uint64_t kBurstPacketCycles = 301;
inline constexpr std::uint64_t kRoundsTogether = 64;
#elif CARILLON_RTL_BITS == 256
using SwitchModule = Bits256SwitchRtl;
inline constexpr std::uint64_t kOneBlockCycles = 40, kOneByOneCycles = 0;
// A frame has 74 words.
inline constexpr std::uint64_t kBurstPacketCycles = 78;
inline constexpr std::uint64_t kRoundsTogether = 32;
#endif
#else
using SwitchModule = SwitchRtl;
inline constexpr std::size_t kChildren = 5, kGroups = 4, kWindow = 4, kOperandBytes = 1408;
inline constexpr std::size_t kLongestFrame = 8272;
inline constexpr std::uint64_t kFrames = 5000;
inline constexpr std::uint64_t kOneBlockCycles = 36, kPhaseCycles = 0;
inline constexpr std::uint64_t kTreeCycles = 2 * 3, kFloatTreeCycles = 8 * 3, kOneByOneCycles = 0;
// Of a packet of a burst: on the wire it has 186 words.
inline constexpr std::uint64_t kBurstPacketCycles = 190;
inline constexpr std::uint64_t kRoundsTogether = 16;
#endif

}  // namespace carillon::rtl
