// SPDX-License-Identifier: Apache-2.0
//
// One rank has no memory for what carillon packs: it gets MPI_ERR_NO_MEM, the others get an error
// instead of waiting for ever, and other communicators go on. Hangs are found by the time limit.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "support.h"

namespace mpi_test {
namespace {

// Packed, 40 MB: more than malloc ever gives from what it has kept.
constexpr int kCount = 10 << 20;
constexpr std::size_t kGappedBytes = std::size_t{kCount} * 8;

// While one lives, this process gets hardly any more memory.
class NoMemory {
 public:
  NoMemory() {
    getrlimit(RLIMIT_AS, &before_);
    unsigned long pages = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    check(file != nullptr && std::fscanf(file, "%lu", &pages) == 1, "/proc/self/statm");
    if (file != nullptr) std::fclose(file);
    constexpr rlim_t kSlack = 8 << 20;
    const rlimit tight{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kSlack,
                       before_.rlim_max};
    check(setrlimit(RLIMIT_AS, &tight) == 0, "setrlimit");
  }
  ~NoMemory() { setrlimit(RLIMIT_AS, &before_); }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

 private:
  rlimit before_{};
};

void* memory(std::size_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int class_of(int code) {
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  return error_class;
}

void add(void* /*left*/, void* /*right*/, int* /*count*/, MPI_Datatype* /*type*/) {}

// An int in every other place. Elsewhere the same ints lie close together.
MPI_Datatype gapped_int() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(MPI_INT, 0, 8, &type);
  MPI_Type_commit(&type);
  return type;
}

using Call = std::function<int(MPI_Comm comm, MPI_Datatype type)>;

void test(const std::string& name, MPI_Datatype gapped, bool gapped_everywhere, const Call& call) {
  const bool poor = world_rank() == world_size() - 1;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  check(MPI_Barrier(comm) == MPI_SUCCESS, name + ": a barrier before");
  if (poor) {
    const NoMemory limit;
    const int code = call(comm, gapped);
    check(class_of(code) == MPI_ERR_NO_MEM, name + ": not MPI_ERR_NO_MEM");
  } else {
    call(comm, gapped_everywhere ? gapped : MPI_INT);  // may have been complete before
  }
  // The poor rank does nothing more that the others could hear of.
  if (!poor) check(MPI_Barrier(comm) != MPI_SUCCESS, name + ": a barrier after");
  PMPI_Barrier(MPI_COMM_WORLD);
  if (poor) check(MPI_Barrier(comm) != MPI_SUCCESS, name + ": a barrier after, poor rank");
  MPI_Comm_free(&comm);
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(sum == world_size(), name + ": another communicator after");
}

void test_all() {
  const int size = world_size(), last = size - 1;
  MPI_Datatype gapped = gapped_int();
  MPI_Op op{};
  MPI_Op_create(add, 1, &op);
  void* const in = memory(kGappedBytes);
  void* const out = memory(kGappedBytes);
  test("bcast, a reader", gapped, false,
       [&](MPI_Comm comm, MPI_Datatype type) { return MPI_Bcast(out, kCount, type, 0, comm); });
  test("bcast, the root", gapped, false,
       [&](MPI_Comm comm, MPI_Datatype type) { return MPI_Bcast(in, kCount, type, last, comm); });
  test("alltoallv", gapped, false, [&](MPI_Comm comm, MPI_Datatype type) {
    const std::vector<int> counts(static_cast<std::size_t>(size), kCount / size);
    std::vector<int> offsets;
    for (int i = 0; i < size; ++i) offsets.push_back(i * (kCount / size));
    return MPI_Alltoallv(in, counts.data(), offsets.data(), type, out, counts.data(),
                         offsets.data(), type, comm);
  });
  test("allreduce by a user's operator", gapped, true, [&](MPI_Comm comm, MPI_Datatype type) {
    return MPI_Allreduce(in, out, kCount, type, op, comm);
  });
  munmap(in, kGappedBytes);
  munmap(out, kGappedBytes);
  MPI_Op_free(&op);
  MPI_Type_free(&gapped);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  mpi_test::test_all();
  return mpi_test::end();
}
