// SPDX-License-Identifier: Apache-2.0
//
// Programs of sessions: without MPI_Init carillon must take the collectives of their communicators,
// get them right, end with the last session, and begin again with the next.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>
#include <thread>

#include "sessions.h"
#include "support.h"

namespace mpi_test {
namespace {

#ifdef MPI_TEST_SESSIONS

int g_kept = 0;  // leftovers that are right

// Communicators of all kinds from one of a group; one is never freed.
void test_one() {
  const Session session;
  MPI_Comm comm = session.make("one"), other = MPI_COMM_NULL;
  if (g_ranks == 1) {
    expect_left(comm, "a process alone");
    MPI_Comm_free(&comm);
    return;
  }
  expect_taken(comm, "a communicator of a session");
  check(leftovers() > 0, "what carillon has open is to be seen");
  MPI_Comm_dup(comm, &other);
  expect_taken(other, "its copy");
  MPI_Comm_free(&other);
  MPI_Comm_split(comm, g_rank % 2, -g_rank, &other);
  expect_taken(other, "a part of it");
  MPI_Comm_free(&other);
  MPI_Comm leaked = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &leaked);
  expect_taken(leaked, "one that is never freed");
  MPI_Comm_free(&comm);
}

// The first collective is a non-blocking one.
void test_started_first() {
  const Session session;
  MPI_Comm comm = session.make("started first");
  {
    MustTake must("iallreduce");
    must.expect();
    const int one = 1;
    int sum = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(sum == g_ranks, "iallreduce as the first collective");
  }
  expect_taken(comm, "a communicator whose first collective is a non-blocking one");
  MPI_Comm_free(&comm);
}

// A part of the processes comes first, then all, then another part.
void test_parts() {
  const Session session;
  MPI_Comm half = session.make(every(2), "half"), comm = session.make("all after parts"), self{};
  MPI_Comm third = session.make(every(3), "third");
  expect_taken(comm, "all, after parts");
  if (every(2).size() > 1) expect_taken(half, "a half");
  if (every(3).size() > 1) expect_taken(third, "a third");
  self = session.make({g_rank}, ("self " + std::to_string(g_rank)).c_str());
  expect_taken(self, "a process alone, beside others");
  for (MPI_Comm* each : {&half, &comm, &third, &self}) MPI_Comm_free(each);
}

// What was started in one world goes on while the process waits in another, for those who wait for
// the first.
void test_two_worlds() {
  const Session session;
  MPI_Comm half = session.make(every(2), "half of two worlds");
  MPI_Barrier(half);  // it stays in the world that it is in now
  MPI_Comm comm = session.make("whole");
  constexpr int kAtOnce = 12, kCount = 100000;
  const int one = 1;
  std::vector<int> in(kCount, 1);
  std::vector<std::vector<int>> outs(kAtOnce, std::vector<int>(kCount));
  int sum = 0, half_size = 0;
  MPI_Comm_size(half, &half_size);
  for (int round = 0; round < 4; ++round) {
    const bool waits_first = g_rank / 2 % 2 == round % 2;
    std::vector<MPI_Request> requests(kAtOnce, MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      MPI_Iallreduce(in.data(), outs[i].data(), kCount, MPI_INT, MPI_SUM, half, &requests[i]);
    }
    if (waits_first) MPI_Waitall(kAtOnce, requests.data(), MPI_STATUSES_IGNORE);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (!waits_first) MPI_Waitall(kAtOnce, requests.data(), MPI_STATUSES_IGNORE);
    check(sum == g_ranks, "an allreduce while others are in flight in another world");
    for (const std::vector<int>& out : outs) {
      check(out == std::vector<int>(kCount, half_size), "an iallreduce in another world");
    }
  }
  MPI_Comm_free(&half);
  MPI_Comm_free(&comm);
}

void test_overlapping() {
  auto* const first = new Session;
  MPI_Comm comm = first->make("first"), other = MPI_COMM_NULL;
  expect_taken(comm, "the first of two sessions");
  const Session second;
  MPI_Comm_free(&comm);
  delete first;
  other = second.make("second");
  expect_taken(other, "the second of two sessions");
  MPI_Comm_free(&other);
}

void test_groups() {
  const Session session;
  const int other = 1 - g_rank % 2;
  std::vector<int> others;
  for (int i = other; i < g_ranks; i += 2) others.push_back(i);
  MPI_Group mine = session.some(every(2)), theirs = session.some(others);
  MPI_Comm inter = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "two groups", MPI_INFO_NULL,
                                   MPI_ERRORS_ARE_FATAL, &inter);
  MPI_Intercomm_merge(inter, g_rank % 2, &merged);
  expect_taken(merged, "two groups, merged");
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Group_free(&mine);
  MPI_Group_free(&theirs);
}

// More groups than a process can serve: right all the same, and no end that never comes.
void test_many() {
  const Session session;
  for (int distance = 1; distance < g_ranks; ++distance) {
    for (int from = 0; from + distance < g_ranks; ++from) {
      if (g_rank != from && g_rank != from + distance) continue;
      const std::string tag = "pair " + std::to_string(from) + " " + std::to_string(distance);
      MPI_Comm pair = session.make({from, from + distance}, tag.c_str());
      check(is_right(pair), tag);
      MPI_Comm_free(&pair);
    }
  }
  MPI_Comm comm = session.make("all after many");
  check(is_right(comm), "all after many");
  MPI_Comm_free(&comm);
}

// Several threads, each with a session.
void test_threads() {
  const Session outer("MPI_THREAD_MULTIPLE");
  const auto work = [](int thread) {
    const std::string tag = "thread " + std::to_string(thread);
    const Session session("MPI_THREAD_MULTIPLE");
    for (int round = 0; round < 3; ++round) {
      MPI_Comm comm = session.make((tag + "." + std::to_string(round)).c_str());
      check(is_right(comm), tag);
      MPI_Comm_free(&comm);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

// Memory of MPI_Alloc_mem stays the program's when carillon has ended.
void test_memory() {
  int* numbers = nullptr;
  {
    const Session session;
    MPI_Comm comm = session.make("memory");
    MPI_Alloc_mem(4000, MPI_INFO_NULL, &numbers);
    for (int i = 0; i < 1000; ++i) numbers[i] = g_rank == 0 ? i : -1;
    MPI_Bcast(numbers, 1000, MPI_INT, 0, comm);
    check(numbers[999] == 999, "bcast from MPI_Alloc_mem");
    MPI_Comm_free(&comm);
  }
  numbers[0] = 1;
  const Session session;
  MPI_Comm comm = session.make("memory, again");
  expect_taken(comm, "a session after one whose memory is still there");
  MPI_Free_mem(numbers);
  MPI_Comm_free(&comm);
}

// MPI_Init while a session is there, and its end before the session's. Of three processes one had
// nobody to start with before.
void test_init_after() {
  if (!kInitMayFollow) return;
  const Session session;
  MPI_Comm half = g_ranks > 2 ? session.make(every(2), "half before MPI_Init")
                              : session.make("all before MPI_Init");
  MPI_Init(nullptr, nullptr);
  expect_taken(MPI_COMM_WORLD, "MPI_COMM_WORLD after a session");
  expect_taken(MPI_COMM_SELF, "MPI_COMM_SELF after a session");
  MPI_Comm comm = session.make("after MPI_Init");
  expect_taken(comm, "a communicator of a session after MPI_Init");
  MPI_Finalize();
  expect_taken(comm, "a communicator of a session after MPI_Finalize");
  if (every(2).size() > 1) expect_taken(half, "one from before MPI_Init");
  MPI_Comm_free(&half);
  MPI_Comm_free(&comm);
}

// MPI_Init comes before any communicator, and goes first.
void test_init_before() {
  if (!kInitMayFollow) return;
  const Session outer;
  MPI_Init(nullptr, nullptr);
  expect_taken(MPI_COMM_WORLD, "MPI_COMM_WORLD", 0);
  {
    const Session session;
    MPI_Comm comm = session.make("within MPI_Init");
    expect_taken(comm, "a session within MPI_Init", 0);
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  MPI_Comm comm = outer.make("after MPI_Finalize");
  if (g_ranks > 1) expect_taken(comm, "a session after MPI_Finalize");
  MPI_Comm_free(&comm);
}

// CARILLON=off on rank 0 alone.
void test_off() {
  const Session session;
  MPI_Comm comm = session.make("off on one");
  expect_left(comm, "carillon is off on one of them");
  std::vector<int> on(static_cast<std::size_t>(g_ranks - 1));
  std::iota(on.begin(), on.end(), 1);
  MPI_Comm others = g_rank > 0 ? session.make(on, "those where it is on") : MPI_COMM_NULL;
  if (on.size() > 1 && g_rank > 0) expect_taken(others, "those where it is on");
  if (others != MPI_COMM_NULL) MPI_Comm_free(&others);
  expect_left(comm, "carillon is off on one of them, again");
  MPI_Comm_free(&comm);
}

void turn_off_rank_0() {
  for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"}) {
    const char* const rank = std::getenv(name);
    if (rank != nullptr && std::string_view(rank) == "0") setenv("CARILLON", "off", 1);
  }
}

MPI_Comm g_hidden = MPI_COMM_NULL;  // of a session that carillon does not see

// A communicator is freed after the end of what it was served by.
void test_freed_late() {
  MPI_Comm late = MPI_COMM_NULL;
  {
    const Session session;
    MPI_Comm comm = session.make("freed in time");
    MPI_Comm_dup(g_hidden, &late);
    expect_taken(late, "a communicator that is freed late");
    MPI_Comm_free(&comm);
  }
  const Session session;
  MPI_Comm comm = session.make("after one that is freed late");
  expect_taken(comm, "beside one that is freed late");
  MPI_Comm_free(&late);
  expect_taken(comm, "after one was freed late");
  MPI_Comm_free(&comm);
}

struct Part {
  const char* name;
  void (*run)();
};
constexpr Part kParts[] = {
    {"one", test_one},
    {"started first", test_started_first},
    {"parts", test_parts},
    {"two worlds", test_two_worlds},
    {"overlapping", test_overlapping},
    {"groups", test_groups},
    {"many", test_many},
    {"freed late", test_freed_late},
    {"memory", test_memory},
    {"init after", test_init_after},
    {"one again", test_one},
};

// A session that carillon knows nothing of, with a communicator of all. It keeps MPI there: some
// can begin but once (Open MPI 5.0.11, MPICH 4.0), or not reliably again (MPICH 5.0.2), or make no
// communicator of some before one of all (MPICH 4.0).
class Hidden {
 public:
  Hidden() {
    // The only one of these names that carillon does not have.
    Dl_info info{};
    dladdr(dlsym(RTLD_DEFAULT, "PMPI_Finalize"), &info);
    library_ = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    using Init = int (*)(MPI_Info, MPI_Errhandler, MPI_Session*);
    reinterpret_cast<Init>(find("PMPI_Session_init"))(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                                      &session_);
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group_from_session_pset(session_, "mpi://WORLD", &all);
    PMPI_Comm_create_from_group(all, "hidden", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm_);
    MPI_Group_free(&all);
  }
  ~Hidden() {
    MPI_Comm_free(&comm_);
    using Finalize = int (*)(MPI_Session*);
    reinterpret_cast<Finalize>(find("PMPI_Session_finalize"))(&session_);
  }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;

  [[nodiscard]] MPI_Comm comm() const { return comm_; }

 private:
  void* find(const char* name) { return dlsym(library_, name); }

  void* library_ = nullptr;
  MPI_Session session_ = MPI_SESSION_NULL;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Carillon begins and ends with each part.
void test_held() {
  const Hidden hidden;
  g_hidden = hidden.comm();
  for (const Part& part : kParts) {
    if (std::getenv("SESSION_TEST_SAYS") != nullptr) std::fprintf(stderr, "%s\n", part.name);
    part.run();
    const bool keeps = part.run == test_memory;  // what MPI_Alloc_mem gave stays to be seen
    if (!keeps) check(leftovers() == g_kept, std::string(part.name) + ": something is left");
    if (keeps) g_kept = leftovers();
    check(is_right(hidden.comm()), "a communicator that was made in secret");
  }
}

int test(std::string_view mode) {
  if (mode == "held") {
    test_held();
  } else {
    if (mode == "off") turn_off_rank_0();
    void (*const run)() = mode == "off"       ? test_off
                          : mode == "init"    ? test_init_before
                          : mode == "threads" ? test_threads
                                              : test_one;
    run();
    check(leftovers() == 0, "something is left");
  }
  return failures() > 0 ? 1 : 0;
}

#else
int test(std::string_view /*mode*/) {
  std::fprintf(stderr, "skipped: this MPI has no sessions\n");
  return 0;
}
#endif

}  // namespace
}  // namespace mpi_test

// session_test [held | off | init | threads]
int main(int argc, char** argv) { return mpi_test::test(argc > 1 ? argv[1] : ""); }
