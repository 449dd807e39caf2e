// SPDX-License-Identifier: Apache-2.0
//
// Calls to try algorithms on, where there is no program that makes them.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/problem.h"

namespace carillon::cli {

/// The tables of an alltoallv in which every rank sends `bytes` bytes to every other, one after
/// another. Empty for other collectives.
class EvenTables {
 public:
  EvenTables(const Shared& shared, std::int64_t bytes) {
    if (shared.collective != Collective::kAlltoallv) return;
    for (Rank peer = 0; peer < shared.ranks; ++peer) {
      bytes_.push_back(bytes);
      offsets_.push_back(peer * bytes);
    }
  }
  [[nodiscard]] Tables view() const { return {bytes_, offsets_, bytes_, offsets_}; }

 private:
  std::vector<std::int64_t> bytes_, offsets_;
};

/// The tables of `rank` in an alltoallv of uneven blocks, some of them empty, with gaps between.
class UnevenTables {
 public:
  UnevenTables(const Shared& shared, std::int64_t bytes, Rank rank) {
    if (shared.collective != Collective::kAlltoallv) return;
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
  static void fill(Rank ranks, std::int64_t bytes, Block block, List* sizes, List* offsets) {
    std::int64_t offset = 0;
    for (Rank peer = 0; peer < ranks; ++peer) {
      sizes->push_back(block(peer) * bytes);
      offsets->push_back(++offset);
      offset += sizes->back();
    }
  }
  List send_bytes_, send_offsets_, recv_bytes_, recv_offsets_;
};

}  // namespace carillon::cli
