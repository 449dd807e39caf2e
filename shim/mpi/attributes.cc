// SPDX-License-Identifier: Apache-2.0
#include "attributes.h"

#include <memory>

#include "host.h"

namespace carillon::shim {

constinit thread_local int WithoutAttributes::t_copies = 0;

}  // namespace carillon::shim

#ifdef OPEN_MPI

namespace carillon::shim {
namespace {

// The program's functions. What has attributes may outlive the key, so these stay.
struct Functions {
  MPI_Comm_copy_attr_function* copy;
  MPI_Comm_delete_attr_function* drop;
  void* extra;
};

int copy_attribute(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  const auto& functions = *static_cast<const Functions*>(extra);
  *flag = 0;
  if (WithoutAttributes::now()) return MPI_SUCCESS;
  return functions.copy(comm, keyval, functions.extra, in, out, flag);
}

int drop_attribute(MPI_Comm comm, int keyval, void* value, void* extra) {
  const auto& functions = *static_cast<const Functions*>(extra);
  return functions.drop(comm, keyval, value, functions.extra);
}

int create_keyval(const Functions& functions, int* keyval) {
  auto kept = std::make_unique<Functions>(functions);
  const int status = host().Comm_create_keyval(copy_attribute, drop_attribute, keyval, kept.get());
  if (status == MPI_SUCCESS) (void)kept.release();
  return status;
}

}  // namespace
}  // namespace carillon::shim

extern "C" {

// Fortran's keys do not come here.
CARILLON_EXPORT int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function* copy,
                                           MPI_Comm_delete_attr_function* drop, int* keyval,
                                           void* extra) {
  using namespace carillon::shim;
  if (copy == nullptr || drop == nullptr || keyval == nullptr) {  // for the host to judge
    return host().Comm_create_keyval(copy, drop, keyval, extra);
  }
  return create_keyval({copy, drop, extra}, keyval);
}

// By its name in MPI-1.
CARILLON_EXPORT int MPI_Keyval_create(MPI_Copy_function* copy, MPI_Delete_function* drop,
                                      int* keyval, void* extra) {
  return MPI_Comm_create_keyval(copy, drop, keyval, extra);
}

}  // extern "C"

#endif
