// SPDX-License-Identifier: Apache-2.0
#include "bootstrap.h"

#include <climits>
#include <cstring>
#include <memory>

#include "check.h"
#include "thread_cache.h"

namespace carillon::shim {
namespace {

struct Gathering {
  Bootstrap* bootstrap;
  const void* in;
  void* out;
  int bytes;
  MPI_Request request = MPI_REQUEST_NULL;
  bool posted = false;
};

// The host's status.
int move_copy_on(Bootstrap& bootstrap, int* ready) {
  *ready = 0;
  if (!bootstrap.own.begun()) {
    if (is_copied_for_checks(bootstrap.original)) return MPI_SUCCESS;
    const int status = bootstrap.own.begin(copy_for_checks(bootstrap.original));
    if (status != MPI_SUCCESS) return status;
  }
  return bootstrap.own.test(ready);
}

// Once the copy is there. The host's status.
int post_when_ready(Gathering& gathering) {
  Bootstrap& bootstrap = *gathering.bootstrap;
  if (gathering.posted) return MPI_SUCCESS;
  if (bootstrap.copies) {
    int ready = 0;
    const int status = move_copy_on(bootstrap, &ready);
    if (status != MPI_SUCCESS || ready == 0) return status;
  }
  gathering.posted = true;
  return host().Iallgather(gathering.in, gathering.bytes, g_host.byte, gathering.out,
                           gathering.bytes, g_host.byte, bootstrap.comm(), &gathering.request);
}

int post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p) {
  auto& bootstrap = *static_cast<Bootstrap*>(arg);
  *request_p = nullptr;
  if (bootstrap.size == 1) {
    std::memcpy(out, in, bytes);
    return 0;
  }
  if (bytes > INT_MAX) return -1;
  const InsideHost guard;
  auto gathering =
      std::make_unique<Gathering>(Gathering{&bootstrap, in, out, static_cast<int>(bytes)});
  const int status = post_when_ready(*gathering);
  if (status == MPI_SUCCESS) *request_p = gathering.release();
  return status == MPI_SUCCESS ? 0 : -1;
}

int test(void* /*arg*/, void* request) {
  if (request == nullptr) return 0;
  const InsideHost guard;
  auto* const gathering = static_cast<Gathering*>(request);
  int done = 0;
  int status = post_when_ready(*gathering);
  if (status == MPI_SUCCESS && gathering->posted) {
    status = host().Test(&gathering->request, &done, MPI_STATUS_IGNORE);
  }
  if (status == MPI_SUCCESS && done == 0) return 1;
  delete gathering;
  return status == MPI_SUCCESS ? 0 : -1;
}

}  // namespace

MPI_Comm Bootstrap::comm_for_program() const {
  MPI_Errhandler handler{};
  if (own.begun() && host().Comm_get_errhandler(original, &handler) == MPI_SUCCESS) {
    host().Comm_set_errhandler(comm(), handler);
    host().Errhandler_free(&handler);
  }
  return comm();
}

void Bootstrap::release() {
  const InsideHost guard;
  own.free();
}

crl_oob_t Bootstrap::oob() {
  return {.arg = this, .rank = rank, .size = size, .allgather_post = post, .allgather_test = test};
}

}  // namespace carillon::shim
