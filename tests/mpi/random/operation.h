// SPDX-License-Identifier: Apache-2.0
//
// A random collective on a communicator, with buffers for carillon and others for the MPI alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calls.h"
#include "layouts.h"
#include "rng.h"

namespace mpi_test {

/// A communicator that this process is in.
struct Group {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string name;
  int rank = 0, size = 1;
  bool has_topology = false;
  std::vector<int> sources, destinations;  // of the topology
  bool twice = false;                      // somebody is a neighbour twice
};
Group look_at_group(MPI_Comm comm, const std::string& name);

/// One program's buffer: of the call by carillon as it is, and of that by the MPI packed, so that
/// what an MPI makes of its datatypes does not matter. Or, if it is `exact`, twice the same.
class Memory {
 public:
  void add(const Layout& layout, std::int64_t offset, int elements);
  void fill(Random& random, bool exact, bool tiny);
  [[nodiscard]] void* address(By by) const;
  /// Whether both have come to the same, but for bytes that mean nothing. Of the elements
  /// only the first `defined` ones count.
  [[nodiscard]] bool same(std::int64_t defined) const;

 private:
  struct Part {
    Layout layout;
    std::int64_t offset = 0;
    int elements = 0;
  };
  using Bytes = std::vector<std::uint8_t>;
  [[nodiscard]] std::uint8_t* base(const Bytes& raw) const;
  template <typename Visit>
  void for_each_entry(Visit visit) const;  // visit(offset, what it is)

  std::vector<Part> parts_;
  std::int64_t begin_ = 0, end_ = 0;
  bool exact_ = false;
  Bytes ours_, theirs_, packed_;
};

class Operation {
 public:
  /// `seed` is the same on all ranks of the group, `own_seed` is not.
  /// `exact`: the MPI gets the same datatypes.
  Operation(const Group& group, Kind kind, std::uint64_t seed, std::uint64_t own_seed,
            bool exact = false);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  int call(By by, CallForm form, MPI_Request* request) {
    return mpi_test::call(by, form, kind_, wide_, arguments_[static_cast<int>(by)], request);
  }
  [[nodiscard]] Arguments& arguments(By by) { return arguments_[static_cast<int>(by)]; }
  [[nodiscard]] Kind kind() const { return kind_; }
  /// Its datatypes, which may still be in use.
  void free_types();
  [[nodiscard]] bool same() const;
  /// Whether it may be called again: what a reduce_scatter leaves behind its block in place is
  /// anything.
  [[nodiscard]] bool repeats() const {
    return !in_place_ || (kind_ != Kind::kReduce_scatter && kind_ != Kind::kReduce_scatter_block);
  }
  [[nodiscard]] std::string text() const;

 private:
  enum class Of : std::uint8_t { kAny, kApart };  // elements that may overlap, or not

  Layout layout(Of of, int units, int elements);
  void set_block(Side Arguments::*side, Memory& memory, Of of, int units, int blocks);
  void set_list(Side Arguments::*side, Memory& memory, Of of, const std::vector<int>& units);
  void set_typed(Side Arguments::*side, Memory& memory, Of of, const std::vector<int>& units);
  void set_garbage(Side Arguments::*side);
  void put_at_bottom(Side Arguments::*side, const Memory& memory);
  void choose_unit();
  void choose_operator();
  int units_between(int from, int to) const;
  std::vector<int> units_from(const std::vector<int>& ranks) const;
  std::vector<int> units_to(const std::vector<int>& ranks) const;
  void set_reduction();
  void set_blocks();
  void set_lists();
  void set_neighbours();
  void place();

  Group group_;
  Kind kind_;
  Random shared_, own_;
  std::uint64_t table_ = 0;
  Unit unit_;
  int factor_ = 1;  // of all counts of units
  int most_ = 1;    // counts between two ranks are below, before the factor
  bool exact_, in_place_ = false, wide_ = false;
  int unit_bytes_ = 0;
  Arguments arguments_[2];
  Memory in_, out_;
  std::vector<Layout> layouts_, bottoms_;
};

/// Whether the MPI reduces so.
bool accepts(int op, int basic);
extern const MPI_Op kPredefinedOps[12];
void make_operators();
void free_operators();

}  // namespace mpi_test
