// SPDX-License-Identifier: Apache-2.0
//
// The reductions: every operator on every predefined datatype of C and Fortran for which MPI
// defines it, user operators (commutative or not, on types with gaps), in place, every root. The
// expectation is the MPI's own MPI_Reduce_local, applied in rank order; the values are such that
// any order of a commutative operator gives the same bits.
#include <algorithm>
#include <complex>
#include <cstring>
#include <utility>

#include "support.h"

namespace mpi_test {
namespace {

enum Kind {
  kInteger = 1,
  kFloating = 2,
  kLogical = 4,
  kComplex = 8,
  kByte = 16,
  kPair = 32,
  kFortranInteger = 64,
};

struct Type {
  const char* name;
  MPI_Datatype handle;
  Kind kind;
  // Writes the value of (rank, index): a small number, so that sums and products are exact.
  void (*write)(void* at, int number);
};

struct Op {
  const char* name;
  MPI_Op handle;
  int kinds;
};

template <typename Value>
void write_number(void* at, int number) {
  const Value value = static_cast<Value>(number);
  std::memcpy(at, &value, sizeof(value));
}

template <typename Value>
void write_complex(void* at, int number) {
  const std::complex<Value> value(static_cast<Value>(number % 3), static_cast<Value>(number % 2));
  std::memcpy(at, static_cast<const void*>(&value), sizeof(value));
}

template <typename Value, typename Index>
void write_pair(void* at, int number) {
  struct Pair {
    Value value;
    Index index;
  } pair{};
  pair.value = static_cast<Value>(number);
  pair.index = static_cast<Index>(number * 7 % 5);
  std::memcpy(at, &pair, sizeof(pair));
}

template <typename Value>
void write_truth(void* at, int number) {
  write_number<Value>(at, number % 2);
}

#define TYPE(handle, kind, write) \
  { #handle, handle, kind, write }

std::vector<Type> c_types() {
  return {
      TYPE(MPI_SIGNED_CHAR, kInteger, write_number<signed char>),
      TYPE(MPI_UNSIGNED_CHAR, kInteger, write_number<unsigned char>),
      TYPE(MPI_SHORT, kInteger, write_number<short>),
      TYPE(MPI_UNSIGNED_SHORT, kInteger, write_number<unsigned short>),
      TYPE(MPI_INT, kInteger, write_number<int>),
      TYPE(MPI_UNSIGNED, kInteger, write_number<unsigned>),
      TYPE(MPI_LONG, kInteger, write_number<long>),
      TYPE(MPI_UNSIGNED_LONG, kInteger, write_number<unsigned long>),
      TYPE(MPI_LONG_LONG, kInteger, write_number<long long>),
      TYPE(MPI_UNSIGNED_LONG_LONG, kInteger, write_number<unsigned long long>),
      TYPE(MPI_INT8_T, kInteger, write_number<std::int8_t>),
      TYPE(MPI_UINT8_T, kInteger, write_number<std::uint8_t>),
      TYPE(MPI_INT16_T, kInteger, write_number<std::int16_t>),
      TYPE(MPI_UINT16_T, kInteger, write_number<std::uint16_t>),
      TYPE(MPI_INT32_T, kInteger, write_number<std::int32_t>),
      TYPE(MPI_UINT32_T, kInteger, write_number<std::uint32_t>),
      TYPE(MPI_INT64_T, kInteger, write_number<std::int64_t>),
      TYPE(MPI_UINT64_T, kInteger, write_number<std::uint64_t>),
      TYPE(MPI_AINT, kInteger, write_number<MPI_Aint>),
      TYPE(MPI_OFFSET, kInteger, write_number<MPI_Offset>),
      TYPE(MPI_COUNT, kInteger, write_number<MPI_Count>),
      TYPE(MPI_FLOAT, kFloating, write_number<float>),
      TYPE(MPI_DOUBLE, kFloating, write_number<double>),
      TYPE(MPI_LONG_DOUBLE, kFloating, write_number<long double>),
      TYPE(MPI_C_BOOL, kLogical, write_truth<bool>),
      TYPE(MPI_C_FLOAT_COMPLEX, kComplex, write_complex<float>),
      TYPE(MPI_C_DOUBLE_COMPLEX, kComplex, write_complex<double>),
      TYPE(MPI_C_LONG_DOUBLE_COMPLEX, kComplex, write_complex<long double>),
      TYPE(MPI_BYTE, kByte, write_number<unsigned char>),
  };
}

std::vector<Type> pair_types() {
  return {
      TYPE(MPI_FLOAT_INT, kPair, (write_pair<float, int>)),
      TYPE(MPI_DOUBLE_INT, kPair, (write_pair<double, int>)),
      TYPE(MPI_LONG_INT, kPair, (write_pair<long, int>)),
      TYPE(MPI_2INT, kPair, (write_pair<int, int>)),
      TYPE(MPI_SHORT_INT, kPair, (write_pair<short, int>)),
      TYPE(MPI_LONG_DOUBLE_INT, kPair, (write_pair<long double, int>)),
      TYPE(MPI_2INTEGER, kPair, (write_pair<int, int>)),
      TYPE(MPI_2REAL, kPair, (write_pair<float, float>)),
      TYPE(MPI_2DOUBLE_PRECISION, kPair, (write_pair<double, double>)),
  };
}

std::vector<Type> fortran_types() {
  return {
    TYPE(MPI_INTEGER, kFortranInteger, write_number<int>),
        TYPE(MPI_REAL, kFloating, write_number<float>),
        TYPE(MPI_DOUBLE_PRECISION, kFloating, write_number<double>),
        TYPE(MPI_COMPLEX, kComplex, write_complex<float>),
        TYPE(MPI_DOUBLE_COMPLEX, kComplex, write_complex<double>),
        TYPE(MPI_LOGICAL, kLogical, write_truth<int>),
#ifdef MPI_INTEGER1
        TYPE(MPI_INTEGER1, kFortranInteger, write_number<std::int8_t>),
#endif
#ifdef MPI_INTEGER2
        TYPE(MPI_INTEGER2, kFortranInteger, write_number<std::int16_t>),
#endif
#ifdef MPI_INTEGER4
        TYPE(MPI_INTEGER4, kFortranInteger, write_number<std::int32_t>),
#endif
#ifdef MPI_INTEGER8
        TYPE(MPI_INTEGER8, kFortranInteger, write_number<std::int64_t>),
#endif
#ifdef MPI_REAL4
        TYPE(MPI_REAL4, kFloating, write_number<float>),
#endif
#ifdef MPI_REAL8
        TYPE(MPI_REAL8, kFloating, write_number<double>),
#endif
#ifdef MPI_COMPLEX8
        TYPE(MPI_COMPLEX8, kComplex, write_complex<float>),
#endif
#ifdef MPI_COMPLEX16
        TYPE(MPI_COMPLEX16, kComplex, write_complex<double>),
#endif
#if defined(MPI_CXX_BOOL)
        TYPE(MPI_CXX_BOOL, kLogical, write_truth<bool>),
        TYPE(MPI_CXX_FLOAT_COMPLEX, kComplex, write_complex<float>),
        TYPE(MPI_CXX_DOUBLE_COMPLEX, kComplex, write_complex<double>),
#endif
  };
}

std::vector<Op> ops() {
  return {{"sum", MPI_SUM, kInteger | kFortranInteger | kFloating | kComplex},
          {"prod", MPI_PROD, kInteger | kFortranInteger | kFloating | kComplex},
          {"min", MPI_MIN, kInteger | kFortranInteger | kFloating},
          {"max", MPI_MAX, kInteger | kFortranInteger | kFloating},
          {"band", MPI_BAND, kInteger | kFortranInteger | kByte},
          {"bor", MPI_BOR, kInteger | kFortranInteger | kByte},
          {"bxor", MPI_BXOR, kInteger | kFortranInteger | kByte},
          {"land", MPI_LAND, kInteger | kLogical},
          {"lor", MPI_LOR, kInteger | kLogical},
          {"lxor", MPI_LXOR, kInteger | kLogical},
          {"minloc", MPI_MINLOC, kPair},
          {"maxloc", MPI_MAXLOC, kPair}};
}

// Some types do not exist in some MPIs.
bool exists(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return false;
  int size = 0;
  MPI_Type_size(type, &size);
  return size > 0;
}

std::size_t extent_of(MPI_Datatype type) {
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(type, &lower_bound, &extent);
  return static_cast<std::size_t>(extent);
}

// The values of all elements of a buffer, as a memory image in which padding is zero.
struct Case {
  std::string name;
  MPI_Datatype type;
  MPI_Op op;
  std::size_t extent;
  std::size_t count;  // of one block
  void (*write)(void* at, int number);
  std::vector<std::pair<std::size_t, std::size_t>> gaps = {};  // of an element, from and to
  bool is_complex = false;

  [[nodiscard]] Bytes input(int rank, std::size_t elements) const {
    Bytes buffer(elements * extent);
    for (std::size_t i = 0; i < elements; ++i) {
      const auto number =
          static_cast<int>((static_cast<std::size_t>(rank) * 3 + i * 5 + i / 7) % 4);
      write(buffer.data() + i * extent, number);
    }
    return buffer;
  }
  // In rank order, by the MPI itself.
  [[nodiscard]] Bytes expected(int size, std::size_t elements) const {
    Bytes result = input(size - 1, elements);
    for (int rank = size - 2; rank >= 0; --rank) {
      const Bytes left = input(rank, elements);
      PMPI_Reduce_local(left.data(), result.data(), static_cast<int>(elements), type, op);
    }
    return result;
  }
};

// The bytes no element has: padding, and the end of an x87 number.
std::vector<std::pair<std::size_t, std::size_t>> gaps_of(MPI_Datatype type) {
  if (type == MPI_LONG_DOUBLE) return {{10, 16}};
  if (type == MPI_LONG_DOUBLE_INT) return {{10, 16}, {20, 32}};
  if (type == MPI_C_LONG_DOUBLE_COMPLEX) return {{10, 16}, {26, 32}};
  if (type == MPI_DOUBLE_INT || type == MPI_LONG_INT) return {{12, 16}};
  if (type == MPI_SHORT_INT) return {{2, 4}};
  return {};
}

// A zero may have either sign: which, depends on the order of complex products.
void drop_signs_of_zeros(const Case& test, Bytes& bytes) {
  const bool longest = test.type == MPI_C_LONG_DOUBLE_COMPLEX;
  const std::size_t component = test.extent / 2, significant = longest ? 10 : component;
  for (std::size_t at = 0; at + component <= bytes.size(); at += component) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto last = begin + static_cast<std::ptrdiff_t>(significant) - 1;
    if (*last == 0x80 && std::all_of(begin, last, [](auto byte) { return byte == 0; })) *last = 0;
  }
}

bool equal(const Case& test, Bytes left, Bytes right) {
  if (test.is_complex) {
    drop_signs_of_zeros(test, left);
    drop_signs_of_zeros(test, right);
  }
  Bytes mask(test.extent, 0xff);
  for (const auto& gaps : {gaps_of(test.type), test.gaps}) {
    for (const auto& [from, to] : gaps) std::fill(&mask[from], &mask[0] + to, 0);
  }
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (((left[i] ^ right[i]) & mask[i % test.extent]) != 0) return false;
  }
  return true;
}

enum class Place { kApart, kAllInPlace, kSomeInPlace };

void allreduce(const Case& test, Place place, MustTake& must) {
  const bool here =
      place == Place::kAllInPlace || (place == Place::kSomeInPlace && world_rank() % 2 == 0);
  const Bytes in = test.input(world_rank(), test.count);
  Bytes out = here ? in : Bytes(in.size(), 0xee);
  MPI_Allreduce(here ? MPI_IN_PLACE : in.data(), out.data(), static_cast<int>(test.count),
                test.type, test.op, MPI_COMM_WORLD);
  must.expect();
  check(equal(test, out, test.expected(world_size(), test.count)),
        "allreduce " + test.name + (here ? " in place" : ""));
}

void reduce(const Case& test, bool in_place, int root, MustTake& must) {
  const bool here = in_place && world_rank() == root;
  const Bytes in = test.input(world_rank(), test.count);
  Bytes out = here ? in : Bytes(in.size(), 0xee);
  MPI_Reduce(here ? MPI_IN_PLACE : in.data(), world_rank() == root ? out.data() : nullptr,
             static_cast<int>(test.count), test.type, test.op, root, MPI_COMM_WORLD);
  must.expect();
  if (world_rank() != root) return;
  check(equal(test, out, test.expected(world_size(), test.count)),
        "reduce " + test.name + " to " + std::to_string(root) + (here ? " in place" : ""));
}

void reduce_scatter_block(const Case& test, bool in_place, MustTake& must) {
  const std::size_t elements = test.count * static_cast<std::size_t>(world_size());
  const Bytes in = test.input(world_rank(), elements);
  Bytes out = in_place ? in : Bytes(test.count * test.extent, 0xee);
  MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : in.data(), out.data(),
                           static_cast<int>(test.count), test.type, test.op, MPI_COMM_WORLD);
  must.expect();
  const Bytes all = test.expected(world_size(), elements);
  const std::size_t block = test.count * test.extent;
  const auto begin =
      all.begin() + static_cast<std::ptrdiff_t>(block * static_cast<std::size_t>(world_rank()));
  check(equal(test, out, Bytes(begin, begin + static_cast<std::ptrdiff_t>(block))),
        "reduce_scatter_block " + test.name + (in_place ? " in place" : ""));
}

void all_collectives(const Case& test, bool every_root) {
  {
    MustTake must("allreduce");
    for (const Place place : {Place::kApart, Place::kAllInPlace, Place::kSomeInPlace}) {
      allreduce(test, place, must);
    }
  }
  {
    MustTake must("reduce");
    for (int root = 0; root < world_size(); ++root) {
      if (!every_root && root != static_cast<int>(test.count) % world_size()) continue;
      reduce(test, false, root, must);
      reduce(test, true, root, must);
    }
  }
  MustTake must("reduce_scatter_block");
  reduce_scatter_block(test, false, must);
  reduce_scatter_block(test, true, must);
}

void test_predefined() {
  std::vector<Type> types = c_types();
  for (const auto& more : {pair_types(), fortran_types()}) {
    types.insert(types.end(), more.begin(), more.end());
  }
  for (const Type& type : types) {
    if (!exists(type.handle)) continue;
    for (const Op& op : ops()) {
      if ((op.kinds & type.kind) == 0) continue;
      for (const std::size_t count : {1, 3, 17, 260}) {
        all_collectives({std::string(op.name) + " of " + std::to_string(count) + " " + type.name,
                         type.handle,
                         op.handle,
                         extent_of(type.handle),
                         count,
                         type.write,
                         {},
                         type.kind == kComplex},
                        type.handle == MPI_INT);
      }
    }
  }
}

void test_sizes() {
  for (const std::size_t count : {0, 1023, 8192, 8193, 40000, 300001}) {
    if (count > 100000 && world_size() > 4) continue;
    all_collectives({"sum of " + std::to_string(count) + " doubles", MPI_DOUBLE, MPI_SUM, 8, count,
                     write_number<double>},
                    count < 10000);
  }
}

// ---- User operators ----------------------------------------------------------------------------

// x -> a*x + b, composed: associative, not commutative. All in 32 bits, so exact.
struct Affine {
  std::uint32_t a, b;
};

void compose(void* left, void* right, int* count, MPI_Datatype* /*type*/) {
  const auto* const in = static_cast<const Affine*>(left);
  auto* const inout = static_cast<Affine*>(right);
  for (int i = 0; i < *count; ++i) {
    inout[i] = {in[i].a * inout[i].a, in[i].a * inout[i].b + in[i].b};
  }
}

void write_affine(void* at, int number) {
  const Affine value{static_cast<std::uint32_t>(number + 2), static_cast<std::uint32_t>(number)};
  std::memcpy(at, &value, sizeof(value));
}

// The same numbers with gaps: {a, gap, b, gap}, 16 bytes apart.
struct Spread {
  std::uint32_t a, gap, b, more_gap;
};

void compose_spread(void* left, void* right, int* count, MPI_Datatype* /*type*/) {
  const auto* const in = static_cast<const Spread*>(left);
  auto* const inout = static_cast<Spread*>(right);
  for (int i = 0; i < *count; ++i) {
    inout[i].b = in[i].a * inout[i].b + in[i].b;
    inout[i].a *= in[i].a;
  }
}

void write_spread(void* at, int number) {
  const Spread value{static_cast<std::uint32_t>(number + 2), 0, static_cast<std::uint32_t>(number),
                     0};
  std::memcpy(at, &value, sizeof(value));
}

void add_ints(void* left, void* right, int* count, MPI_Datatype* /*type*/) {
  const auto* const in = static_cast<const int*>(left);
  auto* const inout = static_cast<int*>(right);
  for (int i = 0; i < *count; ++i) inout[i] += in[i];
}

// Associative, not commutative: the lowest rank wins.
void keep_left(void* left, void* right, int* count, MPI_Datatype* /*type*/) {
  std::memcpy(right, left, static_cast<std::size_t>(*count) * sizeof(int));
}

void test_user_ops() {
  MPI_Datatype affine{}, spread_element{}, spread{};
  MPI_Type_contiguous(2, MPI_UINT32_T, &affine);
  MPI_Type_commit(&affine);
  MPI_Type_vector(2, 1, 2, MPI_UINT32_T, &spread_element);
  MPI_Type_create_resized(spread_element, 0, sizeof(Spread), &spread);
  MPI_Type_commit(&spread);
  MPI_Type_free(&spread_element);
  MPI_Op composed{}, composed_spread{}, added{};
  MPI_Op_create(compose, 0, &composed);
  MPI_Op_create(compose_spread, 0, &composed_spread);
  MPI_Op_create(add_ints, 1, &added);
  for (const std::size_t count : {1, 4, 33, 2000, 20000}) {
    const std::string of = " of " + std::to_string(count);
    all_collectives({"composition" + of, affine, composed, sizeof(Affine), count, write_affine},
                    true);
    all_collectives({"spread composition" + of,
                     spread,
                     composed_spread,
                     sizeof(Spread),
                     count,
                     write_spread,
                     {{4, 8}, {12, 16}}},
                    true);
    all_collectives({"own sum" + of, MPI_INT, added, 4, count, write_number<int>}, true);
  }
  MPI_Op_free(&composed);
  MPI_Op_free(&composed_spread);
  MPI_Op_free(&added);
  MPI_Type_free(&affine);
  MPI_Type_free(&spread);
}

// An element that does not fit in a slot is one that only the MPI can reduce.
void test_large_elements() {
  constexpr int kInts = 30000, kCount = 3;
  MPI_Datatype type{};
  MPI_Op op{};
  MPI_Type_contiguous(kInts, MPI_INT, &type);
  MPI_Type_commit(&type);
  const auto add = [](void* left, void* right, int* count, MPI_Datatype* any) {
    int ints = *count * kInts;
    add_ints(left, right, &ints, any);
  };
  MPI_Op_create(add, 1, &op);
  std::vector<int> in(kInts * kCount), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = world_rank() + static_cast<int>(i);
  const std::uint64_t left_before = left("allreduce");
  const bool in_place = world_rank() == world_size() - 1;
  if (in_place) out = in;
  MPI_Allreduce(in_place ? MPI_IN_PLACE : in.data(), out.data(), kCount, type, op, MPI_COMM_WORLD);
  check(left("allreduce") == left_before + 1, "allreduce of large elements is left to the MPI");
  const int ranks = world_size();
  bool right = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    right = right && out[i] == ranks * (ranks - 1) / 2 + ranks * static_cast<int>(i);
  }
  check(right, "allreduce of large elements");
  all_collectives({"a small sum afterwards", MPI_INT, MPI_SUM, 4, 5, write_number<int>}, false);
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

// Operators and types that come and go: a handle that comes back must not mean the old one.
void test_reused_handles() {
  for (int i = 0; i < 40; ++i) {
    MPI_Op op{};
    const bool adds = i % 2 == 0;
    MPI_Op_create(adds ? add_ints : keep_left, adds ? 1 : 0, &op);
    all_collectives(
        {adds ? "add, again" : "keep left, again", MPI_INT, op, 4, 5, write_number<int>}, false);
    MPI_Op_free(&op);
    MPI_Datatype type{};
    MPI_Type_vector(2, 1 + i % 3, 5 + i % 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    TypedBuffer buffer({"", type, 1}, 1), expected({"", type, 1}, 1);
    const Bytes block = pattern_block(i, 0, static_cast<std::size_t>(packed_bytes({"", type, 1})));
    expected.put(0, block);
    if (world_rank() == 0) buffer.put(0, block);
    MPI_Bcast(buffer.address(), 1, type, 0, MPI_COMM_WORLD);
    check(buffer.raw() == expected.raw(), "bcast of a type whose handle may have come back");
    MPI_Type_free(&type);
  }
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  mpi_test::test_predefined();
  mpi_test::test_sizes();
  mpi_test::test_user_ops();
  mpi_test::test_large_elements();
  mpi_test::test_reused_handles();
  return mpi_test::end();
}
