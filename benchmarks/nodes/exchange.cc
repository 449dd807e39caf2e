// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

#include <algorithm>

#include "sides.h"

namespace carillon::bench {
namespace {

std::uint8_t byte_of(int from, int to, std::int64_t i) {
  return static_cast<std::uint8_t>((i * 7 + from * 31 + to * 13) % 251);
}

// Of one table 0 to 2 in turn; of others as good as drawn, alike on all ranks.
int times_of(int from, int to, int table) {
  if (table == 0) return (from * 5 + to * 7) % 3;
  std::uint64_t mixed = static_cast<std::uint64_t>(table) * 0x9E3779B97F4A7C15ULL;
  for (const int each : {from, to}) {
    mixed = (mixed ^ static_cast<std::uint64_t>(each)) * 0xBF58476D1CE4E5B9ULL;
    mixed ^= mixed >> 29;
  }
  return static_cast<int>(mixed % 3);
}

}  // namespace

void Exchange::Side::add(std::int64_t length) {
  bytes.push_back(length);
  offsets.push_back(static_cast<std::int64_t>(end));
  end += static_cast<std::size_t>(length);
}

Exchange::Exchange(crl_context_h context, const Bootstrap& bootstrap, std::size_t bytes, int tables)
    : context_(context),
      rank_(bootstrap.rank()),
      uneven_(tables > 0),
      bytes_(bytes),
      tables_(static_cast<std::size_t>(std::max(tables, 1))) {
  std::size_t in_bytes = 1, out_bytes = 1;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    Tables& each = tables_[i];
    for (int peer = 0; peer < bootstrap.ranks(); ++peer) {
      each.send.add(length(rank_, peer, static_cast<int>(i)));
      each.recv.add(length(peer, rank_, static_cast<int>(i)));
    }
    in_bytes = std::max(in_bytes, each.send.end);
    out_bytes = std::max(out_bytes, each.recv.end);
  }
  in_ = static_cast<std::uint8_t*>(crl_alloc(context, in_bytes));
  out_ = static_cast<std::uint8_t*>(crl_alloc(context, out_bytes));
  if (in_ == nullptr || out_ == nullptr) give_up("no memory from crl_alloc for the buffers");
}

Exchange::~Exchange() {
  crl_free(context_, in_);
  crl_free(context_, out_);
}

std::int64_t Exchange::length(int from, int to, int table) const {
  return (uneven_ ? times_of(from, to, table) : 1) * static_cast<std::int64_t>(bytes_);
}

void Exchange::call(crl_team_h team) {
  if (!uneven_) return check(crl_alltoall(team, in_, out_, bytes_), "alltoall");
  const Tables& tables = tables_[next_];
  next_ = (next_ + 1) % tables_.size();
  check(crl_alltoallv(team, in_, tables.send.bytes.data(), tables.send.offsets.data(), out_,
                      tables.recv.bytes.data(), tables.recv.offsets.data()),
        "alltoallv");
}

void Exchange::call_checked(crl_team_h team) {
  const auto each = [](const Side& side, std::uint8_t* memory, auto body) {
    for (std::size_t peer = 0; peer < side.bytes.size(); ++peer) {
      for (std::int64_t i = 0; i < side.bytes[peer]; ++i) {
        body(static_cast<int>(peer), i, memory[side.offsets[peer] + i]);
      }
    }
  };
  const Tables& tables = tables_[next_];
  each(tables.send, in_,
       [&](int to, std::int64_t i, std::uint8_t& byte) { byte = byte_of(rank_, to, i); });
  std::fill(out_, out_ + tables.recv.end, std::uint8_t{0xFF});
  call(team);
  each(tables.recv, out_, [&](int from, std::int64_t i, const std::uint8_t& byte) {
    if (byte != byte_of(from, rank_, i)) {
      give_up("a wrong answer (a defect of carillon: please report it)");
    }
  });
}

}  // namespace carillon::bench
