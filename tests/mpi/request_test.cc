// SPDX-License-Identifier: Apache-2.0
//
// Non-blocking collectives through every function that completes requests: alone, among
// point-to-point requests, many at once, on several communicators, in any order, each against what
// the MPI's own collective gives. Hangs are found by the test's time limit.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>

#include "started.h"
#include "support.h"

namespace mpi_test {
namespace {

constexpr int kTag = 5;

// Collectives on several communicators and messages, all in one array.
void mixed_array(const std::vector<MPI_Comm>& comms, Complete complete, int count, int seed) {
  const int next = (world_rank() + 1) % world_size();
  const int previous = (world_rank() + world_size() - 1) % world_size();
  std::vector<std::unique_ptr<Started>> all;
  std::vector<MPI_Request> requests;
  std::vector<int> sent(Started::kKinds), received(Started::kKinds, -1);
  for (std::size_t i = 0; i < Started::kKinds; ++i) {
    const std::size_t kind = i + static_cast<std::size_t>(seed);
    all.push_back(std::make_unique<Started>(kind, comms[i % comms.size()], count,
                                            seed + static_cast<int>(i)));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&received[i], 1, MPI_INT, previous, kTag, MPI_COMM_WORLD, &request);
    requests.push_back(request);
    all.back()->start(&request);
    check(request != MPI_REQUEST_NULL, "a handle");
    requests.push_back(request);
  }
  std::vector<MPI_Request> sends(Started::kKinds);
  for (std::size_t i = 0; i < Started::kKinds; ++i) {
    sent[i] = world_rank() * 100 + static_cast<int>(i);
    MPI_Isend(&sent[i], 1, MPI_INT, next, kTag, MPI_COMM_WORLD, &sends[i]);
  }
  complete(requests);
  for (const MPI_Request request : requests) {
    check(request == MPI_REQUEST_NULL, "a handle after its end");
  }
  MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < Started::kKinds; ++i) {
    check(received[i] == previous * 100 + static_cast<int>(i), "a message among collectives");
    all[i]->check_result();
  }
}

// A hundred at once on one communicator.
void many(MPI_Comm comm, Complete complete) {
  constexpr int kMany = 100;
  std::vector<std::unique_ptr<Started>> all;
  std::vector<MPI_Request> requests(kMany, MPI_REQUEST_NULL);
  for (int i = 0; i < kMany; ++i) {
    all.push_back(std::make_unique<Started>(static_cast<std::size_t>(i), comm, 1 + i % 50, i));
    all.back()->start(&requests[static_cast<std::size_t>(i)]);
  }
  complete(requests);
  for (const auto& one : all) one->check_result();
}

// A communicator whose first collective is a non-blocking one; then it is freed before the end.
void first_of_communicator(std::size_t kind, Complete complete) {
  MPI_Comm comm = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  Started one(kind, comm, 10, 3), two(kind + 1, comm, 2000, 4);
  std::vector<MPI_Request> requests(2, MPI_REQUEST_NULL);
  one.start(&requests[0]);
  two.start(&requests[1]);
  if (kind % 2 == 0) MPI_Barrier(comm);
  complete(requests);
  one.check_result();
  two.check_result();
  int in = world_rank(), out = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Comm_free(&comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(out == world_size() * (world_size() - 1) / 2, "a collective of a freed communicator");
}

// Collectives go on being started on communicators while one after the other learns whether it is
// served.
void several_in_the_making() {
  constexpr std::size_t kComms = 6, kCalls = 60;
  std::vector<MPI_Comm> comms(kComms, MPI_COMM_NULL);
  for (MPI_Comm& comm : comms) PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  Ints in(kCalls), out(kCalls, -1);
  std::vector<MPI_Request> requests(kCalls, MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < kCalls; ++i) {
    in[i] = world_rank() + static_cast<int>(i);
    MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comms[i % kComms], &requests[i]);
  }
  MPI_Waitall(static_cast<int>(kCalls), requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < kCalls; ++i) {
    const int ranks = world_size();
    check(out[i] == ranks * (ranks - 1) / 2 + ranks * static_cast<int>(i),
          "a sum on one of several communicators in the making");
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// The first collective of a communicator, which is freed at once.
void freed_at_once() {
  MPI_Comm comm = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int in = world_rank(), out = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Comm_free(&comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(out == world_size() * (world_size() - 1) / 2, "a collective of what is freed at once");
}

// One starts and completes on two communicators in one order, the others in the other.
void opposite_orders(const std::vector<MPI_Comm>& comms) {
  const bool swap = world_rank() % 2 == 1;
  Started first(3, comms[0], 100, 5), second(3, comms[1], 100, 6);
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  (swap ? second : first).start(&requests[swap ? 1 : 0]);
  (swap ? first : second).start(&requests[swap ? 0 : 1]);
  MPI_Wait(&requests[swap ? 0 : 1], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[swap ? 1 : 0], MPI_STATUS_IGNORE);
  first.check_result();
  second.check_result();
}

// What a rank waits in for a message of another one, to which it may send one, too.
enum class Wait {
  kReceive,
  kProbe,
  kMatch,
  kReplace,
  kAsk,
  kAskMatch,
  kLargeMatch,
  kLargeReplace,
  kPartition
};

bool replaces(Wait how) { return how == Wait::kReplace || how == Wait::kLargeReplace; }

#if MPI_VERSION >= 4
void wait_for_large(int from, Wait how, int* number, MPI_Status* status) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  if (how == Wait::kLargeReplace) {
    MPI_Sendrecv_replace_c(number, 1, MPI_INT, from, kTag, from, kTag, comm, status);
  } else if (how == Wait::kLargeMatch) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Mprobe(from, kTag, comm, &message, status);
    MPI_Mrecv_c(number, 1, MPI_INT, &message, status);
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Precv_init(number, 1, 1, MPI_INT, from, kTag, comm, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    for (int arrived = 0; arrived == 0;) MPI_Parrived(request, 0, &arrived);
    MPI_Wait(&request, status);
    MPI_Request_free(&request);
  }
}
#else
void wait_for_large(int /*from*/, Wait /*how*/, int* /*number*/, MPI_Status* /*status*/) {}
#endif

void wait_for_message(int from, Wait how, int* number, MPI_Status* status) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Message message = MPI_MESSAGE_NULL;
  int there = 0;
  switch (how) {
    case Wait::kAsk:
      while (there == 0) MPI_Iprobe(from, kTag, comm, &there, status);
      [[fallthrough]];
    case Wait::kReceive: MPI_Recv(number, 1, MPI_INT, from, kTag, comm, status); return;
    case Wait::kProbe:
      MPI_Probe(from, kTag, comm, status);
      MPI_Recv(number, 1, MPI_INT, from, kTag, comm, status);
      return;
    case Wait::kReplace:
      MPI_Sendrecv_replace(number, 1, MPI_INT, from, kTag, from, kTag, comm, status);
      return;
    case Wait::kAskMatch:
      while (there == 0) MPI_Improbe(from, kTag, comm, &there, &message, status);
      MPI_Mrecv(number, 1, MPI_INT, &message, status);
      return;
    case Wait::kMatch:
      MPI_Mprobe(from, kTag, comm, &message, status);
      MPI_Mrecv(number, 1, MPI_INT, &message, status);
      return;
    default: wait_for_large(from, how, number, status); return;
  }
}

void send_message(int to, [[maybe_unused]] Wait how, int number) {
#if MPI_VERSION >= 4
  if (how == Wait::kPartition) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Psend_init(&number, 1, 1, MPI_INT, to, kTag, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Pready(0, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    return;
  }
#endif
  MPI_Send(&number, 1, MPI_INT, to, kTag, MPI_COMM_WORLD);
}

constexpr Wait kWaits[] = {Wait::kReceive,    Wait::kProbe,        Wait::kMatch,    Wait::kReplace,
                           Wait::kAsk,        Wait::kAskMatch,
#if MPI_VERSION >= 4
                           Wait::kLargeMatch, Wait::kLargeReplace, Wait::kPartition
#endif
};

// Every rank but the last may have to pass the broadcast on, and all wait for messages of the last,
// which sends them only when it has the broadcast.
void forwarder_in_receive(int count, Wait how, MPI_Comm comm) {
  const int last = world_size() - 1;
  std::vector<double> data(static_cast<std::size_t>(count), world_rank() == 0 ? 1.5 : 0.0);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(data.data(), count, MPI_DOUBLE, 0, comm, &request);
  int number = world_rank();
  if (world_rank() == last) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < last; ++rank) {
      send_message(rank, how, number);
      int theirs = rank;
      if (replaces(how)) {
        MPI_Recv(&theirs, 1, MPI_INT, rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
      check(theirs == rank, "a message that is replaced");
    }
    return;
  }
  MPI_Status status;
  wait_for_message(last, how, &number, &status);
  check(number == last, "a message during a broadcast");
  check(status.MPI_SOURCE == last && status.MPI_TAG == kTag, "the status of a receive");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(std::count(data.begin(), data.end(), 1.5) == count, "a broadcast during a receive");
}

// The broadcast is the first collective of its communicator: every rank is needed for its team.
void member_in_receive(Wait how) {
  MPI_Comm comm = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  forwarder_in_receive(10, how, comm);
  MPI_Comm_free(&comm);
}

// Long messages of a type with gaps take each other's place in a ring.
void replaced_in_a_ring(int count) {
  const int next = (world_rank() + 1) % world_size();
  const int previous = (world_rank() + world_size() - 1) % world_size();
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  const auto value = [](int rank, std::size_t i) {
    return 1000 * rank + static_cast<int>(i % 997);
  };
  const auto size = static_cast<std::size_t>(3 * count);
  Ints data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = value(world_rank(), i);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Status status;
  MPI_Sendrecv_replace(data.data(), count, type, next, kTag, previous, kTag, MPI_COMM_WORLD,
                       &status);
  int elements = -1;
  MPI_Get_count(&status, type, &elements);
  check(elements == count && status.MPI_SOURCE == previous, "the status of what replaces");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (std::size_t i = 0; i < size; ++i) {
    check(data[i] == value(i % 3 == 1 ? world_rank() : previous, i), "what replaces a message");
  }
  MPI_Type_free(&type);
}

// What the program may free while a collective is in flight: its type and its operator.
void add_pairs(void* in, void* inout, int* length, MPI_Datatype* /*type*/) {
  for (int i = 0; i < 3 * *length; i += 3) {
    static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
    static_cast<int*>(inout)[i + 2] += static_cast<int*>(in)[i + 2];
  }
}

void freed_meanwhile(int count) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(add_pairs, 1, &op);
  const auto size = static_cast<std::size_t>(3 * count);
  Ints in(size, world_rank() + 1), sums(size, -1), data(size, world_rank() == 0 ? 9 : -1);
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Iallreduce(in.data(), sums.data(), count, type, op, MPI_COMM_WORLD, &requests[0]);
  MPI_Ibcast(data.data(), count, type, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&type);
  MPI_Op_free(&op);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  const int sum = world_size() * (world_size() + 1) / 2;
  for (std::size_t i = 0; i < size; ++i) {
    const bool gap = i % 3 == 1;
    check(sums[i] == (gap ? -1 : sum), "a sum of a type that is freed");
    check(data[i] == (gap && world_rank() != 0 ? -1 : 9), "a broadcast of a type that is freed");
  }
}

// More messages than MPICH 4.0 looks at in one go, the first ones persistent; nobody asks for their
// states.
void many_messages() {
  constexpr int kMessages = 50;
  const int before = (world_rank() + world_size() - 1) % world_size();
  const int behind = (world_rank() + 1) % world_size();
  std::vector<int> in(kMessages, -1), out(kMessages, world_rank());
  std::vector<MPI_Request> requests(std::size_t{2} * kMessages, MPI_REQUEST_NULL);
  MPI_Recv_init(&in[0], 1, MPI_INT, before, kTag, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(&out[0], 1, MPI_INT, behind, kTag, MPI_COMM_WORLD, &requests[1]);
  for (const bool waits : {true, false}) {
    std::fill(in.begin(), in.end(), -1);
    MPI_Startall(2, requests.data());
    for (std::size_t i = 1; i < kMessages; ++i) {
      MPI_Irecv(&in[i], 1, MPI_INT, before, kTag, MPI_COMM_WORLD, &requests[2 * i]);
      MPI_Isend(&out[i], 1, MPI_INT, behind, kTag, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    MPI_Request barrier = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    int done = 0;
    if (waits) MPI_Waitall(2 * kMessages, requests.data(), MPI_STATUSES_IGNORE);
    while (!waits && done == 0) {
      MPI_Testall(2 * kMessages, requests.data(), &done, MPI_STATUSES_IGNORE);
    }
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    check(in == std::vector<int>(kMessages, before), "many messages beside a collective");
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

void from_nobody() {
  MPI_Request barrier = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  int in = -1, out = 1;
  MPI_Status states[3];
  MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, kTag, MPI_COMM_WORLD, &states[0]);
  MPI_Sendrecv(&out, 1, MPI_INT, MPI_PROC_NULL, kTag, &in, 1, MPI_INT, MPI_PROC_NULL, kTag,
               MPI_COMM_WORLD, &states[1]);
  MPI_Sendrecv_replace(&in, 1, MPI_INT, MPI_PROC_NULL, kTag, MPI_PROC_NULL, kTag, MPI_COMM_WORLD,
                       &states[2]);
  MPI_Wait(&barrier, MPI_STATUS_IGNORE);
  for (const MPI_Status& state : states) {
    check(in == -1 && state.MPI_SOURCE == MPI_PROC_NULL && state.MPI_TAG == MPI_ANY_TAG,
          "what is received from nobody");
  }
}

// Of requests that are null or not active the status is empty, whatever else is in flight.
void none_is_active() {
  MPI_Request barrier = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  int in = -1, index = 0, count = -1;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Recv_init(&in, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD, &requests[1]);
  MPI_Status state;
  MPI_Status_set_elements(&state, MPI_INT, 7);
  state.MPI_SOURCE = state.MPI_TAG = 7;
  MPI_Waitany(2, requests, &index, &state);
  MPI_Get_count(&state, MPI_INT, &count);
  check(index == MPI_UNDEFINED && count == 0 && state.MPI_SOURCE == MPI_ANY_SOURCE &&
            state.MPI_TAG == MPI_ANY_TAG,
        "the status where none is active");
  MPI_Request_free(&requests[1]);
  MPI_Wait(&barrier, MPI_STATUS_IGNORE);
}

// A file is written by all, and rank 0 asks for that together with a barrier, to which the others
// come when the file is written. MPICH writes it step by step, in calls that are about its request.
void written_beside_a_barrier() {
  constexpr int kNumbers = 1000;
  char name[64];
  std::snprintf(name, sizeof(name), "/tmp/carillon_request_test.%d", static_cast<int>(getpid()));
  PMPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_File file{};
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                info, &file);
  MPI_Datatype every = MPI_DATATYPE_NULL;
  MPI_Type_vector(kNumbers, 1, world_size(), MPI_INT, &every);
  MPI_Type_commit(&every);
  const MPI_Offset first = world_rank() * static_cast<MPI_Offset>(sizeof(int));
  MPI_File_set_view(file, first, MPI_INT, every, "native", info);
  std::vector<int> numbers(kNumbers, world_rank());
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_File_iwrite_all(file, numbers.data(), kNumbers, MPI_INT, &requests[1]);
  if (world_rank() > 0) MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  std::fill(numbers.begin(), numbers.end(), -1);
  MPI_File_read_at(file, 0, numbers.data(), kNumbers, MPI_INT, MPI_STATUS_IGNORE);
  check(numbers == std::vector<int>(kNumbers, world_rank()), "what was written beside a barrier");
  MPI_File_close(&file);
  MPI_Type_free(&every);
  MPI_Info_free(&info);
}

void run() {
  std::vector<MPI_Comm> comms = {MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL, MPI_COMM_NULL};
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, -world_rank(), &comms[3]);
  int seed = 0;
  for (const Complete complete : kWays) {
    for (const int count : {1, 3, 5000}) mixed_array(comms, complete, count, ++seed);
    many(MPI_COMM_WORLD, complete);
    first_of_communicator(static_cast<std::size_t>(++seed), complete);
  }
  for (int round = 0; round < 20; ++round) several_in_the_making();
  for (int round = 0; round < 20; ++round) freed_at_once();
  many_messages();
  from_nobody();
  none_is_active();
  written_beside_a_barrier();
  for (int round = 0; round < 5; ++round) {
    opposite_orders({comms[0], comms[2]});
    for (const Wait how : kWaits) {
      for (const int count : {1, 100000}) forwarder_in_receive(count, how, MPI_COMM_WORLD);
      member_in_receive(how);
    }
    for (const int count : {0, 1, 50000}) replaced_in_a_ring(count);
    for (const int count : {1, 700}) freed_meanwhile(count);
  }
  const std::uint64_t count = all_calls(taken, Form::kStarted);
  const std::uint64_t left_count = all_calls(left, Form::kStarted);
  // Where carillon cannot serve the world, the results are the same.
  const bool served = std::getenv("MPI_TEST_UNSERVED") == nullptr;
  check(served ? count > 1500 && left_count == 0 : left_count > 1000,
        "carillon took " + std::to_string(count) + " and left " + std::to_string(left_count));
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
