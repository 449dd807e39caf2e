// SPDX-License-Identifier: Apache-2.0
#include "api/switch_operation.h"

#include <optional>

#include "switch/protocol/packet.h"

namespace carillon {
namespace {

std::optional<aggregate::Op> op_of(crl_op_t op) {
  switch (op) {
    case CRL_SUM: return aggregate::Op::kSum;
    case CRL_MIN: return aggregate::Op::kMin;
    case CRL_MAX: return aggregate::Op::kMax;
    case CRL_BAND: return aggregate::Op::kAnd;
    case CRL_BOR: return aggregate::Op::kOr;
    case CRL_BXOR: return aggregate::Op::kXor;
    default: return {};
  }
}

std::optional<aggregate::Type> type_of(crl_dtype_t dtype) {
  switch (dtype) {
    case CRL_INT32:
    case CRL_UINT32: return aggregate::Type::kInt32;
    case CRL_INT64:
    case CRL_UINT64: return aggregate::Type::kInt64;
    case CRL_FLOAT32: return aggregate::Type::kFloat32;
    case CRL_FLOAT64: return aggregate::Type::kFloat64;
    default: return {};
  }
}

}  // namespace

bool find_switch_operation(crl_op_t op, crl_dtype_t dtype, Reduction& reduction) {
  const auto wanted = op_of(op);
  const auto type = type_of(dtype);
  if (!wanted || !type || !aggregate::is_defined(*wanted, *type)) return false;
  const bool is_unsigned = dtype == CRL_UINT32 || dtype == CRL_UINT64;
  if (is_unsigned && (op == CRL_MIN || op == CRL_MAX)) return false;
  reduction.switch_op = *wanted;
  reduction.switch_type = *type;
  return true;
}

}  // namespace carillon
