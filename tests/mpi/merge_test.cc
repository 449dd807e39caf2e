// SPDX-License-Identifier: Apache-2.0
//
// Communicators of processes of several jobs: of parents and children, of children of several
// commands, and of jobs that meet at a port, merged. With CARILLON_MERGED=on carillon takes their
// collectives, from both sides, and those of their copies and parts; unless a job has it off.
//
//   merge_test                 all of it
//   merge_test off             carillon is off in the children's job: right, and left to the MPI
//   merge_test bare            the children have no carillon: the job ends with a line that says so
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "support.h"

extern char** environ;

namespace mpi_test {
namespace {

constexpr int kChildren = 2;
constexpr int kMostMerged = 7;  // of the groups that a process can be in; one is MPI_COMM_WORLD

std::string g_mode;
bool g_child = false;

int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

// The digits of one number after those of the other: does not commute.
int append(int number, int digits) {
  int factor = 10;
  while (factor <= digits) factor *= 10;
  return factor * number + digits;
}

void append_all(void* in, void* out, int* count, MPI_Datatype* /*type*/) {
  for (int i = 0; i < *count; ++i) {
    static_cast<int*>(out)[i] = append(static_cast<int*>(in)[i], static_cast<int*>(out)[i]);
  }
}

bool sums_are_right(MPI_Comm comm, bool started_first) {
  const int size = size_of(comm), mine = rank_in(comm) + 1, expected = size * (size + 1) / 2;
  int sum = 0, started_sum = 0, scanned = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (!started_first) MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Iallreduce(&mine, &started_sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (started_first) MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(append_all, 0, &op);
  MPI_Scan(&mine, &scanned, 1, MPI_INT, op, comm);
  MPI_Op_free(&op);
  int expected_scan = 1;
  for (int i = 2; i <= mine; ++i) expected_scan = append(expected_scan, i);
  return sum == expected && started_sum == expected && scanned == expected_scan;
}

bool data_is_right(MPI_Comm comm) {
  constexpr std::size_t kLong = (1U << 20) + 5;
  const int size = size_of(comm), rank = rank_in(comm), root = size - 1;
  Bytes bytes = rank == root ? pattern_block(root, 7, kLong) : Bytes(kLong);
  MPI_Bcast(bytes.data(), static_cast<int>(kLong), MPI_BYTE, root, comm);
  std::vector<int> in_counts, out_counts, in_offsets, out_offsets, in;
  int out_size = 0;
  for (int peer = 0; peer < size; ++peer) {
    in_offsets.push_back(static_cast<int>(in.size()));
    in_counts.push_back((rank + 2 * peer) % 3);
    in.insert(in.end(), static_cast<std::size_t>(in_counts.back()), 100 * rank + peer);
    out_offsets.push_back(out_size);
    out_counts.push_back((peer + 2 * rank) % 3);
    out_size += out_counts.back();
  }
  std::vector<int> out(static_cast<std::size_t>(out_size), -1), expected;
  MPI_Alltoallv(in.data(), in_counts.data(), in_offsets.data(), MPI_INT, out.data(),
                out_counts.data(), out_offsets.data(), MPI_INT, comm);
  for (int peer = 0; peer < size; ++peer) {
    expected.insert(expected.end(),
                    static_cast<std::size_t>(out_counts[static_cast<std::size_t>(peer)]),
                    100 * peer + rank);
  }
  return bytes == pattern_block(root, 7, kLong) && out == expected;
}

// Collectives on a communicator, which are all taken, or all left.
void exercise(MPI_Comm comm, const std::string& what, bool served, bool started_first = false) {
  static constexpr const char* kCalled[] = {"allreduce", "iallreduce", "scan", "bcast",
                                            "alltoallv"};
  std::vector<std::uint64_t> before;
  for (const char* each : kCalled) {
    before.push_back(taken(each));
    before.push_back(left(each));
  }
  check(sums_are_right(comm, started_first), what + ": sums");
  check(data_is_right(comm), what + ": data");
  for (std::size_t i = 0; i < std::size(kCalled); ++i) {
    const std::uint64_t more = taken(kCalled[i]) - before[2 * i];
    const std::uint64_t more_left = left(kCalled[i]) - before[2 * i + 1];
    check(more == (served ? 1 : 0) && more_left == (served ? 0 : 1),
          what + ": carillon took " + std::to_string(more) + " of " + kCalled[i] + " and left " +
              std::to_string(more_left));
  }
}

void exercise_and_free(MPI_Comm comm, const std::string& what, bool served) {
  if (comm == MPI_COMM_NULL) return;
  exercise(comm, what, served);
  MPI_Comm_free(&comm);
}

MPI_Comm merge(MPI_Comm inter, bool parents_first) {
  MPI_Comm merged = MPI_COMM_NULL;
  MPI_Intercomm_merge(inter, g_child == parents_first ? 1 : 0, &merged);
  return merged;
}

// What is made of a merged communicator.
void test_parts(MPI_Comm merged) {
  const int size = size_of(merged), rank = rank_in(merged);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(merged, &made);
  exercise(made, "a copy", true, true);
  MPI_Comm_free(&made);
  MPI_Comm_split(merged, g_child ? 1 : 0, 0, &made);
  exercise_and_free(made, "of one job", true);
  const int periods = 0;
  MPI_Cart_create(merged, 1, &size, &periods, 0, &made);
  exercise_and_free(made, "a grid", true);
  MPI_Group all = MPI_GROUP_NULL, ends = MPI_GROUP_NULL;
  const int both[2] = {0, size - 1};
  MPI_Comm_group(merged, &all);
  MPI_Group_incl(all, 2, both, &ends);
  if (rank == 0 || rank == size - 1) {
    MPI_Comm_create_group(merged, ends, 5, &made);
    exercise_and_free(made, "one of each job", true);
  }
  MPI_Group_free(&ends);
  MPI_Group_free(&all);
  MPI_Comm half = MPI_COMM_NULL, across = MPI_COMM_NULL;
  MPI_Comm_split(merged, rank % 2, -rank, &half);
  exercise(half, "every other rank", true);
  // The last even rank, and the last odd one, are the first of theirs.
  const int odd = size - 1 - size % 2, even = size - 2 + size % 2;
  MPI_Intercomm_create(half, 0, merged, rank % 2 == 0 ? odd : even, 3, &across);
  MPI_Intercomm_merge(across, rank % 2, &made);
  exercise_and_free(made, "merged of halves", true);
  MPI_Comm_free(&across);
  exercise_and_free(half, "every other rank, again", true);
}

// More than a process can serve at once; and as many again once they have been freed.
void test_many(MPI_Comm inter) {
  std::vector<MPI_Comm> kept;
  for (int i = 0; i < kMostMerged + 2; ++i) {
    kept.push_back(merge(inter, i % 2 == 0));
    exercise(kept.back(), "kept, " + std::to_string(i), i < kMostMerged);
  }
  for (MPI_Comm& each : kept) MPI_Comm_free(&each);
  for (int i = 0; i < kMostMerged + 2; ++i) {
    exercise_and_free(merge(inter, true), "freed, " + std::to_string(i), true);
  }
}

// A copy of what is freed goes on.
void test_one(MPI_Comm inter, const char* what) {
  MPI_Comm merged = merge(inter, true), copy = MPI_COMM_NULL;
  const bool served = g_mode != "off";
  exercise(merged, what, served);
  MPI_Comm_dup(merged, &copy);
  MPI_Comm_free(&merged);
  exercise_and_free(copy, std::string(what) + ": a copy", served);
}

// Empty: this MPI has none here.
void open_port(char* port) {
  for (MPI_Comm each : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
    MPI_Comm_set_errhandler(each, MPI_ERRORS_RETURN);
  }
  if (MPI_Open_port(MPI_INFO_NULL, port) != MPI_SUCCESS) {
    std::fputs("not tested: this MPI opens no port here\n", stderr);
    *port = '\0';
  }
  for (MPI_Comm each : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
    MPI_Comm_set_errhandler(each, MPI_ERRORS_ARE_FATAL);
  }
}

void test_port(MPI_Comm inter) {
  char port[MPI_MAX_PORT_NAME] = "";
  const bool first = world_rank() == 0;
  if (first && !g_child) open_port(port);
  if (!g_child) PMPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  const int root = g_child ? 0 : (first ? MPI_ROOT : MPI_PROC_NULL);
  PMPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, root, inter);
  if (*port == '\0') return;
  MPI_Comm met = MPI_COMM_NULL;
  if (g_child) {
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &met);
  } else {
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &met);
  }
  test_one(met, "met at a port");
  MPI_Comm_disconnect(&met);
  if (first && !g_child) MPI_Close_port(port);
}

// What both sides do.
void meet(MPI_Comm inter) {
  test_one(inter, "merged");
  if (g_mode == "off") return;
  MPI_Comm merged = merge(inter, false);
  exercise(merged, "children first", true, true);
  test_parts(merged);
  exercise_and_free(merged, "children first, again", true);
  test_port(inter);
  test_many(inter);
}

// A child's command: the variables of this process that matter, and the program.
class Command {
 public:
  Command(const char* program, const char* mode) {
    for (char** each = environ; *each != nullptr; ++each) {
      const std::string variable = *each;
      const bool is_ours = variable.starts_with("CARILLON") || variable.starts_with("LD_PRELOAD");
      if (is_ours && std::strcmp(mode, "bare") != 0) words_.push_back(variable);
    }
    if (std::strcmp(mode, "off") == 0) words_.emplace_back("CARILLON=off");
    words_.insert(words_.end(), {program, "child"});
    if (*mode != '\0') words_.emplace_back(mode);  // MPICH's launcher bears no empty word
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  char** arguments() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

// Launchers give the children the variables of their own; so a command gives them ours. False: some
// MPIs cannot spawn where they were started without their own process manager.
bool spawn(const char* program, bool several, MPI_Comm* children) {
  Command command(program, g_mode.c_str());
  char env[] = "env";
  char* commands[2] = {env, env};
  char** arguments[2] = {command.arguments(), command.arguments()};
  const int counts[2] = {1, kChildren - 1};
  const MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int status = several
                         ? MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0,
                                                   MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE)
                         : MPI_Comm_spawn(env, command.arguments(), kChildren, MPI_INFO_NULL, 0,
                                          MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  if (status == MPI_SUCCESS) return true;
  char why[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, why, &length);
  if (world_rank() == 0) std::fprintf(stderr, "skipped: this MPI cannot spawn here: %s\n", why);
  return false;
}

void be_parent(const char* program) {
  for (const bool several : {false, true}) {
    MPI_Comm children = MPI_COMM_NULL;
    if (!spawn(program, several, &children)) return;
    meet(children);
    int none = 0, bad = 0;
    PMPI_Allreduce(&none, &bad, 1, MPI_INT, MPI_SUM, children);  // of the other group
    check(bad == 0, "children have failed");
    MPI_Comm_disconnect(&children);
  }
}

void be_child() {
  MPI_Comm parents = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parents);
  meet(parents);
  int bad = failures(), none = 0;
  PMPI_Allreduce(&bad, &none, 1, MPI_INT, MPI_SUM, parents);
  MPI_Comm_disconnect(&parents);
}

// It has no carillon, and does not come to what the parents ask.
int be_bare() {
  MPI_Init(nullptr, nullptr);
  MPI_Comm parents = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parents);
  MPI_Intercomm_merge(parents, 1, &merged);
  MPI_Barrier(merged);
  MPI_Finalize();
  return 0;
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  g_child = argc > 1 && std::strcmp(argv[1], "child") == 0;
  g_mode = argc > (g_child ? 2 : 1) ? argv[argc - 1] : "";
  if (g_child && g_mode == "bare") return be_bare();
  begin(argc, argv);
  if (g_child) {
    be_child();
  } else {
    be_parent(argv[0]);
  }
  return end();
}
