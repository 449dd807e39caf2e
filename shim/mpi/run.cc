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

}  // namespace

Outcome answer_broken(Communicator& communicator) {
  return {raise_carillon_error(communicator.handle, communicator.broken)};
}

Outcome run_data_packed(Collective collective, Communicator& communicator,
                        const DataArguments& arguments, Flight* flight) {
  const Rule& rule = rule_of(collective);
  const Operand& in = arguments.in;
  const Operand& out = arguments.out;
  const Held<PackedData> held(flight, in.type, out.type);
  const auto blocks = [&](const Side& side) { return side.block_per_rank ? communicator.size : 1; };
  const void* in_bytes = in.first_byte();
  void* out_bytes = out.first_byte();
  Room& in_room = held->in_room;
  Room& out_room = held->out_room;
  int status = MPI_SUCCESS;
  if (!in.ready()) {
    if (!in_room.make(in.bytes, blocks(rule.in))) return no_memory(communicator);
    status = pack(*in.type, in.elements, in.buffer, in_room.at(0));
    in_bytes = in_room.at(0);
  }
  if (!out.ready()) {
    if (!out_room.make(out.bytes, blocks(rule.out))) return no_memory(communicator);
    out_bytes = out_room.at(0);
  }
  if (arguments.in_place && rule.in_place == InPlace::kInput) {
    in_bytes = CRL_IN_PLACE;
    if (out_room.exists()) status = pack_in_place(rule, arguments, communicator.rank, out_room);
  } else if (arguments.in_place) {
    out_bytes = CRL_IN_PLACE;
  }
  if (status != MPI_SUCCESS) return cannot_pack(communicator, status);
  const crl_status_t done =
      rule.data(communicator.team, in_bytes, out_bytes, static_cast<std::size_t>(arguments.bytes()),
                arguments.root, place_of_request(flight));
  if (done == CRL_OK && out_room.exists()) {
    status = at_end(flight, [out, &out_room] {
      return unpack(*out.type, out.elements, out_room.at(0), out.buffer);
    });
    if (status != MPI_SUCCESS) return cannot_unpack(communicator, status);
  }
  return finish(collective, communicator, done, flight);
}

Outcome run_reduction_by_host(Collective collective, Communicator& communicator, const Call& call,
                              const Placing& placing, const Reduction& reduction, Flight* flight) {
  const Rule& rule = rule_of(collective);
  const TypeInfo& type = *reduction.type;
  const bool uneven = rule.reduction == nullptr;
  const std::int64_t in_elements =
      call.in.count * (rule.in.block_per_rank && !uneven ? communicator.size : 1);
  const std::int64_t out_elements = uneven ? call.out.count : call.in.count;
  const Held<PackedReduction> held(flight, reduction);
  HostReduction& by_host = flight == nullptr ? communicator.host_reduction : flight->host_reduction;
  const crl_op_t op = by_host.op_for(reduction);
  if (op == 0) return no_memory(communicator);
  const void* in = placing.in_place ? CRL_IN_PLACE : call.in.address;
  void* out = placing.has_out || placing.in_place ? const_cast<void*>(call.out.address) : nullptr;
  Room& in_room = held->in_room;
  Room& out_room = held->out_room;
  if (!reduction.direct) {
    if (!in_room.make(in_elements, type.size) ||
        (placing.has_out && !out_room.make(out_elements, type.size))) {
      return no_memory(communicator);
    }
    const int status =
        pack(type, in_elements, placing.in_place ? out : call.in.address, in_room.at(0));
    if (status != MPI_SUCCESS) return cannot_pack(communicator, status);
    in = in_room.at(0);
    out = placing.has_out ? out_room.at(0) : nullptr;
  }
  crl_request_h* const request = place_of_request(flight);
  const std::int64_t* const counts = tables_of(communicator, flight);
  const crl_team_h team = communicator.team;
  const crl_status_t done =
      !uneven ? rule.reduction(team, in, out, static_cast<std::size_t>(call.in.count),
                               reduction.dtype, op, call.root, request)
      : flight == nullptr
          ? crl_reduce_scatter(team, in, out, counts, reduction.dtype, op)
          : crl_ireduce_scatter(team, in, out, counts, reduction.dtype, op, request);
  // The host has already raised the error.
  if (flight == nullptr && by_host.failed() != MPI_SUCCESS) return {by_host.failed()};
  // An element does not fit in a slot: said on all ranks alike, before anything was sent.
  if (done == CRL_ERR_UNSUPPORTED) return leave(Reason::kReduction);
  if (done == CRL_OK && out_room.exists()) {
    void* const to = const_cast<void*>(call.out.address);
    const int status = at_end(flight, [&type, out_elements, &out_room, to] {
      return unpack(type, out_elements, out_room.at(0), to);
    });
    if (status != MPI_SUCCESS) return cannot_unpack(communicator, status);
  }
  return finish(collective, communicator, done, flight);
}

}  // namespace carillon::shim
