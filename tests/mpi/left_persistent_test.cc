// SPDX-License-Identifier: Apache-2.0
//
// Persistent collectives that are left to the MPI, beside collectives of carillon's in one array:
// MPICH's MPI_Testall ends the process on them, its MPI_Waitall does not.
#include <array>

#include "support.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Neighbor_alltoall_init MPIX_Neighbor_alltoall_init
#endif

namespace mpi_test {
namespace {

// On a ring of one, in two dimensions, each neighbour is the process itself several times over, of
// which carillon has no order under MPICH.
MPI_Comm make_ring() {
  const int ones[2] = {1, 1};
  MPI_Comm ring = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_SELF, 2, ones, ones, 0, &ring);
  return ring;
}

constexpr int kNumbers = 4;

// The first two or all three: a persistent collective, another one, a message.
void wait_for_all(int count, bool with_statuses, int round, std::array<MPI_Request, 3>& requests) {
  std::array<MPI_Status, 3> statuses;
  for (MPI_Status& status : statuses) status.MPI_SOURCE = status.MPI_TAG = 77;
  const int code =
      MPI_Waitall(count, requests.data(), with_statuses ? statuses.data() : MPI_STATUSES_IGNORE);
  check(code == MPI_SUCCESS, "MPI_Waitall, round " + std::to_string(round));
  check(requests[0] != MPI_REQUEST_NULL, "the persistent handle is kept");
  check(requests[1] == MPI_REQUEST_NULL && requests[2] == MPI_REQUEST_NULL, "the others are not");
  if (!with_statuses) return;
  check(count == 2 || (statuses[2].MPI_SOURCE == 0 && statuses[2].MPI_TAG == round),
        "the status of the message");
  check(statuses[1].MPI_SOURCE != 77, "the status of the collective");
}

void wait_beside_others() {
  MPI_Comm ring = make_ring();
  [[maybe_unused]] const std::uint64_t before = left("neighbor_alltoall_init");
  std::array<int, kNumbers> in{}, out{};
  std::array<MPI_Request, 3> requests;
  requests.fill(MPI_REQUEST_NULL);
  MPI_Neighbor_alltoall_init(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, ring, MPI_INFO_NULL,
                             requests.data());
#if !defined(OPEN_MPI) && !defined(MPI_ABI_VERSION)
  check(left("neighbor_alltoall_init") == before + 1, "it is left");
#endif
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < kNumbers; ++i) in[static_cast<std::size_t>(i)] = 10 * round + i;
    MPI_Start(requests.data());
    int mine = world_rank() + round, sum = -1, sent = 100 + round, got = -1;
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    const int count = round < 2 ? 2 : 3;
    if (count == 3) {
      MPI_Irecv(&got, 1, MPI_INT, 0, round, MPI_COMM_SELF, &requests[2]);
      MPI_Send(&sent, 1, MPI_INT, 0, round, MPI_COMM_SELF);
    }
    wait_for_all(count, round % 2 == 0, round, requests);
    const int ranks = world_size();
    check(sum == ranks * (ranks - 1) / 2 + ranks * round, "the sum");
    check(count == 2 || got == sent, "the message");
    int total = 0;
    for (const int number : out) total += number;
    check(total == 40 * round + 6, "the neighbours' numbers");
  }
  MPI_Request_free(requests.data());
  MPI_Comm_free(&ring);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  for (int i = 0; i < 3; ++i) wait_beside_others();
  return end();
}
