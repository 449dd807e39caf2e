// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace heap_test {

Region region() {
  using Function = int (*)(void** base, std::size_t* bytes, int* fd);
  const auto of_heap = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "carillon_heap_region"));
  void* base = nullptr;
  Region found;
  if (of_heap == nullptr || of_heap(&base, &found.bytes, &found.fd) != 0) return {};
  found.first = static_cast<const char*>(base);
  return found;
}

bool in_heap(const void* memory) {
  const Region heap = region();
  return heap.fd >= 0 && memory >= heap.first && memory < heap.first + heap.bytes;
}

int status_of(pid_t child) {
  int state = 0;
  if (child < 0 || waitpid(child, &state, 0) != child || !WIFEXITED(state)) return -1;
  return WEXITSTATUS(state);
}

int status_of(const std::function<int()>& child, int patience_s) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(static_cast<unsigned>(patience_s));
    _exit(child());
  }
  return status_of(pid);
}

std::size_t status_kib(const char* name) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    std::size_t kib = 0;
    if (word == std::string(name) + ":" && file >> kib) return kib;
  }
  return 0;
}

}  // namespace heap_test
