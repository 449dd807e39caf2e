// SPDX-License-Identifier: Apache-2.0
//
// A collective that the MPI itself calls while carillon calls it goes to the MPI: else carillon
// would enter its own call again. This program stands between the two, and is an MPI whose
// MPI_Grequest_start begins with a barrier; what became of that is read in the statistics.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "support.h"

namespace {

bool g_armed = false;
int g_nested = 0;

}  // namespace

extern "C" int PMPI_Grequest_start(MPI_Grequest_query_function* query,
                                   MPI_Grequest_free_function* release,
                                   MPI_Grequest_cancel_function* cancel, void* state,
                                   MPI_Request* request) {
  if (g_armed) {
    g_armed = false;
    ++g_nested;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  using Function = decltype(&PMPI_Grequest_start);
  const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "PMPI_Grequest_start"));
  return next(query, release, cancel, state, request);
}

namespace mpi_test {
namespace {

void test_nested() {
  {
    MustTake must("barrier");
    MPI_Barrier(MPI_COMM_WORLD);
    must.expect();
  }
  const std::uint64_t taken_before = taken("barrier"), left_before = left("barrier");
  const int in = world_rank() + 1;
  int out = 0;
  {
    MustTake must("iallreduce");
    MPI_Request request{};
    g_armed = true;
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    must.expect();
  }
  check(out == world_size() * (world_size() + 1) / 2, "iallreduce around a nested barrier");
  check(g_nested == 1, "the interposer has not come by here");
  check(taken("barrier") == taken_before && left("barrier") == left_before + 1,
        "the nested barrier was taken");
  MustTake must("barrier");  // and the next one of the program is carillon's again
  MPI_Barrier(MPI_COMM_WORLD);
  must.expect();
}

bool has_counted(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str().find(R"("collective":"Barrier","taken":2,)"
                         R"("left":{"called by the MPI itself":1})") != std::string::npos;
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  char folder[] = "/tmp/nested_test.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const std::string prefix = std::string(folder) + "/stats";
  setenv("CARILLON_STATS", prefix.c_str(), 1);
  mpi_test::begin(argc, argv);
  mpi_test::test_nested();
  const std::string file = prefix + "." + std::to_string(mpi_test::world_rank()) + ".json";
  int status = mpi_test::end();
  if (!mpi_test::has_counted(file)) {
    mpi_test::fail("the statistics do not have one barrier called by the MPI itself");
    status = 1;
  }
  std::remove(file.c_str());
  rmdir(folder);
  return status;
}
