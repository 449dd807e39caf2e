// SPDX-License-Identifier: Apache-2.0
//
// The collectives of the C API whose blocks are all of one length: how their arguments are spelt.
#include <cstddef>

#include "api/call.h"

namespace carillon {
namespace {

CallKey bcast(std::size_t bytes, int root) {
  return key_of(Collective::kBcast, nullptr, nullptr, bytes, root);
}

}  // namespace
}  // namespace carillon

using carillon::Collective;
using carillon::key_of;
using carillon::started;

crl_status_t crl_barrier(crl_team_h team) {
  return carillon::call(team, {.collective = Collective::kBarrier}, {});
}
crl_status_t crl_ibarrier(crl_team_h team, crl_request_h* request_p) {
  return carillon::call(team, started({.collective = Collective::kBarrier}), {}, request_p);
}

crl_status_t crl_bcast(crl_team_h team, void* buffer, size_t bytes, int root) {
  return carillon::call(team, carillon::bcast(bytes, root), {.in = buffer, .out = buffer});
}
crl_status_t crl_ibcast(crl_team_h team, void* buffer, size_t bytes, int root,
                        crl_request_h* request_p) {
  return carillon::call(team, started(carillon::bcast(bytes, root)), {.in = buffer, .out = buffer},
                        request_p);
}

crl_status_t crl_reduce(crl_team_h team, const void* in, void* out, size_t count, crl_dtype_t dtype,
                        crl_op_t op, int root) {
  return carillon::call(team, key_of(Collective::kReduce, in, out, count, root, dtype, op),
                        {.in = in, .out = out});
}
crl_status_t crl_ireduce(crl_team_h team, const void* in, void* out, size_t count,
                         crl_dtype_t dtype, crl_op_t op, int root, crl_request_h* request_p) {
  return carillon::call(team, started(key_of(Collective::kReduce, in, out, count, root, dtype, op)),
                        {.in = in, .out = out}, request_p);
}

crl_status_t crl_allreduce(crl_team_h team, const void* in, void* out, size_t count,
                           crl_dtype_t dtype, crl_op_t op) {
  return carillon::call(team, key_of(Collective::kAllreduce, in, out, count, 0, dtype, op),
                        {.in = in, .out = out});
}
crl_status_t crl_iallreduce(crl_team_h team, const void* in, void* out, size_t count,
                            crl_dtype_t dtype, crl_op_t op, crl_request_h* request_p) {
  return carillon::call(team, started(key_of(Collective::kAllreduce, in, out, count, 0, dtype, op)),
                        {.in = in, .out = out}, request_p);
}

crl_status_t crl_allgather(crl_team_h team, const void* in, void* out, size_t bytes) {
  return carillon::call(team, key_of(Collective::kAllgather, in, out, bytes),
                        {.in = in, .out = out});
}
crl_status_t crl_iallgather(crl_team_h team, const void* in, void* out, size_t bytes,
                            crl_request_h* request_p) {
  return carillon::call(team, started(key_of(Collective::kAllgather, in, out, bytes)),
                        {.in = in, .out = out}, request_p);
}

crl_status_t crl_gather(crl_team_h team, const void* in, void* out, size_t bytes, int root) {
  return carillon::call(team, key_of(Collective::kGather, in, out, bytes, root),
                        {.in = in, .out = out});
}
crl_status_t crl_igather(crl_team_h team, const void* in, void* out, size_t bytes, int root,
                         crl_request_h* request_p) {
  return carillon::call(team, started(key_of(Collective::kGather, in, out, bytes, root)),
                        {.in = in, .out = out}, request_p);
}

crl_status_t crl_scatter(crl_team_h team, const void* in, void* out, size_t bytes, int root) {
  return carillon::call(team, key_of(Collective::kScatter, in, out, bytes, root),
                        {.in = in, .out = out});
}
crl_status_t crl_iscatter(crl_team_h team, const void* in, void* out, size_t bytes, int root,
                          crl_request_h* request_p) {
  return carillon::call(team, started(key_of(Collective::kScatter, in, out, bytes, root)),
                        {.in = in, .out = out}, request_p);
}

crl_status_t crl_reduce_scatter_block(crl_team_h team, const void* in, void* out, size_t count,
                                      crl_dtype_t dtype, crl_op_t op) {
  return carillon::call(team, key_of(Collective::kReduceScatterBlock, in, out, count, 0, dtype, op),
                        {.in = in, .out = out});
}
crl_status_t crl_ireduce_scatter_block(crl_team_h team, const void* in, void* out, size_t count,
                                       crl_dtype_t dtype, crl_op_t op, crl_request_h* request_p) {
  return carillon::call(
      team, started(key_of(Collective::kReduceScatterBlock, in, out, count, 0, dtype, op)),
      {.in = in, .out = out}, request_p);
}

crl_status_t crl_alltoall(crl_team_h team, const void* in, void* out, size_t bytes) {
  return carillon::call(team, key_of(Collective::kAlltoall, in, out, bytes),
                        {.in = in, .out = out});
}
crl_status_t crl_ialltoall(crl_team_h team, const void* in, void* out, size_t bytes,
                           crl_request_h* request_p) {
  return carillon::call(team, started(key_of(Collective::kAlltoall, in, out, bytes)),
                        {.in = in, .out = out}, request_p);
}

crl_status_t crl_scan(crl_team_h team, const void* in, void* out, size_t count, crl_dtype_t dtype,
                      crl_op_t op) {
  return carillon::call(team, key_of(Collective::kScan, in, out, count, 0, dtype, op),
                        {.in = in, .out = out});
}
crl_status_t crl_iscan(crl_team_h team, const void* in, void* out, size_t count, crl_dtype_t dtype,
                       crl_op_t op, crl_request_h* request_p) {
  return carillon::call(team, started(key_of(Collective::kScan, in, out, count, 0, dtype, op)),
                        {.in = in, .out = out}, request_p);
}

crl_status_t crl_exscan(crl_team_h team, const void* in, void* out, size_t count, crl_dtype_t dtype,
                        crl_op_t op) {
  return carillon::call(team, key_of(Collective::kExscan, in, out, count, 0, dtype, op),
                        {.in = in, .out = out});
}
crl_status_t crl_iexscan(crl_team_h team, const void* in, void* out, size_t count,
                         crl_dtype_t dtype, crl_op_t op, crl_request_h* request_p) {
  return carillon::call(team, started(key_of(Collective::kExscan, in, out, count, 0, dtype, op)),
                        {.in = in, .out = out}, request_p);
}
