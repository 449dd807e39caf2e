// SPDX-License-Identifier: Apache-2.0
//
// For the test of sessions: a session of the program's, and whether the collectives of a
// communicator have the right results, by carillon or by the MPI.
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "support.h"

// Open MPI 5 has sessions, though it is none of MPI 4.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define MPI_TEST_SESSIONS 1

namespace mpi_test {

#ifdef I_MPI_VERSION
constexpr bool kInitMayFollow = false;  // MPI_Init is refused where there was a session
#else
constexpr bool kInitMayFollow = true;
#endif

inline int g_ranks = 0, g_rank = 0;

// For a session of this thread level; null: of the MPI's choice.
inline MPI_Info make_info(const char* thread_level) {
  MPI_Info info = MPI_INFO_NULL;
  if (thread_level == nullptr) return info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", thread_level);
  return info;
}

// A session of the program.
class Session {
 public:
  explicit Session(const char* thread_level = nullptr) {
    MPI_Info info = make_info(thread_level);
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &handle_);
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    MPI_Group_from_session_pset(handle_, "mpi://WORLD", &all_);
    MPI_Group_rank(all_, &g_rank);
    MPI_Group_size(all_, &g_ranks);
  }
  ~Session() {
    MPI_Group_free(&all_);
    check(MPI_Session_finalize(&handle_) == MPI_SUCCESS, "the end of a session");
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] MPI_Group all() const { return all_; }
  [[nodiscard]] MPI_Group some(const std::vector<int>& ranks) const {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group_incl(all_, static_cast<int>(ranks.size()), ranks.data(), &group);
    return group;
  }
  /// Of all.
  [[nodiscard]] MPI_Comm make(const char* tag) const { return make_of(all_, tag); }
  /// Of some, this process among them.
  [[nodiscard]] MPI_Comm make(const std::vector<int>& ranks, const char* tag) const {
    MPI_Group group = some(ranks);
    MPI_Comm comm = make_of(group, tag);
    MPI_Group_free(&group);
    return comm;
  }

 private:
  static MPI_Comm make_of(MPI_Group group, const char* tag) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    return comm;
  }

  MPI_Session handle_ = MPI_SESSION_NULL;
  MPI_Group all_ = MPI_GROUP_NULL;
};

// A session that carillon knows nothing of, with a communicator of all. It keeps MPI there: some
// can begin but once (Open MPI 5.0.11, MPICH 4.0), or not reliably again (MPICH 5.0.2), or make no
// communicator of some before one of all (MPICH 4.0).
class Hidden {
 public:
  explicit Hidden(const char* thread_level = nullptr) {
    // The only one of these names that carillon does not have.
    Dl_info where{};
    dladdr(dlsym(RTLD_DEFAULT, "PMPI_Finalize"), &where);
    library_ = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    using Init = int (*)(MPI_Info, MPI_Errhandler, MPI_Session*);
    MPI_Info info = make_info(thread_level);
    reinterpret_cast<Init>(find("PMPI_Session_init"))(info, MPI_ERRORS_ARE_FATAL, &session_);
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
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

inline void add(void* in, void* out, int* count, MPI_Datatype* /*type*/) {
  for (int i = 0; i < *count; ++i) {
    static_cast<int*>(out)[i] += static_cast<int*>(in)[i];
  }
}

// Whether a blocking, a non-blocking and a persistent collective have the right results; of a
// predefined operator and of the program's, of all bytes and of some.
inline bool is_right(MPI_Comm comm) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int mine = rank + 1, expected = size * (size + 1) / 2;
  int sum = 0, started_sum = 0, persistent_sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&mine, &started_sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  bool right = sum == expected && started_sum == expected;
  MPI_Allreduce_init(&mine, &persistent_sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
  for (int round = 0; round < 2; ++round) {
    persistent_sum = 0;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    right = right && persistent_sum == expected;
  }
  MPI_Request_free(&request);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(add, 0, &op);
  sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, op, comm);
  MPI_Op_free(&op);
  right = right && sum == expected;
  MPI_Datatype pairs = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &pairs);
  MPI_Type_commit(&pairs);
  int numbers[3] = {rank == size - 1 ? 7 : 0, -1, rank == size - 1 ? 8 : 0};
  MPI_Bcast(numbers, 1, pairs, size - 1, comm);
  MPI_Type_free(&pairs);
  MPI_Barrier(comm);
  return right && numbers[0] == 7 && numbers[1] == -1 && numbers[2] == 8;
}

// Calls of is_right. Without MPI_Init, Open MPI cannot be asked to use the program's operator.
struct Counts {
  const char* collective;
  std::uint64_t calls, left;
};
#ifdef OPEN_MPI
constexpr std::uint64_t kByMpi = 1;
#else
constexpr std::uint64_t kByMpi = 0;
#endif
constexpr Counts kCalls[] = {{"allreduce", 2, kByMpi},
                             {"iallreduce", 1, 0},
                             {"bcast", 1, 0},
                             {"allreduce_init", 2, 0},
                             {"barrier", 1, 0}};

inline void expect_taken(MPI_Comm comm, const std::string& what, std::uint64_t by_mpi = kByMpi) {
  std::vector<std::uint64_t> before, left_before;
  for (const Counts& one : kCalls) before.push_back(taken(one.collective));
  for (const Counts& one : kCalls) left_before.push_back(left(one.collective));
  check(is_right(comm), what);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Counts& expected = kCalls[i];
    const std::uint64_t more = taken(expected.collective) - before[i];
    const std::uint64_t more_left = left(expected.collective) - left_before[i];
    const std::uint64_t must = expected.left == 0 ? 0 : by_mpi;
    check(more == expected.calls - must && more_left == must,
          what + ": carillon took " + std::to_string(more) + " of " + expected.collective +
              " and left " + std::to_string(more_left));
  }
}

inline void expect_left(MPI_Comm comm, const std::string& what) {
  const std::uint64_t before = taken("allreduce");
  check(is_right(comm), what);
  check(taken("allreduce") == before, what + " must be left to the MPI");
}

// Where calls are recorded or checked, carillon ends with the process.
inline bool stays_to_exit() {
  return std::getenv("CARILLON_CHECK") != nullptr || std::getenv("CARILLON_RECORD") != nullptr;
}

// What carillon has open, or has left for others to find.
inline int leftovers() {
  int count = 0;
  for (const char* name : {"/proc/self/fd", "/dev/shm"}) {
    DIR* const folder = opendir(name);
    while (const dirent* const entry = folder == nullptr ? nullptr : readdir(folder)) {
      char target[256] = "";
      const std::string path = std::string(name) + "/" + entry->d_name;
      if (readlink(path.c_str(), target, sizeof(target) - 1) < 0) {
        std::snprintf(target, sizeof(target), "%s", entry->d_name);
      }
      if (std::strstr(target, "carillon") != nullptr) ++count;
    }
    if (folder != nullptr) closedir(folder);
  }
  return count;
}

inline std::vector<int> every(int step) {
  std::vector<int> ranks;
  for (int i = g_rank % step; i < g_ranks; i += step) ranks.push_back(i);
  return ranks;
}

}  // namespace mpi_test
#else

namespace mpi_test {

// What is there to test of an MPI without sessions.
inline int test(std::string_view /*part*/) {
  std::fprintf(stderr, "skipped: this MPI has no sessions\n");
  return 0;
}

}  // namespace mpi_test
#endif
