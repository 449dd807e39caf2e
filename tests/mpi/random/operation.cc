// SPDX-License-Identifier: Apache-2.0
#include "operation.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace mpi_test {
namespace {

constexpr int kMostBytes = 1 << 17;

// The datatypes that the program's own operators may be given.
std::map<MPI_Datatype, Layout>& reduced_types() {
  static auto& all = *new std::map<MPI_Datatype, Layout>();
  return all;
}

template <typename Combine>
void for_each_byte(const void* in, void* out, std::int64_t elements, MPI_Datatype type,
                   Combine combine) {
  const auto found = reduced_types().find(type);
  if (found == reduced_types().end()) {
    fail("an operator was given a datatype that is not the call's");
    return;
  }
  const Layout& layout = found->second;
  for (std::int64_t i = 0; i < elements; ++i) {
    for (const Entry& entry : layout.map) {
      for (const auto& [offset, bytes] : basics()[static_cast<std::size_t>(entry.basic)].runs) {
        const std::int64_t at = i * layout.extent + entry.offset + offset;
        for (int k = 0; k < bytes; ++k) {
          auto& right = static_cast<std::uint8_t*>(out)[at + k];
          right = combine(static_cast<const std::uint8_t*>(in)[at + k], right);
        }
      }
    }
  }
}

std::uint8_t sum(std::uint8_t left, std::uint8_t right) {
  return static_cast<std::uint8_t>(left + right);
}
// x -> a x + b, modulo 16, one behind the other: not commutative.
std::uint8_t chain(std::uint8_t left, std::uint8_t right) {
  const int a = left >> 4, b = left & 15, c = right >> 4, d = right & 15;
  return static_cast<std::uint8_t>(((a * c) & 15) << 4 | ((a * d + b) & 15));
}

void sum_op(void* in, void* out, int* count, MPI_Datatype* type) {
  for_each_byte(in, out, *count, *type, sum);
}
void chain_op(void* in, void* out, int* count, MPI_Datatype* type) {
  for_each_byte(in, out, *count, *type, chain);
}
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
void chain_op_c(void* in, void* out, MPI_Count* count, MPI_Datatype* type) {
  for_each_byte(in, out, *count, *type, chain);
}
#endif

// The same, without gaps.
Layout pack_layout(const Layout& layout) {
  Layout made;
  for (const Entry& entry : layout.map) {
    made.map.push_back({entry.basic, made.extent});
    made.extent += basics()[static_cast<std::size_t>(entry.basic)].extent;
  }
  made.derived = true;
  MPI_Type_contiguous(static_cast<int>(made.extent), MPI_BYTE, &made.type);
  MPI_Type_commit(&made.type);
  return made;
}

std::vector<MPI_Op> g_own_ops;
std::vector<std::vector<char>> g_accepted;

void refuse(MPI_Comm* /*comm*/, int* /*code*/, ...) {}

}  // namespace

const MPI_Op kPredefinedOps[12] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_LAND,   MPI_LOR,
                                   MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};

void make_operators() {
  g_own_ops.resize(3);
  MPI_Op_create(sum_op, 1, &g_own_ops[0]);
  MPI_Op_create(sum_op, 0, &g_own_ops[1]);
  MPI_Op_create(chain_op, 0, &g_own_ops[2]);
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
  g_own_ops.emplace_back();
  MPI_Op_create_c(chain_op_c, 0, &g_own_ops[3]);
#endif
  MPI_Errhandler handler{};
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Comm_create_errhandler(refuse, &handler);
  PMPI_Comm_dup(MPI_COMM_SELF, &alone);
  MPI_Comm_set_errhandler(alone, handler);
  alignas(16) std::uint8_t in[64] = {}, out[64] = {};
  for (const MPI_Op op : kPredefinedOps) {
    g_accepted.emplace_back();
    for (const Basic& basic : basics()) {
      g_accepted.back().push_back(
          PMPI_Allreduce(in, out, 1, basic.type, op, alone) == MPI_SUCCESS ? 1 : 0);
    }
  }
  PMPI_Comm_free(&alone);
  MPI_Errhandler_free(&handler);
}

void free_operators() {
  for (MPI_Op& op : g_own_ops) MPI_Op_free(&op);
}

bool accepts(int op, int basic) {
  return g_accepted[static_cast<std::size_t>(op)][static_cast<std::size_t>(basic)] != 0;
}

Operation::Operation(const Group& group, Kind kind, std::uint64_t seed, std::uint64_t own_seed,
                     bool exact)
    : group_(group),
      kind_(kind),
      shared_(seed),
      own_(own_seed),
      table_(mix(seed, 1)),
      exact_(exact) {
  const int root = shared_.below(group_.size);
  wide_ = shared_.chance(30), in_place_ = shared_.chance(25);
  choose_unit();
  factor_ = shared_.one_of(std::vector<int>{1, 1, 2, 2, 4, 6});
  most_ = shared_.one_of(std::vector<int>{1, 2, 4, 4, 9, 2000});
  while (most_ > 2 && unit_bytes_ * factor_ * most_ * group_.size > kMostBytes) most_ /= 2;
  for (Arguments& arguments : arguments_) {
    arguments.comm = group_.comm;
    arguments.root = root;
  }
  if (is_reduction(kind_)) {
    set_reduction();
  } else if (is_of_neighbours(kind_)) {
    set_neighbours();
  } else if (kind_ != Kind::kBarrier) {
    const bool lists = kind_ == Kind::kAllgatherv || kind_ == Kind::kGatherv ||
                       kind_ == Kind::kScatterv || kind_ == Kind::kAlltoallv ||
                       kind_ == Kind::kAlltoallw;
    lists ? set_lists() : set_blocks();
  }
  place();
}

Operation::~Operation() {
  free_types();
  for (const Arguments& arguments : arguments_) reduced_types().erase(arguments.in.type);
}

void Operation::free_types() {
  for (Layout& layout : layouts_) free_layout(layout);
  for (Layout& layout : bottoms_) free_layout(layout);
  layouts_.clear();
  bottoms_.clear();
}

bool Operation::same() const {
  std::int64_t defined = INT64_MAX;
  if (kind_ == Kind::kExscan && group_.rank == 0 && !in_place_) defined = 0;
  if (!repeats()) {
    defined = kind_ == Kind::kReduce_scatter_block
                  ? arguments_[0].in.count
                  : arguments_[0].in.counts[static_cast<std::size_t>(group_.rank)];
  }
  return in_.same(INT64_MAX) && out_.same(defined);
}

std::string Operation::text() const {
  const Arguments& a = arguments_[0];
  std::string text =
      std::string(name_of(kind_)) + (wide_ ? "_c" : "") + " on " + group_.name + " of " +
      std::to_string(group_.size) + ", root " + std::to_string(a.root) +
      (in_place_ ? ", in place" : "") + ", op " +
      std::to_string(std::find(std::begin(kPredefinedOps), std::end(kPredefinedOps), a.op) -
                     kPredefinedOps) +
      ", counts " + std::to_string(a.in.count) + " " + std::to_string(a.out.count);
  for (const Layout& layout : layouts_) text += ", " + layout.text.substr(0, 300);
  return text;
}

void Operation::choose_unit() {
  const int kinds = static_cast<int>(basics().size());
  const int length = shared_.chance(60) ? 1 : shared_.between(2, 4);
  for (int i = 0; i < length; ++i) {
    unit_.push_back(shared_.below(kinds));
    unit_bytes_ += static_cast<int>(basics()[static_cast<std::size_t>(unit_.back())].extent);
  }
}

// What all ranks have: a predefined operator with its type, or one of the program's with any.
void Operation::choose_operator() {
  MPI_Op op = MPI_OP_NULL;
  if (shared_.chance(55)) {
    int basic = 0, index = 0;
    do {
      index = shared_.below(12);
      basic = shared_.below(static_cast<int>(basics().size()));
    } while (!accepts(index, basic) || (kPredefinedOps[index] == MPI_PROD &&
                                        basics()[static_cast<std::size_t>(basic)].extent == 1));
    op = kPredefinedOps[index];
    unit_ = {basic};
    Layout found{basics()[static_cast<std::size_t>(basic)].type,
                 false,
                 {{basic, 0}},
                 basics()[static_cast<std::size_t>(basic)].extent,
                 basics()[static_cast<std::size_t>(basic)].name};
    layouts_.push_back(found);
  } else {
    op = shared_.one_of(g_own_ops);
    layouts_.push_back(make_apart(shared_, unit_, factor_, 4 * most_ * group_.size));
    if (!exact_) layouts_.push_back(pack_layout(layouts_[0]));
    for (const Layout& one : layouts_) reduced_types()[one.type] = one;
  }
  for (Arguments& arguments : arguments_) arguments.op = op;
}

Layout Operation::layout(Of of, int units, int elements) {
  Layout made = of == Of::kAny && own_.chance(30) ? make_layout(own_, unit_, units)
                                                  : make_apart(own_, unit_, units, elements);
  layouts_.push_back(made);
  return made;
}

void Operation::set_block(Side Arguments::*side, Memory& memory, Of of, int units, int blocks) {
  std::vector<int> divisors = {1};
  for (int i = 2; i <= 6 && units > 0; ++i) {
    if (units % i == 0) divisors.push_back(i);
  }
  const int per_element = own_.one_of(divisors), count = units / per_element;
  const Layout used = layout(of, per_element, count * blocks);
  memory.add(used, 0, count * blocks);
  for (Arguments& arguments : arguments_) {
    (arguments.*side).count = count;
    (arguments.*side).type = used.type;
  }
  if (exact_) return;
  Side& theirs = arguments(By::kHost).*side;
  theirs.count = units * unit_bytes_;
  theirs.type = MPI_BYTE;
}

// Blocks of one type, in any order, with gaps.
void Operation::set_list(Side Arguments::*side, Memory& memory, Of of,
                         const std::vector<int>& units) {
  const int per_element = own_.chance(50) ? factor_ : 1;
  const int blocks = static_cast<int>(units.size());
  const int all = std::accumulate(units.begin(), units.end(), 0) / per_element + 2 * blocks;
  const Layout used = layout(of, per_element, all);
  std::vector<int> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  if (own_.chance(50)) std::reverse(order.begin(), order.end());
  if (own_.chance(50) && blocks > 1)
    std::swap(order[0], order[static_cast<std::size_t>(own_.below(blocks))]);
  Side made;
  made.type = used.type;
  made.counts.resize(units.size());
  made.offsets.resize(units.size());
  Side packed = made;
  packed.type = MPI_BYTE;
  int place = own_.chance(30) ? own_.between(-5, 5) : 0, bytes = 0;
  for (const int i : order) {
    const auto at = static_cast<std::size_t>(i);
    made.counts[at] = units[at] / per_element;
    made.offsets[at] = place;
    memory.add(used, place * used.extent, made.counts[at]);
    place += made.counts[at] + (own_.chance(30) ? own_.below(3) : 0);
    packed.counts[at] = units[at] * unit_bytes_;
    packed.offsets[at] = bytes;
    bytes += packed.counts[at];
  }
  arguments(By::kCarillon).*side = made;
  arguments(By::kHost).*side = exact_ ? made : packed;
}

// Blocks of a type each, whose displacements are in bytes.
void Operation::set_typed(Side Arguments::*side, Memory& memory, Of of,
                          const std::vector<int>& units) {
  Side made, packed;
  std::int64_t begin = 0, end = 0;
  int bytes = 0;
  for (const int of_block : units) {
    const int per_element = own_.chance(50) ? factor_ : 1;
    const int count = of_block / per_element;
    const Layout used = layout(of, per_element, count);
    const auto [first, last] = used.span();
    const std::int64_t step = (count - 1) * used.extent;
    const std::int64_t lowest = first + std::min<std::int64_t>(0, step);
    const std::int64_t highest = last + std::max<std::int64_t>(0, step);
    std::int64_t offset = 0;
    if (count > 0 && own_.chance(60)) {
      offset = end - lowest + own_.below(9);
      end = offset + highest;
    } else if (count > 0) {
      offset = begin - highest - own_.below(9);
      begin = offset + lowest;
    }
    made.counts.push_back(count);
    made.offsets.push_back(static_cast<int>(offset));
    made.types.push_back(used.type);
    memory.add(used, offset, count);
    packed.counts.push_back(of_block * unit_bytes_);
    packed.offsets.push_back(bytes);
    packed.types.push_back(MPI_BYTE);
    bytes += packed.counts.back();
  }
  arguments(By::kCarillon).*side = made;
  arguments(By::kHost).*side = exact_ ? made : packed;
}

// What does not count on this rank.
void Operation::set_garbage(Side Arguments::*side) {
  const bool nothing = own_.chance(50);
  for (Arguments& arguments : arguments_) {
    Side& it = arguments.*side;
    const auto blocks = static_cast<std::size_t>(group_.size);
    it.type = nothing ? MPI_DATATYPE_NULL : MPI_INT;
    it.count = nothing ? -1 : 1;
    it.no_lists = nothing;
    it.counts.assign(blocks, nothing ? -1 : 1);
    it.offsets.assign(blocks, 0);
    it.types.assign(blocks, it.type);
  }
}

// Such displacements are addresses.
void Operation::put_at_bottom(Side Arguments::*side, const Memory& memory) {
  for (const By by : kBoth) {
    if (by == By::kHost && !exact_) return;
    Side& it = arguments(by).*side;
    if (it.buffer == MPI_IN_PLACE || !it.types.empty() || it.type == MPI_DATATYPE_NULL) return;
    Layout plain;
    plain.type = it.type;
    const Layout moved = at_address(plain, memory.address(by));
    bottoms_.push_back(moved);
    it.type = moved.type;
    it.buffer = MPI_BOTTOM;
  }
}

int Operation::units_between(int from, int to) const {
  const bool symmetric = in_place_ && (kind_ == Kind::kAlltoallv || kind_ == Kind::kAlltoallw);
  if (symmetric && from > to) std::swap(from, to);
  const std::uint64_t any =
      mix(table_, static_cast<std::uint64_t>(from) + 1, static_cast<std::uint64_t>(to) + 1);
  return factor_ * static_cast<int>(any % static_cast<std::uint64_t>(most_ + 1));
}

std::vector<int> Operation::units_from(const std::vector<int>& ranks) const {
  const bool own = kind_ == Kind::kAllgatherv || kind_ == Kind::kGatherv ||
                   kind_ == Kind::kNeighbor_allgatherv;  // the same for all
  std::vector<int> units;
  for (const int rank : ranks) units.push_back(units_between(rank, own ? 0 : group_.rank));
  return units;
}

std::vector<int> Operation::units_to(const std::vector<int>& ranks) const {
  std::vector<int> units;
  for (const int rank : ranks) {
    units.push_back(units_between(kind_ == Kind::kScatterv ? 0 : group_.rank, rank));
  }
  return units;
}

void Operation::set_reduction() {
  choose_operator();
  const Layout used = layouts_[0];
  const int count = shared_.below(most_ + 1), size = group_.size;
  std::vector<int> counts;
  int in = count, out = count;
  if (kind_ == Kind::kReduce_scatter_block) in = count * size;
  if (kind_ == Kind::kReduce_scatter) {
    for (int i = 0; i < size; ++i) counts.push_back(units_between(0, i) / factor_);
    in = std::accumulate(counts.begin(), counts.end(), 0);
    out = counts[static_cast<std::size_t>(group_.rank)];
  }
  const bool has_out = kind_ != Kind::kReduce || group_.rank == arguments_[0].root;
  if (in_place_ && has_out) {
    out_.add(used, 0, std::max(in, out));
  } else {
    in_.add(used, 0, in);
    if (has_out) out_.add(used, 0, out);
  }
  for (Arguments& arguments : arguments_) {
    arguments.in.count = count;
    arguments.in.counts = counts;
    arguments.in.type = used.type;
  }
  arguments(By::kHost).in.type = layouts_.back().type;
}

void Operation::set_blocks() {
  const int rank = group_.rank, size = group_.size;
  const bool is_root = rank == arguments_[0].root;
  const int units = factor_ * shared_.below(most_ + 1);
  const bool scatters = kind_ == Kind::kScatter;
  if (kind_ == Kind::kBcast) {
    set_block(&Arguments::out, out_, is_root ? Of::kAny : Of::kApart, units, 1);
    return;
  }
  const int in_blocks = scatters || kind_ == Kind::kAlltoall ? size : 1;
  const int out_blocks = scatters ? 1 : size;
  const bool in_counts = !scatters || is_root, out_counts = kind_ != Kind::kGather || is_root;
  const bool in_is_place = in_place_ && out_counts && !scatters;
  const bool out_is_place = in_place_ && is_root && scatters;
  if (in_counts && !in_is_place) {
    set_block(&Arguments::in, in_, Of::kAny, units, in_blocks);
  } else {
    set_garbage(&Arguments::in);
  }
  if (out_counts && !out_is_place) {
    set_block(&Arguments::out, out_, Of::kApart, units, out_blocks);
  } else {
    set_garbage(&Arguments::out);
  }
}

void Operation::set_lists() {
  const int rank = group_.rank;
  const bool is_root = rank == arguments_[0].root, scatters = kind_ == Kind::kScatterv;
  std::vector<int> ranks(static_cast<std::size_t>(group_.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto set = kind_ == Kind::kAlltoallw ? &Operation::set_typed : &Operation::set_list;
  const bool all = kind_ == Kind::kAlltoallv || kind_ == Kind::kAlltoallw;
  if (scatters ? !is_root : in_place_ && (all || kind_ == Kind::kAllgatherv || is_root)) {
    set_garbage(&Arguments::in);
  } else if (all || scatters) {
    (this->*set)(&Arguments::in, in_, Of::kAny, units_to(ranks));
  } else {
    set_block(&Arguments::in, in_, Of::kAny, units_between(rank, 0), 1);
  }
  if (scatters ? in_place_ && is_root : kind_ == Kind::kGatherv && !is_root) {
    set_garbage(&Arguments::out);
  } else if (scatters) {
    set_block(&Arguments::out, out_, Of::kApart, units_between(0, rank), 1);
  } else {
    (this->*set)(&Arguments::out, out_, Of::kApart, units_from(ranks));
  }
}

void Operation::set_neighbours() {
  const std::vector<int>& from = group_.sources;
  const std::vector<int>& to = group_.destinations;
  const int units = factor_ * shared_.below(most_ + 1);
  in_place_ = false;
  switch (kind_) {
    case Kind::kNeighbor_allgather:
    case Kind::kNeighbor_alltoall: {
      const bool one = kind_ == Kind::kNeighbor_allgather;
      set_block(&Arguments::in, in_, Of::kAny, units, one ? 1 : static_cast<int>(to.size()));
      set_block(&Arguments::out, out_, Of::kApart, units, static_cast<int>(from.size()));
      break;
    }
    case Kind::kNeighbor_allgatherv:
      set_block(&Arguments::in, in_, Of::kAny, units_between(group_.rank, 0), 1);
      set_list(&Arguments::out, out_, Of::kApart, units_from(from));
      break;
    case Kind::kNeighbor_alltoallv:
      set_list(&Arguments::in, in_, Of::kAny, units_to(to));
      set_list(&Arguments::out, out_, Of::kApart, units_from(from));
      break;
    default:
      set_typed(&Arguments::in, in_, Of::kAny, units_to(to));
      set_typed(&Arguments::out, out_, Of::kApart, units_from(from));
  }
}

void Operation::place() {
  const MPI_Op op = arguments_[0].op;
  const bool tiny = is_reduction(kind_) &&
                    std::find(kPredefinedOps, kPredefinedOps + 4, op) != kPredefinedOps + 4;
  in_.fill(own_, exact_, tiny);
  out_.fill(own_, exact_, tiny);
  const bool is_root = group_.rank == arguments_[0].root;
  for (const By by : kBoth) {
    Arguments& a = arguments(by);
    a.in.buffer = in_.address(by);
    a.out.buffer = out_.address(by);
    if (!in_place_ || kind_ == Kind::kBcast || kind_ == Kind::kBarrier) continue;
    const bool scatters = kind_ == Kind::kScatter || kind_ == Kind::kScatterv;
    const bool by_root =
        kind_ == Kind::kReduce || kind_ == Kind::kGather || kind_ == Kind::kGatherv;
    if (scatters && is_root) a.out.buffer = MPI_IN_PLACE;
    if (!scatters && (!by_root || is_root)) a.in.buffer = MPI_IN_PLACE;
  }
  if (!is_reduction(kind_) && own_.chance(10)) put_at_bottom(&Arguments::in, in_);
  if (!is_reduction(kind_) && own_.chance(10)) put_at_bottom(&Arguments::out, out_);
  for (Arguments& a : arguments_) {
    for (Side* const side : {&a.in, &a.out}) {
      side->wide_counts.assign(side->counts.begin(), side->counts.end());
      side->wide_offsets.assign(side->offsets.begin(), side->offsets.end());
    }
  }
}

}  // namespace mpi_test
