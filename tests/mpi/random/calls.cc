// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define CRL_INIT(prefix) prefix##X
#else
#define CRL_INIT(prefix) prefix
#endif

namespace mpi_test {
namespace {

constexpr const char* kNames[kKinds] = {
    "Barrier",
    "Bcast",
    "Reduce",
    "Allreduce",
    "Reduce_scatter_block",
    "Reduce_scatter",
    "Scan",
    "Exscan",
    "Allgather",
    "Allgatherv",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Neighbor_allgather",
    "Neighbor_allgatherv",
    "Neighbor_alltoall",
    "Neighbor_alltoallv",
    "Neighbor_alltoallw",
};

template <typename Item>
const Item* list(const Side& side, const std::vector<Item>& items) {
  static const Item none{};  // Open MPI takes no list for a wrong one, though it be empty
  return side.no_lists ? nullptr : items.empty() ? &none : items.data();
}

#define CRL_JOIN_(one, other) one##_##other
#define CRL_JOIN(one, other) CRL_JOIN_(one, other)
#define CRL_FORMS(prefix, blocking, started, persistent, ...)     \
  (form == CallForm::kBlocking ? prefix##_##blocking(__VA_ARGS__) \
   : form == CallForm::kStarted                                   \
       ? prefix##_##started(__VA_ARGS__, request)                 \
       : CRL_JOIN(CRL_INIT(prefix), persistent)(__VA_ARGS__, MPI_INFO_NULL, request))
#define CRL_CASE(name, suffix, started, ...)                                                     \
  case Kind::k##name:                                                                            \
    return by == By::kCarillon                                                                   \
               ? CRL_FORMS(MPI, name##suffix, started##suffix, name##_init##suffix, __VA_ARGS__) \
               : CRL_FORMS(PMPI, name##suffix, started##suffix, name##_init##suffix, __VA_ARGS__);
#define CRL_BLOCK(side) side.buffer, CRL_N(side), side.type
#define CRL_LIST(side) side.buffer, CRL_COUNTS(side), CRL_OFFSETS(side), side.type
#define CRL_TYPED(side, offsets) \
  side.buffer, CRL_COUNTS(side), offsets(side), list(side, side.types)
#define CRL_WIDE_OFFSETS(side) list(side, side.wide_offsets)

int call_narrow(By by, CallForm form, Kind kind, const Arguments& a, MPI_Request* request) {
  switch (kind) {
#define CRL_N(side) static_cast<int>(side.count)
#define CRL_COUNTS(side) list(side, side.counts)
#define CRL_OFFSETS(side) list(side, side.offsets)
#define CRL_ROW(name, started, ...) CRL_CASE(name, , started, __VA_ARGS__)
#define CRL_ROW_INT CRL_ROW
#include "calls.inc"
#undef CRL_N
#undef CRL_COUNTS
#undef CRL_OFFSETS
#undef CRL_ROW
#undef CRL_ROW_INT
  }
  return MPI_ERR_INTERN;
}

#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
int call_wide(By by, CallForm form, Kind kind, const Arguments& a, MPI_Request* request) {
  switch (kind) {
#define CRL_N(side) side.count
#define CRL_COUNTS(side) list(side, side.wide_counts)
#define CRL_OFFSETS CRL_WIDE_OFFSETS
#define CRL_ROW(name, started, ...) CRL_CASE(name, _c, started, __VA_ARGS__)
#define CRL_ROW_INT(name, started, ...) CRL_CASE(name, , started, __VA_ARGS__)
#include "calls.inc"
  }
  return MPI_ERR_INTERN;
}
#endif

}  // namespace

const char* name_of(Kind kind) { return kNames[static_cast<std::size_t>(kind)]; }

int call(By by, CallForm form, Kind kind, [[maybe_unused]] bool wide, const Arguments& arguments,
         MPI_Request* request) {
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
  if (wide) return call_wide(by, form, kind, arguments, request);
#endif
  return call_narrow(by, form, kind, arguments, request);
}

const Requests& requests_of(By by) {
#define CRL_REQUESTS(prefix)                                                                     \
  {                                                                                              \
    prefix##_Start, prefix##_Startall, prefix##_Wait, prefix##_Waitall, prefix##_Waitany,        \
        prefix##_Waitsome, prefix##_Test, prefix##_Testall, prefix##_Testany, prefix##_Testsome, \
        prefix##_Request_get_status, prefix##_Request_free                                       \
  }
  static const Requests ours = CRL_REQUESTS(MPI), theirs = CRL_REQUESTS(PMPI);
#undef CRL_REQUESTS
  return by == By::kCarillon ? ours : theirs;
}

}  // namespace mpi_test
