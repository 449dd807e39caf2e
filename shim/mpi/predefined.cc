// SPDX-License-Identifier: Apache-2.0
#include "predefined.h"

#include <type_traits>
#include <vector>

#include "thread_cache.h"

namespace carillon::shim {
namespace {

// How a row's carillon type is found. Fortran's default types have sizes that are options of its
// compiler, so those rows go by the size the host reports.
enum class TypeForm : std::uint8_t {
  kSigned,
  kUnsigned,
  kFortranInteger,
  kReal,
  kLongDouble,
  kBool,
  kLogical,
  kComplex,
  kLongComplex,
  kByte,
  kPairOfIntegers,
  kPairOfReals,
  kFloatInt,
  kDoubleInt,
  kLongInt,
  kShortInt,
  kLongDoubleInt,
};

struct Row {
  MPI_Datatype handle;
  TypeForm form;
};

TypeClass class_of(TypeForm form) {
  switch (form) {
    case TypeForm::kSigned:
    case TypeForm::kUnsigned: return kInteger;
    case TypeForm::kFortranInteger: return kFortranInteger;
    case TypeForm::kReal:
    case TypeForm::kLongDouble: return kFloating;
    case TypeForm::kBool:
    case TypeForm::kLogical: return kLogical;
    case TypeForm::kComplex:
    case TypeForm::kLongComplex: return kComplex;
    case TypeForm::kByte: return kByte;
    default: return kPair;
  }
}

std::optional<crl_dtype_t> by_size(std::int64_t size, crl_dtype_t first, std::int64_t first_size,
                                   int types) {
  for (int i = 0; i < types; ++i) {
    if (size == first_size << i) return first + static_cast<crl_dtype_t>(i);
  }
  return std::nullopt;
}

std::optional<crl_dtype_t> dtype_of(TypeForm form, std::int64_t size) {
  switch (form) {
    case TypeForm::kSigned:
    case TypeForm::kFortranInteger: return by_size(size, CRL_INT8, 1, 4);
    case TypeForm::kUnsigned: return by_size(size, CRL_UINT8, 1, 4);
    case TypeForm::kByte: return CRL_UINT8;
    case TypeForm::kReal: return by_size(size, CRL_FLOAT32, 4, 2);
    case TypeForm::kLongDouble: return CRL_LONG_DOUBLE;
    case TypeForm::kBool: return CRL_BOOL;
    case TypeForm::kLogical:
      return std::nullopt;  // what is true is Fortran's, and the host's, affair
    case TypeForm::kComplex: return by_size(size, CRL_COMPLEX_FLOAT32, 8, 2);
    case TypeForm::kLongComplex: return CRL_COMPLEX_LONG_DOUBLE;
    case TypeForm::kPairOfIntegers:
      return size == 8 ? std::optional<crl_dtype_t>(CRL_INT_INT) : std::nullopt;
    case TypeForm::kPairOfReals: return by_size(size, CRL_FLOAT32_FLOAT32, 8, 2);
    case TypeForm::kFloatInt: return CRL_FLOAT32_INT;
    case TypeForm::kDoubleInt: return CRL_FLOAT64_INT;
    case TypeForm::kLongInt: return CRL_LONG_INT;
    case TypeForm::kShortInt: return CRL_SHORT_INT;
    case TypeForm::kLongDoubleInt: return CRL_LONG_DOUBLE_INT;
  }
  return std::nullopt;
}

std::vector<Row> c_rows() {
  const auto integer = [](auto value) {
    return std::is_signed_v<decltype(value)> ? TypeForm::kSigned : TypeForm::kUnsigned;
  };
  return {
      {MPI_SIGNED_CHAR, TypeForm::kSigned},
      {MPI_UNSIGNED_CHAR, TypeForm::kUnsigned},
      {MPI_SHORT, TypeForm::kSigned},
      {MPI_UNSIGNED_SHORT, TypeForm::kUnsigned},
      {MPI_INT, TypeForm::kSigned},
      {MPI_UNSIGNED, TypeForm::kUnsigned},
      {MPI_LONG, TypeForm::kSigned},
      {MPI_UNSIGNED_LONG, TypeForm::kUnsigned},
      {MPI_LONG_LONG, TypeForm::kSigned},
      {MPI_UNSIGNED_LONG_LONG, TypeForm::kUnsigned},
      {MPI_INT8_T, TypeForm::kSigned},
      {MPI_UINT8_T, TypeForm::kUnsigned},
      {MPI_INT16_T, TypeForm::kSigned},
      {MPI_UINT16_T, TypeForm::kUnsigned},
      {MPI_INT32_T, TypeForm::kSigned},
      {MPI_UINT32_T, TypeForm::kUnsigned},
      {MPI_INT64_T, TypeForm::kSigned},
      {MPI_UINT64_T, TypeForm::kUnsigned},
      {MPI_AINT, integer(MPI_Aint{})},
      {MPI_OFFSET, integer(MPI_Offset{})},
      {MPI_COUNT, integer(MPI_Count{})},
      {MPI_FLOAT, TypeForm::kReal},
      {MPI_DOUBLE, TypeForm::kReal},
      {MPI_LONG_DOUBLE, TypeForm::kLongDouble},
      {MPI_C_BOOL, TypeForm::kBool},
      {MPI_BYTE, TypeForm::kByte},
      {MPI_C_FLOAT_COMPLEX, TypeForm::kComplex},
      {MPI_C_DOUBLE_COMPLEX, TypeForm::kComplex},
      {MPI_C_LONG_DOUBLE_COMPLEX, TypeForm::kLongComplex},
      {MPI_CXX_BOOL, TypeForm::kBool},
      {MPI_CXX_FLOAT_COMPLEX, TypeForm::kComplex},
      {MPI_CXX_DOUBLE_COMPLEX, TypeForm::kComplex},
      {MPI_CXX_LONG_DOUBLE_COMPLEX, TypeForm::kLongComplex},
      {MPI_FLOAT_INT, TypeForm::kFloatInt},
      {MPI_DOUBLE_INT, TypeForm::kDoubleInt},
      {MPI_LONG_INT, TypeForm::kLongInt},
      {MPI_2INT, TypeForm::kPairOfIntegers},
      {MPI_SHORT_INT, TypeForm::kShortInt},
      {MPI_LONG_DOUBLE_INT, TypeForm::kLongDoubleInt},
  };
}

std::vector<Row> fortran_rows() {
  std::vector<Row> rows = {
      {MPI_INTEGER, TypeForm::kFortranInteger},
      {MPI_REAL, TypeForm::kReal},
      {MPI_DOUBLE_PRECISION, TypeForm::kReal},
      {MPI_COMPLEX, TypeForm::kComplex},
      {MPI_DOUBLE_COMPLEX, TypeForm::kComplex},
      {MPI_LOGICAL, TypeForm::kLogical},
      {MPI_2INTEGER, TypeForm::kPairOfIntegers},
      {MPI_2REAL, TypeForm::kPairOfReals},
      {MPI_2DOUBLE_PRECISION, TypeForm::kPairOfReals},
#ifdef MPI_INTEGER1
      {MPI_INTEGER1, TypeForm::kFortranInteger},
#endif
#ifdef MPI_INTEGER2
      {MPI_INTEGER2, TypeForm::kFortranInteger},
#endif
#ifdef MPI_INTEGER4
      {MPI_INTEGER4, TypeForm::kFortranInteger},
#endif
#ifdef MPI_INTEGER8
      {MPI_INTEGER8, TypeForm::kFortranInteger},
#endif
#ifdef MPI_INTEGER16
      {MPI_INTEGER16, TypeForm::kFortranInteger},
#endif
#ifdef MPI_REAL2
      {MPI_REAL2, TypeForm::kReal},
#endif
#ifdef MPI_REAL4
      {MPI_REAL4, TypeForm::kReal},
#endif
#ifdef MPI_REAL8
      {MPI_REAL8, TypeForm::kReal},
#endif
#ifdef MPI_REAL16
      {MPI_REAL16, TypeForm::kReal},
#endif
#ifdef MPI_COMPLEX4
      {MPI_COMPLEX4, TypeForm::kComplex},
#endif
#ifdef MPI_COMPLEX8
      {MPI_COMPLEX8, TypeForm::kComplex},
#endif
#ifdef MPI_COMPLEX16
      {MPI_COMPLEX16, TypeForm::kComplex},
#endif
#ifdef MPI_COMPLEX32
      {MPI_COMPLEX32, TypeForm::kComplex},
#endif
#ifdef MPI_LOGICAL1
      {MPI_LOGICAL1, TypeForm::kLogical},
#endif
#ifdef MPI_LOGICAL2
      {MPI_LOGICAL2, TypeForm::kLogical},
#endif
#ifdef MPI_LOGICAL4
      {MPI_LOGICAL4, TypeForm::kLogical},
#endif
#ifdef MPI_LOGICAL8
      {MPI_LOGICAL8, TypeForm::kLogical},
#endif
  };
  return rows;
}

const std::vector<Row>& rows() {
  static const std::vector<Row>& all = *new std::vector<Row>([] {
    std::vector<Row> rows = c_rows();
    const std::vector<Row> fortran = fortran_rows();
    rows.insert(rows.end(), fortran.begin(), fortran.end());
    return rows;
  }());
  return all;
}

}  // namespace

int find_predefined(MPI_Datatype type) {
  if (type == MPI_Datatype{} || type == g_host.type_null) return -1;
  for (std::size_t i = 0; i < rows().size(); ++i) {
    if (rows()[i].handle == type) return static_cast<int>(i);
  }
  return -1;
}

Predefined predefined(int row) {
  const Row& found = rows()[static_cast<std::size_t>(row)];
  MPI_Count size = 0;
  MPI_Aint lower_bound = 0, extent = 0;
  host().Type_size_x(found.handle, &size);
  host().Type_get_extent(found.handle, &lower_bound, &extent);
  return {found.handle, class_of(found.form), static_cast<std::uint32_t>(extent),
          dtype_of(found.form, size)};
}

const PredefinedOp* find_predefined_op(MPI_Op op) {
  static constexpr std::uint8_t kOrdered = kInteger | kFortranInteger | kFloating;
  static constexpr std::uint8_t kNumbers = kOrdered | kComplex;
  static constexpr std::uint8_t kBits = kInteger | kFortranInteger | kByte;
  static constexpr std::uint8_t kTruths = kInteger | kLogical;  // not Fortran's integers
  static const PredefinedOp all[] = {
      {MPI_SUM, CRL_SUM, kNumbers},    {MPI_PROD, CRL_PROD, kNumbers},
      {MPI_MIN, CRL_MIN, kOrdered},    {MPI_MAX, CRL_MAX, kOrdered},
      {MPI_BAND, CRL_BAND, kBits},     {MPI_BOR, CRL_BOR, kBits},
      {MPI_BXOR, CRL_BXOR, kBits},     {MPI_LAND, CRL_LAND, kTruths},
      {MPI_LOR, CRL_LOR, kTruths},     {MPI_LXOR, CRL_LXOR, kTruths},
      {MPI_MINLOC, CRL_MINLOC, kPair}, {MPI_MAXLOC, CRL_MAXLOC, kPair},
  };
  for (const PredefinedOp& candidate : all) {
    if (candidate.handle == op) return &candidate;
  }
  return nullptr;
}

}  // namespace carillon::shim
