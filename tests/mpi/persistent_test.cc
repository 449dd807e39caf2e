// SPDX-License-Identifier: Apache-2.0
//
// Persistent collectives: made once, started again and again, among persistent messages, through
// every function that completes requests, each time against what the MPI's own collective gives.
// Hangs are found by the test's time limit.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "started.h"
#include "support.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allgatherv_init MPIX_Allgatherv_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Alltoallv_init MPIX_Alltoallv_init
#define MPI_Alltoallw_init MPIX_Alltoallw_init
#define MPI_Barrier_init MPIX_Barrier_init
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Gatherv_init MPIX_Gatherv_init
#define MPI_Reduce_scatter_init MPIX_Reduce_scatter_init
#define MPI_Scatterv_init MPIX_Scatterv_init
#endif

namespace mpi_test {
namespace {

constexpr int kTag = 5, kRounds = 2;

bool served() { return std::getenv("MPI_TEST_UNSERVED") == nullptr; }

int sum_of_ranks() { return world_size() * (world_size() - 1) / 2; }

// Collectives on several communicators and messages, all in one array.
void mixed_array(const std::vector<MPI_Comm>& comms, Complete complete, int count, int seed) {
  const int next = (world_rank() + 1) % world_size();
  const int previous = (world_rank() + world_size() - 1) % world_size();
  std::vector<std::unique_ptr<Started>> all;
  std::vector<MPI_Request> requests;
  Ints sent(Started::kKinds), received(Started::kKinds);
  for (std::size_t i = 0; i < Started::kKinds; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Recv_init(&received[i], 1, MPI_INT, previous, kTag, MPI_COMM_WORLD, &request);
    requests.push_back(request);
    all.push_back(std::make_unique<Started>(i + static_cast<std::size_t>(seed),
                                            comms[i % comms.size()], count, seed));
    all.back()->make(&request);
    check(request != MPI_REQUEST_NULL, "a handle");
    requests.push_back(request);
    MPI_Send_init(&sent[i], 1, MPI_INT, next, kTag, MPI_COMM_WORLD, &request);
    requests.push_back(request);
  }
  const std::vector<MPI_Request> handles = requests;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < Started::kKinds; ++i) {
      sent[i] = world_rank() * 100 + static_cast<int>(i) + 10000 * round;
      all[i]->refill(seed + 7 * round + static_cast<int>(i));
    }
    MPI_Startall(static_cast<int>(requests.size()), requests.data());
    complete(requests);
    check(requests == handles, "handles after their operations' end");
    for (std::size_t i = 0; i < Started::kKinds; ++i) {
      const int expected = previous * 100 + static_cast<int>(i) + 10000 * round;
      check(received[i] == expected, "a message among collectives");
      all[i]->check_result();
    }
  }
  for (MPI_Request& request : requests) {
    MPI_Request_free(&request);
    check(request == MPI_REQUEST_NULL, "a freed handle");
  }
}

// Many, in another order each time and on each rank, which MPI allows; and among them others that
// are only started, in the same order on all.
void many(Complete complete) {
  constexpr int kMany = 40;
  std::vector<std::unique_ptr<Started>> all, others;
  std::vector<MPI_Request> requests(kMany, MPI_REQUEST_NULL);
  for (int i = 0; i < kMany; ++i) {
    const auto kind = static_cast<std::size_t>(i);
    all.push_back(std::make_unique<Started>(kind, MPI_COMM_WORLD, 1 + i, i));
    all.back()->make(&requests[kind]);
    others.push_back(std::make_unique<Started>(kind + 1, MPI_COMM_WORLD, 1 + i, i));
  }
  for (int round = 0; round < kRounds; ++round) {
    std::vector<MPI_Request> flying = requests;
    for (int i = 0; i < kMany; ++i) {
      // Not every host does this right alone.
      const int step = world_rank() % 2 == 0 || !served() ? 7 : 11;  // which do not divide kMany
      const int first = served() ? world_rank() : 0;
      const auto own = static_cast<std::size_t>((i * step + round + first) % kMany);
      all[own]->refill(round);
      MPI_Start(&flying[own]);
      if (i % 3 != 0) continue;
      const auto at = static_cast<std::size_t>((i * 7 + round) % kMany);
      others[at]->refill(round - i);
      flying.push_back(MPI_REQUEST_NULL);
      others[at]->start(&flying.back());
    }
    complete(flying);
    for (int i = 0; i < kMany; ++i) all[static_cast<std::size_t>(i)]->check_result();
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

void is_empty(const MPI_Status& status) {
  int count = -1, cancelled = 1;
  MPI_Get_count(&status, MPI_BYTE, &count);
  MPI_Test_cancelled(&status, &cancelled);
  check(count == 0 && cancelled == 0, "an empty status");
}

// Requests that have not been started, or have ended, are waited for at once.
void inactive() {
  int in = world_rank(), out = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < 2; ++round) {
    MPI_Status status;
    int done = 0, index = 0;
    MPI_Wait(&request, &status);
    is_empty(status);
    MPI_Test(&request, &done, &status);
    is_empty(status);
    check(done != 0, "a test of an inactive request");
    MPI_Request_get_status(request, &done, &status);
    check(done != 0, "the status of an inactive request");
    MPI_Waitany(1, &request, &index, &status);
    check(index == MPI_UNDEFINED, "a wait for any of one inactive request");
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    check(out == (round == 0 ? -1 : sum_of_ranks()), "what an inactive request does");
    if (round > 0) break;
    MPI_Start(&request);
    MPI_Wait(&request, &status);
    is_empty(status);
  }
  // One that is active among others that are not.
  MPI_Request requests[3] = {MPI_REQUEST_NULL, request, MPI_REQUEST_NULL};
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  in = 2 * world_rank();
  MPI_Start(&requests[1]);
  int index = -1;
  MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
  check(index == 1 && out == 2 * sum_of_ranks(), "the only active request");
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

// Of a collective that has ended a status says nothing, also while the request is still active.
// MPICH lets a look end a persistent operation for all that look later: so each has its own start.
void look(int (*look_at)(MPI_Request, int*, MPI_Status*)) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  const auto says_nothing = [](const MPI_Status& status) {
    is_empty(status);
    check(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG,
          "the status of a collective has a sender");
  };
  MPI_Status status;
  for (int done = 0; done == 0;) look_at(request, &done, &status);
  says_nothing(status);
  MPI_Wait(&request, &status);
  says_nothing(status);
  MPI_Request_free(&request);
}

void looked_at() {
  look(MPI_Request_get_status);
#if 10 * MPI_VERSION + MPI_SUBVERSION >= 41
  look([](MPI_Request request, int* done, MPI_Status* status) -> int {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, request};
    MPI_Status statuses[2];
    MPI_Request_get_status_all(2, requests, done, statuses);
    *status = statuses[1];
    return MPI_SUCCESS;
  });
  look([](MPI_Request request, int* done, MPI_Status* status) -> int {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, request};
    int index = -1;
    MPI_Request_get_status_any(2, requests, &index, done, status);
    check(*done == 0 || index == 1, "the index of any that have ended");
    return MPI_SUCCESS;
  });
  look([](MPI_Request request, int* done, MPI_Status* status) -> int {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, request};
    int index = -1;
    MPI_Request_get_status_some(2, requests, done, &index, status);
    check(*done == 0 || (*done == 1 && index == 1), "the index of some that have ended");
    return MPI_SUCCESS;
  });
#endif
}

// Ends though nobody waits for it.
void freed_while_active() {
  int in = world_rank() + 1;
  volatile int out = -1;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (MPI_Request& request : requests) {
    MPI_Allreduce_init(&in, const_cast<int*>(&out), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
  }
  for (int i = 0; i < 2; ++i) {
    out = -1;
    MPI_Start(&requests[i]);
    int done = 0;
    if (i == 1) MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[i]);
    check(requests[i] == MPI_REQUEST_NULL, "a freed handle");
    while (out != sum_of_ranks() + world_size()) {
      MPI_Request none = MPI_REQUEST_NULL;
      MPI_Test(&none, &done, MPI_STATUS_IGNORE);
    }
  }
}

void started_twice() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(MPI_Start(&request), &error_class);
  check(error_class == MPI_ERR_REQUEST, "the start of an active request");
  MPI_Error_class(MPI_Cancel(&request), &error_class);
  check(error_class == MPI_ERR_REQUEST, "a collective is not cancelled");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  MPI_Comm_free(&comm);
}

void add_pairs(void* in, void* inout, int* length, MPI_Datatype* /*type*/) {
  for (int i = 0; i < 3 * *length; i += 3) {
    static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
    static_cast<int*>(inout)[i + 2] += static_cast<int*>(in)[i + 2];
  }
}

// The program may free the type, the operator and the communicator before the first start.
void freed_before(int count) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(add_pairs, 1, &op);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const auto size = static_cast<std::size_t>(3 * count);
  Ints in(size), sums(size), data(size);
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Allreduce_init(in.data(), sums.data(), count, type, op, comm, MPI_INFO_NULL, &requests[0]);
  MPI_Bcast_init(data.data(), count, type, 0, comm, MPI_INFO_NULL, &requests[1]);
  MPI_Type_free(&type);
  MPI_Op_free(&op);
  MPI_Comm_free(&comm);
  for (int round = 1; round <= kRounds; ++round) {
    for (std::size_t i = 0; i < size; ++i) {
      in[i] = round * (world_rank() + 1) + static_cast<int>(i);
      data[i] = world_rank() == 0 ? round + static_cast<int>(i) : -1;
      sums[i] = -1;
    }
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < size; ++i) {
      const int at = static_cast<int>(i);
      const bool gap = i % 3 == 1;
      const int sum = round * (sum_of_ranks() + world_size()) + world_size() * at;
      check(sums[i] == (gap ? -1 : sum), "a sum of a type that is freed");
      check(data[i] == (gap && world_rank() != 0 ? -1 : round + at), "a broadcast of such a type");
    }
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

void in_place_and_nothing() {
  int value = 0;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Allreduce_init(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &requests[0]);
  MPI_Bcast_init(nullptr, 0, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  for (int round = 0; round < kRounds; ++round) {
    value = world_rank() + round;
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(value == world_size() - 1 + round, "a persistent maximum in place");
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

// The MPI's Fortran functions pass lists of types that they free at once.
void lists_gone(bool persistent) {
  const auto size = static_cast<std::size_t>(world_size());
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  Ints counts(size, 1), offsets(size), in(4 * size), out(4 * size, -1);
  std::vector<MPI_Datatype> types(size, type);
  for (std::size_t i = 0; i < size; ++i) offsets[i] = static_cast<int>(4 * i * sizeof(int));
  std::iota(in.begin(), in.end(), 100 * world_rank());
  MPI_Request request = MPI_REQUEST_NULL;
  if (persistent) {
    MPI_Alltoallw_init(in.data(), counts.data(), offsets.data(), types.data(), out.data(),
                       counts.data(), offsets.data(), types.data(), MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
  } else {
    MPI_Ialltoallw(in.data(), counts.data(), offsets.data(), types.data(), out.data(),
                   counts.data(), offsets.data(), types.data(), MPI_COMM_WORLD, &request);
  }
  std::fill(counts.begin(), counts.end(), -1);
  std::fill(offsets.begin(), offsets.end(), -1);
  std::fill(types.begin(), types.end(), MPI_DATATYPE_NULL);
  if (persistent) MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < 4 * world_size(); ++i) {
    const bool gap = i % 2 == 1;
    const int expected = 100 * (i / 4) + 4 * world_rank() + i % 4;
    check(out[static_cast<std::size_t>(i)] == (gap ? -1 : expected), "lists that are gone");
  }
  if (persistent) MPI_Request_free(&request);
  MPI_Type_free(&type);
}

// Pairs of ints with gaps, so that carillon packs and unpacks.
MPI_Datatype make_gapped() {
  MPI_Datatype two = MPI_DATATYPE_NULL, gapped = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &two);
  MPI_Type_create_resized(two, 0, 4 * sizeof(int), &gapped);
  MPI_Type_commit(&gapped);
  MPI_Type_free(&two);
  return gapped;
}

// The same of the other functions that have lists.
void other_lists_gone(bool persistent) {
  const auto size = static_cast<std::size_t>(world_size());
  const MPI_Comm all = MPI_COMM_WORLD;
  MPI_Datatype type = make_gapped();
  Ints n(size, 1), at(size), in(4 * size);
  std::iota(in.begin(), in.end(), 100 * world_rank());
  for (std::size_t i = 0; i < size; ++i) at[i] = static_cast<int>(size - 1 - i);
  std::vector<Ints> out(5, Ints(4 * size, -1)), expected = out;
  PMPI_Alltoallv(in.data(), n.data(), at.data(), type, expected[0].data(), n.data(), at.data(),
                 type, all);
  PMPI_Allgatherv(in.data(), 1, type, expected[1].data(), n.data(), at.data(), type, all);
  PMPI_Gatherv(in.data(), 1, type, expected[2].data(), n.data(), at.data(), type, 0, all);
  PMPI_Scatterv(in.data(), n.data(), at.data(), type, expected[3].data(), 1, type, 0, all);
  PMPI_Reduce_scatter(in.data(), expected[4].data(), n.data(), MPI_INT, MPI_SUM, all);
  std::vector<MPI_Request> made(out.size(), MPI_REQUEST_NULL);
  MPI_Request* to = made.data();
#define MAKE(started, name, ...)                                    \
  if (persistent) {                                                 \
    MPI_##name##_init(in.data(), __VA_ARGS__, MPI_INFO_NULL, to++); \
  } else {                                                          \
    MPI_##started(in.data(), __VA_ARGS__, to++);                    \
  }
  MAKE(Ialltoallv, Alltoallv, n.data(), at.data(), type, out[0].data(), n.data(), at.data(), type,
       all)
  MAKE(Iallgatherv, Allgatherv, 1, type, out[1].data(), n.data(), at.data(), type, all)
  MAKE(Igatherv, Gatherv, 1, type, out[2].data(), n.data(), at.data(), type, 0, all)
  MAKE(Iscatterv, Scatterv, n.data(), at.data(), type, out[3].data(), 1, type, 0, all)
  MAKE(Ireduce_scatter, Reduce_scatter, out[4].data(), n.data(), MPI_INT, MPI_SUM, all)
#undef MAKE
  std::fill(n.begin(), n.end(), -1);
  std::fill(at.begin(), at.end(), -1);
  MPI_Type_free(&type);
  const auto count = static_cast<int>(made.size());
  if (persistent) MPI_Startall(count, made.data());
  MPI_Waitall(count, made.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < out.size(); ++i) {
    check(out[i] == expected[i], "lists that are gone: function " + std::to_string(i));
    if (persistent) MPI_Request_free(&made[i]);
  }
}

#if MPI_VERSION >= 4
void large_counts() {
  const auto size = static_cast<std::size_t>(world_size());
  std::vector<MPI_Count> counts(size, 2);
  std::vector<MPI_Aint> offsets(size);
  for (std::size_t i = 0; i < size; ++i) offsets[i] = static_cast<MPI_Aint>(2 * (size - 1 - i));
  Ints in(2 * size), out(2 * size, -1);
  std::iota(in.begin(), in.end(), 100 * world_rank());
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Alltoallv_init_c(in.data(), counts.data(), offsets.data(), MPI_INT, out.data(), counts.data(),
                       offsets.data(), MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < 2; ++round) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  const int mine = 2 * (world_size() - 1 - world_rank());
  for (int i = 0; i < 2 * world_size(); ++i) {
    const int sender = world_size() - 1 - i / 2;
    check(out[static_cast<std::size_t>(i)] == 100 * sender + mine + i % 2, "large counts");
  }
}
#endif

void add_ints(void* in, void* inout, int* length, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  for (int i = 0; i < *length * bytes / static_cast<int>(sizeof(int)); ++i) {
    static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
  }
}

// Elements that fit in no slot are the MPI's, as turns out at the start.
void left_at_start() {
  constexpr int kInts = 20000;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(kInts, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(add_ints, 1, &op);
  Ints in(kInts), out(kInts);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Allreduce_init(in.data(), out.data(), 1, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < kRounds; ++round) {
    std::iota(in.begin(), in.end(), world_rank() + round);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < kInts; ++i) {
      const int expected = sum_of_ranks() + world_size() * (round + i);
      check(out[static_cast<std::size_t>(i)] == expected, "a sum that the MPI makes");
    }
  }
  MPI_Request_free(&request);
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

void run() {
  std::vector<MPI_Comm> comms = {MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL, MPI_COMM_NULL};
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, -world_rank(), &comms[3]);
  int seed = 0;
  for (const Complete complete : kWays) {
    const int count = ++seed % 2 == 0 ? 1 : 5000;
    mixed_array(comms, complete, count, seed);
    if (seed % 3 == 0) many(complete);
  }
  inactive();
  for (const int count : {1, 700}) freed_before(count);
  in_place_and_nothing();
#if MPI_VERSION >= 4
  large_counts();
#endif
  if (served()) {
    started_twice();
    looked_at();
    freed_while_active();
    for (const bool persistent : {false, true}) {
      lists_gone(persistent);
      other_lists_gone(persistent);
    }
  }
  const std::uint64_t count = all_calls(taken, Form::kPersistent);
  const std::uint64_t left_count = all_calls(left, Form::kPersistent);
  // Where carillon cannot serve the world, the results are the same.
  check(served() ? count > 500 && left_count == 0 : left_count > 200,
        "carillon took " + std::to_string(count) + " and left " + std::to_string(left_count));
  left_at_start();
  MPI_Request unfinished = MPI_REQUEST_NULL;  // MPI_Finalize ends it
  MPI_Barrier_init(comms[2], MPI_INFO_NULL, &unfinished);
  MPI_Comm_free(&comms[3]);
  MPI_Comm_free(&comms[2]);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  run();
  return end();
}
