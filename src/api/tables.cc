// SPDX-License-Identifier: Apache-2.0
//
// The collectives of the C API whose blocks differ in length: their arguments become tables.
#include <algorithm>
#include <cstddef>
#include <span>

#include "api/call.h"

namespace carillon {
namespace {

// How a call is made.
struct Way {
  crl_request_h* request_p = nullptr;
  bool blocking = true;
};

CallKey of(const Way& way, const CallKey& key) { return way.blocking ? key : started(key); }

// One rank's own block.
struct Block {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t bytes = 0;
};

// Where the blocks of all ranks lie.
struct BlockList {
  const std::int64_t* bytes = nullptr;
  const std::int64_t* offsets = nullptr;
};

// The team's tables, all zero.
struct OwnTables {
  explicit OwnTables(crl_team& team) {
    const auto size = static_cast<std::size_t>(team.team->size());
    team.tables.assign(4 * size, 0);
    const std::span<std::int64_t> all(team.tables);
    send_bytes = all.subspan(0, size);
    send_offsets = all.subspan(size, size);
    recv_bytes = all.subspan(2 * size, size);
    recv_offsets = all.subspan(3 * size, size);
  }
  [[nodiscard]] Tables view() const { return {send_bytes, send_offsets, recv_bytes, recv_offsets}; }
  std::span<std::int64_t> send_bytes, send_offsets, recv_bytes, recv_offsets;
};

// Empty if the lists are as they must be.
std::string complaint(const BlockList& blocks, int size) {
  if (blocks.bytes == nullptr || blocks.offsets == nullptr) return "an array is NULL";
  std::uint64_t sum = 0;
  for (int i = 0; i < size; ++i) {
    if (blocks.bytes[i] < 0) return "a negative byte count for rank " + std::to_string(i);
    sum += static_cast<std::uint64_t>(blocks.bytes[i]);
    if (sum > kMaxBytes) return "the blocks are beyond all bounds";
  }
  return {};
}

crl_status_t no_team(const CallKey& key) { return report(invalid(key, "the team is NULL")); }

crl_status_t alltoallv(crl_team_h team, const void* in, const BlockList& sent, void* out,
                       const BlockList& received, const Way& way) {
  const CallKey key = of(way, key_of(Collective::kAlltoallv, in, out, 0));
  if (team == nullptr) return no_team(key);
  for (const BlockList* list : {&sent, &received}) {
    const std::string wrong = complaint(*list, team->team->size());
    if (!wrong.empty()) return report(invalid(key, wrong));
  }
  const auto self = static_cast<std::size_t>(team->team->rank());
  if (sent.bytes[self] != received.bytes[self]) {
    return report(invalid(key, "this rank's block for itself is of two lengths"));
  }
  const auto size = static_cast<std::size_t>(team->team->size());
  const Tables tables{
      {sent.bytes, size}, {sent.offsets, size}, {received.bytes, size}, {received.offsets, size}};
  return call(team, key, {.in = in, .out = out, .tables = &tables}, way.request_p);
}

// allgatherv, gatherv and scatterv: `list` describes the side with the blocks of all ranks, where
// there is one.
crl_status_t one_sided_list(crl_team_h team, Collective collective, Block own,
                            const BlockList& list, int root, const Way& way) {
  const CallKey asked = of(way, key_of(collective, own.in, own.out, 0, root));
  if (team == nullptr) return no_team(asked);
  const int rank = team->team->rank();
  const bool scatter = collective == Collective::kScatterv;
  const bool has_list = collective == Collective::kAllgatherv || rank == root;
  if (has_list) {
    const std::string wrong = complaint(list, team->team->size());
    if (!wrong.empty()) return report(invalid(asked, wrong));
  }
  const auto self = static_cast<std::size_t>(rank);
  if (asked.in_place) {
    if (!has_list) {
      return report(invalid(asked, "CRL_IN_PLACE is not possible at rank " + std::to_string(rank)));
    }
    own.bytes = static_cast<std::size_t>(list.bytes[self]);
    if (scatter) {
      own.out = static_cast<std::byte*>(const_cast<void*>(own.in)) + list.offsets[self];
    } else {
      own.in = static_cast<std::byte*>(own.out) + list.offsets[self];
    }
  } else if (own.bytes > kMaxBytes) {
    return report(
        invalid(asked, "the size " + std::to_string(own.bytes) + " is beyond all bounds"));
  } else if (has_list && static_cast<std::int64_t>(own.bytes) != list.bytes[self]) {
    return report(invalid(asked, "this rank's block is of two lengths"));
  }
  return guarded([&] {
    const OwnTables tables(*team);
    const auto bytes = static_cast<std::int64_t>(own.bytes);
    const auto& own_bytes = scatter ? tables.recv_bytes : tables.send_bytes;
    const auto& list_bytes = scatter ? tables.send_bytes : tables.recv_bytes;
    const auto& offsets = scatter ? tables.send_offsets : tables.recv_offsets;
    if (has_list) {
      std::copy_n(list.bytes, list_bytes.size(), list_bytes.begin());
      std::copy_n(list.offsets, offsets.size(), offsets.begin());
    }
    if (collective == Collective::kAllgatherv) {
      std::fill(own_bytes.begin(), own_bytes.end(), bytes);
    } else if (root >= 0 && root < team->team->size()) {  // else call() says what is wrong
      own_bytes[static_cast<std::size_t>(root)] = bytes;
    }
    const Tables view = tables.view();
    const CallKey key = of(way, key_of(collective, nullptr, nullptr, 0, root));
    return call(team, key, {.in = own.in, .out = own.out, .tables = &view}, way.request_p);
  });
}

crl_status_t reduce_scatter(crl_team_h team, const void* in, void* out, const std::int64_t* counts,
                            crl_dtype_t dtype, crl_op_t op, const Way& way) {
  const CallKey key = of(way, key_of(Collective::kReduceScatter, in, out, 0, 0, dtype, op));
  if (team == nullptr) return no_team(key);
  if (const std::string wrong = complaint({counts, counts}, team->team->size()); !wrong.empty()) {
    return report(invalid(key, wrong));
  }
  return guarded([&] {
    const OwnTables tables(*team);
    const auto element = static_cast<std::int64_t>(crl_dtype_bytes(dtype));
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < tables.send_bytes.size(); ++i) {
      tables.send_offsets[i] = offset;
      if (__builtin_mul_overflow(counts[i], element, &tables.send_bytes[i]) ||
          __builtin_add_overflow(offset, tables.send_bytes[i], &offset) ||
          static_cast<std::uint64_t>(offset) > kMaxBytes) {
        return report(invalid(key, "the blocks are beyond all bounds"));
      }
    }
    const auto self = static_cast<std::size_t>(team->team->rank());
    std::fill(tables.recv_bytes.begin(), tables.recv_bytes.end(), tables.send_bytes[self]);
    const Tables view = tables.view();
    return call(team, key, {.in = in, .out = out, .tables = &view}, way.request_p);
  });
}

}  // namespace
}  // namespace carillon

using carillon::Collective;

crl_status_t crl_alltoallv(crl_team_h team, const void* in, const int64_t* send_bytes,
                           const int64_t* send_offsets, void* out, const int64_t* recv_bytes,
                           const int64_t* recv_offsets) {
  return carillon::alltoallv(team, in, {send_bytes, send_offsets}, out, {recv_bytes, recv_offsets},
                             {});
}
crl_status_t crl_allgatherv(crl_team_h team, const void* in, size_t bytes, void* out,
                            const int64_t* recv_bytes, const int64_t* recv_offsets) {
  return carillon::one_sided_list(team, Collective::kAllgatherv, {in, out, bytes},
                                  {recv_bytes, recv_offsets}, 0, {});
}
crl_status_t crl_gatherv(crl_team_h team, const void* in, size_t bytes, void* out,
                         const int64_t* recv_bytes, const int64_t* recv_offsets, int root) {
  return carillon::one_sided_list(team, Collective::kGatherv, {in, out, bytes},
                                  {recv_bytes, recv_offsets}, root, {});
}
crl_status_t crl_scatterv(crl_team_h team, const void* in, const int64_t* send_bytes,
                          const int64_t* send_offsets, void* out, size_t bytes, int root) {
  return carillon::one_sided_list(team, Collective::kScatterv, {in, out, bytes},
                                  {send_bytes, send_offsets}, root, {});
}
crl_status_t crl_reduce_scatter(crl_team_h team, const void* in, void* out, const int64_t* counts,
                                crl_dtype_t dtype, crl_op_t op) {
  return carillon::reduce_scatter(team, in, out, counts, dtype, op, {});
}

crl_status_t crl_ialltoallv(crl_team_h team, const void* in, const int64_t* send_bytes,
                            const int64_t* send_offsets, void* out, const int64_t* recv_bytes,
                            const int64_t* recv_offsets, crl_request_h* request_p) {
  return carillon::alltoallv(team, in, {send_bytes, send_offsets}, out, {recv_bytes, recv_offsets},
                             {request_p, false});
}
crl_status_t crl_iallgatherv(crl_team_h team, const void* in, size_t bytes, void* out,
                             const int64_t* recv_bytes, const int64_t* recv_offsets,
                             crl_request_h* request_p) {
  return carillon::one_sided_list(team, Collective::kAllgatherv, {in, out, bytes},
                                  {recv_bytes, recv_offsets}, 0, {request_p, false});
}
crl_status_t crl_igatherv(crl_team_h team, const void* in, size_t bytes, void* out,
                          const int64_t* recv_bytes, const int64_t* recv_offsets, int root,
                          crl_request_h* request_p) {
  return carillon::one_sided_list(team, Collective::kGatherv, {in, out, bytes},
                                  {recv_bytes, recv_offsets}, root, {request_p, false});
}
crl_status_t crl_iscatterv(crl_team_h team, const void* in, const int64_t* send_bytes,
                           const int64_t* send_offsets, void* out, size_t bytes, int root,
                           crl_request_h* request_p) {
  return carillon::one_sided_list(team, Collective::kScatterv, {in, out, bytes},
                                  {send_bytes, send_offsets}, root, {request_p, false});
}
crl_status_t crl_ireduce_scatter(crl_team_h team, const void* in, void* out, const int64_t* counts,
                                 crl_dtype_t dtype, crl_op_t op, crl_request_h* request_p) {
  return carillon::reduce_scatter(team, in, out, counts, dtype, op, {request_p, false});
}
