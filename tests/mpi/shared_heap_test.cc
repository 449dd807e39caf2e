// SPDX-License-Identifier: Apache-2.0
//
// A program whose large blocks are in the shared heap: they behave as blocks do, children of fork
// have copies of their own, and collectives read them where they are. With `full` as its argument,
// the heap has 1 MiB, too little for all of that, with `none` there is no heap, with `private` or
// `closed` the others cannot read it, because there is no room for it or because the program has
// closed its file: which changes nothing but who copies what.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support.h"
#include "support/known_bytes.h"

namespace mpi_test {
namespace {

constexpr std::size_t kLarge = 1 << 20;

bool g_full = false;  // or none, or not read by others
bool g_private = false;
std::size_t g_heap_bytes = SIZE_MAX;

// Where the heap is; its descriptor, or -1: nobody else can have it.
int region_of_heap(const char** first, std::size_t* bytes) {
  using Region = int (*)(void** base, std::size_t* bytes, int* fd);
  const auto region = reinterpret_cast<Region>(dlsym(RTLD_DEFAULT, "carillon_heap_region"));
  void* base = nullptr;
  int fd = -1;
  if (region == nullptr || region(&base, bytes, &fd) != 0) return -1;
  *first = static_cast<const char*>(base);
  return fd;
}

bool in_heap(const void* memory) {
  const char* first = nullptr;
  std::size_t bytes = 0;
  return region_of_heap(&first, &bytes) >= 0 && memory >= first && memory < first + bytes;
}

// As programs do that close what they may have inherited; a file of theirs takes the number, which
// is returned.
int close_heap_file() {
  const char* first = nullptr;
  std::size_t bytes = 0;
  const int fd = region_of_heap(&first, &bytes);
  check(fd >= 0, "the heap's file");
  const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
  check(dup2(other, fd) == fd, "dup2");
  close(other);
  check(region_of_heap(&first, &bytes) < 0, "no heap for others without its file");
  return fd;
}

// Of a heap that has too little room, only what is longer than all of it is surely elsewhere.
bool is_placed(const void* block, std::size_t bytes) {
  const bool large = bytes >= 65536;
  if (!large || bytes > g_heap_bytes) return !in_heap(block);
  return g_full || in_heap(block);
}

using known_bytes::fill;
using known_bytes::holds;
bool is_clear(const void* memory, std::size_t bytes) {
  const auto* const data = static_cast<const unsigned char*>(memory);
  return std::all_of(data, data + bytes, [](unsigned char byte) { return byte == 0; });
}

void test_blocks() {
  void* const small = std::malloc(100);
  check(!in_heap(small), "a small block is in the heap");
  std::free(small);
  void* const large = std::malloc(kLarge + 3);
  check(is_placed(large, kLarge + 3), "a large block's place");
  check(malloc_usable_size(large) >= kLarge + 3, "malloc_usable_size");
  fill(large, kLarge + 3, 1);
  std::free(large);
  void* const cleared = std::calloc(3, kLarge / 2);
  check(is_clear(cleared, 3 * kLarge / 2), "calloc of pages that were used");
  std::free(cleared);
  const std::vector<double> vector(kLarge / 8, 1.5);
  check(is_placed(vector.data(), kLarge), "operator new");
  const volatile std::size_t most = SIZE_MAX / 2;
  check(std::calloc(most, 4) == nullptr, "calloc of more than there is");
}

void test_realloc() {
  void* block = std::malloc(1000);
  fill(block, 1000, 2);
  std::size_t held = 1000;
  void* between[6];
  int i = 0;
  for (const std::size_t bytes :
       {kLarge, 2 * kLarge, 7 * kLarge, 3 * kLarge, kLarge / 8, std::size_t{500}}) {
    block = std::realloc(block, bytes);
    check(holds(block, std::min(held, bytes), 2), "realloc to " + std::to_string(bytes));
    check(is_placed(block, bytes), "where realloc moves a block");
    fill(block, bytes, 2);
    held = bytes;
    between[i++] = std::malloc(kLarge);  // so that not every block can grow where it is
  }
  std::free(block);
  for (void* const each : between) std::free(each);
}

void test_alignment() {
  for (std::size_t alignment = sizeof(void*); alignment <= 8 * kLarge; alignment *= 2) {
    void* block = nullptr;
    check(posix_memalign(&block, alignment, kLarge) == 0, "posix_memalign");
    check(reinterpret_cast<std::uintptr_t>(block) % alignment == 0,
          "alignment of " + std::to_string(alignment));
    std::free(block);
  }
  void* block = nullptr;
  check(posix_memalign(&block, 24, kLarge) == EINVAL, "an alignment that is none");
}

void test_threads() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int round = 0; round < 50; ++round) {
        const std::size_t bytes = 65536 * static_cast<std::size_t>(1 + (round * 7 + t) % 9);
        void* const block = std::malloc(bytes);
        fill(block, bytes, t);
        check(holds(block, bytes, t), "a block that only one thread has");
        std::free(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// What the child sees, and the parent afterwards.
void test_fork() {
  void* const block = std::malloc(kLarge);
  void* const freed = std::malloc(kLarge);
  std::free(freed);
  fill(block, kLarge, 3);
  int pipe_ends[2];
  check(pipe(pipe_ends) == 0, "pipe");
  const pid_t child = fork();
  if (child == 0) {
    char go = 0;
    close(pipe_ends[1]);
    if (read(pipe_ends[0], &go, 1) != 1) _exit(1);  // the parent has written over the block
    if (!holds(block, kLarge, 3)) _exit(2);
    fill(block, kLarge, 4);
    void* const more = std::malloc(3 * kLarge);
    fill(more, 3 * kLarge, 5);
    const bool shared = in_heap(more);
    std::free(more);
    std::free(block);
    _exit(shared ? 3 : 0);  // a child's blocks are its own
  }
  fill(block, kLarge, 6);
  check(write(pipe_ends[1], "g", 1) == 1, "write");
  int state = 0;
  waitpid(child, &state, 0);
  check(WIFEXITED(state) && WEXITSTATUS(state) == 0,
        "child of fork: " + std::to_string(WIFEXITED(state) ? WEXITSTATUS(state) : -1));
  check(holds(block, kLarge, 6), "the parent's block after its child wrote to it");
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  check(std::system("exit 7") == 7 << 8, "system");
  std::free(block);
}

// A child takes address space for what it copies, not for the whole heap again.
void test_fork_within_limits() {
  rlimit before{};
  check(getrlimit(RLIMIT_AS, &before) == 0, "getrlimit");
  unsigned long long pages = 0;
  if (std::FILE* const statm = std::fopen("/proc/self/statm", "r"); statm != nullptr) {
    check(std::fscanf(statm, "%llu", &pages) == 1, "statm");
    std::fclose(statm);
  }
  rlimit limit = before;
  limit.rlim_cur = pages * 4096 + (UINT64_C(40) << 20);  // the heap is longer
  if (before.rlim_cur != RLIM_INFINITY && before.rlim_cur < limit.rlim_cur) return;
  void* const block = std::malloc(kLarge);
  fill(block, kLarge, 7);
  check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
  const pid_t child = fork();
  if (child == 0) _exit(holds(block, kLarge, 7) ? 0 : 1);
  int state = 0;
  waitpid(child, &state, 0);
  check(setrlimit(RLIMIT_AS, &before) == 0, "setrlimit");
  check(WIFEXITED(state) && WEXITSTATUS(state) == 0,
        "child with little address space: " + std::to_string(state));
  std::free(block);
}

// A child's copy does not need the heap's file, and leaves the program's in peace.
void test_fork_without_file() {
  auto* const block = static_cast<unsigned char*>(std::malloc(kLarge));
  auto* const sparse = static_cast<unsigned char*>(std::calloc(kLarge, 1));
  fill(block, kLarge, 8);
  sparse[kLarge / 2] = 9;
  const int fd = close_heap_file();
  const pid_t child = fork();
  if (child == 0) {
    if (!holds(block, kLarge, 8)) _exit(1);
    for (std::size_t i = 0; i < kLarge; ++i) {
      if (sparse[i] != (i == kLarge / 2 ? 9 : 0)) _exit(2);
    }
    _exit(fcntl(fd, F_GETFD) < 0 ? 3 : 0);
  }
  int state = 0;
  waitpid(child, &state, 0);
  check(WIFEXITED(state) && WEXITSTATUS(state) == 0,
        "child of a process without the heap's file: " + std::to_string(state));
  std::free(block);
  std::free(sparse);
}

struct NodeBytes {
  unsigned long long in_place = 0, copied = 0;
};
NodeBytes node_bytes() {
  using Counter = void (*)(unsigned long long*, unsigned long long*);
  const auto counter = reinterpret_cast<Counter>(dlsym(RTLD_DEFAULT, "carillon_shim_node_bytes"));
  NodeBytes bytes;
  if (counter != nullptr) counter(&bytes.in_place, &bytes.copied);
  return bytes;
}

void test_collectives() {
  const int rank = world_rank(), size = world_size();
  auto* const block = static_cast<unsigned char*>(std::malloc(kLarge));
  auto* const all =
      static_cast<unsigned char*>(std::malloc(kLarge * static_cast<std::size_t>(size)));
  for (int root = 0; root < size; ++root) {
    for (const std::size_t bytes :
         {std::size_t{8}, std::size_t{5000}, std::size_t{70000}, kLarge}) {
      fill(block, kLarge, rank == root ? 10 + root : 0);
      check(
          MPI_Bcast(block, static_cast<int>(bytes), MPI_BYTE, root, MPI_COMM_WORLD) == MPI_SUCCESS,
          "bcast");
      check(holds(block, bytes, 10 + root), "bcast of " + std::to_string(bytes));
    }
  }
  fill(block, kLarge, 20 + rank);
  MPI_Allgather(block, static_cast<int>(kLarge), MPI_BYTE, all, static_cast<int>(kLarge), MPI_BYTE,
                MPI_COMM_WORLD);
  for (int from = 0; from < size; ++from) {
    check(holds(all + static_cast<std::size_t>(from) * kLarge, kLarge, 20 + from), "allgather");
  }
  if (size > 1 && !g_full) check(node_bytes().in_place > 0, "bytes read where they stood");
  if (g_heap_bytes == 0 || g_private)
    check(node_bytes().in_place == 0, "bytes read where they stood");
  std::free(all);
  std::free(block);
  // What is freed may be something else at once.
  for (int round = 0; round < 20; ++round) {
    auto* const data = static_cast<unsigned char*>(std::malloc(kLarge));
    fill(data, kLarge, rank == 0 ? round : 99);
    MPI_Bcast(data, static_cast<int>(kLarge), MPI_BYTE, 0, MPI_COMM_WORLD);
    check(holds(data, kLarge, round), "bcast of a block that was another one before");
    std::free(data);
  }
}

// From each rank to each, blocks of other lengths; none is copied that is in the heap.
void test_alltoallv() {
  constexpr int kBytes = 128 << 10;
  const int rank = world_rank(), size = world_size();
  std::vector<int> send, from, receive, to;
  for (int other = 0, sent = 0, received = 0; other < size; ++other) {
    send.push_back(kBytes * (1 + (rank + 2 * other) % 3));
    receive.push_back(kBytes * (1 + (other + 2 * rank) % 3));
    from.push_back(std::exchange(sent, sent + send.back()));
    to.push_back(std::exchange(received, received + receive.back()));
  }
  const auto most = static_cast<std::size_t>(3 * kBytes * size);
  auto* const in = static_cast<unsigned char*>(std::malloc(most));
  auto* const out = static_cast<unsigned char*>(std::malloc(most));
  const NodeBytes before = node_bytes();
  for (const bool starts : {false, true}) {
    for (std::size_t i = 0; i < send.size(); ++i) {
      fill(in + from[i], static_cast<std::size_t>(send[i]), 30 + rank + 7 * static_cast<int>(i));
    }
    if (starts) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Ialltoallv(in, send.data(), from.data(), MPI_BYTE, out, receive.data(), to.data(),
                     MPI_BYTE, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Alltoallv(in, send.data(), from.data(), MPI_BYTE, out, receive.data(), to.data(),
                    MPI_BYTE, MPI_COMM_WORLD);
    }
    std::memset(in, 0, most);
    for (std::size_t i = 0; i < send.size(); ++i) {
      check(holds(out + to[i], static_cast<std::size_t>(receive[i]),
                  30 + static_cast<int>(i) + 7 * rank),
            "alltoallv");
    }
    std::memset(out, 0, most);
  }
  const NodeBytes after = node_bytes();
  if (!g_full) check(after.copied == before.copied, "alltoallv copied what is in the heap");
  if (size > 1 && !g_full) check(after.in_place > before.in_place, "alltoallv in place");
  std::free(in);
  std::free(out);
}

// What the function writes to stderr.
template <typename Function>
std::string said(Function function) {
  int ends[2];
  check(pipe(ends) == 0, "pipe");
  const int before = dup(STDERR_FILENO);
  std::fflush(stderr);
  dup2(ends[1], STDERR_FILENO);
  function();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t got; (got = read(ends[0], part, sizeof(part))) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  return text;
}

// An error of the program's, which it is told of: nobody gets the block before the call has ended.
void test_free_in_use() {
  constexpr int kBytes = static_cast<int>(kLarge);
  auto* const block = static_cast<unsigned char*>(std::malloc(kLarge));
  int go = 0;
  if (world_rank() != 0) {
    MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(block, kBytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(holds(block, kLarge, 60), "bcast of a block that was freed meanwhile");
    std::free(block);
    return;
  }
  fill(block, kLarge, 60);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(block, kBytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  const unsigned char* const at = block;
  const std::string text = said([&] { std::free(block); });
  auto* const other = static_cast<unsigned char*>(std::malloc(kLarge));
  fill(other, kLarge, 61);
  check(other != at, "a block that a collective uses is given to another");
  check(text.find("MPI_Ibcast") != std::string::npos && text.find("freed") != std::string::npos,
        "who frees a block in use is told: " + text);
  for (int to = 1; to < world_size(); ++to) MPI_Send(&go, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  std::free(other);
  void* const first = std::malloc(kLarge);
  void* const second = std::malloc(kLarge);
  check(first == at || second == at, "the block is there again after the call");
  std::free(first);
  std::free(second);
}

// What means nothing on a rank is the program's all the time.
void test_free_of_what_is_not_used() {
  const int rank = world_rank();
  void* const unused = std::malloc(kLarge);
  std::vector<int> mine(kLarge / 8, rank), sums(kLarge / 8);
  void* const out = rank == 0 ? static_cast<void*>(sums.data()) : unused;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ireduce(mine.data(), out, static_cast<int>(mine.size()), MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD,
              &request);
  check(said([&] { std::free(unused); }).empty(), "who frees what is not used is told nothing");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const int size = world_size();
  if (rank == 0) check(sums.front() == size * (size - 1) / 2, "reduce");
}

// Nor what a rank's lists say that there is nothing in; the others come later.
void test_free_of_what_is_empty() {
  constexpr int kBytes = 128 << 10;
  const int rank = world_rank(), size = world_size();
  void* const unused = std::malloc(kLarge);
  std::vector<unsigned char> in(kBytes), out(static_cast<std::size_t>(size) * kBytes);
  fill(in.data(), kBytes, 70 + rank);
  std::vector<int> send(static_cast<std::size_t>(size)), receive(send), from(send), to(send);
  if (rank != 0) send[0] = kBytes;
  for (int other = 1; rank == 0 && other < size; ++other) {
    receive[static_cast<std::size_t>(other)] = kBytes;
    to[static_cast<std::size_t>(other)] = other * kBytes;
  }
  int go = 0;
  if (rank != 0) MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ialltoallv(rank == 0 ? unused : in.data(), send.data(), from.data(), MPI_BYTE, out.data(),
                 receive.data(), to.data(), MPI_BYTE, MPI_COMM_WORLD, &request);
  check(said([&] { std::free(unused); }).empty(), "who frees what has no data is told nothing");
  for (int other = 1; rank == 0 && other < size; ++other) {
    MPI_Send(&go, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int other = 1; rank == 0 && other < size; ++other) {
    check(holds(out.data() + to[static_cast<std::size_t>(other)], kBytes, 70 + other),
          "ialltoallv");
  }
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  const std::string heap = argc > 1 ? argv[1] : "";
  g_private = heap == "private" || heap == "closed";
  g_full = g_private || heap == "full" || heap == "none";
  if (heap == "none") g_heap_bytes = 0;
  if (heap == "full") g_heap_bytes = 1 << 20;
  void* const first = std::malloc(kLarge);
  if (heap == "closed") close_heap_file();
  begin(argc, argv);
  std::free(first);
  test_blocks();
  test_realloc();
  test_fork();
  test_fork_within_limits();
  test_alignment();
  test_threads();
  test_collectives();
  malloc_trim(0);
  test_collectives();
  test_alltoallv();
  if (!g_full && world_size() > 1) test_free_in_use();
  if (!g_full) test_free_of_what_is_not_used();
  if (!g_full) test_free_of_what_is_empty();
  if (!g_full) test_fork_without_file();
  if (world_size() > 1) check(taken("bcast") > 0 && left("bcast") == 0, "the node is served");
  return end();
}
