// SPDX-License-Identifier: Apache-2.0
#include "layouts.h"

#include <algorithm>
#include <numeric>

namespace mpi_test {
namespace {

using Number = Basic::Number;
constexpr int kSpread = 24;  // bytes between the parts of a type, at most

Basic plain(const char* name, MPI_Datatype type, Number number, int numbers = 1) {
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(type, &lower_bound, &extent);
  Basic basic{name, type, extent, number, static_cast<int>(extent) / numbers, {}};
  basic.runs.emplace_back(0, static_cast<int>(extent));
  return basic;
}

// Of the x87's ten bytes; what else there is has no value.
Basic long_double(const char* name, MPI_Datatype type, int numbers) {
  Basic basic = plain(name, type, Number::kFloat, numbers);
  basic.runs.clear();
  for (int i = 0; i < numbers; ++i) {
    basic.runs.emplace_back(i * static_cast<int>(sizeof(long double)), 10);
  }
  return basic;
}

template <typename Value>
Basic pair(const char* name, MPI_Datatype type, int value_bytes) {
  struct Pair {
    Value value;
    int index;
  };
  Basic basic = plain(name, type, Number::kNone);
  basic.number_bytes = 0;
  basic.runs = {{0, value_bytes}, {static_cast<int>(offsetof(Pair, index)), 4}};
  return basic;
}

std::vector<Basic> make_basics() {
#define CRL_PLAIN(type, ...) plain(#type, type, __VA_ARGS__)
  std::vector<Basic> all = {
      CRL_PLAIN(MPI_CHAR, Number::kNone),
      CRL_PLAIN(MPI_SIGNED_CHAR, Number::kInteger),
      CRL_PLAIN(MPI_UNSIGNED_CHAR, Number::kInteger),
      CRL_PLAIN(MPI_BYTE, Number::kInteger),
      CRL_PLAIN(MPI_SHORT, Number::kInteger),
      CRL_PLAIN(MPI_UNSIGNED_SHORT, Number::kInteger),
      CRL_PLAIN(MPI_INT, Number::kInteger),
      CRL_PLAIN(MPI_UNSIGNED, Number::kInteger),
      CRL_PLAIN(MPI_LONG, Number::kInteger),
      CRL_PLAIN(MPI_UNSIGNED_LONG, Number::kInteger),
      CRL_PLAIN(MPI_LONG_LONG, Number::kInteger),
      CRL_PLAIN(MPI_UNSIGNED_LONG_LONG, Number::kInteger),
      CRL_PLAIN(MPI_WCHAR, Number::kNone),
      CRL_PLAIN(MPI_INT8_T, Number::kInteger),
      CRL_PLAIN(MPI_INT16_T, Number::kInteger),
      CRL_PLAIN(MPI_INT32_T, Number::kInteger),
      CRL_PLAIN(MPI_INT64_T, Number::kInteger),
      CRL_PLAIN(MPI_UINT8_T, Number::kInteger),
      CRL_PLAIN(MPI_UINT16_T, Number::kInteger),
      CRL_PLAIN(MPI_UINT32_T, Number::kInteger),
      CRL_PLAIN(MPI_UINT64_T, Number::kInteger),
      CRL_PLAIN(MPI_AINT, Number::kInteger),
      CRL_PLAIN(MPI_OFFSET, Number::kInteger),
      CRL_PLAIN(MPI_COUNT, Number::kInteger),
      CRL_PLAIN(MPI_C_BOOL, Number::kBool),
      CRL_PLAIN(MPI_FLOAT, Number::kFloat),
      CRL_PLAIN(MPI_DOUBLE, Number::kFloat),
      CRL_PLAIN(MPI_C_FLOAT_COMPLEX, Number::kFloat, 2),
      CRL_PLAIN(MPI_C_DOUBLE_COMPLEX, Number::kFloat, 2),
      CRL_PLAIN(MPI_INTEGER, Number::kInteger),
      CRL_PLAIN(MPI_REAL, Number::kFloat),
      CRL_PLAIN(MPI_DOUBLE_PRECISION, Number::kFloat),
      CRL_PLAIN(MPI_COMPLEX, Number::kFloat, 2),
      CRL_PLAIN(MPI_LOGICAL, Number::kBool),
      CRL_PLAIN(MPI_CHARACTER, Number::kNone),
      CRL_PLAIN(MPI_2INTEGER, Number::kInteger, 2),
      CRL_PLAIN(MPI_2INT, Number::kInteger, 2),
      CRL_PLAIN(MPI_PACKED, Number::kNone),
      long_double("MPI_LONG_DOUBLE", MPI_LONG_DOUBLE, 1),
      long_double("MPI_C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX, 2),
      pair<float>("MPI_FLOAT_INT", MPI_FLOAT_INT, 4),
      pair<double>("MPI_DOUBLE_INT", MPI_DOUBLE_INT, 8),
      pair<long>("MPI_LONG_INT", MPI_LONG_INT, 8),
      pair<short>("MPI_SHORT_INT", MPI_SHORT_INT, 2),
      pair<long double>("MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT, 10),
  };
#undef CRL_PLAIN
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_f90_integer(9, &type);
  all.push_back(plain("f90_integer", type, Number::kInteger));
  MPI_Type_create_f90_real(15, 307, &type);
  all.push_back(plain("f90_real", type, Number::kFloat));
  MPI_Type_create_f90_complex(6, 37, &type);
  all.push_back(plain("f90_complex", type, Number::kFloat, 2));
  return all;
}

void add(Layout& to, const Layout& part, std::int64_t offset) {
  for (const Entry& entry : part.map) to.map.push_back({entry.basic, entry.offset + offset});
}

void finish(Layout& layout, MPI_Datatype type, const char* name, Layout* part) {
  layout.type = type;
  layout.derived = true;
  layout.text = std::string(name) + "(" + (part != nullptr ? part->text : layout.text) + ")";
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_commit(&layout.type);
  MPI_Type_get_extent(type, &lower_bound, &extent);
  layout.extent = extent;
  if (part != nullptr) free_layout(*part);
}

Layout predefined(int basic) {
  const Basic& found = basics()[static_cast<std::size_t>(basic)];
  return {found.type, false, {{basic, 0}}, found.extent, found.name};
}

Layout make_any(Random& random, const Unit& unit, int units, int depth);

// Parts one behind the other in the signature, but anywhere in memory.
Layout make_struct(Random& random, std::vector<Layout>& parts) {
  std::vector<int> ones(parts.size(), 1);
  std::vector<MPI_Aint> offsets;
  std::vector<MPI_Datatype> types;
  Layout made;
  std::int64_t begin = random.between(-40, 40), end = begin;
  for (const Layout& part : parts) {
    const auto [first, last] = part.span();
    const std::int64_t gap = random.chance(50) ? 0 : random.below(kSpread);
    std::int64_t offset = 0;
    if (random.chance(70)) {
      offset = end + gap - first;
      end = offset + last;
    } else {
      offset = begin - gap - last;
      begin = offset + first;
    }
    offsets.push_back(offset);
    types.push_back(part.type);
    add(made, part, offset);
    made.text += (made.text.empty() ? "" : " ") + part.text;
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(static_cast<int>(parts.size()), ones.data(), offsets.data(), types.data(),
                         &type);
  finish(made, type, "struct", nullptr);
  for (Layout& part : parts) free_layout(part);
  return made;
}

Layout make_leaf(Random& random, const Unit& unit, int units, int depth) {
  std::vector<Layout> parts;
  if (units > 1 && random.chance(50)) {
    for (int left = units; left > 0;) {
      const int some = random.between(1, left);
      parts.push_back(make_any(random, unit, some, depth + 1));
      left -= some;
    }
  } else {
    for (int i = 0; i < units; ++i) {
      for (const int basic : unit) parts.push_back(predefined(basic));
    }
  }
  return make_struct(random, parts);
}

Layout make_vector(Random& random, Layout part, int count) {
  std::vector<int> divisors;
  for (int i = 1; i <= count; ++i) {
    if (count % i == 0) divisors.push_back(i);
  }
  const int block = random.one_of(divisors), blocks = count / block;
  const bool in_bytes = random.chance(50);
  const int away = random.chance(20) ? -1 : 1;
  const int stride = away * (block + random.below(3));
  const std::int64_t bytes =
      in_bytes ? stride * part.extent + random.below(9) * away : stride * part.extent;
  Layout made;
  for (int i = 0; i < blocks; ++i) {
    for (int k = 0; k < block; ++k) add(made, part, i * bytes + k * part.extent);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (in_bytes) {
    MPI_Type_create_hvector(blocks, block, bytes, part.type, &type);
  } else {
    MPI_Type_vector(blocks, block, stride, part.type, &type);
  }
  finish(made, type, in_bytes ? "hvector" : "vector", &part);
  return made;
}

Layout make_indexed(Random& random, Layout part, int count) {
  const bool in_bytes = random.chance(50), fixed = random.chance(40);
  std::vector<int> lengths, places;
  for (int left = count; left > 0; left -= lengths.back()) {
    lengths.push_back(fixed ? 1 : random.between(1, left));
    if (!fixed && random.chance(10)) lengths.back() = 0;
  }
  std::vector<int> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
  }
  places.resize(lengths.size());
  int place = random.between(-3, 3);
  for (const int i : order) {
    const auto at = static_cast<std::size_t>(i);
    places[at] = place;
    place += lengths[at] + random.below(3);
  }
  Layout made;
  std::vector<MPI_Aint> bytes;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    bytes.push_back(places[i] * part.extent);
    for (int k = 0; k < lengths[i]; ++k) add(made, part, bytes[i] + k * part.extent);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const int blocks = static_cast<int>(lengths.size());
  if (fixed && in_bytes) {
    MPI_Type_create_hindexed_block(blocks, 1, bytes.data(), part.type, &type);
  } else if (fixed) {
    MPI_Type_create_indexed_block(blocks, 1, places.data(), part.type, &type);
  } else if (in_bytes) {
    MPI_Type_create_hindexed(blocks, lengths.data(), bytes.data(), part.type, &type);
  } else {
    MPI_Type_indexed(blocks, lengths.data(), places.data(), part.type, &type);
  }
  finish(made, type, fixed ? "indexed_block" : "indexed", &part);
  return made;
}

// The places of `all`, in each dimension of which the process of a darray has some.
struct Grid {
  std::vector<int> sizes;
  std::vector<std::vector<int>> chosen;  // of each dimension
};

void add_grid(Layout& to, const Layout& part, const Grid& grid, bool c_order) {
  const std::size_t dims = grid.sizes.size();
  std::vector<std::size_t> at(dims, 0);
  for (;;) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < dims; ++i) {
      const std::size_t dim = c_order ? i : dims - 1 - i;  // the slowest first
      place = place * grid.sizes[dim] + grid.chosen[dim][at[dim]];
    }
    add(to, part, place * part.extent);
    std::size_t i = 0;
    for (; i < dims; ++i) {
      const std::size_t dim = c_order ? dims - 1 - i : i;  // the fastest first
      if (++at[dim] < grid.chosen[dim].size()) break;
      at[dim] = 0;
    }
    if (i == dims) return;
  }
}

Layout make_array(Random& random, Layout part, int count) {
  const int dims = random.between(1, 3),
            order = random.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  std::vector<int> subsizes(static_cast<std::size_t>(dims), 1);
  subsizes[static_cast<std::size_t>(random.below(dims))] = count;
  for (int prime : {2, 3}) {
    if (count % prime != 0 || !random.chance(60)) continue;
    for (int& size : subsizes) {
      if (size != count) continue;
      size /= prime;
      subsizes[static_cast<std::size_t>(random.below(dims))] *= prime;
      break;
    }
  }
  const bool distributed = random.chance(40);
  Grid grid;
  std::vector<int> starts, kinds, arguments, processes;
  for (const int subsize : subsizes) {
    std::vector<int> chosen(static_cast<std::size_t>(subsize));
    if (distributed) {  // cyclically over two processes, of which this is the first
      for (int i = 0; i < subsize; ++i) chosen[static_cast<std::size_t>(i)] = 2 * i;
      grid.sizes.push_back(2 * subsize - random.below(2));
    } else {
      starts.push_back(random.below(3));
      std::iota(chosen.begin(), chosen.end(), starts.back());
      grid.sizes.push_back(starts.back() + subsize + random.below(3));
    }
    grid.chosen.push_back(std::move(chosen));
    kinds.push_back(MPI_DISTRIBUTE_CYCLIC);
    arguments.push_back(1);
    processes.push_back(2);
  }
  Layout made;
  add_grid(made, part, grid, order == MPI_ORDER_C);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (distributed) {
    MPI_Type_create_darray(1 << dims, 0, dims, grid.sizes.data(), kinds.data(), arguments.data(),
                           processes.data(), order, part.type, &type);
  } else {
    MPI_Type_create_subarray(dims, grid.sizes.data(), subsizes.data(), starts.data(), order,
                             part.type, &type);
  }
  finish(made, type, distributed ? "darray" : "subarray", &part);
  return made;
}

Layout wrap(Random& random, Layout part) {
  Layout made;
  add(made, part, 0);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (random.chance(30)) {
    MPI_Type_dup(part.type, &type);
    finish(made, type, "dup", &part);
    return made;
  }
  const auto [first, last] = part.span();
  std::int64_t extent = last - first + random.below(20);
  if (random.chance(20)) extent = random.between(0, 40);
  MPI_Type_create_resized(part.type, first + random.between(-16, 16), extent, &type);
  finish(made, type, "resized", &part);
  return made;
}

Layout make_any(Random& random, const Unit& unit, int units, int depth) {
  if (units == 1 && unit.size() == 1 && random.chance(depth == 0 ? 20 : 50)) {
    return predefined(unit[0]);
  }
  if (depth > 3) return make_leaf(random, unit, units, depth);
  if (random.chance(25)) return wrap(random, make_any(random, unit, units, depth + 1));
  std::vector<int> divisors;
  for (int i = 1; i <= units; ++i) {
    if (units % i == 0) divisors.push_back(i);
  }
  const int count = random.one_of(divisors);
  if (count == 1 && random.chance(80)) return make_leaf(random, unit, units, depth);
  Layout part = make_any(random, unit, units / count, depth + 1);
  switch (random.below(4)) {
    case 0: return make_vector(random, std::move(part), count);
    case 1: return make_indexed(random, std::move(part), count);
    case 2: return make_array(random, std::move(part), count);
    default: break;
  }
  Layout made;
  for (int i = 0; i < count; ++i) add(made, part, i * part.extent);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(count, part.type, &type);
  finish(made, type, "contiguous", &part);
  return made;
}

}  // namespace

const std::vector<Basic>& basics() {
  static const std::vector<Basic>& all = *new std::vector<Basic>(make_basics());
  return all;
}

std::pair<std::int64_t, std::int64_t> Layout::span() const {
  if (map.empty()) return {0, 0};
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (const Entry& entry : map) {
    first = std::min(first, entry.offset);
    last = std::max(last, entry.offset + basics()[static_cast<std::size_t>(entry.basic)].extent);
  }
  return {first, last};
}

bool overlaps(const Layout& layout, int elements) {
  constexpr int kEnough = 300;  // no type reaches so far
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
  for (int i = 0; i < std::min(elements, kEnough); ++i) {
    for (const Entry& entry : layout.map) {
      const std::int64_t begin = entry.offset + i * layout.extent;
      pieces.emplace_back(begin, begin + basics()[static_cast<std::size_t>(entry.basic)].extent);
    }
  }
  std::sort(pieces.begin(), pieces.end());
  return std::adjacent_find(pieces.begin(), pieces.end(), [](const auto& one, const auto& other) {
           return other.first < one.second;
         }) != pieces.end();
}

// Of some types MPIs make something else, Open MPI 4.1 of some darrays.
bool is_understood(const Layout& layout) {
  constexpr int kElements = 3;
  const auto [first, last] = layout.span();
  const std::int64_t begin = first + std::min<std::int64_t>(0, (kElements - 1) * layout.extent);
  const std::int64_t end = last + std::max<std::int64_t>(0, (kElements - 1) * layout.extent);
  std::vector<std::uint8_t> typed(static_cast<std::size_t>(end - begin));
  for (std::size_t i = 0; i < typed.size(); ++i) typed[i] = pattern(1, 2, i);
  int bytes = 0, position = 0;
  PMPI_Pack_size(kElements, layout.type, MPI_COMM_SELF, &bytes);
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(bytes));
  const auto base =
      reinterpret_cast<std::uintptr_t>(typed.data()) - static_cast<std::uintptr_t>(begin);
  PMPI_Pack(reinterpret_cast<const void*>(base), kElements, layout.type, packed.data(), bytes,
            &position, MPI_COMM_SELF);
  std::size_t next = 0;
  for (int i = 0; i < kElements; ++i) {
    for (const Entry& entry : layout.map) {
      const Basic& basic = basics()[static_cast<std::size_t>(entry.basic)];
      if (basic.runs[0].second != basic.extent) return true;  // which is packed in its own way
      const auto at = typed.begin() + (entry.offset + i * layout.extent - begin);
      if (!std::equal(at, at + basic.extent, packed.begin() + static_cast<std::ptrdiff_t>(next))) {
        return false;
      }
      next += static_cast<std::size_t>(basic.extent);
    }
  }
  return true;
}

Layout make_layout(Random& random, const Unit& unit, int units) {
  for (;;) {
    Layout made = make_any(random, unit, units, 0);
    if (is_understood(made)) return made;
    free_layout(made);
  }
}

Layout make_apart(Random& random, const Unit& unit, int units, int elements) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    Layout made = make_layout(random, unit, units);
    if (!overlaps(made, elements)) return made;
    free_layout(made);
  }
  std::vector<Layout> parts;
  for (int i = 0; i < units; ++i) {
    for (const int basic : unit) parts.push_back(predefined(basic));
  }
  return make_struct(random, parts);
}

Layout at_address(const Layout& layout, const void* address) {
  Layout made = layout;
  MPI_Aint place = 0;
  MPI_Get_address(address, &place);
  const int one = 1;
  MPI_Type_create_hindexed(1, &one, &place, layout.type, &made.type);
  MPI_Type_commit(&made.type);
  made.derived = true;
  return made;
}

void free_layout(Layout& layout) {
  if (layout.derived) MPI_Type_free(&layout.type);
}

}  // namespace mpi_test
