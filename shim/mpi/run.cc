// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include "room.h"

namespace carillon::shim {
namespace {

struct PackedData {
  PackedData(const TypeInfo* in, const TypeInfo* out) : in_use(in), out_use(out) {}
  TypeUse in_use, out_use;
  Room in_room, out_room;
};

struct PackedReduction {
  explicit PackedReduction(const Reduction& reduction) : use(reduction) {}
  ReductionUse use;
  Room in_room, out_room;
};

// The part of the output that is this rank's input when it is in place.
int pack_in_place(const Rule& rule, const DataArguments& arguments, int rank, const Room& room) {
  const Operand& out = arguments.out;
  if (rule.in.block_per_rank) return pack(*out.type, out.elements, out.buffer, room.at(0));
  return pack(*out.type, out.block_elements,
              out.type->element(out.buffer, rank * out.block_elements), room.at(rank * out.bytes));
}

struct PackedRooms {
  Room& in;
  Room& out;
};

Outcome run_packed(Collective collective, Communicator& communicator,
                   const DataArguments& arguments, const PackedRooms& rooms, Flight* flight) {
  const Rule& rule = rule_of(collective);
  const Operand& in = arguments.in;
  const Operand& out = arguments.out;
  const void* in_bytes = rooms.in.exists() ? rooms.in.at(0) : in.first_byte();
  void* out_bytes = rooms.out.exists() ? rooms.out.at(0) : out.first_byte();
  int status = MPI_SUCCESS;
  if (rooms.in.exists()) status = pack(*in.type, in.elements, in.buffer, rooms.in.at(0));
  if (arguments.in_place && rule.in_place == InPlace::kInput) {
    in_bytes = CRL_IN_PLACE;
    if (rooms.out.exists()) status = pack_in_place(rule, arguments, communicator.rank, rooms.out);
  } else if (arguments.in_place) {
    out_bytes = CRL_IN_PLACE;
  }
  if (status != MPI_SUCCESS) return cannot_pack(communicator, status);
  const crl_status_t done =
      rule.data(communicator.team, in_bytes, out_bytes, static_cast<std::size_t>(arguments.bytes()),
                arguments.root, place_of_request(flight));
  if (done == CRL_OK && rooms.out.exists()) {
    status = at_end(flight, [out, &out_room = rooms.out] {
      return unpack(*out.type, out.elements, out_room.at(0), out.buffer);
    });
    if (status != MPI_SUCCESS) return cannot_unpack(communicator, status);
  }
  return finish(collective, communicator, done, flight);
}

struct Elements {
  std::int64_t in = 0, out = 0;
};

// Of this rank's buffers. In a reduce_scatter each block has a length of its own.
Elements elements_of(Collective collective, const Communicator& communicator, const Call& call) {
  if (rule_of(collective).reduction == nullptr) return {call.in.count, call.out.count};
  const bool block_per_rank = rule_of(collective).in.block_per_rank;
  return {call.in.count * (block_per_rank ? communicator.size : 1), call.in.count};
}

// The rooms exist if elements are packed.
struct ByHost {
  const Reduction& reduction;
  Room& in_room;
  Room& out_room;
};

// What carillon gets to reduce.
struct Operands {
  const void* in = nullptr;
  void* out = nullptr;
  crl_dtype_t dtype{};
  crl_op_t op{};
};

crl_status_t call_carillon(Collective collective, Communicator& communicator, const Call& call,
                           const Operands& what, Flight* flight) {
  crl_request_h* const request = place_of_request(flight);
  const crl_team_h team = communicator.team;
  if (const Rule& rule = rule_of(collective); rule.reduction != nullptr) {
    return rule.reduction(team, what.in, what.out, static_cast<std::size_t>(call.in.count),
                          what.dtype, what.op, call.root, request);
  }
  const std::int64_t* const counts = tables_of(communicator, flight);
  return flight == nullptr
             ? crl_reduce_scatter(team, what.in, what.out, counts, what.dtype, what.op)
             : crl_ireduce_scatter(team, what.in, what.out, counts, what.dtype, what.op, request);
}

Outcome reduce_by_host(Collective collective, Communicator& communicator, const Call& call,
                       const Placing& placing, const ByHost& how, Flight* flight) {
  const Reduction& reduction = how.reduction;
  const TypeInfo& type = *reduction.type;
  const Elements elements = elements_of(collective, communicator, call);
  HostReduction& by_host = flight == nullptr ? communicator.host_reduction : flight->host_reduction;
  const crl_op_t op = by_host.op_for(reduction);
  if (op == 0) return no_memory(communicator);
  const void* in = placing.in_place ? CRL_IN_PLACE : call.in.address;
  void* const to = const_cast<void*>(call.out.address);
  void* out = placing.has_out || placing.in_place ? to : nullptr;
  if (!reduction.direct) {
    const int status =
        pack(type, elements.in, placing.in_place ? out : call.in.address, how.in_room.at(0));
    if (status != MPI_SUCCESS) return cannot_pack(communicator, status);
    in = how.in_room.at(0);
    out = placing.has_out ? how.out_room.at(0) : nullptr;
  }
  const crl_status_t done =
      call_carillon(collective, communicator, call, {in, out, reduction.dtype, op}, flight);
  // The host has already raised the error.
  if (flight == nullptr && by_host.failed() != MPI_SUCCESS) return {by_host.failed()};
  // An element does not fit in a slot: said on all ranks alike, before anything was sent.
  if (done == CRL_ERR_UNSUPPORTED && !fails_in_the_making(communicator)) {
    return leave(Reason::kReduction);
  }
  if (done == CRL_OK && how.out_room.exists()) {
    const int status = at_end(flight, [&type, elements, &out_room = how.out_room, to] {
      return unpack(type, elements.out, out_room.at(0), to);
    });
    if (status != MPI_SUCCESS) return cannot_unpack(communicator, status);
  }
  return finish(collective, communicator, done, flight);
}

}  // namespace

bool fails_in_the_making(const Communicator& communicator) {
  if (!communicator.agreeing) return false;
  const crl_status_t status = crl_team_test(communicator.team);
  return status != CRL_OK && status != CRL_IN_PROGRESS;
}

Outcome answer_broken(Communicator& communicator, std::size_t call) {
  return {raise_carillon_error(communicator.handle, communicator.broken, call)};
}

Outcome run_data_packed(Collective collective, Communicator& communicator,
                        const DataArguments& arguments, Flight* flight) {
  const Rule& rule = rule_of(collective);
  const Operand& in = arguments.in;
  const Operand& out = arguments.out;
  const Held<PackedData> held(flight, in.type, out.type);
  const auto blocks = [&](const Side& side) { return side.block_per_rank ? communicator.size : 1; };
  Room& in_room = held->in_room;
  Room& out_room = held->out_room;
  if ((!in.ready() && !in_room.make(in.bytes, blocks(rule.in))) ||
      (!out.ready() && !out_room.make(out.bytes, blocks(rule.out)))) {
    return no_memory(communicator);
  }
  return at_start(flight, [collective, &communicator, arguments, &in_room, &out_room, flight] {
    return run_packed(collective, communicator, arguments, {in_room, out_room}, flight);
  });
}

Outcome run_reduction_by_host(Collective collective, Communicator& communicator, const Call& call,
                              const Placing& placing, const Reduction& reduction, Flight* flight) {
  if (!communicator.host_reduces) return leave(Reason::kReduction);
  const Held<PackedReduction> held(flight, reduction);
  Room& in_room = held->in_room;
  Room& out_room = held->out_room;
  const Elements elements = elements_of(collective, communicator, call);
  const std::int64_t bytes = reduction.type->size;
  if (!reduction.direct && (!in_room.make(elements.in, bytes) ||
                            (placing.has_out && !out_room.make(elements.out, bytes)))) {
    return no_memory(communicator);
  }
  return at_start(
      flight, [collective, &communicator, call, placing, &reduction, &in_room, &out_room, flight] {
        return reduce_by_host(collective, communicator, call, placing,
                              {reduction, in_room, out_room}, flight);
      });
}

}  // namespace carillon::shim
