// SPDX-License-Identifier: Apache-2.0
//
// Processes of sessions that are in as many groups as they can be with carillon: which count, and
// what becomes of a communicator for which there is no room. Of sessions in general session_test
// has it.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sessions.h"
#include "support.h"

namespace mpi_test {
namespace {

#ifdef MPI_TEST_SESSIONS

// Each of the others comes once to a process that stays, and leaves it. It hears of that only when
// they come again, all at once.
void test_left_behind() {
  const Hidden hidden;
  auto kept = std::make_unique<Session>();
  if (g_rank != 0) kept.reset();
  for (int other = 1; other < g_ranks; ++other) {
    if (g_rank != 0 && g_rank != other) continue;
    const std::string tag = "with " + std::to_string(other);
    const Session session;
    MPI_Comm pair = session.make({0, other}, tag.c_str());
    expect_taken(pair, tag);
    MPI_Comm_free(&pair);
  }
  const Session session;
  MPI_Comm comm = session.make("all after pairs");
  expect_taken(comm, "all, after pairs that have been left");
  MPI_Comm_free(&comm);
}

// More groups than rank 0 can be in, so that one is left. Then there is one that has all its
// processes, and they come to that, and to the first collective of the one that was left, each in
// an order of its own.
void test_stays_left() {
  const Hidden hidden;
  const Session session;
  std::vector<MPI_Comm> kept;
  const std::vector<std::vector<int>> groups = {{0, 1},    {0, 2},    {0, 3},    {0, 4},
                                                {0, 1, 2}, {0, 1, 3}, {0, 1, 4}, {0, 2, 3}};
  const auto is_in = [](const std::vector<int>& group) {
    return std::find(group.begin(), group.end(), g_rank) != group.end();
  };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!is_in(groups[i])) continue;
    kept.push_back(session.make(groups[i], ("group " + std::to_string(i)).c_str()));
    expect_taken(kept.back(), "one of few groups");
  }
  const std::vector<int> too_many = {0, 2, 4};
  MPI_Comm comm = is_in(too_many) ? session.make(too_many, "too many") : MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  if (g_rank < 2) MPI_Comm_free(&kept[0]);  // there is room again
  if (g_rank == 0) MPI_Ibarrier(comm, &request);
  MPI_Comm all = session.make("all, after too many");
  expect_taken(all, "all, after too many");
  if (is_in(too_many)) {
    if (g_rank != 0) MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm copy = MPI_COMM_NULL, part = MPI_COMM_NULL;
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_split(comm, 0, -g_rank, &part);
    expect_left(comm, "one that was left, though it could be served");
    expect_left(copy, "a copy of one that was left");
    expect_taken(part, "what was split from one that was left");
    for (MPI_Comm* each : {&comm, &copy, &part}) MPI_Comm_free(each);
  }
  MPI_Comm_free(&all);
  for (std::size_t i = g_rank < 2 ? 1 : 0; i < kept.size(); ++i) MPI_Comm_free(&kept[i]);
}

// session_limit_test "left behind" (9 ranks) | "stays left" (5 ranks)
int test(std::string_view part) {
  if (part == "left behind") {
    test_left_behind();
  } else if (part == "stays left") {
    test_stays_left();
  } else {
    return 2;
  }
  check(leftovers() == 0 || stays_to_exit(), "something is left");
  return failures() > 0 ? 1 : 0;
}

#endif

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) { return mpi_test::test(argc > 1 ? argv[1] : ""); }
