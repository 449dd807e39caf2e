// SPDX-License-Identifier: Apache-2.0
//
// A call of blocks that differ in length: where each side's bytes are, and how they come there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <vector>

#include "neighbours.h"
#include "room.h"
#include "run.h"

namespace carillon::shim {

/// One side of a call: the program's blocks, and where carillon finds their bytes. One block per
/// rank, or this rank's own, or one per neighbour.
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
  /// The same of the blocks of neighbours, of which some may be absent.
  [[nodiscard]] bool look_at(const Buffer& buffer, const Blocks& blocks,
                             const Neighbours::End& end) {
    end_ = &end;
    return look_at(buffer, blocks, static_cast<int>(end.ranks.size()));
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
      if (const TypeInfo* const info = type(i); info != nullptr && info->derived) {
        held_.emplace_back(info);
      }
    }
  }

  /// For a collective that only begins: the lists may be gone when its blocks are packed or
  /// unpacked. (Fortran functions of hosts pass copies that they free.)
  void keep_lists() {
    if (ready_ || blocks_.counts == nullptr) return;
    for (int i = 0; i < count_; ++i) {
      kept_counts_.push_back(blocks_.count(i));
      kept_offsets_.push_back(bytes_[i] == 0 ? 0 : blocks_.offset(i));
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
    if (end_ != nullptr && end_->ranks[static_cast<std::size_t>(i)] == MPI_PROC_NULL) return 0;
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
    std::int64_t offset = blocks_.offset(i);
    if (blocks_.types == nullptr) offset *= type_->extent;
    return reinterpret_cast<std::uintptr_t>(buffer_.address) + static_cast<std::uintptr_t>(offset);
  }
  // MPI_BOTTOM, with addresses in the types or in the displacements.
  [[nodiscard]] bool is_elsewhere() const {
    return blocks_.types != nullptr || type_->true_lower_bound != 0;
  }

  // Without elements a block of alltoallw needs no type in MPICH; Open MPI looks at all of them.
  [[nodiscard]] bool passes_empty_blocks() const {
#ifdef OPEN_MPI
    return false;
#else
    return blocks_.types != nullptr;
#endif
  }
  bool measure() {
    ready_ = true;
    total_ = 0;
    base_ = UINTPTR_MAX;
    for (int i = 0; i < count_; ++i) {
      const TypeInfo* const info = type(i);
      const std::int64_t count = elements(i);
      bytes_[i] = 0;
      if (info == nullptr && count == 0 && (end_ != nullptr || passes_empty_blocks())) continue;
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
    std::int64_t offset = 0;
    const auto place_block = [&](int i) {
      offsets_[i] = offset;
      offset += bytes_[i];
    };
    if (end_ != nullptr) {
      for (const int i : end_->order) place_block(i);
    } else {
      for (int i = 0; i < count_; ++i) place_block(i);
    }
  }

  Buffer buffer_;
  Blocks blocks_;
  const Neighbours::End* end_ = nullptr;  // null: they are no neighbours' blocks
  const TypeInfo* type_ = nullptr;        // null: each block has its own
  int count_ = 0;                         // of blocks
  std::int64_t* bytes_;                   // per block
  std::int64_t* offsets_;                 // per block; from base() on
  std::int64_t total_ = 0;
  std::uintptr_t base_ = 0;
  bool ready_ = true;
  Room room_;
  std::list<TypeUse> held_;
  std::vector<std::int64_t> kept_counts_, kept_offsets_;
  std::vector<MPI_Datatype> kept_types_;
};

/// Tables of a side: its blocks' byte counts, then their offsets.
struct Sides {
  Sides(std::int64_t* tables, int size) : Sides(tables, size, tables + 2 * size, size) {}
  Sides(std::int64_t* in_tables, int in_blocks, std::int64_t* out_tables, int out_blocks)
      : in(in_tables, in_tables + in_blocks), out(out_tables, out_tables + out_blocks) {}
  BlockSide in, out;
};

/// Packs, calls, unpacks. carillon(place for the request) is kept by a persistent one.
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

}  // namespace carillon::shim
