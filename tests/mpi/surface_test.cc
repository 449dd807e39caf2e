// SPDX-License-Identifier: Apache-2.0
//
// The rest of MPI's surface: collectives with MPI_Count arguments, in every form, operators that
// take an MPI_Count, or bytes backwards, sessions, and spawned processes. Each call is taken or
// left as docs/interposer.md says, and right either way.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support.h"

namespace mpi_test {
namespace {

// Open MPI 5 has sessions, though it is none of MPI 4.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_SESSIONS 1
#endif

#if MPI_VERSION >= 4

template <typename Count, typename Offset>
struct Lists {
  std::vector<Count> counts;
  std::vector<Offset> offsets;  // of blocks in the opposite order
  std::vector<Offset> bytes;
  std::vector<MPI_Aint> addresses;

  explicit Lists(int block) {
    for (int i = 0; i < world_size(); ++i) {
      counts.push_back(block);
      offsets.push_back(block * (world_size() - 1 - i));
      bytes.push_back(offsets.back() * static_cast<Offset>(sizeof(int)));
      addresses.push_back(bytes.back());
    }
  }
};

struct Buffers {
  static constexpr int kCount = 3;
  Lists<int, int> narrow{kCount};
  Lists<MPI_Count, MPI_Aint> wide{kCount};
  std::vector<MPI_Datatype> types;
  std::vector<int> in;

  Buffers() : types(static_cast<std::size_t>(world_size()), MPI_INT) {
    for (int i = 0; i < kCount * world_size(); ++i) in.push_back(1000 * world_rank() + i);
  }
  [[nodiscard]] std::vector<int> output() const {
    std::vector<int> out(in.size(), -1);
    if (world_rank() == 0) std::copy(in.begin(), in.begin() + kCount, out.begin());  // of a bcast
    return out;
  }
};

// Each of the four gets lists and an output; the MPI itself does the last one, with int arguments.
template <typename Blocking, typename Started, typename Persistent, typename Oracle>
void compare(std::string name, const Buffers& buffers, Blocking blocking, Started started,
             Persistent make, Oracle oracle) {
  name[0] = static_cast<char>(name[0] - 'A' + 'a');
  const std::string started_name = "i" + name, made_name = name + "_init";
  MustTake must(name.c_str()), must_start(started_name.c_str()), must_repeat(made_name.c_str());
  std::vector<int> expected = buffers.output(), out = expected, started_out = expected;
  oracle(buffers.narrow, expected.data());
  blocking(buffers.wide, out.data());
  must.expect();
  check(out == expected, name + " with MPI_Count");
  MPI_Request request = MPI_REQUEST_NULL;
  started(buffers.wide, started_out.data(), &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  must_start.expect();
  check(started_out == expected, started_name + " with MPI_Count");
  make(buffers.wide, out.data(), &request);
  for (int turn = 0; turn < 2; ++turn) {
    const std::vector<int> before = buffers.output();
    std::copy(before.begin(), before.end(), out.begin());
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    must_repeat.expect();
    check(out == expected, made_name + " with MPI_Count, turn " + std::to_string(turn));
  }
  MPI_Request_free(&request);
}

#define CRL_LIST(...) __VA_ARGS__
#define CRL_COMPARE(symbol, started, arguments)                            \
  compare(                                                                 \
      #symbol, buffers,                                                    \
      [&](const auto& list, int* out) {                                    \
        static_cast<void>(list);                                           \
        MPI_##symbol##_c(CRL_LIST arguments);                              \
      },                                                                   \
      [&](const auto& list, int* out, MPI_Request* request) {              \
        static_cast<void>(list);                                           \
        MPI_##started##_c(CRL_LIST arguments, request);                    \
      },                                                                   \
      [&](const auto& list, int* out, MPI_Request* request) {              \
        static_cast<void>(list);                                           \
        MPI_##symbol##_init_c(CRL_LIST arguments, MPI_INFO_NULL, request); \
      },                                                                   \
      [&](const auto& list, int* out) {                                    \
        static_cast<void>(list);                                           \
        PMPI_##symbol(CRL_LIST arguments);                                 \
      })

void test_large_counts() {
  const Buffers buffers;
  const int* const in = buffers.in.data();
  const MPI_Datatype* const types = buffers.types.data();
  constexpr int k = Buffers::kCount;
  const MPI_Comm comm = MPI_COMM_WORLD;
  CRL_COMPARE(Bcast, Ibcast, (out, k, MPI_INT, 0, comm));
  CRL_COMPARE(Reduce, Ireduce, (in, out, k, MPI_INT, MPI_SUM, 0, comm));
  CRL_COMPARE(Allreduce, Iallreduce, (in, out, k, MPI_INT, MPI_SUM, comm));
  CRL_COMPARE(Reduce_scatter_block, Ireduce_scatter_block, (in, out, k, MPI_INT, MPI_SUM, comm));
  CRL_COMPARE(Reduce_scatter, Ireduce_scatter,
              (in, out, list.counts.data(), MPI_INT, MPI_SUM, comm));
  CRL_COMPARE(Scan, Iscan, (in, out, k, MPI_INT, MPI_SUM, comm));
  CRL_COMPARE(Exscan, Iexscan, (in, out, k, MPI_INT, MPI_SUM, comm));
  CRL_COMPARE(Allgather, Iallgather, (in, k, MPI_INT, out, k, MPI_INT, comm));
  CRL_COMPARE(Allgatherv, Iallgatherv,
              (in, k, MPI_INT, out, list.counts.data(), list.offsets.data(), MPI_INT, comm));
  CRL_COMPARE(Gather, Igather, (in, k, MPI_INT, out, k, MPI_INT, 0, comm));
  CRL_COMPARE(Gatherv, Igatherv,
              (in, k, MPI_INT, out, list.counts.data(), list.offsets.data(), MPI_INT, 0, comm));
  CRL_COMPARE(Scatter, Iscatter, (in, k, MPI_INT, out, k, MPI_INT, 0, comm));
  CRL_COMPARE(Scatterv, Iscatterv,
              (in, list.counts.data(), list.offsets.data(), MPI_INT, out, k, MPI_INT, 0, comm));
  CRL_COMPARE(Alltoall, Ialltoall, (in, k, MPI_INT, out, k, MPI_INT, comm));
  CRL_COMPARE(Alltoallv, Ialltoallv,
              (in, list.counts.data(), list.offsets.data(), MPI_INT, out, list.counts.data(),
               list.offsets.data(), MPI_INT, comm));
  CRL_COMPARE(Alltoallw, Ialltoallw,
              (in, list.counts.data(), list.bytes.data(), types, out, list.counts.data(),
               list.bytes.data(), types, comm));
}

// All are neighbours of all.
MPI_Comm make_neighbours() {
  MPI_Comm made = MPI_COMM_NULL;
  std::vector<int> ranks;
  for (int i = 0; i < world_size(); ++i) ranks.push_back(i);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, world_size(), ranks.data(), MPI_UNWEIGHTED,
                                 world_size(), ranks.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &made);
  return made;
}

void test_large_counts_of_neighbours() {
  const Buffers buffers;
  const int* const in = buffers.in.data();
  const MPI_Datatype* const types = buffers.types.data();
  constexpr int k = Buffers::kCount;
  MPI_Comm comm = make_neighbours();
  CRL_COMPARE(Neighbor_allgather, Ineighbor_allgather, (in, k, MPI_INT, out, k, MPI_INT, comm));
  CRL_COMPARE(Neighbor_allgatherv, Ineighbor_allgatherv,
              (in, k, MPI_INT, out, list.counts.data(), list.offsets.data(), MPI_INT, comm));
  CRL_COMPARE(Neighbor_alltoall, Ineighbor_alltoall, (in, k, MPI_INT, out, k, MPI_INT, comm));
  CRL_COMPARE(Neighbor_alltoallv, Ineighbor_alltoallv,
              (in, list.counts.data(), list.offsets.data(), MPI_INT, out, list.counts.data(),
               list.offsets.data(), MPI_INT, comm));
  CRL_COMPARE(Neighbor_alltoallw, Ineighbor_alltoallw,
              (in, list.counts.data(), list.addresses.data(), types, out, list.counts.data(),
               list.addresses.data(), types, comm));
  MPI_Comm_free(&comm);
}

// a(x) = a1 + a2 x: of two maps, which do not commute, the one after the other.
void compose(void* left, void* right, MPI_Count* count, MPI_Datatype* /*type*/) {
  auto* const first = static_cast<std::int64_t*>(left);
  auto* const then = static_cast<std::int64_t*>(right);
  for (MPI_Count i = 0; i < 2 * *count; i += 2) {
    then[i] += then[i + 1] * first[i];
    then[i + 1] *= first[i + 1];
  }
}

// An operator whose function takes an MPI_Count.
void test_operator_of_large_counts() {
  constexpr int kMaps = 300;
  MPI_Datatype map = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT64_T, &map);
  MPI_Type_commit(&map);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create_c(compose, 0, &op);
  std::vector<std::int64_t> in, expected(2 * kMaps), out(2 * kMaps);
  for (int i = 0; i < kMaps; ++i) {
    in.push_back(10 * world_rank() + i % 7);
    in.push_back((world_rank() + i) % 3 + 1);
    expected[static_cast<std::size_t>(2 * i) + 1] = 1;
    for (int rank = 0; rank < world_size(); ++rank) {
      const auto at = static_cast<std::size_t>(2 * i);
      const std::int64_t factor = (rank + i) % 3 + 1;
      expected[at] = 10 * rank + i % 7 + factor * expected[at];
      expected[at + 1] *= factor;
    }
  }
  MustTake narrow("allreduce"), started("iallreduce");
  MPI_Allreduce(in.data(), out.data(), kMaps, map, op, MPI_COMM_WORLD);
  narrow.expect();
  check(out == expected, "an operator of MPI_Op_create_c");
  std::fill(out.begin(), out.end(), -1);
  MPI_Allreduce_c(in.data(), out.data(), kMaps, map, op, MPI_COMM_WORLD);
  narrow.expect();
  check(out == expected, "an operator of MPI_Op_create_c, with MPI_Count");
  std::fill(out.begin(), out.end(), -1);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce_c(in.data(), out.data(), kMaps, map, op, MPI_COMM_WORLD, &request);
  MPI_Op_free(&op);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  started.expect();
  check(out == expected, "an operator of MPI_Op_create_c, started and freed");
  MPI_Type_free(&map);
}

// A count past INT_MAX.
void test_count_past_int() {
  MPI_Datatype none = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &none);
  MPI_Type_commit(&none);
  MustTake bcast("bcast");
  int number = 5;
  check(MPI_Bcast_c(&number, (MPI_Count{1} << 33) + 1, none, 0, MPI_COMM_WORLD) == MPI_SUCCESS &&
            number == 5,
        "a bcast of very many empty elements");
  bcast.expect();
  MPI_Type_free(&none);
}

#endif

#ifdef HAS_SESSIONS

// Communicators of a session, beside the world.
void test_session() {
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "carillon", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MustTake allreduce("allreduce"), iallreduce("iallreduce");
  const int mine = world_rank() + 1;
  int sum = 0, started_sum = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&mine, &started_sum, 1, MPI_INT, MPI_SUM, comm, &request);
  iallreduce.expect();
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  allreduce.expect();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const int expected = world_size() * (world_size() + 1) / 2;
  check(sum == expected && started_sum == expected, "allreduce on a communicator of a session");
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
}

#endif

// A blocking and a non-blocking allreduce, with what so many ranks come to.
bool add(MPI_Comm comm, int ranks) {
  int rank = 0, sum = 0, started_sum = 0;
  MPI_Comm_rank(comm, &rank);
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&mine, &started_sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const int expected = ranks * (ranks + 1) / 2;
  return sum == expected && started_sum == expected;
}

bool add_ranks(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return add(comm, size);
}

// Between two groups, each of which gets the other's sum.
bool add_across(MPI_Comm inter) {
  int others = 0;
  MPI_Comm_remote_size(inter, &others);
  const bool right = add(inter, others);
  MPI_Barrier(inter);
  return right;
}

// What parents and children do together the MPI does, because they are of two worlds; what either
// of them do in what is split from that carillon does.
bool meet(MPI_Comm inter, bool child) {
  MPI_Comm merged = MPI_COMM_NULL, own = MPI_COMM_NULL;
  const std::uint64_t left_before = left("allreduce"), taken_before = taken("allreduce");
  bool good = add_across(inter);
  MPI_Intercomm_merge(inter, child ? 1 : 0, &merged);
  good = add_ranks(merged) && good;
  good = good && left("allreduce") == left_before + 2 && taken("allreduce") == taken_before;
  MPI_Comm_split(merged, child ? 1 : 0, 0, &own);
  good = add_ranks(own) && good;
  good = good && left("allreduce") == left_before + 2 && taken("allreduce") == taken_before + 1;
  MPI_Comm_free(&own);
  MPI_Comm_free(&merged);
  return good;
}

// How many children say that something was wrong with theirs.
int count_bad_children(MPI_Comm children) {
  int none = 0, bad = 0;
  PMPI_Allreduce(&none, &bad, 1, MPI_INT, MPI_SUM, children);  // of the other group
  return bad;
}

// Launchers give the children the variables of their own; so they are started with the interposer
// by a command. Some MPIs cannot spawn where they were started without their own process manager.
void test_spawned(char* program) {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  std::string variable = std::string("LD_PRELOAD=") + (preloaded != nullptr ? preloaded : "");
  char command[] = "env", argument[] = "child";
  char* arguments[] = {variable.data(), program, argument, nullptr};
  MPI_Comm children = MPI_COMM_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int status = MPI_Comm_spawn(command, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                    &children, MPI_ERRCODES_IGNORE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  if (status == MPI_SUCCESS) {
    check(meet(children, false), "sums with children, or who made them");
    check(count_bad_children(children) == 0, "children's sums, or who made them");
    MPI_Comm_disconnect(&children);
  } else if (world_rank() == 0) {
    char why[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(status, why, &length);
    std::fprintf(stderr, "skipped: this MPI cannot spawn here: %s\n", why);
  }
}

// They are a world of their own, in which carillon takes their calls.
int be_child() {
  MPI_Init(nullptr, nullptr);
  MPI_Comm parents = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parents);
  bool good = add_ranks(MPI_COMM_WORLD) && taken("allreduce") == 1 && taken("iallreduce") == 1 &&
              left("allreduce") + left("iallreduce") == 0;
  good = meet(parents, true) && good;
  int bad = good ? 0 : 1, none = 0;
  PMPI_Allreduce(&bad, &none, 1, MPI_INT, MPI_SUM, parents);
  MPI_Comm_disconnect(&parents);
  MPI_Finalize();
  return bad;
}

constexpr int kBackwards = 3000;

// Of bytes, each before the one that it comes after.
void add_backwards(void* left, void* right, int* count, MPI_Datatype* /*type*/) {
  for (int i = 0; i < *count; ++i) {
    const auto* const from = static_cast<const std::uint8_t*>(left) + i * kBackwards;
    auto* const to = static_cast<std::uint8_t*>(right) + i * kBackwards;
    for (int k = 0; k < kBackwards; ++k) to[-k] = static_cast<std::uint8_t>(to[-k] + from[-k]);
  }
}

// Open MPI 4.1 says that such a type begins where it ends; nothing may be written there.
void test_bytes_backwards() {
  MPI_Datatype backwards = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  MPI_Type_vector(kBackwards, 1, -1, MPI_BYTE, &backwards);
  MPI_Type_create_resized(backwards, 0, kBackwards, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&backwards);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(add_backwards, 1, &op);
  constexpr int kElements = 2;
  Bytes in(kElements * kBackwards), out(in.size()), expected;
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<std::uint8_t>(i);
    expected.push_back(static_cast<std::uint8_t>(i * static_cast<std::size_t>(world_size())));
  }
  MustTake must("allreduce");
  for (int round = 0; round < 20; ++round) {
    MPI_Allreduce(in.data() + kBackwards - 1, out.data() + kBackwards - 1, kElements, type, op,
                  MPI_COMM_WORLD);
    must.expect();
    Bytes().swap(in);  // what was written elsewhere is found, if it was beside a block of malloc's
    for (std::size_t i = 0; i < out.size(); ++i) in.push_back(static_cast<std::uint8_t>(i));
  }
  check(out == expected, "an operator on bytes backwards");
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

}  // namespace
}  // namespace mpi_test

// surface_test [spawn | child]
int main(int argc, char** argv) {
  const char* const mode = argc > 1 ? argv[1] : "";
  if (std::strcmp(mode, "child") == 0) return mpi_test::be_child();
  mpi_test::begin(argc, argv);
  if (std::strcmp(mode, "spawn") == 0) {
    mpi_test::test_spawned(argv[0]);
    return mpi_test::end();
  }
  mpi_test::test_bytes_backwards();
#if MPI_VERSION >= 4
  mpi_test::test_large_counts();
  mpi_test::test_large_counts_of_neighbours();
  mpi_test::test_operator_of_large_counts();
  mpi_test::test_count_past_int();
#endif
#ifdef HAS_SESSIONS
  mpi_test::test_session();
#endif
  return mpi_test::end();
}
