// SPDX-License-Identifier: Apache-2.0
//
// Type signatures: the sequence of basic types that a buffer is made of, whatever lies between
// them. MPI wants those of sender and receiver to be equal. Kept as a hash, so that two ranks can
// compare theirs in a few bytes.
#pragma once

#include <cstdint>

#include "host.h"

namespace carillon::shim {

struct Signature {
  std::uint64_t elements = 0;  // of basic types
  std::uint64_t hash = 0;      // a polynomial over them, modulo 2^61 - 1: sequences can be joined
  std::uint64_t any = 0;       // 1: it is not known, or fits all (MPI_PACKED)

  [[nodiscard]] bool fits(const Signature& other) const {
    return any != 0 || other.any != 0 || (elements == other.elements && hash == other.hash);
  }
};

/// One sequence after another, and one so many times.
Signature join(const Signature& first, const Signature& second);
Signature repeat(const Signature& part, std::int64_t times);

/// Of an element of a type. Slow: the type is taken apart.
Signature signature_of(MPI_Datatype type);

}  // namespace carillon::shim
