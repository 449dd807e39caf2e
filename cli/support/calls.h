// SPDX-License-Identifier: Apache-2.0
//
// Calls to try algorithms on, where there is no program that makes them.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/problem.h"

namespace carillon::cli {

/// Tables by which every rank sends `bytes` bytes to every other, one after
/// another. Empty for collectives without tables.
class EvenTables {
 public:
  EvenTables(const Shared& shared, std::int64_t bytes) {
    if (!has_tables(shared.collective)) return;
    for (Rank peer = 0; peer < shared.ranks; ++peer) {
      bytes_.push_back(bytes);
      offsets_.push_back(peer * bytes);
    }
  }
  [[nodiscard]] Tables view() const { return {bytes_, offsets_, bytes_, offsets_}; }

 private:
  std::vector<std::int64_t> bytes_, offsets_;
};

/// The tables of `rank` for uneven blocks, some of them empty, with gaps between, except for
/// reduce_scatter, where all give a rank the same.
class UnevenTables {
 public:
  UnevenTables(const Shared& shared, std::int64_t bytes, Rank rank) {
    if (!has_tables(shared.collective)) return;
    if (shared.collective == Collective::kReduceScatter) {
      fill(
          shared.ranks, bytes, [](Rank peer) { return block(0, peer); }, &send_bytes_,
          &send_offsets_, 0);
      recv_bytes_.assign(send_bytes_.size(), send_bytes_[static_cast<std::size_t>(rank)]);
      recv_offsets_.assign(send_bytes_.size(), 0);
      return;
    }
    fill(
        shared.ranks, bytes, [rank](Rank peer) { return block(rank, peer); }, &send_bytes_,
        &send_offsets_);
    fill(
        shared.ranks, bytes, [rank](Rank peer) { return block(peer, rank); }, &recv_bytes_,
        &recv_offsets_);
  }
  [[nodiscard]] Tables view() const {
    return {send_bytes_, send_offsets_, recv_bytes_, recv_offsets_};
  }

 private:
  using List = std::vector<std::int64_t>;
  static std::int64_t block(Rank from, Rank to) { return (from + 2 * to) % 3; }
  template <typename Block>
  static void fill(Rank ranks, std::int64_t bytes, Block block, List* sizes, List* offsets,
                   std::int64_t gap = 1) {
    std::int64_t offset = 0;
    for (Rank peer = 0; peer < ranks; ++peer) {
      sizes->push_back(block(peer) * bytes);
      offsets->push_back(offset += gap);
      offset += sizes->back();
    }
  }
  List send_bytes_, send_offsets_, recv_bytes_, recv_offsets_;
};

}  // namespace carillon::cli
