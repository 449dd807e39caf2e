/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded: an mprotect that makes no MPI's library writable on rank 1, as a system's rules for
 * one process may have it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int mprotect(void* memory, size_t bytes, int protection) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  Dl_info info;
  if (rank == NULL) rank = getenv("PMI_RANK");
  if ((protection & PROT_WRITE) != 0 && rank != NULL && strcmp(rank, "1") == 0 &&
      dladdr(memory, &info) != 0 && info.dli_fname != NULL &&
      strstr(info.dli_fname, "libmpi") != NULL) {
    errno = EACCES;
    return -1;
  }
  return (int)syscall(SYS_mprotect, memory, bytes, protection);
}
