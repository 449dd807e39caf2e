// SPDX-License-Identifier: Apache-2.0
//
// The collectives whose blocks differ in length: alltoallv, alltoallw, allgatherv, gatherv,
// scatterv and reduce_scatter.
#include "block_side.h"
#include "room.h"
#include "run.h"

namespace carillon::shim {
namespace {

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
