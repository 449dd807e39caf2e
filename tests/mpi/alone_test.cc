// SPDX-License-Identifier: Apache-2.0
//
// A rank makes something of itself alone while communicators whose first collectives are
// non-blocking ones are being copied for carillon, to some of which not all ranks have come. MPICH
// would stand still there for ever (shim/mpi/comm_copy.h). Hangs are found by the test's time
// limit.
#include <string>
#include <utility>

#include "support.h"

namespace mpi_test {
namespace {

// It does not know MPI_Comm_idup, and holds that two calls may say different ranks.
// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)

using Make = void (*)();

void copy() {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &made);
  MPI_Comm_free(&made);
}

void copy_meanwhile() {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_idup(MPI_COMM_SELF, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&made);
}

void split() {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_SELF, 0, 0, &made);
  MPI_Comm_free(&made);
}

void create_of_group() {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_SELF, &group);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_create_group(MPI_COMM_SELF, group, 3, &made);
  MPI_Group_free(&group);
  MPI_Comm_free(&made);
}

void open_file() {
  MPI_File file = MPI_FILE_NULL;
  MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  MPI_File_close(&file);
}

// A collective whose communicator carillon would copy, if it had more than one rank.
void start_alone() {
  MPI_Comm alone = MPI_COMM_NULL;
  PMPI_Comm_split(MPI_COMM_WORLD, world_rank(), 0, &alone);
  int in = world_rank(), out = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, alone, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(out == world_rank(), "a sum of one rank");
  MPI_Comm_free(&alone);
}

constexpr std::pair<const char*, Make> kMakes[] = {{"Comm_dup", copy},
                                                   {"Comm_idup", copy_meanwhile},
                                                   {"Comm_split", split},
                                                   {"Comm_create_group", create_of_group},
                                                   {"File_open", open_file}};

struct Sum {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  int in = 0, out = -1;

  Sum() { PMPI_Comm_dup(MPI_COMM_WORLD, &comm); }
  void start(int round) {
    in = world_rank() + round;
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
  }
  void end(int round, const std::string& what) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(out == world_size() * (world_size() - 1) / 2 + world_size() * round, what);
    MPI_Comm_free(&comm);
  }
};

// Rank 0 makes something after what the others have done before this, and before what they do next.
void make_in_between(Make make) {
  constexpr int kTag = 9;
  int token = world_rank();
  if (world_rank() != 0) {
    MPI_Send(&token, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD);
    MPI_Recv(&token, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  for (int rank = 1; rank < world_size(); ++rank) {
    MPI_Recv(&token, 1, MPI_INT, rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(token == rank, "a message before something is made");
  }
  make();
  for (int rank = 1; rank < world_size(); ++rank) {
    MPI_Send(&token, 1, MPI_INT, rank, kTag, MPI_COMM_WORLD);
  }
}

// Rank 0 starts two sums, the others at first only the second one, until rank 0 has made something.
void make_between(const char* name, Make make, int round) {
  Sum first, second;
  if (world_rank() == 0) {
    first.start(round);
    second.start(round);
    make_in_between(make);
  } else {
    second.start(round);
    make_in_between(nullptr);
    first.start(round);
  }
  first.end(round, std::string("the first sum around ") + name);
  second.end(round, std::string("the second sum around ") + name);
}

#ifndef OPEN_MPI
// A copy that the program makes itself, to which the others come late, and a sum.
void make_beside_copy(const char* name, Make make, int round) {
  Sum sum;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request copying = MPI_REQUEST_NULL;
  if (world_rank() == 0) {
    MPI_Comm_idup(MPI_COMM_WORLD, &made, &copying);
    sum.start(round);
    make_in_between(make);
  } else {
    sum.start(round);
    make_in_between(nullptr);
    MPI_Comm_idup(MPI_COMM_WORLD, &made, &copying);
  }
  MPI_Wait(&copying, MPI_STATUS_IGNORE);
  MPI_Comm_free(&made);
  sum.end(round, std::string("a sum beside a copy and ") + name);
}
#endif

// All of them on a rank that starts two sums before the others come to any.
void make_before(const char* name, Make make, int round) {
  Sum first, second;
  if (world_rank() == 0) {
    first.start(round);
    second.start(round);
    make();
  }
  PMPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() != 0) {
    second.start(round);
    first.start(round);
  }
  first.end(round, std::string("the first sum after ") + name);
  second.end(round, std::string("the second sum after ") + name);
}

// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  for (int round = 0; round < 30; ++round) {
    for (const auto& [name, make] : kMakes) {
      make_between(name, make, round);
      make_before(name, make, round);
#ifndef OPEN_MPI  // whose copies hold each other up
      make_beside_copy(name, make, round);
#endif
    }
    start_alone();
  }
  return end();
}
