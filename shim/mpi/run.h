// SPDX-License-Identifier: Apache-2.0
//
// One call of a collective, from the program's arguments to carillon's. The same few functions
// serve all collectives; what differs stands in kRules (call.h) and is folded at compile time.
//
// Whether carillon takes a correct call depends only on what is the same on all ranks: the
// collective, the communicator, the operator and the reduction's type. Never on a layout, on
// MPI_IN_PLACE, on addresses: those only decide how this rank's bytes get in and out. Only wrong
// arguments (Reason::kSuspect) go to the host for what they locally are: those that any host
// refuses.
//
// A collective that is only started has a Flight, which keeps what it needs until it has ended. A
// blocking one has none: null here. Of a persistent one, everything up to at_start() is done once,
// when it is made, and what is given to at_start() each time that it is started.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "call.h"
#include "communicator.h"
#include "datatype.h"
#include "errors.h"
#include "flight.h"
#include "reduction.h"
#include "repeat.h"

namespace carillon::shim {

/// One side of a call on this rank. No type: it does not count here.
struct Operand {
  const TypeInfo* type = nullptr;
  void* buffer = nullptr;
  std::int64_t block_elements = 0;
  std::int64_t elements = 0;  // of all blocks
  std::int64_t bytes = 0;     // of one block, packed

  [[nodiscard]] bool ready() const { return type == nullptr || type->contiguous(elements); }
  [[nodiscard]] void* first_byte() const {
    return type == nullptr ? nullptr : type->first_byte(buffer);
  }
};

/// What a call needs until its collective has ended: kept here while a blocking one runs, by the
/// flight of another.
template <typename Thing>
class Held {
 public:
  template <typename... Arguments>
  explicit Held(Flight* flight, Arguments&&... arguments) {
    if (flight == nullptr) {
      thing_ = &here_.emplace(std::forward<Arguments>(arguments)...);
    } else {
      auto kept = std::make_shared<Thing>(std::forward<Arguments>(arguments)...);
      thing_ = kept.get();
      flight->kept = std::move(kept);
    }
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  Thing* operator->() const { return thing_; }
  Thing& operator*() const { return *thing_; }

 private:
  std::optional<Thing> here_;
  Thing* thing_ = nullptr;
};

struct DataArguments {
  Operand in, out;
  bool in_place = false;
  int root = 0;

  [[nodiscard]] std::int64_t bytes() const { return in.type != nullptr ? in.bytes : out.bytes; }
};

/// Which buffers a reduction has on this rank.
struct Placing {
  bool in_place = false, has_out = true;
};

// The rare ways, out of line.
Outcome run_data_packed(Collective collective, Communicator& communicator,
                        const DataArguments& arguments, Flight* flight);
Outcome run_reduction_by_host(Collective collective, Communicator& communicator, const Call& call,
                              const Placing& placing, const Reduction& reduction, Flight* flight);
/// Where a call of each side lists the blocks of all ranks, or only one side.
Outcome run_lists(Collective collective, Communicator& communicator, const Call& call,
                  Flight* flight);
Outcome run_one_list(Collective collective, Communicator& communicator, const Call& call,
                     Flight* flight);
/// Where the blocks are those of neighbours.
Outcome run_neighbours(Collective collective, Communicator& communicator, const Call& call,
                       Flight* flight);
/// For run_reduction_by_host: the counts stand in the tables, in.count is all of them, out.count
/// this rank's.
Outcome run_reduce_scatter(Communicator& communicator, const Call& call, Flight* flight);
/// The team could not be made.
Outcome answer_broken(Communicator& communicator, std::size_t call);

/// The place for carillon's request; none if the call blocks.
inline crl_request_h* place_of_request(Flight* flight) {
  return flight == nullptr ? nullptr : &flight->request;
}

/// Whether the team has turned out not to be made, and its flights are still to learn that.
bool fails_in_the_making(const Communicator& communicator);

/// A blocking collective has ended, or another has begun; or it will be the host's to begin it,
/// with those that were started earlier.
inline Outcome finish(Collective collective, Communicator& communicator, crl_status_t status,
                      const Flight* flight) {
  if (status == CRL_OK || (flight != nullptr && fails_in_the_making(communicator))) [[likely]] {
    communicator.count(flight == nullptr ? call_index(collective) : flight->counted);
    return {};
  }
  return {raise_carillon_error(communicator.handle, status,
                               flight == nullptr ? call_index(collective) : flight->counted)};
}

/// Nobody has anything to send.
inline Outcome do_nothing(Collective collective, Communicator& communicator, Flight* flight) {
  return at_start(flight, [collective, &communicator, flight] {
    return finish(collective, communicator, CRL_OK, flight);
  });
}

/// The outcome of a call that carillon got so; if it blocked, its next one may be shorter.
template <Collective kCollective>
inline Outcome remembered(Outcome outcome, Communicator& communicator, const Call& call,
                          const Generations& began, Addresses got, std::int64_t bytes,
                          const Flight* flight) {
  if (flight == nullptr && outcome.code == MPI_SUCCESS) {
    remember<kCollective>(communicator, call, began, got, bytes);
  }
  return outcome;
}

inline Outcome raised(const Communicator& communicator, int error_class) {
  return {raise_error(communicator.handle, error_class)};
}

// False: arguments for the host to judge.
inline bool look_at(Operand& operand, const Buffer& buffer, const Side& side, int team_size) {
  operand.type = find_type(buffer.type);
  if (operand.type == nullptr || buffer.count < 0 || buffer.address == MPI_IN_PLACE) return false;
  operand.buffer = const_cast<void*>(buffer.address);
  operand.block_elements = buffer.count;
  operand.elements = side.block_per_rank ? buffer.count * team_size : buffer.count;
  if (__builtin_mul_overflow(buffer.count, operand.type->size, &operand.bytes)) return false;
  return buffer.address != nullptr || operand.bytes == 0 || operand.type->true_lower_bound != 0;
}

// Whether input and output of this rank, which both count, begin at the same address.
inline bool same_address(const Rule& rule, const Operand& in, const Operand& out, int rank) {
  if (rule.in.block_per_rank == rule.out.block_per_rank) return in.buffer == out.buffer;
  return rule.out.block_per_rank
             ? in.buffer == out.type->element(out.buffer, rank * out.block_elements)
             : out.buffer == in.type->element(in.buffer, rank * in.block_elements);
}

// A buffer may not be both input and output, but hosts differ in whether they look, and in how
// closely: MPICH at equal types and counts, if at all. What the host lets pass is taken, in place
// where that means the same: the other ranks are in this call and may have nothing unusual.
inline bool refused_alias(const Buffer& in, const Buffer& out) {
  return in.type == out.type && in.count == out.count && alias_error() != MPI_SUCCESS;
}

// Whether they are then the same bytes: types may take different parts of one array, or of all
// memory (MPI_BOTTOM).
inline bool same_bytes(const Operand& in, const Operand& out) {
  return in.buffer != MPI_BOTTOM &&
         (in.type == out.type ||
          (in.ready() && out.ready() && in.type->true_lower_bound == out.type->true_lower_bound));
}

template <Collective kCollective>
Outcome run_data(Communicator& communicator, const Call& call, Flight* flight) {
  constexpr Rule kRule = rule_of(kCollective);
  const Generations began = generations_now();
  bool is_root = false;
  if constexpr (kRule.rooted) {
    if (call.root < 0 || call.root >= communicator.size) return leave(Reason::kSuspect);
    is_root = call.root == communicator.rank;
  }
  bool has_in = counts_at(kRule.in.at, is_root), has_out = counts_at(kRule.out.at, is_root);
  bool in_place = false;
  if (kRule.in_place == InPlace::kInput && call.in.address == MPI_IN_PLACE) {
    if (!has_out) return leave(Reason::kSuspect);
    has_in = false;
    in_place = true;
  }
  if (kRule.in_place == InPlace::kOutput && call.out.address == MPI_IN_PLACE) {
    if (!has_in) return leave(Reason::kSuspect);
    has_out = false;
    in_place = true;
  }
  Operand in, out;
  if (has_in && !look_at(in, call.in, kRule.in, communicator.size)) {
    return leave(Reason::kSuspect);
  }
  if (has_out && !look_at(out, call.out, kRule.out, communicator.size)) {
    return leave(Reason::kSuspect);
  }
  const std::int64_t bytes = has_in ? in.bytes : out.bytes;
  if (has_in && has_out) {
    if (in.bytes != out.bytes) return raised(communicator, MPI_ERR_TRUNCATE);
    if (bytes > 0 && same_address(kRule, in, out, communicator.rank)) [[unlikely]] {
      if (refused_alias(call.in, call.out)) return raised(communicator, alias_error());
      if (same_bytes(in, out)) {
        in_place = true;
        (kRule.in_place == InPlace::kInput ? in : out).type = nullptr;
      }
    }
  }
  if (bytes == 0) return do_nothing(kCollective, communicator, flight);
  if (!in.ready() || !out.ready()) [[unlikely]] {
    return run_data_packed(kCollective, communicator, {in, out, in_place, call.root}, flight);
  }
  const bool place_in = in_place && kRule.in_place == InPlace::kInput;
  const bool place_out = in_place && kRule.in_place == InPlace::kOutput;
  const void* const from = place_in ? CRL_IN_PLACE : in.first_byte();
  void* const to = place_out ? CRL_IN_PLACE : out.first_byte();
  const Outcome outcome =
      at_start(flight, [&communicator, from, to, bytes, root = call.root, flight] {
        return finish(kCollective, communicator,
                      rule_of(kCollective)
                          .data(communicator.team, from, to, static_cast<std::size_t>(bytes), root,
                                place_of_request(flight)),
                      flight);
      });
  return remembered<kCollective>(outcome, communicator, call, began, {from, to}, bytes, flight);
}

template <Collective kCollective>
Outcome run_reduction(Communicator& communicator, const Call& call, Flight* flight) {
  constexpr Rule kRule = rule_of(kCollective);
  const Generations began = generations_now();
  Reduction* const reduction = find_reduction(call.op, call.in.type);
  if (reduction == nullptr) return leave(Reason::kSuspect);
  if (reduction->reason != Reason::kNone) [[unlikely]]
    return leave(reduction->reason);
  bool has_out = true;
  if constexpr (kRule.rooted) {
    if (call.root < 0 || call.root >= communicator.size) return leave(Reason::kSuspect);
    has_out = call.root == communicator.rank;
  }
  bool in_place = call.in.address == MPI_IN_PLACE;
  if (call.in.count < 0 || (in_place && !has_out) ||
      (has_out && call.out.address == MPI_IN_PLACE)) {
    return leave(Reason::kSuspect);
  }
  if (call.in.count == 0 || reduction->element_bytes == 0) [[unlikely]] {
    return do_nothing(kCollective, communicator, flight);
  }
  if (has_out && call.in.address == call.out.address) [[unlikely]] {
    if (kCollective == Collective::kReduce && refuses_alias_at_root()) {
      return leave(Reason::kSuspect);
    }
    if (refused_alias(call.in, call.out)) return raised(communicator, alias_error());
    in_place = true;
  }
  if constexpr (kCollective == Collective::kExscan) has_out = communicator.rank > 0;
  if ((call.in.address == nullptr || ((has_out || in_place) && call.out.address == nullptr)) &&
      reduction->type->true_lower_bound == 0) {
    return leave(Reason::kSuspect);
  }
  if (reduction->by_host) [[unlikely]] {
    return run_reduction_by_host(kCollective, communicator, call, {in_place, has_out}, *reduction,
                                 flight);
  }
  const void* const from = in_place ? CRL_IN_PLACE : call.in.address;
  void* const to = has_out || in_place ? const_cast<void*>(call.out.address) : nullptr;
  const Outcome outcome =
      at_start(flight, [&communicator, from, to, count = call.in.count, dtype = reduction->dtype,
                        op = reduction->crl_op, root = call.root, flight] {
        return finish(kCollective, communicator,
                      rule_of(kCollective)
                          .reduction(communicator.team, from, to, static_cast<std::size_t>(count),
                                     dtype, op, root, place_of_request(flight)),
                      flight);
      });
  return remembered<kCollective>(outcome, communicator, call, began, {from, to}, 0, flight);
}

template <Collective kCollective>
inline Outcome run(Communicator& communicator, const Call& call, Flight* flight) {
  constexpr Rule kRule = rule_of(kCollective);
  if (communicator.team == nullptr) [[unlikely]] {
    if (communicator.broken != CRL_OK) {
      return answer_broken(communicator,
                           flight == nullptr ? call_index(kCollective) : flight->counted);
    }
    return leave(communicator.reason);
  }
  if constexpr (kRule.kind == Kind::kBarrier) {
    const Outcome outcome = at_start(flight, [&communicator, flight] {
      return finish(kCollective, communicator,
                    flight == nullptr ? crl_barrier(communicator.team)
                                      : crl_ibarrier(communicator.team, &flight->request),
                    flight);
    });
    return remembered<kCollective>(outcome, communicator, call, {}, {}, 0, flight);
  } else if constexpr (kRule.kind == Kind::kData) {
    return run_data<kCollective>(communicator, call, flight);
  } else if constexpr (kRule.kind == Kind::kReduction) {
    return run_reduction<kCollective>(communicator, call, flight);
  } else if constexpr (kRule.kind == Kind::kLists) {
    return run_lists(kCollective, communicator, call, flight);
  } else if constexpr (kRule.kind == Kind::kOneList) {
    return run_one_list(kCollective, communicator, call, flight);
  } else if constexpr (kRule.kind == Kind::kNeighbours) {
    return run_neighbours(kCollective, communicator, call, flight);
  } else {
    return run_reduce_scatter(communicator, call, flight);
  }
}

}  // namespace carillon::shim
