// SPDX-License-Identifier: Apache-2.0
//
// Neighbourhood collectives on grids, graphs and distributed graphs, with edges that are there
// twice or lead to the rank itself: random calls in every form, each made by carillon and by the
// MPI, whose memory must then be the same, gaps included.
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
  bool is_taken = true;
};

Topology make_grid(const std::string& name, Ints sizes, const Ints& periods) {
  Topology made{.name = name};
  const auto dimensions = static_cast<int>(sizes.size());
  MPI_Dims_create(world_size(), dimensions, sizes.data());
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, sizes.data(), periods.data(), 0, &made.comm);
  for (int i = 0; i < dimensions; ++i) {
    int below = 0, above = 0;
    MPI_Cart_shift(made.comm, i, 1, &below, &above);
    made.sources.insert(made.sources.end(), {below, above});
    const auto at = static_cast<std::size_t>(i);
    made.is_taken = made.is_taken && (periods[at] == 0 || sizes[at] > 2);
  }
  made.destinations = made.sources;
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
  std::vector<Topology> all{make_grid("line", {0}, {0}), make_grid("ring", {0}, {1}),
                            make_grid("plane", {0, 0}, {0, 0}),
                            make_grid("cylinder", {0, 0}, {1, 0}), make_star()};
  for (int i = 0; i < 4; ++i) all.push_back(make_random(i));
  return all;
}

// Of each block of one end, equal at both; of those between two ranks, too, since hosts differ in
// which is which.
Ints lengths_of(const Topology& topology, bool sending, unsigned seed, int scale) {
  Ints lengths;
  for (const int end : sending ? topology.destinations : topology.sources) {
    if (end == MPI_PROC_NULL) {
      lengths.push_back(draw(g_own, 3));  // nothing comes of them
      continue;
    }
    const int from = sending ? world_rank() : end, to = sending ? end : world_rank();
    std::minstd_rand hash(seed + static_cast<unsigned>(from * 7919 + to * 104729));
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

// Makes the call in every form, on the same memory. (What is left Open MPI itself does differently
// in different forms.)
void compare(const std::string& name, const Topology& topology, int round, const Ints& memory,
             const Call& call) {
  const std::string where = topology.name + ", round " + std::to_string(round);
  Ints theirs = memory;
  call(Form::kNative, theirs.data(), nullptr);
  const auto same = [&](const Ints& ours, const std::string& form) {
    check(!topology.is_taken || ours == theirs, form + ", " + where + ": differs from the MPI's");
  };
  {
    const Counted counted("neighbor_" + name);
    Ints ours = memory;
    call(Form::kBlocking, ours.data(), nullptr);
    same(ours, counted.name);
    counted.expect(topology.is_taken, 1, 1, where);
  }
  {
    const Counted counted("ineighbor_" + name);
    Ints ours = memory;
    MPI_Request request = MPI_REQUEST_NULL;
    call(Form::kStarted, ours.data(), &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    same(ours, counted.name);
    counted.expect(topology.is_taken, 1, 1, where);
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
  counted.expect(topology.is_taken, 2, 1, where);
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
  compare("allgather", topology, round.number, to.memory,
          CALL(Neighbor_allgather, Ineighbor_allgather, one.memory.data(), n, one.type, out, n,
               to.type));
  compare("alltoall", topology, round.number, to.memory,
          CALL(Neighbor_alltoall, Ineighbor_alltoall, from.memory.data(), n, from.type, out, n,
               to.type));
}

void test_lists(const Topology& topology, const Types& types, const Round& round) {
  const MPI_Comm comm = topology.comm;
  const int own = round.own[static_cast<std::size_t>(world_rank())];
  const Side one({own}, any(types), 1);
  const Side all(lengths_by_source(topology, round.own), any(types), 2);
  compare("allgatherv", topology, round.number, all.memory,
          CALL(Neighbor_allgatherv, Ineighbor_allgatherv, one.memory.data(), own, one.type, out,
               all.counts.data(), all.offsets.data(), all.type));
  const Side from(lengths_of(topology, true, round.seed, round.scale), any(types), 3);
  const Side to(lengths_of(topology, false, round.seed, round.scale), any(types), 4);
  compare("alltoallv", topology, round.number, to.memory,
          CALL(Neighbor_alltoallv, Ineighbor_alltoallv, from.memory.data(), from.counts.data(),
               from.offsets.data(), from.type, out, to.counts.data(), to.offsets.data(), to.type));
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

// Types and displacements in bytes per block. The MPI's answer is that of its messages: MPICH 4.0's
// own function does not receive all where a rank has more sources than destinations.
void test_types(const Topology& topology, const Types& types, const Round& round) {
  const MPI_Comm comm = topology.comm;
  const Side from(lengths_of(topology, true, round.seed, round.scale), types[0], 1);
  const Side to(lengths_of(topology, false, round.seed, round.scale), types[0], 2);
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
  const auto exchange = [&](int* out) {
    std::vector<MPI_Request> requests;
    for (std::size_t i = 0; i < from_types.size(); ++i) {
      requests.emplace_back();
      PMPI_Isend(reinterpret_cast<const char*>(from.memory.data()) + from_bytes[i], from.counts[i],
                 from_types[i], topology.destinations[i], 0, comm, &requests.back());
    }
    static const bool kReversed = reverses();
    for (std::size_t k = 0; k < to_types.size(); ++k) {
      const std::size_t i = kReversed ? to_types.size() - 1 - k : k;
      PMPI_Recv(reinterpret_cast<char*>(out) + to_bytes[i], to.counts[i], to_types[i],
                topology.sources[i], 0, comm, MPI_STATUS_IGNORE);
    }
    PMPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  };
  const Call call = CALL(Neighbor_alltoallw, Ineighbor_alltoallw, from.memory.data(),
                         from.counts.data(), from_bytes.data(), from_types.data(), out,
                         to.counts.data(), to_bytes.data(), to_types.data());
  compare("alltoallw", topology, round.number, to.memory,
          [&](Form form, int* out, MPI_Request* request) {
            return form == Form::kNative ? exchange(out) : call(form, out, request);
          });
}

// All on their way at once, completed in another order.
void test_many(const Topology& topology) {
  constexpr std::size_t kCalls = 20;
  std::vector<Ints> in(kCalls), ours(kCalls), theirs(kCalls);
  std::vector<MPI_Request> requests(kCalls);
  for (std::size_t i = 0; i < kCalls; ++i) {
    in[i].assign(topology.destinations.size() + 1, static_cast<int>(i) * 100 + world_rank());
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
  check(ours == theirs, "many at once, " + topology.name + ": differ from the MPI's");
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
