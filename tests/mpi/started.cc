// SPDX-License-Identifier: Apache-2.0
#include "started.h"

#include <algorithm>
#include <string>

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

namespace mpi_test {
namespace {

constexpr const char* kNames[] = {"barrier",
                                  "bcast",
                                  "reduce",
                                  "allreduce",
                                  "allgather",
                                  "alltoall",
                                  "gather",
                                  "scatter",
                                  "scan",
                                  "exscan",
                                  "reduce_scatter_block",
                                  "reduce_scatter",
                                  "allgatherv",
                                  "gatherv",
                                  "scatterv",
                                  "alltoallv",
                                  "alltoallw"};

}  // namespace

Started::Started(std::size_t kind, MPI_Comm comm, int count, int seed)
    : kind_(kind % kKinds), comm_(comm), count_(count), seed_(seed) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &size_);
  root_ = seed % size_;
  for (int i = 0; i < size_; ++i) {
    counts_.push_back(i % 2 == 0 ? count : 0);
    offsets_.push_back(i * count);
  }
  recv_counts_.assign(counts_.size(), counts_[static_cast<std::size_t>(rank_)]);
  constexpr int kIntBytes = static_cast<int>(sizeof(int));
  for (int i = 0; i < size_; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool in_bytes = (rank_ + i) % 2 == 0;
    types_.push_back(in_bytes ? MPI_BYTE : MPI_INT);
    in_elements_.push_back(counts_[at] * (in_bytes ? kIntBytes : 1));
    out_elements_.push_back(recv_counts_[at] * (in_bytes ? kIntBytes : 1));
    byte_offsets_.push_back(offsets_[at] * kIntBytes);
  }
  refill(seed);
}

void Started::refill(int seed) {
  const auto length = static_cast<std::size_t>(count_) * static_cast<std::size_t>(size_);
  in_.resize(length);
  for (std::size_t i = 0; i < length; ++i) {
    in_[i] = seed + 1000 * rank_ + static_cast<int>(i % 97);
  }
  out_.resize(length);
  std::fill(out_.begin(), out_.end(), -1);  // where it is, a persistent call knows it
  if (kind_ == kBcast) std::copy(in_.begin(), in_.end(), out_.begin());
  expected_ = out_;
}

// The three forms of one call. A macro, because they are three functions.
#define CALL(started, name, ...)                                                                  \
  switch (form) {                                                                                 \
    case Form::kStarted: MPI_##started(__VA_ARGS__, comm_, request); return;                      \
    case Form::kPersistent: PERSISTENT(name)(__VA_ARGS__, comm_, MPI_INFO_NULL, request); return; \
    default: PMPI_##name(__VA_ARGS__, comm_); return;                                             \
  }

void Started::call(Form form, int* out, MPI_Request* request) {
  const int* const in = in_.data();
  const int n = count_;
  switch (kind_) {
    case kBarrier:
      if (form == Form::kStarted) MPI_Ibarrier(comm_, request);
      if (form == Form::kPersistent) PERSISTENT(Barrier)(comm_, MPI_INFO_NULL, request);
      return;
    case kBcast: CALL(Ibcast, Bcast, out, n, MPI_INT, root_)
    case 2: CALL(Ireduce, Reduce, in, out, n, MPI_INT, MPI_SUM, root_)
    case 3: CALL(Iallreduce, Allreduce, in, out, n, MPI_INT, MPI_SUM)
    case 4: CALL(Iallgather, Allgather, in, n, MPI_INT, out, n, MPI_INT)
    case 5: CALL(Ialltoall, Alltoall, in, n, MPI_INT, out, n, MPI_INT)
    case 6: CALL(Igather, Gather, in, n, MPI_INT, out, n, MPI_INT, root_)
    case 7: CALL(Iscatter, Scatter, in, n, MPI_INT, out, n, MPI_INT, root_)
    case 8: CALL(Iscan, Scan, in, out, n, MPI_INT, MPI_SUM)
    case 9: CALL(Iexscan, Exscan, in, out, n, MPI_INT, MPI_SUM)
    case 10: CALL(Ireduce_scatter_block, Reduce_scatter_block, in, out, n, MPI_INT, MPI_SUM)
    default: call_of_lists(form, out, request);
  }
}

void Started::call_of_lists(Form form, int* out, MPI_Request* request) {
  const int* const in = in_.data();
  const int* const n = counts_.data();
  const int* const at = offsets_.data();
  const int* const m = recv_counts_.data();
  const int own = counts_[static_cast<std::size_t>(rank_)];
  switch (kind_) {
    case 11: CALL(Ireduce_scatter, Reduce_scatter, in, out, n, MPI_INT, MPI_SUM)
    case 12: CALL(Iallgatherv, Allgatherv, in, own, MPI_INT, out, n, at, MPI_INT)
    case 13: CALL(Igatherv, Gatherv, in, own, MPI_INT, out, n, at, MPI_INT, root_)
    case 14: CALL(Iscatterv, Scatterv, in, n, at, MPI_INT, out, own, MPI_INT, root_)
    case 15: CALL(Ialltoallv, Alltoallv, in, n, at, MPI_INT, out, m, at, MPI_INT)
    default:
      CALL(Ialltoallw, Alltoallw, in, in_elements_.data(), byte_offsets_.data(), types_.data(), out,
           out_elements_.data(), byte_offsets_.data(), types_.data())
  }
}

void Started::check_result() {
  call(Form::kNative, expected_.data(), nullptr);
  check(out_ == expected_, std::string(kNames[kind_]) + ", " + std::to_string(count_) +
                               " elements, seed " + std::to_string(seed_));
}

std::uint64_t all_calls(std::uint64_t (*counter)(const char*), Form form) {
  std::uint64_t sum = 0;
  for (const std::string name : kNames) {
    sum += counter((form == Form::kStarted ? "i" + name : name + "_init").c_str());
  }
  return sum;
}

namespace {

void wait_each(std::vector<MPI_Request>& requests) {
  for (MPI_Request& request : requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
}
void wait_each_backwards(std::vector<MPI_Request>& requests) {
  for (std::size_t i = requests.size(); i > 0; --i) {
    MPI_Status status;
    MPI_Wait(&requests[i - 1], &status);
  }
}
void wait_all(std::vector<MPI_Request>& requests) {
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}
void wait_any(std::vector<MPI_Request>& requests) {
  for (std::size_t i = 0; i <= requests.size(); ++i) {
    int index = -1;
    MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index, MPI_STATUS_IGNORE);
    check((index == MPI_UNDEFINED) == (i == requests.size()), "the index of waitany");
  }
}
void wait_some(std::vector<MPI_Request>& requests) {
  std::vector<int> indices(requests.size());
  std::vector<MPI_Status> statuses(requests.size());
  for (int left = static_cast<int>(requests.size()), done = 0; left > 0; left -= done) {
    MPI_Waitsome(static_cast<int>(requests.size()), requests.data(), &done, indices.data(),
                 statuses.data());
    check(done != MPI_UNDEFINED && done > 0 && done <= left, "the count of waitsome");
    if (done == MPI_UNDEFINED || done <= 0) return;
  }
}
void test_each(std::vector<MPI_Request>& requests) {
  for (MPI_Request& request : requests) {
    for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
}
void test_all(std::vector<MPI_Request>& requests) {
  for (int done = 0; done == 0;) {
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
  }
}
void test_any(std::vector<MPI_Request>& requests) {
  for (int index = 0, done = 0; done == 0 || index != MPI_UNDEFINED;) {
    MPI_Testany(static_cast<int>(requests.size()), requests.data(), &index, &done,
                MPI_STATUS_IGNORE);
  }
}
void test_some(std::vector<MPI_Request>& requests) {
  std::vector<int> indices(requests.size());
  for (int done = 0; done != MPI_UNDEFINED;) {
    MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &done, indices.data(),
                 MPI_STATUSES_IGNORE);
  }
}
void look_at_each(std::vector<MPI_Request>& requests) {
  for (MPI_Request& request : requests) {
    for (int done = 0; done == 0;) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    check(request != MPI_REQUEST_NULL, "the request after MPI_Request_get_status");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

// Of MPI 4.1.
#if 10 * MPI_VERSION + MPI_SUBVERSION >= 41
#define MPI_4_1_WAYS , look_at_all, look_at_any, look_at_some

void look_at_all(std::vector<MPI_Request>& requests) {
  const int count = static_cast<int>(requests.size());
  for (int done = 0; done == 0;) {
    MPI_Request_get_status_all(count, requests.data(), &done, MPI_STATUSES_IGNORE);
  }
  wait_all(requests);
}
void look_at_any(std::vector<MPI_Request>& requests) {
  const int count = static_cast<int>(requests.size());
  std::size_t ended = 0;
  for (int index = 0, done = 0;;) {
    MPI_Status status;
    MPI_Request_get_status_any(count, requests.data(), &index, &done, &status);
    if (done == 0) continue;
    if (index == MPI_UNDEFINED) break;
    MPI_Wait(&requests[static_cast<std::size_t>(index)], MPI_STATUS_IGNORE);
    ++ended;
  }
  check(ended == requests.size(), "requests that MPI_Request_get_status_any has told of");
}
void look_at_some(std::vector<MPI_Request>& requests) {
  const int count = static_cast<int>(requests.size());
  std::vector<int> indices(requests.size());
  std::vector<MPI_Status> statuses(requests.size());
  std::size_t ended = 0;
  for (int done = 0;;) {
    MPI_Request_get_status_some(count, requests.data(), &done, indices.data(), statuses.data());
    if (done == MPI_UNDEFINED) break;
    for (std::size_t k = 0; k < static_cast<std::size_t>(done); ++k, ++ended) {
      MPI_Wait(&requests[static_cast<std::size_t>(indices[k])], MPI_STATUS_IGNORE);
    }
  }
  check(ended == requests.size(), "requests that MPI_Request_get_status_some has told of");
}
#else
#define MPI_4_1_WAYS
#endif

}  // namespace

const std::vector<Complete> kWays = {wait_each, wait_each_backwards,
                                     wait_all,  wait_any,
                                     wait_some, test_each,
                                     test_all,  test_any,
                                     test_some, look_at_each MPI_4_1_WAYS};

}  // namespace mpi_test
