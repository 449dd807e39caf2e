// SPDX-License-Identifier: Apache-2.0
//
// Datatypes made in every way MPI has, grouped by signature: shapes of one group may stand for
// each other on different ranks of one call.
#include <array>
#include <numeric>

#include "support.h"

namespace mpi_test {
namespace {

MPI_Datatype commit(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

MPI_Datatype contiguous(int count, MPI_Datatype of) {
  MPI_Datatype type{};
  MPI_Type_contiguous(count, of, &type);
  return commit(type);
}

MPI_Datatype vector(int count, int block, int stride, MPI_Datatype of) {
  MPI_Datatype type{};
  MPI_Type_vector(count, block, stride, of, &type);
  return commit(type);
}

MPI_Datatype hvector(int count, int block, MPI_Aint stride, MPI_Datatype of) {
  MPI_Datatype type{};
  MPI_Type_create_hvector(count, block, stride, of, &type);
  return commit(type);
}

MPI_Datatype resized(MPI_Datatype of, MPI_Aint lower_bound, MPI_Aint extent) {
  MPI_Datatype type{};
  MPI_Type_create_resized(of, lower_bound, extent, &type);
  MPI_Type_free(&of);
  return commit(type);
}

MPI_Datatype indexed(const std::vector<int>& lengths, const std::vector<int>& offsets,
                     MPI_Datatype of) {
  MPI_Datatype type{};
  MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), offsets.data(), of, &type);
  return commit(type);
}

MPI_Datatype subarray(const std::array<int, 3>& sizes, const std::array<int, 3>& subsizes,
                      const std::array<int, 3>& starts, int order, MPI_Datatype of) {
  MPI_Datatype type{};
  MPI_Type_create_subarray(3, sizes.data(), subsizes.data(), starts.data(), order, of, &type);
  return commit(type);
}

MPI_Datatype darray(MPI_Datatype of) {  // 12 elements of 24, dealt out two by two to two ranks
  const int sizes[] = {24}, distribution[] = {MPI_DISTRIBUTE_CYCLIC}, block[] = {2}, grid[] = {2};
  MPI_Datatype type{};
  MPI_Type_create_darray(2, 1, 1, sizes, distribution, block, grid, MPI_ORDER_C, of, &type);
  return commit(type);
}

MPI_Datatype nested(MPI_Datatype of) {  // a struct of a vector, a plain run and a duplicate
  MPI_Datatype parts[3] = {vector(2, 2, 3, of), of, {}};
  MPI_Type_dup(of, &parts[2]);
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(of, &lower_bound, &extent);
  const int lengths[] = {1, 5, 3};
  const MPI_Aint offsets[] = {20 * extent, 0, 8 * extent};
  MPI_Datatype type{};
  MPI_Type_create_struct(3, lengths, offsets, parts, &type);
  MPI_Type_free(&parts[0]);
  MPI_Type_free(&parts[2]);
  return commit(type);
}

MPI_Datatype blocks(bool in_bytes, MPI_Datatype of) {  // four blocks of three, out of order
  MPI_Datatype type{};
  if (in_bytes) {
    MPI_Aint lower_bound = 0, extent = 0;
    MPI_Type_get_extent(of, &lower_bound, &extent);
    const MPI_Aint offsets[] = {-7 * extent, 11 * extent, 3 * extent, 0};
    MPI_Type_create_hindexed_block(4, 3, offsets, of, &type);
  } else {
    const int offsets[] = {9, 4, 15, 0};
    MPI_Type_create_indexed_block(4, 3, offsets, of, &type);
  }
  return commit(type);
}

// Twelve elements in many layouts.
Signature twelve(const char* name, MPI_Datatype of) {
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(of, &lower_bound, &extent);
  return {
      name,
      {{"12 plain", of, 12},
       {"3 of contiguous 4", contiguous(4, of), 3},
       {"contiguous 12", contiguous(12, of), 1},
       {"contiguous 12, far apart", resized(contiguous(12, of), -2 * extent, 20 * extent), 1},
       {"vector 6x2 of 3", vector(6, 2, 3, of), 1},
       {"2 of vector 3x2 of 5", vector(3, 2, 5, of), 2},
       {"vector back to back", vector(4, 3, 3, of), 1},
       {"vector with negative stride", vector(4, 3, -5, of), 1},
       {"12 resized", resized(contiguous(1, of), 0, 2 * extent), 12},
       {"6 interleaved", resized(vector(2, 1, 600, of), 0, extent), 6},
       {"hvector", hvector(4, 3, 4 * extent + 8, of), 1},
       {"indexed, out of order", indexed({2, 4, 6}, {10, -5, 1}, of), 1},
       {"indexed, with empty blocks", indexed({0, 5, 0, 7}, {3, 0, 100, 5}, of), 1},
       {"subarray C", subarray({3, 4, 5}, {2, 2, 3}, {1, 1, 2}, MPI_ORDER_C, of), 1},
       {"subarray Fortran", subarray({5, 4, 3}, {3, 2, 2}, {2, 1, 0}, MPI_ORDER_FORTRAN, of), 1},
       {"darray", darray(of), 1},
       {"nested struct", nested(of), 1},
       {"indexed_block", blocks(false, of), 1},
       {"hindexed_block", blocks(true, of), 1}}};
}

// A char, a double and an int, as C lays them out and as nobody does.
Signature record() {
  struct Record {
    char letter;
    double number;
    int index;
  };
  const int lengths[] = {1, 1, 1};
  const MPI_Datatype parts[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
  const auto make = [&](MPI_Aint letter, MPI_Aint number, MPI_Aint index, MPI_Aint extent) {
    const MPI_Aint offsets[] = {letter, number, index};
    MPI_Datatype type{};
    MPI_Type_create_struct(3, lengths, offsets, parts, &type);
    return resized(type, 0, extent);
  };
  return {
      "record",
      {{"C struct", make(0, offsetof(Record, number), offsetof(Record, index), sizeof(Record)), 5},
       {"packed struct", make(0, 1, 9, 13), 5},
       {"backwards", make(12, 4, 0, 16), 5}}};
}

Signature pair(const char* name, MPI_Datatype named, MPI_Datatype first, MPI_Aint second_offset) {
  const int lengths[] = {1, 1};
  const MPI_Aint offsets[] = {0, second_offset};
  const MPI_Datatype parts[] = {first, MPI_INT};
  MPI_Datatype type{};
  MPI_Type_create_struct(2, lengths, offsets, parts, &type);
  return {name, {{"named", named, 7}, {"packed", commit(type), 7}}};
}

// More runs than a layout lists, and more than an observation covers: the host must copy it.
Signature irregular() {
  constexpr int kBlocks = 70001;
  std::vector<int> lengths(kBlocks), offsets(kBlocks);
  int offset = 0;
  for (int i = 0; i < kBlocks; ++i) {
    lengths[i] = 1 + i % 2;
    offsets[i] = offset;
    offset += lengths[i] + 1 + i % 3;
  }
  const int elements = std::accumulate(lengths.begin(), lengths.end(), 0);
  return {
      "irregular",
      {{"70001 blocks", indexed(lengths, offsets, MPI_SHORT), 1}, {"plain", MPI_SHORT, elements}}};
}

}  // namespace

std::vector<Signature> make_signatures() {
  return {twelve("ints", MPI_INT),
          twelve("doubles", MPI_DOUBLE),
          twelve("bytes", MPI_BYTE),
          twelve("pairs", MPI_DOUBLE_INT),
          record(),
          pair("double_int", MPI_DOUBLE_INT, MPI_DOUBLE, 8),
          pair("short_int", MPI_SHORT_INT, MPI_SHORT, 2),
          pair("long_double_int", MPI_LONG_DOUBLE_INT, MPI_LONG_DOUBLE, 16),
          irregular(),
          {"empty", {{"no ints", MPI_INT, 0}, {"3 of nothing", contiguous(0, MPI_DOUBLE), 3}}}};
}

void free_signatures(std::vector<Signature>& signatures) {
  for (Signature& signature : signatures) {
    for (Shape& shape : signature.shapes) {
      int integers = 0, addresses = 0, types = 0, combiner = 0;
      MPI_Type_get_envelope(shape.type, &integers, &addresses, &types, &combiner);
      if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&shape.type);
    }
  }
  signatures.clear();
}

}  // namespace mpi_test
