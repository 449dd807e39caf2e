// SPDX-License-Identifier: Apache-2.0
//
// The predefined datatypes that reductions know, and the predefined operators: which pairs MPI
// defines, and which carillon type each is.
#pragma once

#include <cstdint>
#include <optional>

#include "carillon/carillon.h"
#include "host.h"

namespace carillon::shim {

/// MPI's groups of datatypes, as bits: an operator is defined for some of them.
enum TypeClass : std::uint8_t {
  kInteger = 1,
  kFloating = 2,
  kLogical = 4,
  kComplex = 8,
  kByte = 16,
  kPair = 32,
  kFortranInteger = 64,
};

struct Predefined {
  MPI_Datatype handle{};
  TypeClass type_class = kInteger;
  std::uint32_t extent = 0;
  /// Carillon's type, if it has one; else the host's function reduces it.
  std::optional<crl_dtype_t> dtype;
};

/// The row of a datatype, or -1.
int find_predefined(MPI_Datatype type);
Predefined predefined(int row);

struct PredefinedOp {
  MPI_Op handle{};
  crl_op_kind_t op = CRL_SUM;
  std::uint8_t classes = 0;  // those it is defined for
};

/// Null: not one of MPI's operators for collectives.
const PredefinedOp* find_predefined_op(MPI_Op op);

}  // namespace carillon::shim
