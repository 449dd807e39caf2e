// SPDX-License-Identifier: Apache-2.0
//
// From a datatype of the host to its layout.
#pragma once

#include <optional>

#include "host.h"
#include "layout.h"

namespace carillon::shim {

struct Envelope {
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  bool readable = false;  // by the functions with int counts
};

Envelope envelope_of(MPI_Datatype type);

/// The layout, read from how the type was constructed. Nothing if it is too irregular.
std::optional<Layout> decode(MPI_Datatype type);

/// Lets the host copy between typed elements and packed bytes. Status of the host.
[[nodiscard]] int copy_by_host(const void* from, std::int64_t from_count, MPI_Datatype from_type,
                               void* to, std::int64_t to_count, MPI_Datatype to_type);

/// The layout of a small type of any kind, found by letting the host copy known bytes.
std::optional<Layout> observe(MPI_Datatype type, std::int64_t size, std::int64_t true_lower_bound,
                              std::int64_t true_extent);

}  // namespace carillon::shim
