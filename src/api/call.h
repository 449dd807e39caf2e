// SPDX-License-Identifier: Apache-2.0
//
// The one path of all collectives of the C API: a call is a key and its buffers.
#pragma once

#include <string>

#include "api/objects.h"

namespace carillon {

/// All blocks of a call together have no more.
inline constexpr std::uint64_t kMaxBytes = UINT64_C(1) << 46;

struct Buffers {
  const void* in = nullptr;
  void* out = nullptr;
  const Tables* tables = nullptr;  ///< has_tables(collective)
};

/// "crl_allreduce", "crl_iallreduce".
std::string function_of(const CallKey& key);
/// "crl_allreduce: ...".
Status invalid(const CallKey& key, const std::string& what);

/// One that does not block, by who holds the engine's lock; then the end of a request that is done.
/// Moves it on, unless the servlet will (`served`).
crl_status_t start(crl_team& team, const CallKey& key, const Buffers& buffers,
                   crl_request_h* request_p, bool served = false);
/// Ends a request that is done, with the engine's lock or without; without, of the program's only
/// thread, and only if it ended well.
crl_status_t finish(crl_request_h* request_p, bool locked = true);
/// The same of one that ended well, of who does not have the lock: does not wait for the servlet if
/// the program has but one thread.
crl_status_t finish_done(crl_request_h* request_p);

/// The team's members, all in the same call, join its multicast groups if there can be any.
Status join_multicast(crl_team& team);

/// One call; of one that does not block (key.starts) with a place for its request.
crl_status_t call(crl_team_h team, const CallKey& key, const Buffers& buffers,
                  crl_request_h* request_p = nullptr);

constexpr bool in_place_is_output(Collective collective) {
  return collective == Collective::kScatter || collective == Collective::kScatterv;
}

inline CallKey key_of(Collective collective, const void* in, const void* out, std::size_t count,
                      int root = 0, crl_dtype_t dtype = CRL_UINT8, crl_op_t op = CRL_SUM) {
  return {.collective = collective,
          .in_place = (in_place_is_output(collective) ? out : in) == CRL_IN_PLACE,
          .dtype = dtype,
          .root = root,
          .count = count,
          .op = op,
          .op_id = is_predefined(op) || is_no_operator(op)
                       ? 0
                       : reinterpret_cast<const UserOp*>(op)->id};
}

/// The same call in its other form.
inline CallKey started(CallKey key) {
  key.starts = true;
  return key;
}

}  // namespace carillon
