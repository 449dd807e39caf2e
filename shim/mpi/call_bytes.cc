// SPDX-License-Identifier: Apache-2.0
#include "call_bytes.h"

#include <numeric>

#include "datatype.h"

namespace carillon::shim {
namespace {

// Whom to ask how long a type is. Another thread may have freed one that carillon was using, so
// of its calls the host is not asked.
struct Sizes {
  bool taken = false;

  [[nodiscard]] std::int64_t of(MPI_Datatype type) const {
    if (taken) return known_size(type);
    if (type == g_host.type_null) return 0;  // an error, of which some hosts tell the handler alone
    MPI_Count size = 0;
    host().Type_size_x(type, &size);
    return size;
  }
  [[nodiscard]] std::int64_t of(std::int64_t elements, MPI_Datatype type) const {
    return elements == 0 ? 0 : elements * of(type);  // without elements it may be none
  }
};

// This rank among those that it exchanges data with.
struct Place {
  int rank = 0;
  int ranks = 0;   // of its own group
  int blocks = 0;  // of a side with one per rank
  Sizes sizes{};
  bool is_root = false;
  bool takes_part = true;
  bool inter = false;
};

Place place_of(const Rule& rule, const Call& call, const Communicator& communicator, Sizes sizes) {
  Place place{.rank = communicator.rank, .ranks = communicator.size, .sizes = sizes};
  if (communicator.size == 0) {
    int inter = 0;
    host().Comm_rank(call.comm, &place.rank);
    host().Comm_size(call.comm, &place.ranks);
    host().Comm_test_inter(call.comm, &inter);
    place.inter = inter != 0;
  }
  place.blocks = place.ranks;
  if (place.inter) host().Comm_remote_size(call.comm, &place.blocks);
  place.is_root = rule.rooted && call.root == (place.inter ? MPI_ROOT : place.rank);
  place.takes_part = !rule.rooted || !place.inter || call.root != MPI_PROC_NULL;
  return place;
}

// Between two groups the root's own data are not among those of all.
bool counts_at(At at, const Place& place) {
  if (!place.takes_part || (place.inter && place.is_root && at == At::kAll)) return false;
  return shim::counts_at(at, place.is_root);
}

std::int64_t side_bytes(Sizes sizes, const Buffer& buffer, const Blocks& blocks, int count,
                        bool block_per_rank) {
  if (!block_per_rank) return sizes.of(buffer.count, buffer.type);
  if (blocks.counts == nullptr) return sizes.of(buffer.count * count, buffer.type);
  std::int64_t sum = 0;  // of elements, or, if they are of several types, of bytes
  for (int i = 0; i < count; ++i) {
    const std::int64_t elements = blocks.count(i);
    sum += blocks.types != nullptr ? sizes.of(elements, blocks.types[i]) : elements;
  }
  return blocks.types != nullptr ? sum : sizes.of(sum, buffer.type);
}

std::int64_t block_bytes(Sizes sizes, const Buffer& buffer, const Blocks& blocks, int block) {
  return sizes.of(blocks.counts != nullptr ? blocks.count(block) : buffer.count, buffer.type);
}

CallBytes bytes_of_data(const Rule& rule, const Call& call, const Place& place) {
  const bool in_place = rule.in_place == InPlace::kInput && call.in.address == MPI_IN_PLACE;
  const bool out_place = rule.in_place == InPlace::kOutput && call.out.address == MPI_IN_PLACE;
  const bool has_in = counts_at(rule.in.at, place), has_out = counts_at(rule.out.at, place);
  CallBytes bytes;
  if (has_in && !in_place) {
    bytes.in =
        side_bytes(place.sizes, call.in, call.in_blocks, place.blocks, rule.in.block_per_rank);
  }
  if (has_out && !out_place) {
    bytes.out =
        side_bytes(place.sizes, call.out, call.out_blocks, place.blocks, rule.out.block_per_rank);
  }
  if (has_in && in_place) {
    bytes.in = rule.in.block_per_rank
                   ? bytes.out
                   : block_bytes(place.sizes, call.out, call.out_blocks, place.rank);
  }
  if (has_out && out_place)
    bytes.out = block_bytes(place.sizes, call.in, call.in_blocks, place.rank);
  return bytes;
}

CallBytes bytes_of_reduction(Collective collective, const Call& call, const Place& place) {
  const Rule& rule = rule_of(collective);
  CallBytes bytes;
  if (rule.kind == Kind::kReduceScatter) {
    return {side_bytes(place.sizes, call.in, call.in_blocks, place.ranks, true),
            block_bytes(place.sizes, call.in, call.in_blocks, place.rank)};
  }
  const std::int64_t block = place.sizes.of(call.in.count, call.in.type);
  if (counts_at(rule.in.at, place)) bytes.in = block * (rule.in.block_per_rank ? place.ranks : 1);
  const bool nothing = collective == Collective::kExscan && place.rank == 0;
  if (counts_at(rule.out.at, place) && !nothing) bytes.out = block;
  return bytes;
}

std::int64_t end_bytes(Sizes sizes, const Buffer& buffer, const Blocks& blocks, bool block_per_rank,
                       const Neighbours::End& end) {
  if (!block_per_rank) return sizes.of(buffer.count, buffer.type);
  return std::accumulate(
      end.order.begin(), end.order.end(), std::int64_t{0}, [&](std::int64_t sum, int block) {
        const std::int64_t count = blocks.counts != nullptr ? blocks.count(block) : buffer.count;
        return sum + sizes.of(count, blocks.types != nullptr ? blocks.types[block] : buffer.type);
      });
}

CallBytes bytes_of_neighbours(const Rule& rule, const Call& call, const Communicator& communicator,
                              Sizes sizes) {
  Neighbours found;
  if (communicator.neighbours == nullptr) {
    int rank = 0;
    host().Comm_rank(call.comm, &rank);
    found = find_neighbours(call.comm, rank);
  }
  const Neighbours& neighbours = communicator.neighbours ? *communicator.neighbours : found;
  return {
      end_bytes(sizes, call.in, call.in_blocks, rule.in.block_per_rank, neighbours.destinations),
      end_bytes(sizes, call.out, call.out_blocks, rule.out.block_per_rank, neighbours.sources)};
}

}  // namespace

CallBytes bytes_of(Collective collective, const Call& call, const Communicator& communicator,
                   bool taken) {
  const Rule& rule = rule_of(collective);
  const Sizes sizes{taken};
  switch (rule.kind) {
    case Kind::kBarrier: return {};
    case Kind::kNeighbours: return bytes_of_neighbours(rule, call, communicator, sizes);
    case Kind::kReduction:
    case Kind::kReduceScatter:
      return bytes_of_reduction(collective, call, place_of(rule, call, communicator, sizes));
    default: return bytes_of_data(rule, call, place_of(rule, call, communicator, sizes));
  }
}

}  // namespace carillon::shim
