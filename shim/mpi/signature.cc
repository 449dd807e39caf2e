// SPDX-License-Identifier: Apache-2.0
#include "signature.h"

#include <algorithm>
#include <string_view>

#include "datatype_contents.h"
#include "predefined.h"

namespace carillon::shim {
namespace {

constexpr std::uint64_t kPrime = (UINT64_C(1) << 61) - 1;
constexpr std::uint64_t kBase = 0x1a2b3c4d5e6f7081 % kPrime;
constexpr Signature kAny{.any = 1};

std::uint64_t times(std::uint64_t left, std::uint64_t right) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(left) * right % kPrime);
}

std::uint64_t power(std::uint64_t exponent) {
  std::uint64_t result = 1;
  for (std::uint64_t square = kBase; exponent > 0; exponent >>= 1, square = times(square, square)) {
    if ((exponent & 1) != 0) result = times(result, square);
  }
  return result;
}

Signature basic(std::uint64_t kind) { return {.elements = 1, .hash = kind % kPrime + 1}; }

Signature signature_of_named(MPI_Datatype type);

// A pair for MPI_MINLOC is its parts; else the result has no elements.
Signature signature_of_pair(MPI_Datatype type) {
  struct Pair {
    MPI_Datatype type, first, second;
  };
  const Pair pairs[] = {
      {MPI_FLOAT_INT, MPI_FLOAT, MPI_INT},
      {MPI_DOUBLE_INT, MPI_DOUBLE, MPI_INT},
      {MPI_LONG_INT, MPI_LONG, MPI_INT},
      {MPI_2INT, MPI_INT, MPI_INT},
      {MPI_SHORT_INT, MPI_SHORT, MPI_INT},
      {MPI_LONG_DOUBLE_INT, MPI_LONG_DOUBLE, MPI_INT},
      {MPI_2REAL, MPI_REAL, MPI_REAL},
      {MPI_2DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION},
      {MPI_2INTEGER, MPI_INTEGER, MPI_INTEGER},
  };
  for (const Pair& pair : pairs) {
    if (pair.type == type) {
      return join(signature_of_named(pair.first), signature_of_named(pair.second));
    }
  }
  return {};
}

// Types of one representation are one: MPI_LONG and MPI_INT64_T. Others are known by their names,
// as handles differ between processes.
Signature signature_of_named(MPI_Datatype type) {
  if (type == g_host.packed) return kAny;
  MPI_Count size = 0;
  host().Type_size_x(type, &size);
  if (size == 0) return {};  // a mark of a derived type's bounds
  constexpr std::uint64_t kKernels = 256, kClasses = 65536;
  if (const int row = find_predefined(type); row >= 0) {
    const Predefined known = predefined(row);
    if (known.type_class == kPair) {
      const Signature pair = signature_of_pair(type);
      return pair.elements > 0 ? pair : kAny;
    }
    if (known.dtype) return basic(static_cast<std::uint64_t>(*known.dtype) + kKernels);
    return basic((std::uint64_t{known.extent} << 8 | known.type_class) + kClasses);
  }
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (host().Type_get_name(type, name, &length) != MPI_SUCCESS || length == 0) return kAny;
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char letter : std::string_view(name)) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211U;
  }
  return basic(hash);
}

Signature signature_of_blocks(const Contents& contents, bool fixed_length) {
  const Signature part = signature_of(contents.type(0));
  const auto blocks = static_cast<std::size_t>(contents.integers[0]);
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    elements += contents.integers[fixed_length ? 1 : i + 1];
  }
  return repeat(part, elements);
}

Signature signature_of_struct(const Contents& contents) {
  Signature all;
  const auto blocks = static_cast<std::size_t>(contents.integers[0]);
  for (std::size_t i = 0; i < blocks; ++i) {
    all = join(all, repeat(signature_of(contents.type(i)), contents.integers[i + 1]));
  }
  return all;
}

Signature signature_of_subarray(const Contents& contents) {
  const auto dims = static_cast<std::size_t>(contents.integers[0]);
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < dims; ++i) elements *= contents.integers[1 + dims + i];
  return repeat(signature_of(contents.type(0)), elements);
}

}  // namespace

Signature join(const Signature& first, const Signature& second) {
  if (first.any != 0 || second.any != 0) return kAny;
  return {.elements = first.elements + second.elements,
          .hash = (times(first.hash, power(second.elements)) + second.hash) % kPrime};
}

Signature repeat(const Signature& part, std::int64_t count) {
  if (part.any != 0 || count < 0) return kAny;
  Signature all, doubled = part;
  for (auto left = static_cast<std::uint64_t>(count); left > 0; left >>= 1) {
    if ((left & 1) != 0) all = join(all, doubled);
    if (left > 1) doubled = join(doubled, doubled);
  }
  return all;
}

Signature signature_of(MPI_Datatype type) {
  if (type == MPI_Datatype{} || type == g_host.type_null) return kAny;
  const Envelope envelope = envelope_of(type);
  if (!envelope.readable) return kAny;
  if (envelope.combiner == MPI_COMBINER_NAMED) return signature_of_named(type);
  if (is_predefined_f90(envelope.combiner) || envelope.types < 1) return kAny;
  const Contents contents(type, envelope);
  if (!contents.valid) return kAny;
  switch (envelope.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: return signature_of(contents.type(0));
    case MPI_COMBINER_CONTIGUOUS:
      return repeat(signature_of(contents.type(0)), contents.integers[0]);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
      return repeat(signature_of(contents.type(0)),
                    std::int64_t{contents.integers[0]} * contents.integers[1]);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED: return signature_of_blocks(contents, false);
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: return signature_of_blocks(contents, true);
    case MPI_COMBINER_STRUCT: return signature_of_struct(contents);
    case MPI_COMBINER_SUBARRAY: return signature_of_subarray(contents);
    default: return kAny;
  }
}

}  // namespace carillon::shim
