// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.h"

#include <algorithm>
#include <cstring>

namespace carillon::test {
namespace {

constexpr std::int64_t kGap = 3;  // bytes before each block

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

std::uint64_t data_word(Rank rank, std::size_t index) {
  return mix((static_cast<std::uint64_t>(rank) << 40 | index) + 1);
}

struct Affine {
  std::uint32_t a, b;
};

void reduce_bytes(const Shared& shared, const Bytes& left, Bytes& right) {
  (shared.commutative ? apply_sum : apply_affine)(left.data(), right.data(), right.size() / 8);
}

// The reduction of the first inputs, in rank order.
Bytes total(const Case& problem, Rank ranks) {
  Bytes right = input_of(problem, ranks - 1);
  for (Rank rank = ranks - 2; rank >= 0; --rank) {
    reduce_bytes(problem.shared, input_of(problem, rank), right);
  }
  return right;
}

Bytes part(const Bytes& bytes, std::int64_t offset, std::int64_t length) {
  return {bytes.begin() + offset, bytes.begin() + offset + length};
}

Bytes total(const Case& problem) { return total(problem, problem.shared.ranks); }

// Bytes that rank `from` gives rank `to`.
std::int64_t bytes_between(const Case& problem, Rank from, Rank to) {
  const Collective what = problem.shared.collective;
  if (!moves_block(problem.shared, from, to)) return 0;
  if (what == Collective::kAllgatherv) to = 0;               // the same to all
  if (what == Collective::kReduceScatter) from = 0;          // the same from all,
  const bool elements = what == Collective::kReduceScatter;  // and whole ones
  const std::int64_t count = problem.shared.count;
  const std::int64_t unit = elements ? problem.shared.element_bytes : 1;
  switch ((from * 3 + to * 5) % 4) {
    case 0: return count * unit;
    case 1: return 0;
    case 2: return (count / 2 + from) * unit;
    default: return (count * 2 + to) * unit;
  }
}

void append(Bytes& to, const Bytes& from) { to.insert(to.end(), from.begin(), from.end()); }

Bytes expected_by_tables(const Case& problem, Rank rank) {
  const OwnedTables mine(problem, rank);
  Bytes out(static_cast<std::size_t>(
                output_bytes(problem.shared, {.in_place = false, .tables = mine.view()}, rank)),
            kUntouched);
  for (Rank from = 0; from < problem.shared.ranks; ++from) {
    const OwnedTables theirs(problem, from);
    const Bytes in = input_of(problem, from);
    const auto sent = static_cast<std::size_t>(rank);
    const auto received = static_cast<std::size_t>(from);
    if (mine.recv_bytes[received] == 0) continue;
    std::memcpy(out.data() + mine.recv_offsets[received], in.data() + theirs.send_offsets[sent],
                static_cast<std::size_t>(mine.recv_bytes[received]));
  }
  return out;
}

}  // namespace

OwnedTables::OwnedTables(const Case& problem, Rank rank) {
  std::int64_t sent = 0;
  std::int64_t received = 0;
  const Collective what = problem.shared.collective;
  if (!has_tables(what)) return;
  // One block for all, or blocks end to end.
  const bool one_sent = what == Collective::kAllgatherv || what == Collective::kGatherv;
  const bool one_received = what == Collective::kReduceScatter || what == Collective::kScatterv;
  const std::int64_t send_gap = one_sent || what == Collective::kReduceScatter ? 0 : kGap;
  const std::int64_t receive_gap = one_received ? 0 : kGap;
  for (Rank peer = 0; peer < problem.shared.ranks; ++peer) {
    send_bytes.push_back(bytes_between(problem, rank, peer));
    recv_bytes.push_back(bytes_between(problem, peer, rank));
    send_offsets.push_back(sent += send_gap);
    recv_offsets.push_back(received += receive_gap);
    if (!one_sent) sent += send_bytes.back();
    if (!one_received) received += recv_bytes.back();
  }
}

void apply_sum(const void* left, void* right, std::size_t count) {
  const auto* const l = static_cast<const std::byte*>(left);
  auto* const r = static_cast<std::byte*>(right);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::memcpy(&a, l + i * 8, 8);
    std::memcpy(&b, r + i * 8, 8);
    b += a;
    std::memcpy(r + i * 8, &b, 8);
  }
}

void apply_affine(const void* left, void* right, std::size_t count) {
  const auto* const l = static_cast<const std::byte*>(left);
  auto* const r = static_cast<std::byte*>(right);
  for (std::size_t i = 0; i < count; ++i) {
    Affine first = {};
    Affine second = {};
    std::memcpy(&first, l + i * 8, 8);
    std::memcpy(&second, r + i * 8, 8);
    const Affine both{first.a * second.a, first.b * second.a + second.b};
    std::memcpy(r + i * 8, &both, 8);
  }
}

Bytes input_of(const Case& problem, Rank rank) {
  const OwnedTables tables(problem, rank);
  Bytes bytes(static_cast<std::size_t>(
      input_bytes(problem.shared, {.in_place = false, .tables = tables.view()}, rank)));
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t word = data_word(rank, i / 8);
    std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i));
  }
  return bytes;
}

Bytes expected_output(const Case& problem, Rank rank) {
  const Shared& shared = problem.shared;
  const std::int64_t block = shared.block_bytes();
  Bytes out;
  switch (shared.collective) {
    case Collective::kBarrier: return out;
    case Collective::kBcast: return rank == shared.root ? out : input_of(problem, shared.root);
    case Collective::kReduce: return rank == shared.root ? total(problem) : out;
    case Collective::kAllreduce: return total(problem);
    case Collective::kScatter: return part(input_of(problem, shared.root), rank * block, block);
    case Collective::kReduceScatterBlock: return part(total(problem), rank * block, block);
    case Collective::kScan: return total(problem, rank + 1);
    case Collective::kExscan: return rank == 0 ? out : total(problem, rank);
    case Collective::kReduceScatter: {
      const OwnedTables mine(problem, rank);
      const auto r = static_cast<std::size_t>(rank);
      return part(total(problem), mine.send_offsets[r], mine.send_bytes[r]);
    }
    case Collective::kAlltoallv:
    case Collective::kAllgatherv:
    case Collective::kGatherv:
    case Collective::kScatterv: return expected_by_tables(problem, rank);
    case Collective::kGather:
      if (rank != shared.root) return out;
      [[fallthrough]];
    case Collective::kAllgather:
      for (Rank i = 0; i < shared.ranks; ++i) append(out, input_of(problem, i));
      return out;
    case Collective::kAlltoall:
      for (Rank i = 0; i < shared.ranks; ++i) {
        append(out, part(input_of(problem, i), rank * block, block));
      }
      return out;
  }
  return out;
}

}  // namespace carillon::test
