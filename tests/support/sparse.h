// SPDX-License-Identifier: Apache-2.0
//
// Alltoallvs in which most ranks have nothing for one another: who sends how much to whom.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/problem.h"

namespace carillon::test {

struct SparsePattern {
  std::string name;
  bool (*sends)(Rank from, Rank to, Rank ranks);

  /// Of a byte to three slots of 1 KiB; 0: they have nothing for one another. By `turn` what is not
  /// 0 has other lengths.
  [[nodiscard]] std::int64_t bytes(Rank from, Rank to, Rank ranks, int turn = 0) const {
    constexpr std::array<std::int64_t, 5> kLengths{1, 56, 57, 1024, 2500};
    if (!sends(from, to, ranks)) return 0;
    return kLengths[static_cast<std::size_t>(from * 3 + to * 5 + turn) % kLengths.size()];
  }
};

inline std::vector<SparsePattern> sparse_patterns() {
  return {
      {"nobody", [](Rank, Rank, Rank) { return false; }},
      {"themselves", [](Rank from, Rank to, Rank) { return from == to; }},
      {"the next", [](Rank from, Rank to, Rank ranks) { return to == (from + 1) % ranks; }},
      {"both sides",
       [](Rank from, Rank to, Rank ranks) {
         return to == (from + 1) % ranks || from == (to + 1) % ranks;
       }},
      {"to the first", [](Rank, Rank to, Rank) { return to == 0; }},
      {"of the last", [](Rank from, Rank, Rank ranks) { return from == ranks - 1; }},
      {"one pair", [](Rank from, Rank to, Rank ranks) { return from == 0 && to == ranks - 1; }},
      {"a quarter", [](Rank from, Rank to, Rank) { return (from * 13 + to * 7) % 4 == 1; }},
  };
}

/// One rank's tables, with a gap of a byte before each block.
struct SparseTables {
  SparseTables(const SparsePattern& pattern, Rank rank, Rank ranks, int turn = 0) {
    std::int64_t sent = 0, received = 0;
    for (Rank peer = 0; peer < ranks; ++peer) {
      send_bytes.push_back(pattern.bytes(rank, peer, ranks, turn));
      send_offsets.push_back(++sent);
      sent += send_bytes.back();
      recv_bytes.push_back(pattern.bytes(peer, rank, ranks, turn));
      recv_offsets.push_back(++received);
      received += recv_bytes.back();
    }
  }
  [[nodiscard]] Tables view() const { return {send_bytes, send_offsets, recv_bytes, recv_offsets}; }
  std::vector<std::int64_t> send_bytes, send_offsets, recv_bytes, recv_offsets;
};

/// Of what `from` sends to `to` in a call.
inline std::byte sparse_value(Rank from, Rank to, std::int64_t call, std::int64_t index) {
  return static_cast<std::byte>((from * 31 + to * 17 + call * 5 + index * 3) & 0x7F);
}

}  // namespace carillon::test
