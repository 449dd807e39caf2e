// SPDX-License-Identifier: Apache-2.0
//
// Neighbourhood collectives on grids, graphs and distributed graphs, with edges that are there
// twice or lead to the rank itself: random calls in every form, each made by carillon and by the
// MPI, whose memory must then be the same, gaps included. In grids the oracle is messages that have
// tags, because MPIs differ in which block is whose where a rank is a neighbour on both sides.
#include <cstddef>
#include <functional>
#include <string>

#include "blocks.h"
#include "support.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

namespace mpi_test {
namespace {

using Ints = std::vector<int>;
constexpr int kRounds = 12;

// A communicator, and this rank's neighbours in it.
struct Topology {
  std::string name;
  MPI_Comm comm = MPI_COMM_NULL;
  Ints sources, destinations;
  bool is_grid = false;
  std::vector<std::string> own_order;  // collectives whose blocks the MPI has in another order

  // By carillon.
  [[nodiscard]] bool takes(const std::string& collective) const {
    return std::find(own_order.begin(), own_order.end(), collective) == own_order.end();
  }
};

// A block of one side.
struct Piece {
  void* at = nullptr;
  int count = 0;
  MPI_Datatype type{};
};
using Pieces = std::vector<Piece>;

// As alltoallv has them, displaced by elements.
Pieces make_pieces(const int* memory, const Ints& counts, const Ints& offsets, MPI_Datatype type) {
  MPI_Aint start = 0, extent = 0;
  MPI_Type_get_extent(type, &start, &extent);
  char* const begin = reinterpret_cast<char*>(const_cast<int*>(memory));
  Pieces made;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    made.push_back({begin + offsets[i] * extent, counts[i], type});
  }
  return made;
}

// Of one length, one after the other.
Pieces make_row(const int* memory, std::size_t blocks, int length, MPI_Datatype type) {
  Ints offsets;
  for (std::size_t i = 0; i < blocks; ++i) offsets.push_back(static_cast<int>(i) * length);
  return make_pieces(memory, Ints(blocks, length), offsets, type);
}

// By messages. In a grid, what goes down comes from above. `reversed`: on a graph the first block
// of a rank is its last message.
void exchange(const Topology& topology, const Pieces& from, const Pieces& to,
              bool reversed = false) {
  std::vector<MPI_Request> requests;
  for (std::size_t i = 0; i < from.size(); ++i) {
    requests.emplace_back();
    PMPI_Isend(from[i].at, from[i].count, from[i].type, topology.destinations[i],
               topology.is_grid ? static_cast<int>(i) : 0, topology.comm, &requests.back());
  }
  for (std::size_t k = 0; k < to.size(); ++k) {
    const std::size_t i = reversed ? to.size() - 1 - k : k;
    PMPI_Recv(to[i].at, to[i].count, to[i].type, topology.sources[i],
              topology.is_grid ? static_cast<int>(i ^ 1U) : 0, topology.comm, MPI_STATUS_IGNORE);
  }
  PMPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

// Whether the MPI's blocking functions have the standard's order in this grid, on all ranks.
void find_own_order(Topology* grid) {
  const std::size_t blocks = grid->sources.size();
  const Ints ones(blocks, 1);
  Ints in, offsets;
  std::vector<MPI_Aint> bytes;
  for (std::size_t i = 0; i < blocks; ++i) {
    offsets.push_back(static_cast<int>(i));
    in.push_back(world_rank() * 100 + offsets.back());
    bytes.push_back(static_cast<MPI_Aint>(i * sizeof(int)));
  }
  const Types types(blocks, MPI_INT);
  Ints expected(blocks, -1);
  exchange(*grid, make_row(in.data(), blocks, 1, MPI_INT),
           make_row(expected.data(), blocks, 1, MPI_INT));
  const auto look = [&](const char* name, const auto& call) {
    Ints out(blocks, -1);
    call(out.data());
    const int same = out == expected ? 1 : 0;
    int all_same = 0;
    PMPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_MIN, grid->comm);
    if (all_same == 0) grid->own_order.emplace_back(name);
  };
  look("alltoall", [&](int* out) {
    PMPI_Neighbor_alltoall(in.data(), 1, MPI_INT, out, 1, MPI_INT, grid->comm);
  });
  look("alltoallv", [&](int* out) {
    PMPI_Neighbor_alltoallv(in.data(), ones.data(), offsets.data(), MPI_INT, out, ones.data(),
                            offsets.data(), MPI_INT, grid->comm);
  });
  look("alltoallw", [&](int* out) {
    PMPI_Neighbor_alltoallw(in.data(), ones.data(), bytes.data(), types.data(), out, ones.data(),
                            bytes.data(), types.data(), grid->comm);
  });
}

Topology make_grid(const std::string& name, Ints sizes, const Ints& periods) {
  Topology made{.name = name, .is_grid = true};
  const auto dimensions = static_cast<int>(sizes.size());
  MPI_Dims_create(world_size(), dimensions, sizes.data());
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, sizes.data(), periods.data(), 0, &made.comm);
  for (int i = 0; i < dimensions; ++i) {
    int below = 0, above = 0;
    MPI_Cart_shift(made.comm, i, 1, &below, &above);
    made.sources.insert(made.sources.end(), {below, above});
  }
  made.destinations = made.sources;
  find_own_order(&made);
  return made;
}

// All are neighbours of rank 0.
Topology make_star() {
  Topology made{.name = "star"};
  const int ranks = world_size();
  Ints ends, edges;
  edges.reserve(static_cast<std::size_t>(2 * ranks));  // MPIs refuse an empty list at no address
  for (int i = 1; i < ranks; ++i) edges.push_back(i);
  for (int i = 0; i < ranks; ++i) {
    ends.push_back(ranks - 1 + i);
    if (i > 0) edges.push_back(0);
  }
  MPI_Graph_create(MPI_COMM_WORLD, ranks, ends.data(), edges.data(), 0, &made.comm);
  int count = 0;
  MPI_Graph_neighbors_count(made.comm, world_rank(), &count);
  made.sources.resize(static_cast<std::size_t>(count));
  MPI_Graph_neighbors(made.comm, world_rank(), count, made.sources.data());
  made.destinations = made.sources;
  return made;
}

// Any edges, some twice, some from a rank to itself; there may be ranks without any.
Topology make_random(int number) {
  Topology made{.name = "graph " + std::to_string(number)};
  const int ranks = world_size();
  const int edges = draw(g_shared, 3 * ranks + 1);
  for (int i = 0; i < edges; ++i) {
    const int from = draw(g_shared, ranks), to = draw(g_shared, ranks);
    const int times = 1 + draw(g_shared, 4) / 3;
    for (int k = 0; k < times; ++k) {
      if (from == world_rank()) made.destinations.push_back(to);
      if (to == world_rank()) made.sources.push_back(from);
    }
  }
  std::shuffle(made.sources.begin(), made.sources.end(), g_own);
  std::shuffle(made.destinations.begin(), made.destinations.end(), g_own);
  MPI_Dist_graph_create_adjacent(
      MPI_COMM_WORLD, static_cast<int>(made.sources.size()), made.sources.data(), MPI_UNWEIGHTED,
      static_cast<int>(made.destinations.size()), made.destinations.data(), MPI_UNWEIGHTED,
      MPI_INFO_NULL, 0, &made.comm);
  return made;
}

std::vector<Topology> make_topologies() {
  std::vector<Topology> all{make_grid("line", {0}, {0}),
                            make_grid("ring", {0}, {1}),
                            make_grid("plane", {0, 0}, {0, 0}),
                            make_grid("cylinder", {0, 0}, {1, 0}),
                            make_grid("torus", {0, 0}, {1, 1}),
                            make_grid("thin torus", {0, 1, 1}, {1, 1, 1}),
                            make_star()};
  for (int i = 0; i < 4; ++i) all.push_back(make_random(i));
  return all;
}

// Of each block of one end, equal at both. Of those between two ranks, too, where MPIs differ in
// which is which.
Ints lengths_of(const Topology& topology, const std::string& collective, bool sending,
                unsigned seed, int scale) {
  const Ints& ends = sending ? topology.destinations : topology.sources;
  const bool directed = topology.is_grid && topology.takes(collective);
  Ints lengths;
  for (unsigned i = 0; i < ends.size(); ++i) {
    const int end = ends[i];
    if (end == MPI_PROC_NULL) {
      lengths.push_back(draw(g_own, 3));  // nothing comes of them
      continue;
    }
    const int from = sending ? world_rank() : end, to = sending ? end : world_rank();
    const unsigned direction = !directed ? 0 : sending ? i : i ^ 1U;
    std::minstd_rand hash(seed + static_cast<unsigned>(from * 7919 + to * 104729) +
                          direction * 15485863U);
    hash.discard(5);
    lengths.push_back(std::max(static_cast<int>(hash() % 6) - 1, 0) * scale);
  }
  return lengths;
}

// What allgatherv receives: of each neighbour the same, wherever it is.
Ints lengths_by_source(const Topology& topology, const Ints& of_rank) {
  Ints lengths;
  for (const int from : topology.sources) {
    lengths.push_back(from == MPI_PROC_NULL ? 1 : of_rank[static_cast<std::size_t>(from)]);
  }
  return lengths;
}

enum class Form { kBlocking, kStarted, kPersistent, kNative };
using Call = std::function<void(Form form, int* out, MPI_Request* request)>;

// The four forms of one call. A macro, because they are four functions.
#define CALL(name, started, ...)                                                                   \
  [&](Form form, int* out, MPI_Request* request) {                                                 \
    switch (form) {                                                                                \
      case Form::kBlocking: MPI_##name(__VA_ARGS__, comm); return;                                 \
      case Form::kStarted: MPI_##started(__VA_ARGS__, comm, request); return;                      \
      case Form::kPersistent: PERSISTENT(name)(__VA_ARGS__, comm, MPI_INFO_NULL, request); return; \
      default: PMPI_##name(__VA_ARGS__, comm); return;                                             \
    }                                                                                              \
  }

struct Counted {
  std::string name;  // of the function, as carillon counts it
  std::uint64_t taken = 0, left = 0;

  explicit Counted(std::string of) : name(std::move(of)) {
    taken = mpi_test::taken(name.c_str());
    left = mpi_test::left(name.c_str());
  }
  // All of `calls` taken, or all left: of a persistent one, its starts, or its one making.
  void expect(bool is_taken, unsigned calls, unsigned if_left, const std::string& where) const {
    check(mpi_test::taken(name.c_str()) - taken == (is_taken ? calls : 0),
          name + ", " + where + ": not all were taken, or not all left");
    check(mpi_test::left(name.c_str()) - left == (is_taken ? 0 : if_left),
          name + ", " + where + ": some were left, or taken");
  }
};

// Makes the call in every form, on the same memory. `grid_oracle`: where it is a grid. (What is
// left Open MPI itself does differently in different forms.)
void compare(const std::string& name, const Topology& topology, int round, const Ints& memory,
             const Call& call, const std::function<void(int*)>& grid_oracle) {
  const std::string where = topology.name + ", round " + std::to_string(round);
  const bool is_taken = topology.takes(name);
  Ints theirs = memory;
  call(Form::kNative, theirs.data(), nullptr);
  Ints expected = topology.is_grid ? memory : theirs;
  if (topology.is_grid) grid_oracle(expected.data());
  const auto same = [&](const Ints& ours, const std::string& form) {
    check(!is_taken || ours == expected, form + ", " + where + ": differs from the standard's");
  };
  {
    const Counted counted("neighbor_" + name);
    Ints ours = memory;
    call(Form::kBlocking, ours.data(), nullptr);
    same(ours, counted.name);
    check(ours == theirs, counted.name + ", " + where + ": differs from the MPI's");
    counted.expect(is_taken, 1, 1, where);
  }
  {
    const Counted counted("ineighbor_" + name);
    Ints ours = memory;
    MPI_Request request = MPI_REQUEST_NULL;
    call(Form::kStarted, ours.data(), &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    same(ours, counted.name);
    counted.expect(is_taken, 1, 1, where);
  }
  const Counted counted("neighbor_" + name + "_init");
  Ints ours = memory;
  MPI_Request request = MPI_REQUEST_NULL;
  call(Form::kPersistent, ours.data(), &request);
  for (int i = 0; i < 2; ++i) {
    ours = memory;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    same(ours, counted.name);
  }
  MPI_Request_free(&request);
  counted.expect(is_taken, 2, 1, where);
}

struct Round {
  int number = 0, scale = 1, block = 0;
  unsigned seed = 0;
  Ints own;  // of each rank: what it gives by allgatherv

  explicit Round(int n) : number(n), scale(n % 6 == 5 ? 5000 : 1), seed(g_shared()) {
    block = draw(g_shared, 4) * scale;
    for (int i = 0; i < world_size(); ++i) own.push_back(draw(g_shared, 4) * scale);
  }
};

// Blocks of one length, one after the other.
Side in_a_row(std::size_t blocks, int length, MPI_Datatype type, int salt) {
  return Side({static_cast<int>(blocks) * length}, type, salt);
}

void test_equal_blocks(const Topology& topology, const Types& types, const Round& round) {
  const MPI_Comm comm = topology.comm;
  const int n = round.block;
  const Side one({n}, any(types), 1);
  const Side from = in_a_row(topology.destinations.size(), n, any(types), 2);
  const Side to = in_a_row(topology.sources.size(), n, any(types), 3);
  const std::size_t ins = topology.destinations.size(), outs = topology.sources.size();
  compare("allgather", topology, round.number, to.memory,
          CALL(Neighbor_allgather, Ineighbor_allgather, one.memory.data(), n, one.type, out, n,
               to.type),
          [&](int* out) {
            const Piece block = make_row(one.memory.data(), 1, n, one.type)[0];
            exchange(topology, Pieces(ins, block), make_row(out, outs, n, to.type));
          });
  compare("alltoall", topology, round.number, to.memory,
          CALL(Neighbor_alltoall, Ineighbor_alltoall, from.memory.data(), n, from.type, out, n,
               to.type),
          [&](int* out) {
            exchange(topology, make_row(from.memory.data(), ins, n, from.type),
                     make_row(out, outs, n, to.type));
          });
}

void test_lists(const Topology& topology, const Types& types, const Round& round) {
  const MPI_Comm comm = topology.comm;
  const int own = round.own[static_cast<std::size_t>(world_rank())];
  const Side one({own}, any(types), 1);
  const Side all(lengths_by_source(topology, round.own), any(types), 2);
  compare("allgatherv", topology, round.number, all.memory,
          CALL(Neighbor_allgatherv, Ineighbor_allgatherv, one.memory.data(), own, one.type, out,
               all.counts.data(), all.offsets.data(), all.type),
          [&](int* out) {
            const Piece block = make_row(one.memory.data(), 1, own, one.type)[0];
            exchange(topology, Pieces(topology.destinations.size(), block),
                     make_pieces(out, all.counts, all.offsets, all.type));
          });
  const std::string name = "alltoallv";
  const Side from(lengths_of(topology, name, true, round.seed, round.scale), any(types), 3);
  const Side to(lengths_of(topology, name, false, round.seed, round.scale), any(types), 4);
  compare(name, topology, round.number, to.memory,
          CALL(Neighbor_alltoallv, Ineighbor_alltoallv, from.memory.data(), from.counts.data(),
               from.offsets.data(), from.type, out, to.counts.data(), to.offsets.data(), to.type),
          [&](int* out) {
            exchange(topology,
                     make_pieces(from.memory.data(), from.counts, from.offsets, from.type),
                     make_pieces(out, to.counts, to.offsets, to.type));
          });
}

// Whether the MPI's alltoallw takes the blocks of who is a neighbour twice in the reverse order.
bool reverses() {
  const int self[] = {0, 0}, ones[] = {1, 1}, in[] = {1, 2};
  const MPI_Aint bytes[] = {0, sizeof(int)};
  const MPI_Datatype ints[] = {MPI_INT, MPI_INT};
  int out[] = {0, 0};
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 2, self, ones, 2, self, ones, MPI_INFO_NULL, 0,
                                 &comm);
  PMPI_Neighbor_alltoallw(in, ones, bytes, ints, out, ones, bytes, ints, comm);
  MPI_Comm_free(&comm);
  return out[0] == in[1];
}

// Types and displacements in bytes per block. On a graph the MPI's answer is that of its messages:
// MPICH 4.0's own function does not receive all where a rank has more sources than destinations.
void test_types(const Topology& topology, const Types& types, const Round& round) {
  const MPI_Comm comm = topology.comm;
  const std::string name = "alltoallw";
  const Side from(lengths_of(topology, name, true, round.seed, round.scale), types[0], 1);
  const Side to(lengths_of(topology, name, false, round.seed, round.scale), types[0], 2);
  Types from_types, to_types;
  std::vector<MPI_Aint> from_bytes, to_bytes;
  constexpr MPI_Aint kUnit = kElementInts * sizeof(int);
  for (const int offset : from.offsets) {
    from_types.push_back(any(types));
    from_bytes.push_back(offset * kUnit);
  }
  for (const int offset : to.offsets) {
    to_types.push_back(any(types));
    to_bytes.push_back(offset * kUnit);
  }
  const auto pieces = [](const int* memory, const Side& side, const Types& of,
                         const std::vector<MPI_Aint>& at) {
    char* const begin = reinterpret_cast<char*>(const_cast<int*>(memory));
    Pieces made;
    for (std::size_t i = 0; i < of.size(); ++i) {
      made.push_back({begin + at[i], side.counts[i], of[i]});
    }
    return made;
  };
  const auto by_messages = [&](int* out) {
    static const bool kReversed = reverses();
    exchange(topology, pieces(from.memory.data(), from, from_types, from_bytes),
             pieces(out, to, to_types, to_bytes), kReversed && !topology.is_grid);
  };
  const Call call = CALL(Neighbor_alltoallw, Ineighbor_alltoallw, from.memory.data(),
                         from.counts.data(), from_bytes.data(), from_types.data(), out,
                         to.counts.data(), to_bytes.data(), to_types.data());
  compare(
      name, topology, round.number, to.memory,
      [&](Form form, int* out, MPI_Request* request) {
        const bool native = form == Form::kNative && !topology.is_grid;
        return native ? by_messages(out) : call(form, out, request);
      },
      by_messages);
}

// All on their way at once, completed in another order.
void test_many(const Topology& topology) {
  constexpr std::size_t kCalls = 20;
  std::vector<Ints> in(kCalls), ours(kCalls), theirs(kCalls);
  std::vector<MPI_Request> requests(kCalls);
  for (std::size_t i = 0; i < kCalls; ++i) {
    in[i].resize(topology.destinations.size() + 1);
    std::iota(in[i].begin(), in[i].end(), static_cast<int>(i) * 10000 + world_rank() * 100);
    theirs[i].assign(topology.sources.size() + 1, -1);
    ours[i] = theirs[i];
    MPI_Ineighbor_alltoall(in[i].data(), 1, MPI_INT, ours[i].data(), 1, MPI_INT, topology.comm,
                           &requests[i]);
  }
  std::reverse(requests.begin(), requests.end());
  MPI_Waitall(static_cast<int>(kCalls), requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < kCalls; ++i) {
    PMPI_Neighbor_alltoall(in[i].data(), 1, MPI_INT, theirs[i].data(), 1, MPI_INT, topology.comm);
  }
  check(ours == theirs || !topology.takes("alltoall"),
        "many at once, " + topology.name + ": differ from the MPI's");
}

// Without a topology the MPI says what is wrong.
void test_error() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // Open MPI raises it there
  int in = 1, out = 2, ours = MPI_SUCCESS, theirs = MPI_SUCCESS;
  const int code = MPI_Neighbor_allgather(&in, 1, MPI_INT, &out, 1, MPI_INT, comm);
  const int native = PMPI_Neighbor_allgather(&in, 1, MPI_INT, &out, 1, MPI_INT, comm);
  MPI_Error_class(code, &ours);
  MPI_Error_class(native, &theirs);
  check(ours == theirs && ours != MPI_SUCCESS, "a communicator without a topology: another error");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

void test_all() {
  Types types = make_types();
  std::vector<Topology> topologies = make_topologies();
  // Of MPIs whose ranks poll and never yield, a call of many more than there are cores takes long.
  const int step = world_size() > 8 ? 5 : 1;
  for (int i = 0; i < kRounds; i += step) {
    const Round round(i);
    for (const Topology& topology : topologies) {
      test_equal_blocks(topology, types, round);
      test_lists(topology, types, round);
      test_types(topology, types, round);
    }
  }
  for (Topology& topology : topologies) {
    test_many(topology);
    MPI_Comm_free(&topology.comm);
  }
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  mpi_test::g_own.seed(static_cast<unsigned>(mpi_test::world_rank()) + 5);
  mpi_test::test_all();
  mpi_test::test_error();
  return mpi_test::end();
}
