// SPDX-License-Identifier: Apache-2.0
#include "bootstrap.h"

#include <climits>
#include <cstring>
#include <memory>

#include "thread_cache.h"

namespace carillon::shim {
namespace {

int post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p) {
  const auto& bootstrap = *static_cast<const Bootstrap*>(arg);
  *request_p = nullptr;
  if (bootstrap.size == 1) {
    std::memcpy(out, in, bytes);
    return 0;
  }
  if (bytes > INT_MAX) return -1;
  const InsideHost guard;
  auto request = std::make_unique<MPI_Request>();
  const auto count = static_cast<int>(bytes);
  const int status = host().Iallgather(in, count, g_host.byte, out, count, g_host.byte,
                                       bootstrap.comm, request.get());
  if (status == MPI_SUCCESS) *request_p = request.release();
  return status == MPI_SUCCESS ? 0 : -1;
}

int test(void* /*arg*/, void* request) {
  if (request == nullptr) return 0;
  const InsideHost guard;
  int done = 0;
  const int status = host().Test(static_cast<MPI_Request*>(request), &done, MPI_STATUS_IGNORE);
  if (status == MPI_SUCCESS && done == 0) return 1;
  delete static_cast<MPI_Request*>(request);
  return status == MPI_SUCCESS ? 0 : -1;
}

}  // namespace

crl_oob_t Bootstrap::oob() {
  return {.arg = this, .rank = rank, .size = size, .allgather_post = post, .allgather_test = test};
}

}  // namespace carillon::shim
