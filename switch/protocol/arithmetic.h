// SPDX-License-Identifier: Apache-2.0
//
// What a switch computes, bit for bit (docs/switch-protocol.md, "Arithmetic").
#pragma once

#include <cstddef>
#include <span>

#include "switch/protocol/protocol.h"

namespace carillon::aggregate {

/// left[i] = left[i] (op) right[i]. The pair must be defined; memory needs no alignment.
void combine(Op op, Type type, std::byte* left, const std::byte* right, std::size_t count);

/// Combines the operands of all ports in the order of the protocol: a balanced binary tree over the
/// ports, those without an operand (nullptr) skipped. Overwrites operands and pointers; the result
/// is where the returned pointer says; nullptr if there is no operand.
std::byte* combine_ports(Op op, Type type, std::span<std::byte*> ports, std::size_t count);

}  // namespace carillon::aggregate
