// SPDX-License-Identifier: Apache-2.0
//
// Programs of sessions: without MPI_Init carillon must take the collectives of their communicators,
// get them right, end with the last session, and begin again with the next. session_outputs.py
// looks at what is printed and written.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
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

void test_group(const Session& session, const std::vector<int>& ranks, const char* what) {
  if (std::find(ranks.begin(), ranks.end(), g_rank) == ranks.end()) return;
  std::string tag = what;
  for (const int rank : ranks) tag += " " + std::to_string(rank);
  MPI_Comm comm = session.make(ranks, tag.c_str());
  check(is_right(comm), tag);
  MPI_Comm_free(&comm);
}

// More groups than a process can serve, if there are seven: right all the same, and no end that
// never comes.
void test_many() {
  const Session session;
  const std::uint64_t taken_before = taken("barrier"), left_before = left("barrier");
  for (int first = 0; first < g_ranks; ++first) {
    for (int second = first + 1; second < g_ranks; ++second) {
      test_group(session, {first, second}, "two");
      for (int third = second + 1; third < g_ranks; ++third) {
        test_group(session, {first, second, third}, "three");
      }
    }
  }
  const std::uint64_t more_left = left("barrier") - left_before;
  if (g_ranks <= 4) check(more_left == 0, "few groups must be taken");
  if (g_ranks >= 7) check(more_left > 0, "so many groups cannot all be taken");
  check(taken("barrier") - taken_before >= 5 || g_ranks <= 4, "some of many must be taken");
  MPI_Comm comm = session.make("all after many");
  check(is_right(comm), "all after many");
  MPI_Comm_free(&comm);
}

// One process keeps its session while those of the others come and go. What it has left of groups
// that the others have left must not keep it from entering more.
void test_others_go() {
  auto kept = std::make_unique<Session>();
  if (g_rank != 0) kept.reset();
  for (int round = 0; round < 12; ++round) {
    const Session session;
    const std::string tag = "round " + std::to_string(round) + " of one that stays";
    MPI_Comm comm = session.make(tag.c_str());
    expect_taken(comm, tag);
    MPI_Comm_free(&comm);
  }
}

MPI_Comm merge_halves(const Session& session, const std::string& tag) {
  const int other = 1 - g_rank % 2;
  std::vector<int> others;
  for (int i = other; i < g_ranks; i += 2) others.push_back(i);
  MPI_Group mine = session.some(every(2)), theirs = session.some(others);
  MPI_Comm inter = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, tag.c_str(), MPI_INFO_NULL,
                                   MPI_ERRORS_ARE_FATAL, &inter);
  MPI_Intercomm_merge(inter, g_rank % 2, &merged);
  MPI_Comm_free(&inter);
  MPI_Group_free(&mine);
  MPI_Group_free(&theirs);
  return merged;
}

void test_groups() {
  const Session session;
  MPI_Comm merged = merge_halves(session, "two groups");
  expect_taken(merged, "two groups, merged");
  MPI_Comm_free(&merged);
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

// One process comes to a communicator when MPI_Finalize has ended what MPI_Init had begun, the
// others before. (MPI_Finalize may wait for all; while there are sessions, MPICH's does not.)
void test_finalized_first() {
  const Session session;
  MPI_Init(nullptr, nullptr);
  if (g_rank == 0) MPI_Finalize();
  MPI_Comm comm = session.make("around MPI_Finalize");
  check(is_right(comm), "a communicator before one MPI_Finalize, and after another");
  if (g_rank != 0) MPI_Finalize();
  check(is_right(comm), "a communicator after that");
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
    {"others go", test_others_go},
    {"freed late", test_freed_late},
    {"memory", test_memory},
    {"init after", test_init_after},
    {"one again", test_one},
};

// Carillon begins and ends with each part.
void test_held() {
  const Hidden hidden;
  g_hidden = hidden.comm();
  for (const Part& part : kParts) {
    if (std::getenv("SESSION_TEST_SAYS") != nullptr) std::fprintf(stderr, "%s\n", part.name);
    part.run();
    const bool keeps = part.run == test_memory;  // what MPI_Alloc_mem gave stays to be seen
    const bool ended = leftovers() == g_kept || stays_to_exit();
    if (!keeps) check(ended, std::string(part.name) + ": something is left");
    if (keeps) g_kept = leftovers();
    check(is_right(hidden.comm()), "a communicator that was made in secret");
  }
}

// Two threads in turn, so that the last session of one ends while the other begins; and another
// one, which comes and goes as it likes, and merges.
void test_threads() {
  const Hidden hidden("MPI_THREAD_MULTIPLE");
  const std::uint64_t before = taken("barrier");
  std::atomic<int> turn = 0;
  const auto work = [&turn](int thread) {
    for (int round = 0; round < (thread < 2 ? 40 : 5); ++round) {
      while (thread < 2 && turn.load() < 2 * round + thread) std::this_thread::yield();
      const std::string tag = "thread " + std::to_string(thread) + "." + std::to_string(round);
      const Session session("MPI_THREAD_MULTIPLE");
      MPI_Comm comm = thread < 2 ? session.make(tag.c_str()) : merge_halves(session, tag);
      check(is_right(comm), tag);
      MPI_Comm_free(&comm);
      if (thread < 2) ++turn;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  check(taken("barrier") > before, "of the threads' collectives some must be taken");
  check(leftovers() == 0, "threads: something is left");
  const Session session;
  MPI_Comm comm = session.make("after threads");
  expect_taken(comm, "after threads");
  MPI_Comm_free(&comm);
}

bool g_finalizing = false;

// As of a library that has something to say to all, in MPI_Finalize; or after the last session, as
// MPICH has it, when carillon has ended on all.
int at_finalize(MPI_Comm /*comm*/, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  if (g_finalizing) {
    expect_taken(MPI_COMM_WORLD, "MPI_COMM_WORLD in MPI_Finalize", g_ranks > 2 ? kByMpi : 0);
  } else {
    check(is_right(MPI_COMM_WORLD), "MPI_COMM_WORLD after MPI_Finalize");
  }
  return MPI_SUCCESS;
}

// All but the last process have a session, and begin with it, before all call MPI_Init.
void test_mixed() {
  if (!kInitMayFollow) return;
  const Hidden hidden;
  auto session = std::make_unique<Session>();
  std::vector<int> some(static_cast<std::size_t>(g_ranks - 1));
  std::iota(some.begin(), some.end(), 0);
  const bool has_session = g_rank < g_ranks - 1;
  if (!has_session) session.reset();
  MPI_Comm comm = has_session ? session->make(some, "all but one") : MPI_COMM_NULL;
  MPI_Init(nullptr, nullptr);
  // Of two processes, the one that has a session has nobody to begin with.
  expect_taken(MPI_COMM_WORLD, "MPI_COMM_WORLD where some have sessions", g_ranks > 2 ? kByMpi : 0);
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, g_rank % 2, g_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - g_rank % 2, 0, &inter);
  MPI_Intercomm_merge(inter, g_rank % 2, &merged);
  expect_taken(merged, "halves, merged, where some have sessions", g_ranks > 2 ? kByMpi : 0);
  for (MPI_Comm* each : {&half, &inter, &merged}) MPI_Comm_free(each);
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
  g_finalizing = true;
  MPI_Finalize();
  g_finalizing = false;
  PMPI_Barrier(hidden.comm());  // some may end before others
  if (!has_session) return;
  if (g_ranks > 2) expect_taken(comm, "a communicator of those that have sessions");
  MPI_Comm_free(&comm);
}

// The MPI refuses process 2, which has no session, what carillon needs beside those that have some.
void test_refused() {
  const Hidden hidden;
  auto session = std::make_unique<Session>();
  if (g_rank == 2) session.reset();
  MPI_Comm comm = session ? session->make({0, 1}, "all but one") : MPI_COMM_NULL;
  MPI_Init(nullptr, nullptr);
  expect_left(MPI_COMM_WORLD, "MPI_COMM_WORLD where one is refused");
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, g_rank % 2, g_rank, &half);
  if (g_rank != 1) expect_left(half, "a half where one is refused");
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - g_rank % 2, 0, &inter);
  MPI_Intercomm_merge(inter, g_rank % 2, &merged);
  expect_left(merged, "halves, merged, where one is refused");
  for (MPI_Comm* each : {&half, &inter, &merged}) MPI_Comm_free(each);
  if (session) expect_taken(comm, "a communicator of those that have sessions", 0);
  MPI_Finalize();
  PMPI_Barrier(hidden.comm());  // some may end before others
  if (session) MPI_Comm_free(&comm);
}

// One process calls something else than the others.
void test_wrong() {
  const Session session;
  MPI_Comm comm = session.make("wrong");
  int number = 0;
  MPI_Bcast(&number, 1, MPI_INT, g_rank == 0 ? 0 : 1, comm);
}

// Groups that have no process in common.
void test_halves() {
  const Hidden hidden;
  const Session session;
  MPI_Comm half = session.make(every(2), "one of two halves");
  check(is_right(half), "one of two halves");
  MPI_Comm_free(&half);
}

constexpr Part kModes[] = {
    {"", test_one},
    {"held", test_held},
    {"off", test_off},
    {"init", test_init_before},
    {"mixed", test_mixed},
    {"refused", test_refused},
    {"threads", test_threads},
    {"finalized first", test_finalized_first},
    {"wrong", test_wrong},
    {"halves", test_halves},
};

int test(std::string_view mode) {
  for (const Part& one : kModes) {
    if (mode != one.name) continue;
    if (mode == "off") turn_off_rank_0();
    one.run();
    check(leftovers() == g_kept || stays_to_exit(), "something is left");
    return failures() > 0 ? 1 : 0;
  }
  return 2;
}

#endif

}  // namespace
}  // namespace mpi_test

// session_test [held | off | init | finalized first | mixed | refused | threads | wrong | halves]
int main(int argc, char** argv) { return mpi_test::test(argc > 1 ? argv[1] : ""); }
