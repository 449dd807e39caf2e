// SPDX-License-Identifier: Apache-2.0
//
// What each thread remembers, so that a repeated call looks nothing up: the last communicator, and
// small tables of types and reductions. An entry counts only while its generation is the current
// one; freeing an object (whose handle may come back as another object) starts a new generation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "host.h"

namespace carillon::shim {

struct Communicator;
struct TypeInfo;
struct Reduction;

/// Counts the objects of a kind that were freed, from 1. Relaxed is enough: whoever uses a handle
/// that came back was told of it by the program, after the free.
class Generation {
 public:
  [[nodiscard]] std::uint64_t now() const { return value_.load(std::memory_order_relaxed); }
  void advance() { value_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{1};
};

extern constinit Generation g_communicators, g_types, g_reductions;

struct ThreadCache {
  struct Type {
    MPI_Datatype handle{};
    std::uint64_t generation = 0;
    const TypeInfo* info = nullptr;
  };
  struct Reducing {
    MPI_Op op{};
    MPI_Datatype type{};
    std::uint64_t generation = 0;
    Reduction* reduction = nullptr;
  };
  struct Comm {
    MPI_Comm handle{};
    std::uint64_t generation = 0;
    Communicator* communicator = nullptr;
  };
  static constexpr unsigned kTypes = 16, kReductions = 16, kComms = 16;

  Comm last;  // the communicator of the last call
  std::uint64_t observed =
      0;  // its generation, if that call was observed and no other is to use it
  Comm comms[kComms];
  int depth = 0;  // above 0 while carillon is calling the host
  Type types[kTypes];
  Reducing reductions[kReductions];
};

// Initial-exec: the library is loaded with the program, so its thread-local block is at a fixed
// offset and costs no call.
extern constinit thread_local ThreadCache t_cache __attribute__((tls_model("initial-exec")));

template <typename Handle>
inline std::uint64_t hash_of(Handle handle) {
  return static_cast<std::uint64_t>((std::uintptr_t)handle) * UINT64_C(0x9E3779B97F4A7C15);
}

/// While one lives, collectives that the host itself calls through MPI_ symbols go to the host. No
/// function of the program's may be called meanwhile, such as an error handler: its collectives
/// would go to the host on this rank alone, and if it does not return, all that follow would.
class InsideHost {
 public:
  InsideHost() : generation_(t_cache.last.generation) {
    ++t_cache.depth;
    t_cache.last.generation = 0;  // the last communicator does not count
  }
  ~InsideHost() {
    --t_cache.depth;
    t_cache.last.generation = generation_;
  }
  InsideHost(const InsideHost&) = delete;
  InsideHost& operator=(const InsideHost&) = delete;

 private:
  std::uint64_t generation_;
};

}  // namespace carillon::shim
