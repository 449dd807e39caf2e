// SPDX-License-Identifier: Apache-2.0
#include "left.h"

#include "comm_key.h"

namespace carillon::shim {
namespace {

int copy_left(MPI_Comm /*comm*/, int /*keyval*/, void* /*extra*/, void* value, void* copied,
              int* flag) {
  *static_cast<void**>(copied) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

int delete_left(MPI_Comm /*comm*/, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  return MPI_SUCCESS;
}

constinit CommKey g_left_key(copy_left, delete_left);

}  // namespace

void leave_for_good(MPI_Comm comm) { g_left_key.set(comm, nullptr); }

bool is_left_for_good(MPI_Comm comm) {
  void* value = nullptr;
  return g_left_key.find(comm, &value);
}

void forget_who_is_left() { g_left_key.forget(); }

}  // namespace carillon::shim
