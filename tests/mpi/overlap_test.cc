// SPDX-License-Identifier: Apache-2.0
//
// With CARILLON_SERVLET=on: non-blocking collectives of 1 MiB end while no rank
// calls MPI. Each looks at its own output until what must come out stands there. And they end while
// a rank waits in a function of the MPI's own for those that wait for them first.
//
//   overlap_test waiting    without the servlet: the functions in which Open MPI calls carillon,
//   and
//                           with every MPI those that carillon sees
#include <sched.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support.h"

namespace mpi_test {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr int kCount = 131072;  // 1 MiB
constexpr double kPatienceS = 60;

Numbers numbers_of(int rank, int round, int count) {
  Numbers numbers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    numbers[static_cast<std::size_t>(i)] = (rank + 1) * 1000003LL + round * 7919 + i * 31LL;
  }
  return numbers;
}

Numbers sums(int round) {
  Numbers all(kCount);
  for (int rank = 0; rank < world_size(); ++rank) {
    const Numbers one = numbers_of(rank, round, kCount);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += one[i];
  }
  return all;
}

// No call of MPI's.
bool compute_until(const Numbers& out, const Numbers& expected, double begin) {
  const volatile std::int64_t* const now = out.data();
  for (std::size_t i = out.size(); i-- > 0;) {
    while (now[i] != expected[i]) {
      if (MPI_Wtime() - begin > kPatienceS) return false;
      sched_yield();
    }
  }
  return true;
}

void end(const char* name, MPI_Request* request, const Numbers& out, const Numbers& expected) {
  check(compute_until(out, expected, MPI_Wtime()), std::string(name) + " ends by itself");
  MPI_Wait(request, MPI_STATUS_IGNORE);
  check(out == expected, name);
}

void try_allreduce(int round) {
  const Numbers in = numbers_of(world_rank(), round, kCount);
  Numbers out(kCount);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(in.data(), out.data(), kCount, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
  end("iallreduce", &request, out, sums(round));
}

void try_bcast(int round) {
  const int root = round % world_size();
  const Numbers expected = numbers_of(root, round, kCount);
  Numbers data = world_rank() == root ? expected : Numbers(kCount);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(data.data(), kCount, MPI_INT64_T, root, MPI_COMM_WORLD, &request);
  end("ibcast", &request, data, expected);
}

void try_alltoallv(int round) {
  const int size = world_size();
  const int block = kCount / size;
  const Numbers in = numbers_of(world_rank(), round, block * size);
  Numbers out(in.size()), expected;
  std::vector<int> counts(static_cast<std::size_t>(size), block), places;
  for (int rank = 0; rank < size; ++rank) {
    places.push_back(rank * block);
    const Numbers theirs = numbers_of(rank, round, block * size);
    const auto mine = theirs.begin() + world_rank() * block;
    expected.insert(expected.end(), mine, mine + block);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ialltoallv(in.data(), counts.data(), places.data(), MPI_INT64_T, out.data(), counts.data(),
                 places.data(), MPI_INT64_T, MPI_COMM_WORLD, &request);
  end("ialltoallv", &request, out, expected);
}

// Rank 0 waits in `meet` for the others, which wait for the collective first.
template <typename Meet>
void try_behind(const char* name, int round, Meet meet) {
  const Numbers in = numbers_of(world_rank(), round, kCount);
  Numbers out(kCount);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(in.data(), out.data(), kCount, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
  if (world_rank() != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  meet();
  if (world_rank() == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(out == sums(round), std::string("iallreduce behind ") + name);
}

// All but the last rank, which may have to pass the broadcast on, wait in `meet` for that one.
template <typename Meet>
void try_bcast_behind(const char* name, int round, Meet meet) {
  const Numbers expected = numbers_of(0, round, kCount);
  Numbers data = world_rank() == 0 ? expected : Numbers(kCount);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(data.data(), kCount, MPI_INT64_T, 0, MPI_COMM_WORLD, &request);
  const bool last = world_rank() == world_size() - 1;
  if (last) MPI_Wait(&request, MPI_STATUS_IGNORE);
  meet();
  if (!last) MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(data == expected, std::string("ibcast behind ") + name);
}

// Not every way of Open MPI's messages has windows.
MPI_Win make_window() {
  // MPICH 4.0 puts 8 bytes in front of a window that is not aligned to 16.
  alignas(16) static std::int64_t memory = 0;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int made = MPI_Win_create(&memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  return made == MPI_SUCCESS ? win : MPI_WIN_NULL;
}

// The last rank has locked its window before rank 0 tries, which is not told before it is unlocked.
void try_behind_lock(MPI_Win win, int round) {
  const int last = world_size() - 1;
  const std::int64_t number = 7 + round;
  if (world_rank() == last) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win);
  PMPI_Barrier(MPI_COMM_WORLD);
  try_behind("MPI_Win_lock", round, [&] {
    if (world_rank() == last) MPI_Win_unlock(last, win);
    if (world_rank() != 0) return;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win);
    MPI_Put(&number, 1, MPI_INT64_T, last, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(last, win);
    std::int64_t got = 0;
    MPI_Get(&got, 1, MPI_INT64_T, last, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(last, win);
    check(got == number, "what was put into a locked window");
  });
}

// Rank 0 exposes its window to the last rank, which waits for the collective first.
void try_behind_exposure(MPI_Win win, int round) {
  const int first = 0, last = world_size() - 1;
  MPI_Group world = MPI_GROUP_NULL, peer = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, world_rank() == first ? &last : &first, &peer);
  try_behind("MPI_Win_wait", round, [&] {
    if (world_rank() == first) {
      MPI_Win_post(peer, 0, win);
      MPI_Win_wait(win);
    } else if (world_rank() == last) {
      MPI_Win_start(peer, 0, win);
      MPI_Win_complete(win);
    }
  });
  MPI_Group_free(&peer);
  MPI_Group_free(&world);
}

void behind_functions_that_are_seen() {
  MPI_Win win = make_window();
  for (int round = 0; round < 5 && win != MPI_WIN_NULL && world_size() > 1; ++round) {
    try_behind_exposure(win, round);
  }
  if (win != MPI_WIN_NULL) MPI_Win_free(&win);
}

void behind_functions_of_the_mpi() {
  MPI_Win win = make_window();
  for (int round = 0; round < 5 && win != MPI_WIN_NULL; ++round) {
    try_behind("MPI_Win_fence", round, [win] { MPI_Win_fence(0, win); });
    if (world_size() > 1) try_behind_lock(win, round);
  }
  if (win != MPI_WIN_NULL) MPI_Win_free(&win);
  for (int round = 0; round < 5; ++round) {
    try_bcast_behind("MPI_Comm_split", round, [] {
      MPI_Comm comm = MPI_COMM_NULL;
      MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, world_rank(), &comm);
      MPI_Comm_free(&comm);
    });
  }
  for (int round = 0; round < 5; ++round) {
    try_behind("MPI_Comm_dup", round, [] {
      MPI_Comm comm = MPI_COMM_NULL;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      MPI_Comm_free(&comm);
    });
  }
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  const bool waiting = argc > 1 && std::strcmp(argv[1], "waiting") == 0;
#ifdef OPEN_MPI
  const bool is_called = true;
#else
  const bool is_called = !waiting;
#endif
  MPI_Barrier(MPI_COMM_WORLD);  // the team is there
  for (int round = 0; round < 5 && !waiting; ++round) {
    try_allreduce(round);
    try_bcast(round);
    try_alltoallv(round);
  }
  behind_functions_that_are_seen();
  if (is_called) behind_functions_of_the_mpi();
  return end();
}
