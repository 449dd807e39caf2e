// SPDX-License-Identifier: Apache-2.0
//
// Wrong arguments: the error class, and the calls of the error handler, must be those of the MPI
// alone. Every case is run through MPI_ and through PMPI_, and those of collectives in each of
// their forms.
#include <array>
#include <cstdio>

#include "later.h"
#include "support.h"
#include "way_out.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(prefix, name) prefix##X_##name##_init
#else
#define PERSISTENT(prefix, name) prefix##_##name##_init
#endif

namespace mpi_test {
namespace {

int g_handled = 0;

void handle(MPI_Comm* /*comm*/, int* /*code*/, ...) { ++g_handled; }

struct Answer {
  int error_class = MPI_SUCCESS;
  int handled = 0;
};

Answer answer_of(const Later<>& call) {
  g_handled = 0;
  const int code = call();
  Answer answer{code, g_handled};
  if (code != MPI_SUCCESS) MPI_Error_class(code, &answer.error_class);
  return answer;
}

std::string text_of(const Answer& answer) {
  return "class " + std::to_string(answer.error_class) + ", " + std::to_string(answer.handled) +
         " calls of the handler";
}

struct Case {
  const char* name;
  Later<> ours, theirs;
};

void compare(const Case& test) {
  const Answer theirs = answer_of(test.theirs), ours = answer_of(test.ours);
  if (world_rank() == 0 && theirs.error_class == MPI_SUCCESS && theirs.handled == 0) {
    std::fprintf(stderr, "note: this MPI accepts: %s\n", test.name);
  }
  // (MPICH 5 with the MPI 5 ABI tells the handler of an error, and then returns none.)
  const bool same_class = ours.error_class == theirs.error_class ||
                          (theirs.error_class == MPI_SUCCESS && theirs.handled > 0);
  check(same_class && ours.handled == theirs.handled, std::string(test.name) +
                                                          ": the MPI answers " + text_of(theirs) +
                                                          ", with carillon it is " + text_of(ours));
}

// Where the MPI takes the arguments, nothing is left of the call: a collective that has begun ends,
// one that is to be begun goes. There is no request after the handler was told of an error,
// whatever the call returns (see compare).
bool went_wrong(int code) { return code != MPI_SUCCESS || g_handled > 0; }
int ended(const Later<MPI_Request*>& call) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = call(&request);
  return went_wrong(code) ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
}
int freed(const Later<MPI_Request*>& call) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = call(&request);
  return went_wrong(code) ? code : MPI_Request_free(&request);
}

// By carillon and by the MPI.
#define CASE(name, call)                                          \
  {                                                               \
    name, [=] { return MPI_##call; }, [=] { return PMPI_##call; } \
  }

// The forms of one collective: blocking, non-blocking, and persistent.
#define FORMS(name, symbol, started, ...)                                    \
  CASE(name, symbol(__VA_ARGS__)), CASE_STARTED(name, started, __VA_ARGS__), \
      CASE_PERSISTENT(name, symbol, __VA_ARGS__)
#define CASE_STARTED(name, started, ...)                                                        \
  {                                                                                             \
    name ", non-blocking",                                                                      \
        [=] { return ended([=](MPI_Request* to) { return MPI_##started(__VA_ARGS__, to); }); }, \
        [=] { return ended([=](MPI_Request* to) { return PMPI_##started(__VA_ARGS__, to); }); } \
  }
#define CASE_PERSISTENT(name, symbol, ...)                                   \
  {                                                                          \
    name ", persistent",                                                     \
        [=] {                                                                \
          return freed([=](MPI_Request* to) {                                \
            return PERSISTENT(MPI, symbol)(__VA_ARGS__, MPI_INFO_NULL, to);  \
          });                                                                \
        },                                                                   \
        [=] {                                                                \
          return freed([=](MPI_Request* to) {                                \
            return PERSISTENT(PMPI, symbol)(__VA_ARGS__, MPI_INFO_NULL, to); \
          });                                                                \
        }                                                                    \
  }

int g_in[64], g_out[64];
int g_ones[64], g_offsets[64];  // counts of one, blocks end to end
int g_negative[64];             // counts, too

std::vector<Case> counts_and_roots(MPI_Comm comm) {
  int* const in = g_in;
  int* const out = g_out;
  const int size = world_size();
  std::vector<Case> cases = {
      FORMS("bcast, negative count", Bcast, Ibcast, in, -1, MPI_INT, 0, comm),
      FORMS("bcast, root too large", Bcast, Ibcast, in, 1, MPI_INT, size, comm),
      FORMS("bcast, negative root", Bcast, Ibcast, in, 1, MPI_INT, -5, comm),
      FORMS("reduce, root too large", Reduce, Ireduce, in, out, 1, MPI_INT, MPI_SUM, size, comm),
      FORMS("gather, root too large", Gather, Igather, in, 1, MPI_INT, out, 1, MPI_INT, size + 3,
            comm),
      FORMS("scatter, root too large", Scatter, Iscatter, in, 1, MPI_INT, out, 1, MPI_INT, size,
            comm),
      FORMS("gatherv, root too large", Gatherv, Igatherv, in, 1, MPI_INT, out, g_ones, g_offsets,
            MPI_INT, size, comm),
      FORMS("scatterv, root too large", Scatterv, Iscatterv, in, g_ones, g_offsets, MPI_INT, out, 1,
            MPI_INT, size, comm),
  };
#if defined(OPEN_MPI)  // some MPICHs do not look at these, and crash
  std::vector<Case> more = {
      FORMS("allreduce, no type", Allreduce, Iallreduce, in, out, 1, MPI_DATATYPE_NULL, MPI_SUM,
            comm),
      FORMS("reduce, logical and of doubles", Reduce, Ireduce, in, out, 1, MPI_DOUBLE, MPI_LAND, 0,
            comm),
      FORMS("reduce, negative count", Reduce, Ireduce, in, out, -1, MPI_INT, MPI_SUM, 0, comm),
      FORMS("allreduce, negative count", Allreduce, Iallreduce, in, out, -3, MPI_INT, MPI_SUM,
            comm),
      FORMS("gather, negative count", Gather, Igather, in, -1, MPI_INT, out, -1, MPI_INT, 0, comm),
      FORMS("scatter, negative count", Scatter, Iscatter, in, -1, MPI_INT, out, -1, MPI_INT, 0,
            comm),
      FORMS("allgather, negative count", Allgather, Iallgather, in, -1, MPI_INT, out, 1, MPI_INT,
            comm),
      FORMS("alltoall, negative count", Alltoall, Ialltoall, in, 1, MPI_INT, out, -1, MPI_INT,
            comm),
      FORMS("reduce_scatter_block, negative count", Reduce_scatter_block, Ireduce_scatter_block, in,
            out, -1, MPI_INT, MPI_SUM, comm),
      FORMS("scan, negative count", Scan, Iscan, in, out, -1, MPI_INT, MPI_SUM, comm),
      FORMS("exscan, negative count", Exscan, Iexscan, in, out, -1, MPI_INT, MPI_SUM, comm),
      FORMS("allgatherv, negative count", Allgatherv, Iallgatherv, in, -1, MPI_INT, out, g_ones,
            g_offsets, MPI_INT, comm),
  };
  cases.insert(cases.end(), more.begin(), more.end());
#endif
  return cases;
}

std::vector<Case> types_and_ops(MPI_Comm comm) {
  int* const in = g_in;
  int* const out = g_out;
  return {
#ifdef MPI_COMPLEX32  // for which carillon asks the MPI whether it adds them
      FORMS("allreduce, a type that not every MPI adds", Allreduce, Iallreduce, in, out, 1,
            MPI_COMPLEX32, MPI_SUM, comm),
#endif
      FORMS("bcast, no type", Bcast, Ibcast, in, 1, MPI_DATATYPE_NULL, 0, comm),
      FORMS("allreduce, no operator", Allreduce, Iallreduce, in, out, 1, MPI_INT, MPI_OP_NULL,
            comm),
      FORMS("reduce, no operator", Reduce, Ireduce, in, out, 1, MPI_INT, MPI_OP_NULL, 0, comm),
      FORMS("allreduce, bits of doubles", Allreduce, Iallreduce, in, out, 1, MPI_DOUBLE, MPI_BAND,
            comm),
      FORMS("allreduce, sum of pairs", Allreduce, Iallreduce, in, out, 1, MPI_2INT, MPI_SUM, comm),
      FORMS("allreduce, minloc of ints", Allreduce, Iallreduce, in, out, 1, MPI_INT, MPI_MINLOC,
            comm),
      FORMS("allreduce, max of complex", Allreduce, Iallreduce, in, out, 1, MPI_C_DOUBLE_COMPLEX,
            MPI_MAX, comm),
      FORMS("allreduce, replace", Allreduce, Iallreduce, in, out, 1, MPI_INT, MPI_REPLACE, comm),
      FORMS("scan, no operator", Scan, Iscan, in, out, 1, MPI_INT, MPI_OP_NULL, comm),
      FORMS("exscan, bits of doubles", Exscan, Iexscan, in, out, 1, MPI_DOUBLE, MPI_BAND, comm),
      FORMS("reduce_scatter, no operator", Reduce_scatter, Ireduce_scatter, in, out, g_ones,
            MPI_INT, MPI_OP_NULL, comm),
      FORMS("allgatherv, no type", Allgatherv, Iallgatherv, in, 1, MPI_DATATYPE_NULL, out, g_ones,
            g_offsets, MPI_INT, comm),
      FORMS("allgather, no type", Allgather, Iallgather, in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INT,
            comm),
      FORMS("alltoall, no type", Alltoall, Ialltoall, in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL,
            comm),
      FORMS("gather, no type", Gather, Igather, in, 1, MPI_DATATYPE_NULL, out, 1, MPI_DATATYPE_NULL,
            0, comm),
      FORMS("scatter, no type", Scatter, Iscatter, in, 1, MPI_DATATYPE_NULL, out, 1,
            MPI_DATATYPE_NULL, 0, comm),
  };
}

// `line`: each rank's neighbours are those before and behind it.
std::vector<Case> lists_and_neighbours(MPI_Comm comm, MPI_Comm line) {
  int* const in = g_in;
  int* const out = g_out;
  std::vector<Case> cases = {
      FORMS("neighbor_alltoall, no type", Neighbor_alltoall, Ineighbor_alltoall, in, 1,
            MPI_DATATYPE_NULL, out, 1, MPI_INT, line),
      FORMS("neighbor_alltoall, no neighbours", Neighbor_alltoall, Ineighbor_alltoall, in, 1,
            MPI_INT, out, 1, MPI_INT, comm),
  };
#if defined(OPEN_MPI)
  static MPI_Datatype no_types[64];
  for (MPI_Datatype& type : no_types) type = MPI_DATATYPE_NULL;
  std::vector<Case> more = {
      FORMS("alltoallv, negative count", Alltoallv, Ialltoallv, in, g_negative, g_offsets, MPI_INT,
            out, g_ones, g_offsets, MPI_INT, comm),
      FORMS("alltoallv, no type", Alltoallv, Ialltoallv, in, g_ones, g_offsets, MPI_DATATYPE_NULL,
            out, g_ones, g_offsets, MPI_INT, comm),
      FORMS("alltoallv, no list", Alltoallv, Ialltoallv, in, nullptr, g_offsets, MPI_INT, out,
            g_ones, g_offsets, MPI_INT, comm),
      FORMS("alltoallw, no types", Alltoallw, Ialltoallw, in, g_ones, g_offsets, no_types, out,
            g_ones, g_offsets, no_types, comm),
      FORMS("alltoallw, no list of types", Alltoallw, Ialltoallw, in, g_ones, g_offsets, nullptr,
            out, g_ones, g_offsets, nullptr, comm),
      FORMS("gatherv, negative count", Gatherv, Igatherv, in, -1, MPI_INT, out, g_ones, g_offsets,
            MPI_INT, 0, comm),
      FORMS("scatterv, negative count", Scatterv, Iscatterv, in, g_ones, g_offsets, MPI_INT, out,
            -1, MPI_INT, 0, comm),
      FORMS("reduce_scatter, negative count", Reduce_scatter, Ireduce_scatter, in, out, g_negative,
            MPI_INT, MPI_SUM, comm),
      FORMS("neighbor_alltoall, negative count", Neighbor_alltoall, Ineighbor_alltoall, in, 1,
            MPI_INT, out, -1, MPI_INT, line),
      FORMS("neighbor_allgatherv, negative count", Neighbor_allgatherv, Ineighbor_allgatherv, in,
            -1, MPI_INT, out, g_ones, g_offsets, MPI_INT, line),
      FORMS("neighbor_alltoallv, no type", Neighbor_alltoallv, Ineighbor_alltoallv, in, g_ones,
            g_offsets, MPI_DATATYPE_NULL, out, g_ones, g_offsets, MPI_INT, line),
  };
#else  // Open MPI 4 looks at these neighbours first
  std::vector<Case> more = {
      FORMS("neighbor_allgather, no communicator", Neighbor_allgather, Ineighbor_allgather, in, 1,
            MPI_INT, out, 1, MPI_INT, MPI_COMM_NULL),
  };
#endif
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

// The functions that begin, complete and free requests, without what they are to write to.
std::vector<Case> no_places() {
  static MPI_Request none = MPI_REQUEST_NULL;
  static int flag = 0;
  [[maybe_unused]] static int index = 0, indices[1];
  MPI_Request* const one = &none;
  MPI_Status* const ignored = MPI_STATUS_IGNORE;
  [[maybe_unused]] MPI_Status* const all_ignored = MPI_STATUSES_IGNORE;
  std::vector<Case> cases = {
      CASE("wait, no request", Wait(nullptr, ignored)),
      CASE("test, no request", Test(nullptr, &flag, ignored)),
      CASE("test, no flag", Test(one, nullptr, ignored)),
      CASE("request_get_status, no flag", Request_get_status(none, nullptr, ignored)),
      CASE("start, no place", Start(nullptr)),
      CASE("start, no request", Start(one)),
      CASE("request_free, no place", Request_free(nullptr)),
      CASE("request_free, no request", Request_free(one)),
      CASE("cancel, no place", Cancel(nullptr)),
  };
#if !defined(MPI_ABI_VERSION)  // MPICH 5 crashes: for its ABI it converts what it was given before
                               // it looks
  std::vector<Case> arrays = {
      CASE("waitany, no index", Waitany(1, one, nullptr, ignored)),
      CASE("waitsome, no count", Waitsome(1, one, nullptr, indices, all_ignored)),
      CASE("testall, no flag", Testall(1, one, nullptr, all_ignored)),
      CASE("testany, no index", Testany(1, one, nullptr, &flag, ignored)),
      CASE("testany, no flag", Testany(1, one, &index, nullptr, ignored)),
      CASE("testsome, no count", Testsome(1, one, nullptr, indices, all_ignored)),
      CASE("waitall, no requests", Waitall(1, nullptr, all_ignored)),
      CASE("waitall, negative count", Waitall(-1, one, all_ignored)),
      CASE("waitany, no requests", Waitany(1, nullptr, &index, ignored)),
      CASE("waitsome, no requests", Waitsome(1, nullptr, &flag, indices, all_ignored)),
      CASE("testall, no requests", Testall(1, nullptr, &flag, all_ignored)),
      CASE("testany, no requests", Testany(1, nullptr, &index, &flag, ignored)),
      CASE("testsome, no requests", Testsome(1, nullptr, &flag, indices, all_ignored)),
      CASE("startall, no requests", Startall(1, nullptr)),
      CASE("startall, negative count", Startall(-1, one)),
  };
  cases.insert(cases.end(), arrays.begin(), arrays.end());
#endif
  return cases;
}

// Such calls alone, and while a collective is on its way and one is ready to be begun.
void test_no_places(MPI_Comm comm) {
  for (const Case& test : no_places()) compare(test);
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Ibcast(g_in, 1, MPI_INT, 0, comm, &requests[0]);
  PERSISTENT(MPI, Bcast)(g_out, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &requests[1]);
  MPI_Start(&requests[1]);
  for (const Case& test : no_places()) compare(test);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[1]);
#if !defined(OPEN_MPI)  // which looks for no place for the request
  compare(CASE("ibcast, no place for the request", Ibcast(g_in, 1, MPI_INT, 0, comm, nullptr)));
  compare(CASE("ibarrier, no place for the request", Ibarrier(comm, nullptr)));
#endif
}

std::vector<Case> places(MPI_Comm comm) {
  int* const in = g_in;
  [[maybe_unused]] int* const out = g_out;
  std::vector<Case> cases = {
      FORMS("allreduce into MPI_IN_PLACE", Allreduce, Iallreduce, in, MPI_IN_PLACE, 1, MPI_INT,
            MPI_SUM, comm),
      FORMS("allgather into MPI_IN_PLACE", Allgather, Iallgather, in, 1, MPI_INT, MPI_IN_PLACE, 1,
            MPI_INT, comm),
      FORMS("alltoall into MPI_IN_PLACE", Alltoall, Ialltoall, in, 1, MPI_INT, MPI_IN_PLACE, 1,
            MPI_INT, comm),
      FORMS("scan into MPI_IN_PLACE", Scan, Iscan, in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm),
  };
#if !defined(OPEN_MPI)  // Open MPI takes these; test_aliases has them
  std::vector<Case> aliases = {
      FORMS("allreduce, one buffer", Allreduce, Iallreduce, in, in, 4, MPI_INT, MPI_SUM, comm),
      FORMS("alltoall, one buffer", Alltoall, Ialltoall, in, 1, MPI_INT, in, 1, MPI_INT, comm),
      FORMS("allgather, own block as input", Allgather, Iallgather, out + world_rank(), 1, MPI_INT,
            out, 1, MPI_INT, comm),
      FORMS("bcast, no buffer", Bcast, Ibcast, nullptr, 1, MPI_INT, 0, comm),
      FORMS("allreduce, no buffer", Allreduce, Iallreduce, nullptr, out, 1, MPI_INT, MPI_SUM, comm),
  };
  cases.insert(cases.end(), aliases.begin(), aliases.end());
#endif
  return cases;
}

std::vector<Case> null_communicator() {
  int* const in = g_in;
  int* const out = g_out;
  return {
      FORMS("barrier, no communicator", Barrier, Ibarrier, MPI_COMM_NULL),
      FORMS("bcast, no communicator", Bcast, Ibcast, in, 1, MPI_INT, 0, MPI_COMM_NULL),
      FORMS("allreduce, no communicator", Allreduce, Iallreduce, in, out, 1, MPI_INT, MPI_SUM,
            MPI_COMM_NULL),
      FORMS("scan, no communicator", Scan, Iscan, in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL),
      FORMS("alltoall, no communicator", Alltoall, Ialltoall, in, 1, MPI_INT, out, 1, MPI_INT,
            MPI_COMM_NULL),
  };
}

// Not committed, so not for communication; committed later, it is.
void test_uncommitted(MPI_Comm comm) {
  MPI_Datatype type{};
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  int* const in = g_in;
  compare(CASE("bcast of a type that is not committed", Bcast(in, 1, type, 0, comm)));
  MPI_Type_commit(&type);
  MustTake must("bcast");
  check(MPI_Bcast(in, 1, type, 0, comm) == MPI_SUCCESS, "bcast of a type committed late");
  must.expect();
  MPI_Type_free(&type);
}

// Open MPI accepts one buffer as both input and output, as if in place: so must carillon.
void test_aliases(MPI_Comm comm) {
#if defined(OPEN_MPI)
  MustTake allreduce("allreduce"), allgather("allgather");
  int number = world_rank() + 1;
  check(MPI_Allreduce(&number, &number, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS &&
            number == world_size() * (world_size() + 1) / 2,
        "allreduce with one buffer");
  allreduce.expect();
  std::vector<int> all(static_cast<std::size_t>(world_size()), -1);
  int* const own = &all[static_cast<std::size_t>(world_rank())];
  *own = world_rank();
  check(MPI_Allgather(own, 1, MPI_INT, all.data(), 1, MPI_INT, comm) == MPI_SUCCESS,
        "allgather with its own block as input");
  allgather.expect();
  for (int i = 0; i < world_size(); ++i) {
    check(all[static_cast<std::size_t>(i)] == i, "allgather with its own block as input: data");
  }
#endif
  (void)comm;
}

// What only carillon sees: sizes that do not fit together on one rank.
void test_sizes_that_differ(MPI_Comm comm) {
  const Answer answer =
      answer_of([=] { return MPI_Allgather(g_in, 2, MPI_INT, g_out, 1, MPI_INT, comm); });
  check(answer.error_class == MPI_ERR_TRUNCATE && answer.handled == 1,
        "allgather of two into one: " + text_of(answer));
}

// Error handlers are the program's: they may call collectives, and need not return.
void collect_in_handler(MPI_Comm* /*comm*/, int* /*code*/, ...) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(sum == world_size(), "an allreduce in an error handler");
}

[[noreturn]] void throw_out(MPI_Comm* /*comm*/, int* code, ...) { throw *code; }

using Wrong = int (*)(MPI_Comm comm);
int wrong_sizes(MPI_Comm comm) { return MPI_Allgather(g_in, 2, MPI_INT, g_out, 1, MPI_INT, comm); }
int wrong_root(MPI_Comm comm) { return MPI_Bcast(g_in, 1, MPI_INT, world_size(), comm); }

void test_handler(MPI_Comm comm, MPI_Comm_errhandler_function* function, const char* name,
                  Wrong wrong) {
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(function, &handler);
  // Where an error has no communicator: of MPI_COMM_WORLD, or, since MPI 4, of MPI_COMM_SELF.
  const std::array<MPI_Comm, 3> comms = {comm, MPI_COMM_WORLD, MPI_COMM_SELF};
  for (MPI_Comm one : comms) MPI_Comm_set_errhandler(one, handler);
  MustTake allreduce("allreduce"), barrier("barrier");
  if (setjmp(g_way_out) == 0) {
    try {
      wrong(comm);
      check(function == collect_in_handler, std::string(name) + ": was not called");
    } catch (int) {  // throw_out's
    }
  }
  if (function == collect_in_handler) allreduce.expect();
  int one = 1, ranks = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(ranks == world_size(), std::string(name) + ": the collective after it");
  MPI_Barrier(comm);
  barrier.expect();
  MPI_Barrier(MPI_COMM_WORLD);
  barrier.expect();
  for (MPI_Comm one : comms) MPI_Comm_set_errhandler(one, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

void test_handlers_of_the_program() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  test_handler(comm, collect_in_handler, "a handler that collects", wrong_sizes);
  test_handler(comm, jump_out, "a handler that jumps", wrong_sizes);
  test_handler(comm, throw_out, "a handler that throws", wrong_sizes);
  test_handler(comm, throw_out, "a handler that throws in the MPI", wrong_root);
#if !defined(OPEN_MPI)  // which cannot tell what is no communicator any more
  const Wrong no_communicator = [](MPI_Comm /*comm*/) {
    MPI_Comm freed = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &freed);
    const MPI_Comm kept = freed;
    MPI_Comm_free(&freed);
    return MPI_Barrier(kept);
  };
  test_handler(comm, jump_out, "a handler for what is no communicator", no_communicator);
#endif
  MPI_Comm_free(&comm);
}

void test_all(MPI_Comm comm) {
  MPI_Comm line = MPI_COMM_NULL;
  const int ranks = world_size(), no = 0;
  MPI_Cart_create(comm, 1, &ranks, &no, 0, &line);
  for (const auto& cases : {counts_and_roots(comm), types_and_ops(comm), places(comm),
                            lists_and_neighbours(comm, line)}) {
    for (const Case& test : cases) compare(test);
  }
  MPI_Comm_free(&line);
  test_no_places(comm);
  test_uncommitted(comm);
  test_aliases(comm);
  test_sizes_that_differ(comm);
}

void test_handlers() {
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);  // some errors are raised there
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  test_all(comm);
  for (const Case& test : null_communicator()) compare(test);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&handler);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  for (int i = 0; i < 64; ++i) {
    mpi_test::g_ones[i] = 1;
    mpi_test::g_offsets[i] = i;
    mpi_test::g_negative[i] = -1;
  }
  mpi_test::test_handlers();
  mpi_test::test_handlers_of_the_program();
  // After errors, everything still works.
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  mpi_test::check(sum == mpi_test::world_size(), "allreduce after errors");
  return mpi_test::end();
}
