// SPDX-License-Identifier: Apache-2.0
//
// The host: the MPI library the program itself loaded, as a table of its PMPI functions.
//
// Nothing of it is linked. The preloaded library also reaches shells and launchers, which have no
// MPI, and Python, which loads one late and privately; so every function is looked up at the first
// MPI call, in whatever library then provides it.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>

namespace carillon::shim {

/// The address of a data symbol of the host, or null. Slow: for tables that are made once.
void* host_data(const char* symbol);

/// MPI_Session, which not every header declares.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
using Session = MPI_Session;
#elif defined(OPEN_MPI)
using Session = void*;
#else
using Session = int;
#endif

}  // namespace carillon::shim

// Open MPI's predefined handles are addresses of data in its library: look those up, too.
#ifdef OMPI_PREDEFINED_GLOBAL
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) (static_cast<type>(carillon::shim::host_data(#global)))
#endif

#if MPI_VERSION >= 4
#define CARILLON_LARGE_COUNTS 1
#endif

/// What the program sees, of a library whose other symbols are hidden.
#define CARILLON_EXPORT __attribute__((visibility("default")))

// Every function of the host that is ever called, but for the intercepted collectives.
// clang-format off
#define CARILLON_HOST_FUNCTIONS(X)                                                             \
  X(Abort) X(Add_error_class) X(Add_error_code) X(Add_error_string) X(Alloc_mem) X(Cancel) X(Cart_get) X(Cart_shift) X(Cartdim_get) \
  X(Comm_call_errhandler) X(Comm_create_group) X(Comm_create_keyval) X(Comm_disconnect) X(Comm_free) X(Comm_free_keyval)   \
  X(Comm_delete_attr) X(Comm_get_attr) X(Comm_get_errhandler) X(Comm_get_name) X(Comm_group) X(Comm_idup) X(Comm_rank) X(Comm_remote_size) X(Comm_set_attr)                    \
  X(Comm_set_errhandler) X(Comm_size) X(Comm_test_inter) X(Dist_graph_neighbors) X(Dist_graph_neighbors_count) X(Errhandler_free) X(Free_mem) X(Get_count) X(Get_library_version) X(Graph_neighbors) X(Graph_neighbors_count)    \
  X(Finalize) X(Grequest_complete) X(Grequest_start) X(Group_free) X(Group_rank) X(Group_size) X(Group_translate_ranks) X(Improbe)     \
  X(Imrecv) X(Info_create) X(Info_free) X(Info_set) X(Init) X(Init_thread) X(Intercomm_merge) X(Iprobe) X(Irecv) X(Irsend) X(Isend) X(Issend) X(Mprobe)   \
  X(Mrecv) X(Op_commutative) X(Op_free) X(Pack) X(Pack_size) X(Probe) X(Query_thread) X(Recv) X(Recv_init)               \
  X(Reduce_local) X(Request_free) X(Request_get_status) X(Rsend) X(Send) X(Sendrecv) X(Sendrecv_replace) X(Ssend) X(Start) X(Startall)  \
  X(Status_set_cancelled) X(Status_set_elements) X(T_cvar_get_index) X(T_cvar_handle_alloc)    \
  X(T_cvar_handle_free) X(T_cvar_read) X(T_finalize) X(T_init_thread) X(Test) X(Testall)       \
  X(Testany) X(Testsome) X(Topo_test) X(Type_commit) X(Type_contiguous) X(Type_create_keyval)               \
  X(Type_create_struct) X(Type_free) X(Type_free_keyval) X(Type_get_contents) X(Type_get_envelope)                 \
  X(Type_get_extent) X(Type_get_name) X(Type_get_true_extent) X(Type_set_attr) X(Type_size_x) X(Wait)           \
  X(Waitall) X(Waitany) X(Waitsome) X(Win_create_keyval) X(Win_free) X(Win_free_keyval)         \
  X(Win_get_attr) X(Win_set_attr) X(Win_shared_query) X(Win_test) X(Win_wait)
// clang-format on

#ifdef CARILLON_LARGE_COUNTS
// clang-format off
#define CARILLON_HOST_LARGE_FUNCTIONS(X)                                                       \
  X(Imrecv_c) X(Irecv_c) X(Irsend_c) X(Isend_c) X(Issend_c) X(Mrecv_c) X(Recv_c) X(Rsend_c)    \
  X(Send_c) X(Sendrecv_c) X(Sendrecv_replace_c) X(Ssend_c) X(Type_get_envelope_c)
// clang-format on
#else
#define CARILLON_HOST_LARGE_FUNCTIONS(X)
#endif

// Of MPI 4, which not every header declares.
#define CARILLON_HOST_NEWER_FUNCTIONS(X)                                                   \
  X(Comm_create_from_group, (MPI_Group, const char*, MPI_Info, MPI_Errhandler, MPI_Comm*)) \
  X(Comm_idup_with_info, (MPI_Comm, MPI_Info, MPI_Comm*, MPI_Request*))                    \
  X(Group_from_session_pset, (carillon::shim::Session, const char*, MPI_Group*))           \
  X(Parrived, (MPI_Request, int, int*))                                                    \
  X(Request_get_status_all, (int, const MPI_Request[], int*, MPI_Status[]))                \
  X(Request_get_status_any, (int, const MPI_Request[], int*, int*, MPI_Status*))           \
  X(Request_get_status_some, (int, const MPI_Request[], int*, int[], MPI_Status[]))        \
  X(Session_finalize, (carillon::shim::Session*))                                          \
  X(Session_init, (MPI_Info, MPI_Errhandler, carillon::shim::Session*))

#ifdef OPEN_MPI
#define CARILLON_HOST_OWN_FUNCTIONS(X) \
  X(Comm_f2c) X(Request_f2c) X(Op_f2c) X(Type_f2c) X(Win_f2c) X(Info_f2c)
#else
#define CARILLON_HOST_OWN_FUNCTIONS(X)  // there they may be macros
#endif

/// What stands in parentheses, without them.
#define CARILLON_LIST(...) __VA_ARGS__

namespace carillon::shim {

struct Host {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name
#define CARILLON_POINTER(name) decltype(&PMPI_##name) name = nullptr;
  CARILLON_HOST_FUNCTIONS(CARILLON_POINTER)
  CARILLON_HOST_OWN_FUNCTIONS(CARILLON_POINTER)
  CARILLON_HOST_LARGE_FUNCTIONS(CARILLON_POINTER)  // null where an older library lacks them
#define CARILLON_COLLECTIVE(name, started, ...) CARILLON_COLLECTIVE_POINTERS(name, started)
#define CARILLON_COLLECTIVE_POINTERS(name, started) \
  CARILLON_POINTER(name)                            \
  CARILLON_POINTER(started)
#include "collectives.def"
#undef CARILLON_COLLECTIVE_POINTERS
#undef CARILLON_COLLECTIVE
#define CARILLON_MAKER(name, ...) CARILLON_POINTER(name)
#include "makers.def"
#undef CARILLON_MAKER
#undef CARILLON_POINTER
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name
#define CARILLON_NEWER_POINTER(name, parameters) int(*name) parameters = nullptr;
  CARILLON_HOST_NEWER_FUNCTIONS(CARILLON_NEWER_POINTER)  // null where the library has none
#undef CARILLON_NEWER_POINTER
#define CARILLON_PERSISTENT(...) CARILLON_PERSISTENT_POINTER(__VA_ARGS__)
#define CARILLON_PERSISTENT_POINTER(name, collective, parameters, ...) \
  int (*name)(CARILLON_LIST parameters, MPI_Info info, MPI_Request * request) = nullptr;
#include "persistent.def"  // not every header declares them: null where the library has none
#undef CARILLON_PERSISTENT_POINTER
#undef CARILLON_PERSISTENT

  // Handles that are compared often.
  MPI_Comm comm_world{}, comm_self{}, comm_null{};
  MPI_Datatype type_null{}, byte{}, packed{};
  MPI_Op op_null{};
  MPI_Request request_null{};

  std::atomic<bool> ready = false;
};

extern Host g_host;
/// Fills g_host; ends the process with one clear line if the program's MPI is none or another one.
void find_host();
/// Whether there is one, and somebody has called its MPI_Init, though perhaps not through here.
bool host_has_begun();

/// The host, found at the first call.
inline const Host& host() {
  // Partner: find_host.
  if (!g_host.ready.load(std::memory_order_acquire)) [[unlikely]]
    find_host();
  return g_host;
}

/// For attributes that copies of an object do not get.
template <typename Handle>
int copy_no_attribute(Handle /*object*/, int /*keyval*/, void* /*extra*/, void* /*in*/,
                      void* /*out*/, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

}  // namespace carillon::shim
