// SPDX-License-Identifier: Apache-2.0
//
// UnevenTables: tables to try and to prove schedules with, where there is no program that gives
// some.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/problem.h"

namespace carillon {

/// The tables of `rank` for uneven blocks, some of them empty, with gaps between, except for
/// reduce_scatter, where all give a rank the same.
class UnevenTables {
 public:
  UnevenTables(const Shared& shared, std::int64_t bytes, Rank rank) {
    if (!has_tables(shared.collective)) return;
    if (shared.collective == Collective::kReduceScatter) {
      List blocks;
      for (Rank peer = 0; peer < shared.ranks; ++peer) blocks.push_back(block(0, peer) * bytes);
      *this = of_blocks(blocks, rank);
      return;
    }
    fill(
        shared.ranks, bytes, [rank](Rank peer) { return block(rank, peer); }, &send_bytes_,
        &send_offsets_);
    fill(
        shared.ranks, bytes, [rank](Rank peer) { return block(peer, rank); }, &recv_bytes_,
        &recv_offsets_);
  }
  /// Those of `rank` in a reduce_scatter of such blocks.
  static UnevenTables of_blocks(std::span<const std::int64_t> blocks, Rank rank) {
    UnevenTables tables;
    std::int64_t offset = 0;
    for (const std::int64_t bytes : blocks) {
      tables.send_bytes_.push_back(bytes);
      tables.send_offsets_.push_back(offset);
      offset += bytes;
    }
    tables.recv_bytes_.assign(blocks.size(), blocks[static_cast<std::size_t>(rank)]);
    tables.recv_offsets_.assign(blocks.size(), 0);
    return tables;
  }
  [[nodiscard]] Tables view() const {
    return {send_bytes_, send_offsets_, recv_bytes_, recv_offsets_};
  }

 private:
  UnevenTables() = default;
  using List = std::vector<std::int64_t>;
  static std::int64_t block(Rank from, Rank to) { return (from + 2 * to) % 3; }
  template <typename Block>
  static void fill(Rank ranks, std::int64_t bytes, Block block, List* sizes, List* offsets) {
    constexpr std::int64_t kGap = 1;
    std::int64_t offset = 0;
    for (Rank peer = 0; peer < ranks; ++peer) {
      sizes->push_back(block(peer) * bytes);
      offsets->push_back(offset += kGap);
      offset += sizes->back();
    }
  }
  List send_bytes_, send_offsets_, recv_bytes_, recv_offsets_;
};

}  // namespace carillon
