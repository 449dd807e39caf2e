/* SPDX-License-Identifier: Apache-2.0
 *
 * The program that cluster_test.py runs on slow wires: the two ranks fill the queues of their wires
 * with datagrams for each other that nobody wants, "starve_probe BYTES" so many, and make an
 * allreduce, which has to wait until they are through. Rank 0 prints how long both took, since the
 * wires begin at once; each rank "rank R of 2, errors E".
 */
#include <arpa/inet.h>
#include <mpi.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { SOCKETS = 512, DATAGRAM = 1472, FRAME = 1514, COUNT = 1000 };

static struct sockaddr_in address_of_node(int node) {
  char name[32];
  snprintf(name, sizeof name, "node%d", node);
  struct addrinfo hints = {.ai_family = AF_INET}, *found = NULL;
  if (getaddrinfo(name, "9", &hints, &found) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  const struct sockaddr_in address = *(struct sockaddr_in*)(void*)found->ai_addr;
  freeaddrinfo(found);
  return address;
}

/* Each socket has so much on its way, and no more: many make a long queue. */
static void fill(const struct sockaddr_in* to, long long bytes) {
  static const char data[DATAGRAM];
  for (int i = 0; i < SOCKETS && bytes > 0; ++i) {
    const int one = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (one < 0) MPI_Abort(MPI_COMM_WORLD, 3);
    while (bytes > 0 && sendto(one, data, sizeof data, 0, (const struct sockaddr*)to, sizeof *to) ==
                            (ssize_t)sizeof data) {
      bytes -= FRAME;
    } /* the socket stays open: with it would go what it has on its way */
  }
  if (bytes > 0) MPI_Abort(MPI_COMM_WORLD, 4);
}

int main(int argc, char** argv) {
  int rank, ranks, errors = 0;
  double data[COUNT];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 2 || ranks != 2) MPI_Abort(MPI_COMM_WORLD, 1);
  const struct sockaddr_in to = address_of_node(1 - rank);
  for (int call = 0; call < 2; ++call) {
    const double begin = MPI_Wtime();
    if (call == 1) fill(&to, atoll(argv[1]));
    for (int i = 0; i < COUNT; ++i) data[i] = rank + i;
    MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; ++i) errors += data[i] != 1 + 2 * i;
    if (call == 1 && rank == 0) printf("waited %.3f s\n", MPI_Wtime() - begin);
  }
  printf("rank %d of %d, errors %d\n", rank, ranks, errors);
  MPI_Finalize();
  return errors != 0;
}
