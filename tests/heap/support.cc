// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace heap_test {
namespace {

unsigned char value_at(std::size_t i, int salt) {
  return static_cast<unsigned char>(i * 131 + static_cast<std::size_t>(salt) * 17 + i / 4096);
}

}  // namespace

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

void fill(void* memory, std::size_t bytes, int salt) {
  auto* const data = static_cast<unsigned char*>(memory);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = value_at(i, salt);
}

bool holds(const void* memory, std::size_t bytes, int salt) {
  const auto* const data = static_cast<const unsigned char*>(memory);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (data[i] != value_at(i, salt)) return false;
  }
  return true;
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
