// SPDX-License-Identifier: Apache-2.0
//
// How a derived datatype was constructed, as the host tells it.
#pragma once

#include <cstddef>
#include <vector>

#include "datatype_decode.h"

namespace carillon::shim {

inline bool is_predefined_f90(int combiner) {
  return combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

// How a type was constructed. Gives the types it was made from back.
class Contents {
 public:
  Contents(MPI_Datatype type, const Envelope& envelope)
      : integers(static_cast<std::size_t>(envelope.integers) + 1),
        addresses(static_cast<std::size_t>(envelope.addresses) + 1),
        types_(static_cast<std::size_t>(envelope.types)) {
    valid =
        host().Type_get_contents(type, envelope.integers, envelope.addresses, envelope.types,
                                 integers.data(), addresses.data(), types_.data()) == MPI_SUCCESS;
  }
  ~Contents() {
    for (MPI_Datatype type : types_) {
      const Envelope envelope = envelope_of(type);
      if (valid && envelope.combiner != MPI_COMBINER_NAMED &&
          !is_predefined_f90(envelope.combiner)) {
        host().Type_free(&type);
      }
    }
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  [[nodiscard]] MPI_Datatype type(std::size_t i) const { return types_[i]; }

  bool valid = false;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;

 private:
  std::vector<MPI_Datatype> types_;
};

}  // namespace carillon::shim
