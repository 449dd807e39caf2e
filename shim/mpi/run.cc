// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace carillon::shim {
namespace {

// Room for packed bytes, for one call.
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

// This rank cannot begin a collective that the others may be in: they must not wait for it.
Outcome no_memory(const Communicator& communicator) {
  crl_team_fail(communicator.team, CRL_ERR_NO_MEMORY);
  return raised(communicator, MPI_ERR_NO_MEM);
}

Outcome cannot_pack(const Communicator& communicator, int status) {
  crl_team_fail(communicator.team, CRL_ERR_SYSTEM);
  return raised(communicator, status);
}

// The collective is over, and the others have nothing to do with it.
Outcome cannot_unpack(const Communicator& communicator, int status) {
  return raised(communicator, status);
}

// The part of the output that is this rank's input when it is in place.
int pack_in_place(const Rule& rule, const DataArguments& arguments, int rank, const Room& room) {
  const Operand& out = arguments.out;
  if (rule.in.block_per_rank) return pack(*out.type, out.elements, out.buffer, room.at(0));
  return pack(*out.type, out.block_elements,
              out.type->element(out.buffer, rank * out.block_elements), room.at(rank * out.bytes));
}

// One side of an alltoallv: the program's blocks, and where carillon finds their bytes.
struct BlockSide {
  const TypeInfo* type = nullptr;
  void* buffer = nullptr;
  Blocks blocks;
  std::int64_t* bytes = nullptr;    // per rank
  std::int64_t* offsets = nullptr;  // per rank; within the buffer if ready, else packed
  std::int64_t total = 0;
  bool ready = false;
};

// False: arguments for the host to judge.
bool look_at_blocks(BlockSide& side, const Buffer& buffer, const Blocks& blocks,
                    const Communicator& communicator) {
  side.type = find_type(buffer.type);
  side.buffer = const_cast<void*>(buffer.address);
  side.blocks = blocks;
  if (side.type == nullptr || blocks.counts == nullptr || blocks.offsets == nullptr ||
      buffer.address == MPI_IN_PLACE) {
    return false;
  }
  side.ready = side.type->single_run;
  for (int i = 0; i < communicator.size; ++i) {
    const std::int64_t count = blocks.count(i);
    if (count < 0 || __builtin_mul_overflow(count, side.type->size, &side.bytes[i])) return false;
    side.ready = side.ready && side.type->contiguous(count);
    side.total += side.bytes[i];
  }
  std::int64_t packed = 0;
  for (int i = 0; i < communicator.size; ++i) {
    side.offsets[i] = side.ready ? blocks.offset(i) * side.type->extent : packed;
    packed += side.bytes[i];
  }
  return buffer.address != nullptr || side.total == 0 || side.type->true_lower_bound != 0;
}

// Whether both sides' elements are the same bytes, by whatever name.
bool same_elements(const Call& call, const TypeInfo& out) {
  const TypeInfo* const in = find_type(call.in.type);
  return in == &out || (in != nullptr && in->dense && out.dense && in->start == out.start &&
                        in->size == out.size);
}

int pack_blocks(const BlockSide& side, int size, const Room& room) {
  std::int64_t offset = 0;
  for (int i = 0; i < size; offset += side.bytes[i++]) {
    const int status =
        pack(*side.type, side.blocks.count(i),
             side.type->element(side.buffer, side.blocks.offset(i)), room.at(offset));
    if (status != MPI_SUCCESS) return status;
  }
  return MPI_SUCCESS;
}

int unpack_blocks(const BlockSide& side, int size, const Room& room) {
  for (int i = 0; i < size; ++i) {
    const int status = unpack(*side.type, side.blocks.count(i), room.at(side.offsets[i]),
                              side.type->element(side.buffer, side.blocks.offset(i)));
    if (status != MPI_SUCCESS) return status;
  }
  return MPI_SUCCESS;
}

}  // namespace

Outcome answer_broken(Communicator& communicator) {
  return {raise_carillon_error(communicator.handle, communicator.broken)};
}

Outcome run_data_packed(Collective collective, Communicator& communicator,
                        const DataArguments& arguments) {
  const Rule& rule = rule_of(collective);
  const Operand& in = arguments.in;
  const Operand& out = arguments.out;
  const TypeUse in_use(in.type), out_use(out.type);
  const auto blocks = [&](const Side& side) { return side.block_per_rank ? communicator.size : 1; };
  const void* in_bytes = in.first_byte();
  void* out_bytes = out.first_byte();
  Room in_room, out_room;
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
  const crl_status_t done = rule.data(communicator.team, in_bytes, out_bytes,
                                      static_cast<std::size_t>(arguments.bytes()), arguments.root);
  if (done == CRL_OK && out_room.exists()) {
    status = unpack(*out.type, out.elements, out_room.at(0), out.buffer);
    if (status != MPI_SUCCESS) return cannot_unpack(communicator, status);
  }
  return finish(collective, communicator, done);
}

Outcome run_reduction_by_host(Collective collective, Communicator& communicator, const Call& call,
                              const Placing& placing, const Reduction& reduction) {
  const Rule& rule = rule_of(collective);
  const TypeInfo& type = *reduction.type;
  const ReductionUse use(reduction);
  HostReduction& by_host = communicator.host_reduction;
  const crl_op_t op = by_host.op_for(reduction);
  if (op == 0) return no_memory(communicator);
  const void* in = placing.in_place ? CRL_IN_PLACE : call.in.address;
  void* out = placing.has_out ? const_cast<void*>(call.out.address) : nullptr;
  Room in_room, out_room;
  if (!reduction.direct) {
    const std::int64_t blocks = rule.in.block_per_rank ? communicator.size : 1;
    if (!in_room.make(call.in.count * blocks, type.size) ||
        (placing.has_out && !out_room.make(call.in.count, type.size))) {
      return no_memory(communicator);
    }
    const int status =
        pack(type, call.in.count * blocks, placing.in_place ? out : call.in.address, in_room.at(0));
    if (status != MPI_SUCCESS) return cannot_pack(communicator, status);
    in = in_room.at(0);
    if (placing.has_out) out = out_room.at(0);
  }
  const crl_status_t done =
      rule.reduction(communicator.team, in, out, static_cast<std::size_t>(call.in.count),
                     reduction.dtype, op, call.root);
  // The host has already raised the error.
  if (by_host.failed() != MPI_SUCCESS) return {by_host.failed()};
  // An element does not fit in a slot: said on all ranks alike, before anything was sent.
  if (done == CRL_ERR_UNSUPPORTED) return leave(Reason::kReduction);
  if (done == CRL_OK && out_room.exists()) {
    const int status =
        unpack(type, call.in.count, out_room.at(0), const_cast<void*>(call.out.address));
    if (status != MPI_SUCCESS) return cannot_unpack(communicator, status);
  }
  return finish(collective, communicator, done);
}

Outcome run_blocks(Communicator& communicator, const Call& call) {
  const int size = communicator.size;
  std::int64_t* const tables = communicator.tables.data();
  BlockSide in{.bytes = tables, .offsets = tables + size};
  BlockSide out{.bytes = tables + 2 * size, .offsets = tables + 3 * size};
  if (!look_at_blocks(out, call.out, call.out_blocks, communicator)) {
    return leave(Reason::kSuspect);
  }
  bool in_place = call.in.address == MPI_IN_PLACE;
  if (!in_place && call.in.address == call.out.address && out.total > 0) {
    const bool same_counts =
        call.in.type == call.out.type && call.in_blocks.counts == call.out_blocks.counts;
    if (same_counts && alias_error() != MPI_SUCCESS) return raised(communicator, alias_error());
    in_place = call.in_blocks.counts == call.out_blocks.counts &&
               call.in_blocks.offsets == call.out_blocks.offsets && same_elements(call, *out.type);
  }
  const Buffer in_buffer = in_place ? call.out : call.in;
  if (!look_at_blocks(in, in_buffer, in_place ? call.out_blocks : call.in_blocks, communicator)) {
    return leave(Reason::kSuspect);
  }
  const TypeUse in_use(in.type), out_use(out.type);
  if (in_place) {  // what is sent must outlive what is received over it
    in.ready = false;
    for (std::int64_t i = 0, offset = 0; i < size; offset += in.bytes[i++]) in.offsets[i] = offset;
  }
  Room in_room, out_room;
  int status = MPI_SUCCESS;
  if (!in.ready) {
    if (!in_room.make(in.total)) return no_memory(communicator);
    status = pack_blocks(in, size, in_room);
  }
  if (!out.ready && !out_room.make(out.total)) return no_memory(communicator);
  if (status != MPI_SUCCESS) return cannot_pack(communicator, status);
  const crl_status_t done = crl_alltoallv(
      communicator.team, in.ready ? in.type->first_byte(in.buffer) : in_room.at(0), in.bytes,
      in.offsets, out.ready ? out.type->first_byte(out.buffer) : out_room.at(0), out.bytes,
      out.offsets);
  if (done == CRL_OK && !out.ready) {
    status = unpack_blocks(out, size, out_room);
    if (status != MPI_SUCCESS) return cannot_unpack(communicator, status);
  }
  return finish(Collective::kAlltoallv, communicator, done);
}

}  // namespace carillon::shim
