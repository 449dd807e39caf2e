// SPDX-License-Identifier: Apache-2.0
//
// The switch that is tested, as CMakeLists.txt has it made by Verilator.
#pragma once

#include <SwitchRtl.h>

#include <cstddef>
#include <cstdint>

namespace carillon::rtl {

using SwitchModule = SwitchRtl;
inline constexpr std::size_t kPorts = 7, kChildren = 5, kGroups = 4, kWindow = 4;
inline constexpr std::uint16_t kOperandBytes = 1408;

}  // namespace carillon::rtl
