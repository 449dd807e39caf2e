// SPDX-License-Identifier: Apache-2.0
#include "reduction.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "predefined.h"
#include "process.h"

namespace carillon::shim {
namespace {

using Key = std::pair<std::uintptr_t, std::uintptr_t>;  // operator, type

struct Reductions {
  std::mutex mutex;
  std::map<Key, std::shared_ptr<Reduction>> known;
};

// Never destroyed: the host may free types while the process ends.
Reductions& reductions() {
  static Reductions& all = *new Reductions();
  return all;
}

constexpr std::size_t kElementsAtOnce = 1 << 30;
constexpr std::int64_t kTypedBytesAtOnce = 1 << 20;

// Room for elements of a type with gaps, and the address that a program would pass for it.
class TypedRoom {
 public:
  TypedRoom(const TypeInfo& type, std::int64_t elements) {
    constexpr std::uintptr_t kAlignment = 64;
    const std::int64_t last = (elements - 1) * type.extent;
    const std::int64_t lowest = std::min<std::int64_t>(0, last) + type.true_lower_bound;
    const std::int64_t span = std::max(last, -last) + type.true_extent;
    room_.resize(static_cast<std::size_t>(span) + kAlignment);
    const auto base =
        reinterpret_cast<std::uintptr_t>(room_.data()) - static_cast<std::uintptr_t>(lowest);
    address_ = (base + kAlignment - 1) / kAlignment * kAlignment;
  }
  [[nodiscard]] void* address() const { return reinterpret_cast<void*>(address_); }

 private:
  std::vector<std::byte> room_;
  std::uintptr_t address_ = 0;
};

void reduce_by_host(Reduction& reduction) {
  const TypeInfo& type = *reduction.type;
  constexpr std::int64_t kMaxOpaqueBytes = 0x7fffffff;
  if (type.size > kMaxOpaqueBytes) {
    reduction.reason = Reason::kReduction;
    return;
  }
  reduction.element_bytes = static_cast<std::size_t>(type.size);
  reduction.dtype = CRL_OPAQUE(type.size);
  reduction.direct = type.dense && type.start == 0;
  reduction.by_host = true;
}

// Whether the host knows an operator on a type that carillon has no kernel for. What it refuses,
// MPI_Reduce_local tells the handler of MPI_COMM_WORLD, which may end the job: so it is asked first
// on a communicator of ours.
bool host_reduces(MPI_Op op, const TypeInfo& type) {
  if (!reduces_locally() || type.extent > 64) return false;
  static std::mutex one_at_a_time;  // of the collectives on that communicator
  const InsideHost guard;
  const std::lock_guard lock(one_at_a_time);
  alignas(64) std::byte left[64] = {}, right[64] = {};
  return host().Allreduce(left, right, 1, type.handle, op, process().self) == MPI_SUCCESS &&
         host().Reduce_local(left, right, 1, type.handle, op) == MPI_SUCCESS;
}

void use_predefined_op(Reduction& reduction, const PredefinedOp& op) {
  reduction.reason = Reason::kReduction;
  if (reduction.type->predefined < 0) return;
  const Predefined type = predefined(reduction.type->predefined);
  if ((op.classes & type.type_class) == 0) return;
  if (type.dtype && crl_dtype_bytes(*type.dtype) == type.extent &&
      crl_op_supports(op.op, *type.dtype) != 0) {
    reduction.reason = Reason::kNone;
    reduction.dtype = *type.dtype;
    reduction.crl_op = op.op;
    reduction.element_bytes = type.extent;
    reduction.direct = true;
  } else if (reduction.type->dense && host_reduces(reduction.op, *reduction.type)) {
    reduction.reason = Reason::kNone;
    reduce_by_host(reduction);
  }
}

// Handles that are no operators at all; only MPICH's tell by their value.
bool is_no_op(MPI_Op op) {
  if (op == g_host.op_null || op == MPI_Op{}) return true;
#if defined(MPICH_NAME) && !defined(MPI_ABI)
  constexpr unsigned kKindShift = 26, kKindMask = 0xf, kOpKind = 6;
  return ((static_cast<unsigned>(op) >> kKindShift) & kKindMask) != kOpKind;
#else
  return false;
#endif
}

bool is_other_predefined(MPI_Op op) {
#if defined(MPICH_NAME) && !defined(MPI_ABI)
  constexpr unsigned kBuiltin = 0x58000000, kBuiltinMask = 0xff000000;
  if ((static_cast<unsigned>(op) & kBuiltinMask) == kBuiltin) return true;
#endif
  return op == MPI_REPLACE || op == MPI_NO_OP;
}

std::shared_ptr<Reduction> make_reduction(MPI_Op op, const TypeInfo& type) {
  auto reduction = std::make_shared<Reduction>();
  reduction->op = op;
  reduction->type = type.shared_from_this();
  if (const PredefinedOp* const known = find_predefined_op(op)) {
    use_predefined_op(*reduction, *known);
  } else if (is_other_predefined(op)) {
    reduction->reason = Reason::kReduction;
  } else {
    reduction->user = std::make_shared<UserOperator>();
    reduction->user->handle = op;
    host().Op_commutative(op, &reduction->user->commutative);
    reduce_by_host(*reduction);
  }
  return reduction;
}

// A user operator may have been freed where nobody saw it (by Fortran, which calls the host
// directly), and another one have got its handle: all that matters of it is looked at again.
bool stale(const Reduction& reduction) {
  if (reduction.user == nullptr) return false;
  int commutative = 0;
  host().Op_commutative(reduction.op, &commutative);
  return commutative != reduction.user->commutative;
}

// The one record of an operator, shared by its reductions of all types. With the lock held.
std::shared_ptr<UserOperator> known_operator(MPI_Op op) {
  const auto found = reductions().known.lower_bound(Key{(std::uintptr_t)op, 0});
  const bool known = found != reductions().known.end() && found->first.first == (std::uintptr_t)op;
  return known ? found->second->user : nullptr;
}

template <typename Predicate>
void forget_if(Predicate predicate) {
  Reductions& all = reductions();
  const std::lock_guard lock(all.mutex);
  if (std::erase_if(all.known, predicate) > 0) g_reductions.advance();
}

void forget_reductions_of_op(MPI_Op op) {
  forget_if([&](const auto& entry) { return entry.first.first == (std::uintptr_t)op; });
}

}  // namespace

crl_op_t HostReduction::op_for(const Reduction& reduction) {
  failed_.store(MPI_SUCCESS, std::memory_order_relaxed);
  if (reduction_.get() == &reduction) return op_;
  forget();
  const int commutative = reduction.user == nullptr ? 1 : reduction.user->commutative;
  if (crl_op_create(apply, this, commutative, &op_) != CRL_OK) return 0;
  reduction_ = reduction.shared_from_this();
  return op_;
}

void HostReduction::forget() {
  if (reduction_ != nullptr) crl_op_free(op_);
  reduction_.reset();
}

// crl_op_fn_t
void HostReduction::apply(void* arg, const void* left, void* right, std::size_t count) {
  auto& self = *static_cast<HostReduction*>(arg);
  if (count == 0) return;
  if (self.reduction_->direct) {
    self.reduce_typed(left, right, count);
  } else {
    self.reduce_packed(left, right, count);
  }
}

// right = left (op) right, for elements laid out as the host's type.
void HostReduction::reduce_typed(const void* left, void* right, std::size_t count) {
  const TypeInfo& type = *reduction_->type;
  for (std::size_t done = 0; done < count; done += kElementsAtOnce) {
    const auto displacement = static_cast<std::int64_t>(done);
    const auto elements = static_cast<int>(std::min(kElementsAtOnce, count - done));
    note(host().Reduce_local(type.element(left, displacement), type.element(right, displacement),
                             elements, type.handle, reduction_->op));
  }
}

// The same for packed elements: through typed room.
void HostReduction::reduce_packed(const void* left, void* right, std::size_t count) {
  const TypeInfo& type = *reduction_->type;
  const std::size_t element_bytes = reduction_->element_bytes;
  const std::int64_t at_once =
      std::clamp<std::int64_t>(kTypedBytesAtOnce / std::max<std::int64_t>(1, type.extent), 1,
                               static_cast<std::int64_t>(count));
  const TypedRoom left_room(type, at_once), right_room(type, at_once);
  for (std::size_t done = 0; done < count; done += static_cast<std::size_t>(at_once)) {
    const std::int64_t elements = std::min(at_once, static_cast<std::int64_t>(count - done));
    const auto* const packed_left = static_cast<const std::byte*>(left) + done * element_bytes;
    auto* const packed_right = static_cast<std::byte*>(right) + done * element_bytes;
    int status = unpack(type, elements, packed_left, left_room.address());
    if (status == MPI_SUCCESS) {
      status = unpack(type, elements, packed_right, right_room.address());
    }
    if (status == MPI_SUCCESS) {
      reduce_typed(left_room.address(), right_room.address(), static_cast<std::size_t>(elements));
      status = pack(type, elements, right_room.address(), packed_right);
    }
    note(status);
  }
}

ReductionUse::ReductionUse(const Reduction& reduction)
    : reduction_(reduction.shared_from_this()), type_(reduction.type.get()) {
  if (reduction_->user != nullptr) reduction_->user->users.enter();
}

ReductionUse::~ReductionUse() {
  UserOperator* const user = reduction_->user.get();
  if (user == nullptr || !user->users.leave()) return;
  forget_reductions_of_op(user->handle);
  MPI_Op handle = user->handle;
  host().Op_free(&handle);
}

Reduction* find_reduction_slow(MPI_Op op, MPI_Datatype handle) {
  if (is_no_op(op)) return nullptr;
  const TypeInfo* const type = find_type(handle);
  if (type == nullptr) return nullptr;
  const std::uint64_t generation = g_reductions.now();
  const Key key{(std::uintptr_t)op, (std::uintptr_t)handle};
  Reduction* found = nullptr;
  Reductions& all = reductions();
  {
    const std::lock_guard lock(all.mutex);
    const auto entry = all.known.find(key);
    if (entry != all.known.end()) found = entry->second.get();
  }
  if (found != nullptr && stale(*found)) {
    forget_reductions_of_op(op);
    found = nullptr;
  }
  if (found == nullptr) {
    auto fresh = make_reduction(op, *type);
    const std::lock_guard lock(all.mutex);
    if (auto known = known_operator(op)) fresh->user = std::move(known);
    found = all.known.try_emplace(key, std::move(fresh)).first->second.get();
  }
  t_cache.reductions[(hash_of(op) ^ hash_of(handle)) >> 60] = {op, handle, generation, found};
  return found;
}

void forget_reductions_of_type(MPI_Datatype type) {
  forget_if([&](const auto& entry) { return entry.first.second == (std::uintptr_t)type; });
}

void forget_reductions() {
  forget_if([](const auto& /*entry*/) { return true; });
}

int free_op(MPI_Op* op) {
  std::shared_ptr<UserOperator> user;
  {
    const std::lock_guard lock(reductions().mutex);
    user = known_operator(*op);
  }
  if (user != nullptr && !user->users.free()) {
    *op = g_host.op_null;
    return MPI_SUCCESS;
  }
  if (user != nullptr) forget_reductions_of_op(*op);
  return host().Op_free(op);
}

}  // namespace carillon::shim
