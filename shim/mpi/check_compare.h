// SPDX-License-Identifier: Apache-2.0
//
// What carillon run --check compares: a rank's call of a collective as that rank describes it to
// another one, and what is wrong between the calls of all ranks.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "call.h"
#include "signature.h"

namespace carillon::shim {

struct Description {
  std::uint32_t called = 0;  // call_index
  std::int32_t root = 0;     // 0 where there is none
  std::uint64_t op = 0;      // equal numbers: the same operator, as far as others can know
  /// What it sends and what it expects: nothing, one block, or a block for each rank.
  std::vector<Signature> in, out;
  std::string text;  // for people: the function, its arguments, and where it was called
};

/// Of this rank's call on a communicator of so many.
Description describe_call(std::size_t called, const Call& call, int rank, int size);

/// To bytes, and back; nothing if the bytes are none of ours.
std::vector<std::byte> encode(const Description& description);
std::optional<Description> decode_description(std::span<const std::byte> bytes);

/// The first rank whose call does not fit with those before it, and why.
struct Difference {
  int rank = 0, other = 0;
  std::string why;
};
/// Nothing: the calls of ranks 0, 1, ... fit together.
std::optional<Difference> find_difference(const std::vector<Description>& calls);

}  // namespace carillon::shim
