// SPDX-License-Identifier: Apache-2.0
//
// For the tests of requests: every collective, started or persistent, against what the MPI's own
// gives, and every way to complete an array of requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support.h"

namespace mpi_test {

using Ints = std::vector<int>;

enum class Form { kStarted, kPersistent, kNative };

/// A collective with buffers of its own: to be started, and checked when it has ended.
class Started {
 public:
  Started(std::size_t kind, MPI_Comm comm, int count, int seed);

  void start(MPI_Request* request) { call(Form::kStarted, out_.data(), request); }
  /// The persistent form, to be started by MPI_Start.
  void make(MPI_Request* request) { call(Form::kPersistent, out_.data(), request); }
  /// Other values, of the same numbers. Not while it is in flight.
  void refill(int seed);
  /// Collective: the MPI's own does the same.
  void check_result();

  static constexpr std::size_t kBarrier = 0, kBcast = 1, kKinds = 17;

 private:
  void call(Form form, int* out, MPI_Request* request);
  void call_of_lists(Form form, int* out, MPI_Request* request);

  std::size_t kind_;
  MPI_Comm comm_;
  int count_, seed_, rank_ = 0, size_ = 1, root_ = 0;
  Ints in_, out_, expected_, counts_, offsets_, recv_counts_;
  // Of alltoallw: each block in bytes or in integers, as both ends call it alike.
  Ints in_elements_, out_elements_, byte_offsets_;
  std::vector<MPI_Datatype> types_;
};

/// The sum of `counter` (taken or left) over all collectives in a form.
std::uint64_t all_calls(std::uint64_t (*counter)(const char*), Form form);

/// Completes all requests of an array; those of persistent operations stay.
using Complete = void (*)(std::vector<MPI_Request>& requests);
extern const std::vector<Complete> kWays;

}  // namespace mpi_test
