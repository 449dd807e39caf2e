// SPDX-License-Identifier: Apache-2.0
//
// What an operator on a datatype is to carillon: a kernel of its own, or elements that only the
// host's MPI_Reduce_local can combine (user operators, and types carillon has no kernel for).
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "call.h"
#include "datatype.h"
#include "thread_cache.h"
#include "users.h"

namespace carillon::shim {

/// An operator of the program's own.
struct UserOperator {
  MPI_Op handle{};
  int commutative = 1;
  Users users;
};

struct Reduction : std::enable_shared_from_this<Reduction> {
  MPI_Op op{};
  std::shared_ptr<const TypeInfo> type;
  Reason reason = Reason::kNone;  // why it is left to the host, if it is
  crl_dtype_t dtype = CRL_INT8;
  crl_op_t crl_op = CRL_SUM;           // of carillon's own, if not by_host
  std::size_t element_bytes = 0;       // of dtype
  bool direct = false;                 // buffers are used as they are; else elements are packed
  bool by_host = false;                // the host's MPI_Reduce_local combines elements
  std::shared_ptr<UserOperator> user;  // if the operator is the program's own
};

/// A reduction by the host as one communicator calls it. MPI allows it one collective at a time, so
/// what goes wrong meanwhile is that call's, whichever thread of the process moves it on.
class HostReduction {
 public:
  HostReduction() = default;
  ~HostReduction() { forget(); }
  HostReduction(const HostReduction&) = delete;
  HostReduction& operator=(const HostReduction&) = delete;

  /// Carillon's operator for a call; 0: no memory. Repeated calls get the same.
  [[nodiscard]] crl_op_t op_for(const Reduction& reduction);
  /// What the host answered to the last call's elements, if not MPI_SUCCESS.
  [[nodiscard]] int failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  static void apply(void* arg, const void* left, void* right, std::size_t count);
  void reduce_typed(const void* left, void* right, std::size_t count);
  void reduce_packed(const void* left, void* right, std::size_t count);
  void note(int status) {
    if (status != MPI_SUCCESS) failed_.store(status, std::memory_order_relaxed);
  }
  void forget();

  std::shared_ptr<const Reduction> reduction_;
  crl_op_t op_ = 0;
  std::atomic<int> failed_ = MPI_SUCCESS;
};

/// While one lives, the operator and type of a reduction by the host do, here and in the host,
/// though another thread free them.
class ReductionUse {
 public:
  explicit ReductionUse(const Reduction& reduction);
  ~ReductionUse();
  ReductionUse(const ReductionUse&) = delete;
  ReductionUse& operator=(const ReductionUse&) = delete;

 private:
  std::shared_ptr<const Reduction> reduction_;
  TypeUse type_;
};

/// Looks one up, or makes it. Null: the type or the operator is none that can be used.
Reduction* find_reduction_slow(MPI_Op op, MPI_Datatype type);

inline Reduction* find_reduction(MPI_Op op, MPI_Datatype type) {
  const ThreadCache::Reducing& entry = t_cache.reductions[(hash_of(op) ^ hash_of(type)) >> 60];
  static_assert(ThreadCache::kReductions == 16);
  if (entry.op == op && entry.type == type && entry.generation == g_reductions.now() &&
      entry.reduction->user == nullptr) [[likely]] {
    return entry.reduction;
  }
  return find_reduction_slow(op, type);
}

/// The type is freed: its handle may come back as another one.
void forget_reductions_of_type(MPI_Datatype type);

/// All, at the end, where another beginning may follow.
void forget_reductions();

/// MPI_Op_free. If calls are using the operator, the last of them frees the host's.
int free_op(MPI_Op* op);

}  // namespace carillon::shim
