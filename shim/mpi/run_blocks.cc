// SPDX-License-Identifier: Apache-2.0
//
// The collectives whose blocks differ in length: alltoallv, alltoallw, allgatherv, gatherv,
// scatterv and reduce_scatter.
#include <algorithm>
#include <list>
#include <vector>

#include "room.h"
#include "run.h"

namespace carillon::shim {
namespace {

// One side of a call: the program's blocks, and where carillon finds their bytes. Either one block
// per rank or this rank's own.
class BlockSide {
 public:
  BlockSide(std::int64_t* bytes, std::int64_t* offsets) : bytes_(bytes), offsets_(offsets) {}

  /// False: arguments for the host to judge.
  [[nodiscard]] bool look_at(const Buffer& buffer, const Blocks& blocks, int count) {
    buffer_ = buffer;
    blocks_ = blocks;
    count_ = count;
    if (blocks.types == nullptr) type_ = find_type(buffer.type);
    if ((blocks.types == nullptr && type_ == nullptr) || buffer.address == MPI_IN_PLACE) {
      return false;
    }
    return measure() && (buffer.address != nullptr || total_ == 0 || is_elsewhere());
  }
  /// The part of another side that is this rank's own block.
  void become(const BlockSide& other, int rank) {
    buffer_ = {other.address(rank), other.elements(rank), other.buffer_.type};
    type_ = other.type_;
    count_ = 1;
    measure();
  }
  /// Its bytes must outlive what comes over them.
  void stage() {
    ready_ = false;
    place_packed();
  }
  /// This rank has no block of its own to look at.
  void drop() {
    count_ = 0;
    ready_ = true;
  }
  /// While it lives, so do the types.
  void hold_types() {
    for (int i = 0; i < (blocks_.types != nullptr ? count_ : std::min(count_, 1)); ++i) {
      if (type(i)->derived) held_.emplace_back(type(i));
    }
  }

  /// For a collective that only begins: the lists may be gone when its blocks are packed or
  /// unpacked. (Fortran functions of hosts pass copies that they free.)
  void keep_lists() {
    if (ready_ || blocks_.counts == nullptr) return;
    for (int i = 0; i < count_; ++i) {
      kept_counts_.push_back(blocks_.count(i));
      kept_offsets_.push_back(blocks_.offset(i));
      if (blocks_.types != nullptr) kept_types_.push_back(blocks_.types[i]);
    }
    blocks_ = {kept_counts_.data(), kept_offsets_.data(), true,
               blocks_.types != nullptr ? kept_types_.data() : nullptr};
  }

  [[nodiscard]] bool exists() const { return count_ > 0; }
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::int64_t total() const { return total_; }
  [[nodiscard]] const std::int64_t* bytes() const { return bytes_; }
  [[nodiscard]] const std::int64_t* offsets() const { return offsets_; }
  /// Where carillon counts the offsets from.
  [[nodiscard]] void* base() const {
    return ready_ ? reinterpret_cast<void*>(base_) : room_.exists() ? room_.at(0) : nullptr;
  }
  [[nodiscard]] void* address(int i) const { return reinterpret_cast<void*>(place(i)); }
  [[nodiscard]] const TypeInfo* type(int i) const {
    return blocks_.types != nullptr ? find_type(blocks_.types[i]) : type_;
  }
  [[nodiscard]] std::int64_t elements(int i) const {
    return blocks_.counts != nullptr ? blocks_.count(i) : buffer_.count;
  }

  /// Room for the packed bytes, if it needs any.
  [[nodiscard]] bool make_room() { return ready_ || !exists() || room_.make(total_); }
  [[nodiscard]] int pack_all() const {
    int status = MPI_SUCCESS;
    for (int i = 0; i < count_ && !ready_ && status == MPI_SUCCESS; ++i) {
      if (bytes_[i] > 0) status = pack(*type(i), elements(i), address(i), room_.at(offsets_[i]));
    }
    return status;
  }
  [[nodiscard]] int unpack_all() const {
    int status = MPI_SUCCESS;
    for (int i = 0; i < count_ && !ready_ && status == MPI_SUCCESS; ++i) {
      if (bytes_[i] > 0) status = unpack(*type(i), elements(i), room_.at(offsets_[i]), address(i));
    }
    return status;
  }

 private:
  [[nodiscard]] std::uintptr_t place(int i) const {
    std::int64_t offset = 0;
    if (blocks_.offsets != nullptr) {
      offset = blocks_.offset(i) * (blocks_.types != nullptr ? 1 : type_->extent);
    }
    return reinterpret_cast<std::uintptr_t>(buffer_.address) + static_cast<std::uintptr_t>(offset);
  }
  // MPI_BOTTOM, with addresses in the types or in the displacements.
  [[nodiscard]] bool is_elsewhere() const {
    return blocks_.types != nullptr || type_->true_lower_bound != 0;
  }

  bool measure() {
    ready_ = true;
    total_ = 0;
    base_ = UINTPTR_MAX;
    for (int i = 0; i < count_; ++i) {
      const TypeInfo* const info = type(i);
      const std::int64_t count = elements(i);
      if (info == nullptr || count < 0 || __builtin_mul_overflow(count, info->size, &bytes_[i])) {
        return false;
      }
      total_ += bytes_[i];
      if (bytes_[i] == 0) continue;
      ready_ = ready_ && info->contiguous(count);
      base_ = std::min(base_, first_byte(i));
    }
    if (base_ == UINTPTR_MAX) base_ = reinterpret_cast<std::uintptr_t>(buffer_.address);
    if (!ready_) {
      place_packed();
    } else {
      for (int i = 0; i < count_; ++i) {
        offsets_[i] = bytes_[i] == 0 ? 0 : static_cast<std::int64_t>(first_byte(i) - base_);
      }
    }
    return true;
  }
  [[nodiscard]] std::uintptr_t first_byte(int i) const {
    return place(i) + static_cast<std::uintptr_t>(type(i)->start);
  }
  void place_packed() {
    for (std::int64_t i = 0, offset = 0; i < count_; offset += bytes_[i++]) offsets_[i] = offset;
  }

  Buffer buffer_;
  Blocks blocks_;
  const TypeInfo* type_ = nullptr;  // null: each block has its own
  int count_ = 0;                   // of blocks
  std::int64_t* bytes_;             // per block
  std::int64_t* offsets_;           // per block; from base() on
  std::int64_t total_ = 0;
  std::uintptr_t base_ = 0;
  bool ready_ = true;
  Room room_;
  std::list<TypeUse> held_;
  std::vector<std::int64_t> kept_counts_, kept_offsets_;
  std::vector<MPI_Datatype> kept_types_;
};

// Whether both sides' elements are the same bytes, by whatever name.
bool same_elements(const TypeInfo* in, const TypeInfo* out) {
  return in == out || (in != nullptr && out != nullptr && in->dense && out->dense &&
                       in->start == out->start && in->size == out->size);
}

// Whether a call of one list per side is in place without saying so.
bool same_lists(const Call& call) {
  const Blocks& in = call.in_blocks;
  const Blocks& out = call.out_blocks;
  if (in.counts != out.counts || in.offsets != out.offsets || in.types != out.types) return false;
  return in.types != nullptr || same_elements(find_type(call.in.type), find_type(call.out.type));
}

bool has_lists(const Blocks& blocks, bool typed) {
  return blocks.counts != nullptr && blocks.offsets != nullptr &&
         (!typed || blocks.types != nullptr);
}

struct Sides {
  explicit Sides(std::int64_t* tables, int size)
      : in(tables, tables + size), out(tables + 2 * size, tables + 3 * size) {}
  BlockSide in, out;
};

// carillon's calls, blocking or with a place for the request.
crl_status_t call_lists(const Communicator& communicator, const Sides& sides,
                        crl_request_h* request) {
  const crl_team_h team = communicator.team;
  const BlockSide& in = sides.in;
  const BlockSide& out = sides.out;
  return request == nullptr ? crl_alltoallv(team, in.base(), in.bytes(), in.offsets(), out.base(),
                                            out.bytes(), out.offsets())
                            : crl_ialltoallv(team, in.base(), in.bytes(), in.offsets(), out.base(),
                                             out.bytes(), out.offsets(), request);
}

// This rank's own block.
struct Own {
  void* base = nullptr;
  std::size_t bytes = 0;
};

crl_status_t call_one_list(Collective collective, const Communicator& communicator, const Own& own,
                           const BlockSide& list, int root, crl_request_h* request) {
  const crl_team_h team = communicator.team;
  const bool has_list = collective == Collective::kAllgatherv || root == communicator.rank;
  const std::int64_t* const bytes = has_list ? list.bytes() : nullptr;
  const std::int64_t* const offsets = has_list ? list.offsets() : nullptr;
  void* const base = list.base();
  if (collective == Collective::kScatterv) {
    return request == nullptr
               ? crl_scatterv(team, base, bytes, offsets, own.base, own.bytes, root)
               : crl_iscatterv(team, base, bytes, offsets, own.base, own.bytes, root, request);
  }
  if (collective == Collective::kGatherv) {
    return request == nullptr
               ? crl_gatherv(team, own.base, own.bytes, base, bytes, offsets, root)
               : crl_igatherv(team, own.base, own.bytes, base, bytes, offsets, root, request);
  }
  return request == nullptr
             ? crl_allgatherv(team, own.base, own.bytes, base, bytes, offsets)
             : crl_iallgatherv(team, own.base, own.bytes, base, bytes, offsets, request);
}

// Packs, calls, unpacks. carillon(place for the request) is kept by a persistent one.
template <typename Carillon>
Outcome run_sides(Collective collective, Communicator& communicator, Sides& sides, Flight* flight,
                  Carillon carillon) {
  sides.in.hold_types();
  sides.out.hold_types();
  if (flight != nullptr) {
    sides.in.keep_lists();
    sides.out.keep_lists();
  }
  if (!sides.in.make_room() || !sides.out.make_room()) return no_memory(communicator);
  return at_start(flight, [collective, &communicator, &sides, flight, carillon] {
    if (const int status = sides.in.pack_all(); status != MPI_SUCCESS) {
      return cannot_pack(communicator, status);
    }
    const crl_status_t done = carillon(place_of_request(flight));
    if (done == CRL_OK && !sides.out.ready()) {
      const int status = at_end(flight, [&sides] { return sides.out.unpack_all(); });
      if (status != MPI_SUCCESS) return cannot_unpack(communicator, status);
    }
    return finish(collective, communicator, done, flight);
  });
}

// This rank's block stands where it belongs already.
Outcome run_own_in_place(Collective collective, Communicator& communicator, const Call& call,
                         Sides& sides, Flight* flight) {
  const bool scatter = collective == Collective::kScatterv;
  BlockSide& list = scatter ? sides.in : sides.out;
  if (!scatter && !list.ready()) sides.in.become(list, communicator.rank);
  const auto carillon = [=, &communicator, &sides, &list,
                         root = call.root](crl_request_h* request) {
    Own own{CRL_IN_PLACE, 0};
    if (!scatter) {
      if (sides.in.exists()) own.base = sides.in.base();
      own.bytes = static_cast<std::size_t>(list.bytes()[communicator.rank]);
    }
    return call_one_list(collective, communicator, own, list, root, request);
  };
  return run_sides(collective, communicator, sides, flight, carillon);
}

}  // namespace

Outcome run_lists(Collective collective, Communicator& communicator, const Call& call,
                  Flight* flight) {
  const int size = communicator.size;
  const Held<Sides> held(flight, tables_of(communicator, flight), size);
  Sides& sides = *held;
  const bool typed = collective == Collective::kAlltoallw;
  if (!has_lists(call.out_blocks, typed) || !sides.out.look_at(call.out, call.out_blocks, size)) {
    return leave(Reason::kSuspect);
  }
  bool in_place = call.in.address == MPI_IN_PLACE;
  if (!in_place && call.in.address == call.out.address && sides.out.total() > 0 &&
      call.in.address != MPI_BOTTOM) {
    const bool same_counts = call.in.type == call.out.type &&
                             call.in_blocks.types == call.out_blocks.types &&
                             call.in_blocks.counts == call.out_blocks.counts;
    if (same_counts && alias_error() != MPI_SUCCESS) return raised(communicator, alias_error());
    in_place = same_lists(call);
  }
  const Blocks& in_blocks = in_place ? call.out_blocks : call.in_blocks;
  if (!has_lists(in_blocks, typed) ||
      !sides.in.look_at(in_place ? call.out : call.in, in_blocks, size)) {
    return leave(Reason::kSuspect);
  }
  if (in_place) sides.in.stage();
  const auto carillon = [&communicator, &sides](crl_request_h* request) {
    return call_lists(communicator, sides, request);
  };
  return run_sides(collective, communicator, sides, flight, carillon);
}

Outcome run_one_list(Collective collective, Communicator& communicator, const Call& call,
                     Flight* flight) {
  const Rule& rule = rule_of(collective);
  const int size = communicator.size, rank = communicator.rank;
  if (rule.rooted && (call.root < 0 || call.root >= size)) return leave(Reason::kSuspect);
  const bool scatter = collective == Collective::kScatterv;
  const bool has_list = !rule.rooted || call.root == rank;
  const Held<Sides> held(flight, tables_of(communicator, flight), size);
  Sides& sides = *held;
  BlockSide& list = scatter ? sides.in : sides.out;
  BlockSide& own = scatter ? sides.out : sides.in;
  const Buffer& list_buffer = scatter ? call.in : call.out;
  const Buffer& own_buffer = scatter ? call.out : call.in;
  const Blocks& blocks = scatter ? call.in_blocks : call.out_blocks;
  if (has_list && (!has_lists(blocks, false) || !list.look_at(list_buffer, blocks, size))) {
    return leave(Reason::kSuspect);
  }
  if (own_buffer.address == MPI_IN_PLACE) {
    if (!has_list) return leave(Reason::kSuspect);
    return run_own_in_place(collective, communicator, call, sides, flight);
  }
  if (!own.look_at(own_buffer, {}, 1)) return leave(Reason::kSuspect);
  if (has_list) {
    if (own.total() != list.bytes()[rank]) return raised(communicator, MPI_ERR_TRUNCATE);
    if (own.total() > 0 && own_buffer.address == list.address(rank) &&
        own_buffer.address != MPI_BOTTOM) {
      const bool same = own_buffer.type == list_buffer.type;
      if (same && alias_error() != MPI_SUCCESS) return raised(communicator, alias_error());
      if (same_elements(own.type(0), list.type(rank))) {
        own.drop();
        return run_own_in_place(collective, communicator, call, sides, flight);
      }
    }
  }
  const auto carillon = [collective, &communicator, &own, &list,
                         root = call.root](crl_request_h* request) {
    const Own block{own.base(), static_cast<std::size_t>(own.total())};
    return call_one_list(collective, communicator, block, list, root, request);
  };
  return run_sides(collective, communicator, sides, flight, carillon);
}

Outcome run_reduce_scatter(Communicator& communicator, const Call& call, Flight* flight) {
  constexpr Collective kCollective = Collective::kReduceScatter;
  Reduction* const reduction = find_reduction(call.op, call.in.type);
  if (reduction == nullptr || call.in_blocks.counts == nullptr) return leave(Reason::kSuspect);
  if (reduction->reason != Reason::kNone) return leave(reduction->reason);
  std::int64_t total = 0;
  std::int64_t* const counts = tables_of(communicator, flight);
  for (int i = 0; i < communicator.size; ++i) {
    counts[i] = call.in_blocks.count(i);
    if (counts[i] < 0 || __builtin_add_overflow(total, counts[i], &total)) {
      return leave(Reason::kSuspect);
    }
  }
  bool in_place = call.in.address == MPI_IN_PLACE;
  if (call.out.address == MPI_IN_PLACE) return leave(Reason::kSuspect);
  if (total == 0 || reduction->element_bytes == 0) {
    return do_nothing(kCollective, communicator, flight);
  }
  if (call.in.address == call.out.address) {
    if (refused_alias(call.in, call.out)) return raised(communicator, alias_error());
    in_place = true;
  }
  const std::int64_t own = counts[communicator.rank];
  const bool needs_out = own > 0 || in_place;
  if ((call.in.address == nullptr || (needs_out && call.out.address == nullptr)) &&
      reduction->type->true_lower_bound == 0) {
    return leave(Reason::kSuspect);
  }
  Call totals = call;  // what this rank gives, and what it gets
  totals.in.count = total;
  totals.out.count = own;
  if (reduction->by_host) {
    return run_reduction_by_host(kCollective, communicator, totals, {in_place, true}, *reduction,
                                 flight);
  }
  const void* const in = in_place ? CRL_IN_PLACE : call.in.address;
  void* const out = const_cast<void*>(call.out.address);
  return at_start(flight, [&communicator, in, out, counts, dtype = reduction->dtype,
                           op = reduction->crl_op, flight] {
    const crl_team_h team = communicator.team;
    const crl_status_t done =
        flight == nullptr ? crl_reduce_scatter(team, in, out, counts, dtype, op)
                          : crl_ireduce_scatter(team, in, out, counts, dtype, op, &flight->request);
    return finish(kCollective, communicator, done, flight);
  });
}

}  // namespace carillon::shim
