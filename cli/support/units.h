// SPDX-License-Identifier: Apache-2.0
//
// Machines count picoseconds; users are told microseconds.
#pragma once

#include <cstdint>

namespace carillon::cli {

inline constexpr double kPsPerUs = 1e6;

constexpr double us(double ps) { return ps / kPsPerUs; }
constexpr double us(std::int64_t ps) { return us(static_cast<double>(ps)); }

}  // namespace carillon::cli
