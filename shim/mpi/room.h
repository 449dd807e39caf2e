// SPDX-License-Identifier: Apache-2.0
//
// Memory for packed bytes, and what a call does that cannot have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "run.h"

namespace carillon::shim {

/// Room for packed bytes, for one call.
class Room {
 public:
  /// False: no memory.
  [[nodiscard]] bool make(std::int64_t bytes, std::int64_t blocks = 1) {
    constexpr std::size_t kAlignment = 64;
    if (__builtin_mul_overflow(bytes, blocks, &bytes)) return false;
    const std::size_t size =
        (static_cast<std::size_t>(bytes) + kAlignment) / kAlignment * kAlignment;
    bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
    return bytes_ != nullptr;
  }
  [[nodiscard]] std::byte* at(std::int64_t offset) const { return bytes_.get() + offset; }
  [[nodiscard]] bool exists() const { return bytes_ != nullptr; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte[], Free> bytes_;
};

/// This rank cannot begin a collective that the others may be in: they must not wait for it.
inline Outcome no_memory(const Communicator& communicator) {
  crl_team_fail(communicator.team, CRL_ERR_NO_MEMORY);
  return raised(communicator, MPI_ERR_NO_MEM);
}

inline Outcome cannot_pack(const Communicator& communicator, int status) {
  crl_team_fail(communicator.team, CRL_ERR_SYSTEM);
  return raised(communicator, status);
}

/// The collective is over, and the others have nothing to do with it.
inline Outcome cannot_unpack(const Communicator& communicator, int status) {
  return raised(communicator, status);
}

}  // namespace carillon::shim
