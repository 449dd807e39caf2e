/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded behind the interposer: an MPI that gives process 2 no session of MPI_THREAD_MULTIPLE,
 * such as carillon's own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int is_refused(MPI_Info info) {
  const char* rank = getenv("PMI_RANK");
  char level[64] = "";
  int found = 0;
  if (rank == NULL || strcmp(rank, "2") != 0 || info == MPI_INFO_NULL) return 0;
  MPI_Info_get(info, "thread_level", (int)sizeof(level) - 1, level, &found);
  return found && strcmp(level, "MPI_THREAD_MULTIPLE") == 0;
}

int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  typedef int (*init_t)(MPI_Info, MPI_Errhandler, MPI_Session*);
  const init_t next = (init_t)dlsym(RTLD_NEXT, "PMPI_Session_init");
  return is_refused(info) ? MPI_ERR_OTHER : next(info, errhandler, session);
}
