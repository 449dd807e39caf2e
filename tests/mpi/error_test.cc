// SPDX-License-Identifier: Apache-2.0
//
// Wrong arguments: the error class, and the calls of the error handler, must be those of the MPI
// alone. Every case is run through MPI_ and through PMPI_.
#include <csetjmp>
#include <cstdio>
#include <functional>

#include "support.h"

namespace mpi_test {
namespace {

int g_handled = 0;

void handle(MPI_Comm* /*comm*/, int* /*code*/, ...) { ++g_handled; }

struct Answer {
  int error_class = MPI_SUCCESS;
  int handled = 0;
};

Answer answer_of(const std::function<int()>& call) {
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
  std::string name;
  std::function<int()> ours, theirs;
};

void compare(const Case& test) {
  const Answer theirs = answer_of(test.theirs), ours = answer_of(test.ours);
  if (world_rank() == 0 && theirs.error_class == MPI_SUCCESS && theirs.handled == 0) {
    std::fprintf(stderr, "note: this MPI accepts: %s\n", test.name.c_str());
  }
  // (MPICH 5 with the MPI 5 ABI tells the handler of an error, and then returns none.)
  const bool same_class = ours.error_class == theirs.error_class ||
                          (theirs.error_class == MPI_SUCCESS && theirs.handled > 0);
  check(same_class && ours.handled == theirs.handled, test.name + ": the MPI answers " +
                                                          text_of(theirs) +
                                                          ", with carillon it is " + text_of(ours));
}

// Both forms of one call.
#define CASE(name, call)                                          \
  {                                                               \
    name, [=] { return MPI_##call; }, [=] { return PMPI_##call; } \
  }

int g_in[64], g_out[64];
int g_ones[64], g_offsets[64];  // counts of one, blocks end to end

std::vector<Case> counts_and_roots(MPI_Comm comm) {
  int* const in = g_in;
  int* const out = g_out;
  const int size = world_size();
  std::vector<Case> cases = {
      CASE("bcast, negative count", Bcast(in, -1, MPI_INT, 0, comm)),
      CASE("bcast, root too large", Bcast(in, 1, MPI_INT, size, comm)),
      CASE("bcast, negative root", Bcast(in, 1, MPI_INT, -5, comm)),
      CASE("reduce, root too large", Reduce(in, out, 1, MPI_INT, MPI_SUM, size, comm)),
      CASE("gather, root too large", Gather(in, 1, MPI_INT, out, 1, MPI_INT, size + 3, comm)),
      CASE("scatter, root too large", Scatter(in, 1, MPI_INT, out, 1, MPI_INT, size, comm)),
      CASE("gatherv, root too large",
           Gatherv(in, 1, MPI_INT, out, g_ones, g_offsets, MPI_INT, size, comm)),
      CASE("scatterv, root too large",
           Scatterv(in, g_ones, g_offsets, MPI_INT, out, 1, MPI_INT, size, comm)),
  };
#if defined(OPEN_MPI)  // some MPICHs do not look at these, and crash
  std::vector<Case> more = {
      CASE("allreduce, no type", Allreduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm)),
      CASE("reduce, logical and of doubles", Reduce(in, out, 1, MPI_DOUBLE, MPI_LAND, 0, comm)),
      CASE("reduce, negative count", Reduce(in, out, -1, MPI_INT, MPI_SUM, 0, comm)),
      CASE("allreduce, negative count", Allreduce(in, out, -3, MPI_INT, MPI_SUM, comm)),
      CASE("gather, negative count", Gather(in, -1, MPI_INT, out, -1, MPI_INT, 0, comm)),
      CASE("scatter, negative count", Scatter(in, -1, MPI_INT, out, -1, MPI_INT, 0, comm)),
      CASE("allgather, negative count", Allgather(in, -1, MPI_INT, out, 1, MPI_INT, comm)),
      CASE("alltoall, negative count", Alltoall(in, 1, MPI_INT, out, -1, MPI_INT, comm)),
      CASE("reduce_scatter_block, negative count",
           Reduce_scatter_block(in, out, -1, MPI_INT, MPI_SUM, comm)),
      CASE("scan, negative count", Scan(in, out, -1, MPI_INT, MPI_SUM, comm)),
      CASE("exscan, negative count", Exscan(in, out, -1, MPI_INT, MPI_SUM, comm)),
      CASE("allgatherv, negative count",
           Allgatherv(in, -1, MPI_INT, out, g_ones, g_offsets, MPI_INT, comm)),
  };
  cases.insert(cases.end(), more.begin(), more.end());
#endif
  return cases;
}

std::vector<Case> types_and_ops(MPI_Comm comm) {
  int* const in = g_in;
  int* const out = g_out;
  return {
      CASE("bcast, no type", Bcast(in, 1, MPI_DATATYPE_NULL, 0, comm)),
      CASE("allreduce, no operator", Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, comm)),
      CASE("reduce, no operator", Reduce(in, out, 1, MPI_INT, MPI_OP_NULL, 0, comm)),
      CASE("allreduce, bits of doubles", Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, comm)),
      CASE("allreduce, sum of pairs", Allreduce(in, out, 1, MPI_2INT, MPI_SUM, comm)),
      CASE("allreduce, minloc of ints", Allreduce(in, out, 1, MPI_INT, MPI_MINLOC, comm)),
      CASE("allreduce, max of complex", Allreduce(in, out, 1, MPI_C_DOUBLE_COMPLEX, MPI_MAX, comm)),
      CASE("allreduce, replace", Allreduce(in, out, 1, MPI_INT, MPI_REPLACE, comm)),
      CASE("scan, no operator", Scan(in, out, 1, MPI_INT, MPI_OP_NULL, comm)),
      CASE("exscan, bits of doubles", Exscan(in, out, 1, MPI_DOUBLE, MPI_BAND, comm)),
      CASE("reduce_scatter, no operator",
           Reduce_scatter(in, out, g_ones, MPI_INT, MPI_OP_NULL, comm)),
      CASE("allgatherv, no type",
           Allgatherv(in, 1, MPI_DATATYPE_NULL, out, g_ones, g_offsets, MPI_INT, comm)),
      CASE("allgather, no type", Allgather(in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INT, comm)),
      CASE("alltoall, no type", Alltoall(in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, comm)),
      CASE("gather, no type", Gather(in, 1, MPI_DATATYPE_NULL, out, 1, MPI_DATATYPE_NULL, 0, comm)),
      CASE("scatter, no type",
           Scatter(in, 1, MPI_DATATYPE_NULL, out, 1, MPI_DATATYPE_NULL, 0, comm)),
  };
}

std::vector<Case> places(MPI_Comm comm) {
  int* const in = g_in;
  [[maybe_unused]] int* const out = g_out;
  std::vector<Case> cases = {
      CASE("allreduce into MPI_IN_PLACE", Allreduce(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm)),
      CASE("allgather into MPI_IN_PLACE",
           Allgather(in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm)),
      CASE("alltoall into MPI_IN_PLACE", Alltoall(in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm)),
      CASE("scan into MPI_IN_PLACE", Scan(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm)),
  };
#if !defined(OPEN_MPI)  // Open MPI takes these; test_aliases has them
  std::vector<Case> aliases = {
      CASE("allreduce, one buffer", Allreduce(in, in, 4, MPI_INT, MPI_SUM, comm)),
      CASE("alltoall, one buffer", Alltoall(in, 1, MPI_INT, in, 1, MPI_INT, comm)),
      CASE("allgather, own block as input",
           Allgather(out + world_rank(), 1, MPI_INT, out, 1, MPI_INT, comm)),
      CASE("bcast, no buffer", Bcast(nullptr, 1, MPI_INT, 0, comm)),
      CASE("allreduce, no buffer", Allreduce(nullptr, out, 1, MPI_INT, MPI_SUM, comm)),
  };
  cases.insert(cases.end(), aliases.begin(), aliases.end());
#endif
  return cases;
}

std::vector<Case> null_communicator() {
  int* const in = g_in;
  int* const out = g_out;
  return {
      CASE("barrier, no communicator", Barrier(MPI_COMM_NULL)),
      CASE("bcast, no communicator", Bcast(in, 1, MPI_INT, 0, MPI_COMM_NULL)),
      CASE("allreduce, no communicator", Allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL)),
      CASE("scan, no communicator", Scan(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL)),
      CASE("alltoall, no communicator", Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_NULL)),
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

std::jmp_buf g_way_out;
void jump_out(MPI_Comm* /*comm*/, int* /*code*/, ...) { std::longjmp(g_way_out, 1); }

using Wrong = int (*)(MPI_Comm comm);
int wrong_sizes(MPI_Comm comm) { return MPI_Allgather(g_in, 2, MPI_INT, g_out, 1, MPI_INT, comm); }

void test_handler(MPI_Comm comm, MPI_Comm_errhandler_function* function, const char* name,
                  Wrong wrong) {
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(function, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD,
                          handler);                 // where an error has no communicator: there, or
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);  // since MPI 4 here
  MustTake allreduce("allreduce"), barrier("barrier");
  if (setjmp(g_way_out) == 0) {
    wrong(comm);
    check(function != jump_out, std::string(name) + ": was not called");
  }
  if (function == collect_in_handler) allreduce.expect();
  MPI_Barrier(comm);
  barrier.expect();
  MPI_Barrier(MPI_COMM_WORLD);
  barrier.expect();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

void test_handlers_of_the_program() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  test_handler(comm, collect_in_handler, "a handler that collects", wrong_sizes);
  test_handler(comm, jump_out, "a handler that jumps", wrong_sizes);
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
  for (const auto& cases : {counts_and_roots(comm), types_and_ops(comm), places(comm)}) {
    for (const Case& test : cases) compare(test);
  }
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
  }
  mpi_test::test_handlers();
  mpi_test::test_handlers_of_the_program();
  // After errors, everything still works.
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  mpi_test::check(sum == mpi_test::world_size(), "allreduce after errors");
  return mpi_test::end();
}
