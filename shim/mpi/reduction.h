// SPDX-License-Identifier: Apache-2.0
//
// What an operator on a datatype is to carillon: a kernel of its own, or elements that only the
// host's MPI_Reduce_local can combine (user operators, and types carillon has no kernel for).
#pragma once

#include <atomic>
#include <cstddef>

#include "call.h"
#include "datatype.h"
#include "thread_cache.h"

namespace carillon::shim {

struct Reduction {
  MPI_Op op{};
  const TypeInfo* type = nullptr;
  Reason reason = Reason::kNone;  // why it is left to the host, if it is
  crl_dtype_t dtype = CRL_INT8;
  crl_op_t crl_op = CRL_SUM;
  std::size_t element_bytes = 0;  // of dtype
  bool direct = false;            // buffers are used as they are; else elements are packed
  bool user = false;              // the operator is the program's own
  int commutative = 1;
  std::atomic<int> failed = MPI_SUCCESS;  // what the host's MPI_Reduce_local last returned

  ~Reduction();
};

/// Looks one up, or makes it. Null: the type or the operator is none that can be used.
Reduction* find_reduction_slow(MPI_Op op, MPI_Datatype type);

inline Reduction* find_reduction(MPI_Op op, MPI_Datatype type) {
  const ThreadCache::Reducing& entry = t_cache.reductions[(hash_of(op) ^ hash_of(type)) >> 60];
  static_assert(ThreadCache::kReductions == 16);
  if (entry.op == op && entry.type == type && entry.generation == g_reductions.now() &&
      !entry.reduction->user) [[likely]] {
    return entry.reduction;
  }
  return find_reduction_slow(op, type);
}

/// The type or operator is freed: its handle may come back as another one.
void forget_reductions_of_type(MPI_Datatype type);
void forget_reductions_of_op(MPI_Op op);

}  // namespace carillon::shim
